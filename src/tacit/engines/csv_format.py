"""The format of CSV files: a record that is detected once, when a table is registered, and stored as JSON.

A format that is detected again in every version of a file depends on its rows: one person's byte, quote or date could
change how everybody's rows are read. With a stored format each row is read by itself.

Left to `engines.duckdb.csv_files`: detecting a format, and reading files by it.
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
class CsvFormat:
    """The signs and encoding of a CSV file, and the names and likely types of its columns."""

    delimiter: str
    quote: str
    escape: str
    comment: str
    """The first character of a line that is a comment; empty if there are none."""
    newline: str
    """How the first lines end; after them a line may end with any of `NEWLINES`."""
    skipped: int
    """How many lines stand before the header, or before the rows where there is none."""
    has_header: bool
    quoted_newlines: bool
    """Whether texts in quotes may go over several lines. If not, the end of a line always ends its row."""
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
                raise _invalid(name, "must be one character, and not the end of a line")
        if self.delimiter in (self.quote, self.escape, self.comment) or self.comment == self.quote:
            raise _invalid("delimiter", "must differ from the quote, the escape and the comment sign")
        if self.encoding not in ENCODINGS:
            raise _invalid("encoding", f"must be one of {', '.join(ENCODINGS)}")
        if self.newline not in NEWLINES:
            raise _invalid("newline", "must be a line feed, a carriage return, or both")
        for name in ("has_header", "quoted_newlines"):
            if not isinstance(getattr(self, name), bool):
                raise _invalid(name, "must be true or false")
        if type(self.skipped) is not int or not 0 <= self.skipped <= SKIPPED_MAX:
            raise _invalid("skipped", f"must be a whole number from 0 to {SKIPPED_MAX:,}")
        for name in ("names", "types"):
            texts = getattr(self, name)
            if (
                not isinstance(texts, list | tuple)
                or not texts
                or not all(isinstance(one, str) and one for one in texts)
            ):
                raise _invalid(name, "must be a list of texts, one for each column")
            object.__setattr__(self, name, tuple(texts))
        if len(self.names) != len(self.types) or len({name.lower() for name in self.names}) != len(self.names):
            raise _invalid("names", "must be distinct, with one type for each")
        for name in ("date_pattern", "time_pattern"):
            if not isinstance(getattr(self, name), str) or "\0" in getattr(self, name):
                raise _invalid(name, "must be a text such as %d/%m/%Y, or empty")

    def pattern(self, type_name: str) -> str:
        """Return the pattern of dates or times of a likely type; empty for ISO dates and for other types."""
        return {"DATE": self.date_pattern, "TIMESTAMP": self.time_pattern}.get(type_name, "")

    def to_dict(self) -> dict[str, Any]:
        """Return the format as a dictionary for JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, record: object) -> CsvFormat:
        """Return the format that `to_dict` wrote; raise InvalidInput for anything else."""
        known = {field.name for field in fields(cls)}
        if not isinstance(record, Mapping) or set(record) != known:
            raise InvalidInput(
                f"the format of a CSV file is an object with the fields {', '.join(sorted(known))}", name="csv"
            )
        return cls(**record)


def _invalid(name: str, what: str) -> InvalidInput:
    return InvalidInput(f"the {name} of a CSV file {what}", name=f"csv.{name}")
