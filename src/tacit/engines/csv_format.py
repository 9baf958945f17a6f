"""How CSV files are written: a record that is found once, when a table is registered, and kept.

A form that is looked for again in every version of a file depends on its rows: one person's byte, quote or date could
change how everybody's rows are read. A form that is kept reads each row by itself (`engines.duckdb.csv_files`).

Not here: finding a form, and reading by it. The record is plain text, booleans and whole numbers, as JSON holds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from tacit.privacy.errors import InvalidInput

NEWLINES: Final = ("\n", "\r\n", "\r")
ENCODINGS: Final = ("utf-8", "latin-1", "utf-16")
SKIPPED_MAX: Final = 1_000_000
_SIGNS: Final = ("delimiter", "quote", "escape", "comment")


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How the lines of a file are written, and the names and likely types of its columns."""

    delimiter: str
    quote: str
    escape: str
    comment: str
    """What a line begins with that is no row; empty if there are no such lines."""
    newline: str
    """How the first lines end; everywhere after them a line ends with any of these."""
    skipped: int
    """How many lines stand before the line of names, or before the rows where there is none."""
    has_header: bool
    quoted_newlines: bool
    """Whether texts in quotes go over several lines. If not, the end of a line always ends its row."""
    encoding: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    date_pattern: str
    time_pattern: str

    def __post_init__(self) -> None:
        for name in _SIGNS:
            sign = getattr(self, name)
            if (
                not isinstance(sign, str)
                or len(sign) > 1
                or sign in ("\n", "\r", "\0")
                or (name != "comment" and not sign)
            ):
                raise _invalid(name, "is one sign, and no end of a line")
        if self.delimiter in (self.quote, self.escape, self.comment) or self.comment == self.quote:
            raise _invalid("delimiter", "differs from the quote and from the sign of a comment")
        if self.encoding not in ENCODINGS:
            raise _invalid("encoding", f"is one of {', '.join(ENCODINGS)}")
        if self.newline not in NEWLINES:
            raise _invalid("newline", "is a line feed, a carriage return, or both")
        for name in ("has_header", "quoted_newlines"):
            if not isinstance(getattr(self, name), bool):
                raise _invalid(name, "is true or false")
        if type(self.skipped) is not int or not 0 <= self.skipped <= SKIPPED_MAX:
            raise _invalid("skipped", f"is a whole number from 0 to {SKIPPED_MAX:,}")
        for name in ("names", "types"):
            texts = getattr(self, name)
            if (
                not isinstance(texts, list | tuple)
                or not texts
                or not all(isinstance(one, str) and one for one in texts)
            ):
                raise _invalid(name, "is a list of texts, a text a column")
            object.__setattr__(self, name, tuple(texts))
        if len(self.names) != len(self.types) or len({name.lower() for name in self.names}) != len(self.names):
            raise _invalid("names", "has a type for each column, and no name twice")
        for name in ("date_pattern", "time_pattern"):
            if not isinstance(getattr(self, name), str) or "\0" in getattr(self, name):
                raise _invalid(name, "is a text such as %d/%m/%Y, or empty")

    def pattern(self, type_name: str) -> str:
        """Return how the dates or times of a likely type are written; nothing for the usual way, or other types."""
        return {"DATE": self.date_pattern, "TIMESTAMP": self.time_pattern}.get(type_name, "")

    def to_dict(self) -> dict[str, Any]:
        """Return the form as JSON holds it."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, record: object) -> CsvForm:
        """Read a form back; raises InvalidInput for anything else."""
        known = {field.name for field in fields(cls)}
        if not isinstance(record, Mapping) or set(record) != known:
            raise InvalidInput(f"the form of a CSV file is an object of {', '.join(sorted(known))}", name="csv")
        return cls(**record)


def _invalid(name: str, what: str) -> InvalidInput:
    return InvalidInput(f"the {name} of a CSV file {what}", name=f"csv.{name}")
