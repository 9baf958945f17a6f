"""The check of quotes in CSV files whose texts go over several lines, when a table is registered or refreshed.

Where texts go over several lines (`CsvFormat.quoted_newlines`), DuckDB's lenient parser reads the file, and a quote out
of place may take the lines after it along: they would be missing from every answer. What that parser does with such a
quote is not modelled here. A file is accepted only if its quotes leave no choice (RFC 4180): a field has no quote at
all, or is in quotes from its first character to its last, with the quotes inside of it escaped. Then each field ends
where every parser ends it, and so does each row. Two more things that make DuckDB lose rows are refused: a row of more
than `LINE_MAX` bytes, after which it may go on within a text, and a text over several of the lines before the header.
Where the format has a comment sign, DuckDB also cuts a row at that sign wherever it stands outside of quotes, and then
may join rows: it is accepted as the first character of a line that has no quote, and within quotes.

Where texts do not go over several lines, every line is a row whatever its quotes, and there is nothing to check.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from enum import Enum, auto
from typing import IO, Final

from tacit.engines.csv_format import CsvFormat
from tacit.engines.duckdb.csv_files import LINE_MAX, is_gzip
from tacit.privacy.errors import SourceMissing

_PIECE: Final = 1 << 20
"""How many characters of a line are read at once."""


def require_strict(csv_format: CsvFormat, path: str, readable: str) -> None:
    """Raise SourceMissing, with the line, unless rows are in strict form; `readable` is the file in UTF-8."""
    if not csv_format.quoted_newlines:
        return
    try:
        with (
            gzip.open(readable) if is_gzip(readable) else open(readable, "rb") as file,
            io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace") as lines,
        ):
            failure = _Parser(csv_format).failure(lines)
    except (OSError, EOFError, zlib.error):
        raise SourceMissing(f"{path} cannot be read; check its permissions, and that it is complete") from None
    if failure is not None:
        raise SourceMissing(f"{path}, {failure}")


class _State(Enum):
    """The state of the parser before a character."""

    START = auto()
    """At the beginning of a field."""
    PLAIN = auto()
    """In a field without quotes."""
    WITHIN = auto()
    """In a field in quotes."""
    ESCAPED = auto()
    """In a field in quotes, after an escape that is no quote."""
    CLOSED = auto()
    """After a quote in a field in quotes: it ends the field, unless it escapes the next one."""


class _Parser:
    """A state machine that reads each character once; it keeps a state and three numbers."""

    def __init__(self, csv_format: CsvFormat) -> None:
        self._format = csv_format
        self._quoting = re.compile(f"[{re.escape(csv_format.quote + csv_format.escape)}]")
        self._special = re.compile(f"[{re.escape(csv_format.quote + csv_format.escape + csv_format.comment)}]")
        self._state = _State.START
        self._line = self._begun = 1
        self._bytes = 0

    def failure(self, lines: IO[str]) -> str | None:
        """Return where and why the rows are not in strict form; None if they are."""
        is_first, is_comment = True, False
        while piece := lines.readline(_PIECE):
            if is_first and self._state is not _State.WITHIN:
                self._bytes, is_comment = 0, self._is_comment(piece)
            is_first = piece.endswith("\n")
            self._bytes += len(piece.encode()) + is_first  # the end of a line may have been two bytes
            if self._bytes > LINE_MAX:
                return f"line {self._line:,}: a row has more than {LINE_MAX:,} bytes; shorten it, or use Parquet"
            if self._format.quote in piece if is_comment else not self._reads(piece):
                return self._misplaced(self._line if self._state is _State.PLAIN else self._begun)
            if is_first and self._state is _State.WITHIN and self._line <= self._format.skipped:
                break
            self._line += is_first
        return self._misplaced(self._begun) if self._state in (_State.WITHIN, _State.ESCAPED) else None

    def _is_comment(self, piece: str) -> bool:
        return (
            bool(self._format.comment) and self._line > self._format.skipped and piece.startswith(self._format.comment)
        )

    def _is_cut_by_comments(self) -> bool:
        """Return whether a comment sign at this place would end the row."""
        return self._state is not _State.WITHIN and self._line > self._format.skipped

    def _misplaced(self, line: int) -> str:
        quote, escape = self._format.quote, self._format.escape
        return (
            f"line {line:,}: a text in quotes begins and is not closed, or a quote, an escape or a comment sign is "
            f"out of place, so the lines after it could be lost; put the whole field in {quote}, and write a {quote} "
            f"within it as {escape}{quote}"
        )

    def _reads(self, piece: str) -> bool:
        """Read a line, or a piece of one, and return whether it is in strict form so far."""
        at = 0
        while at < len(piece):
            if self._state in (_State.PLAIN, _State.WITHIN):
                found = (self._special if self._is_cut_by_comments() else self._quoting).search(piece, at)
                at = found.start() if found else len(piece)
            if at == len(piece):
                if self._state is _State.PLAIN and piece.endswith((self._format.delimiter, "\n")):
                    self._state = _State.START
            elif (after := self._after(piece[at], piece[at - 1 : at])) is None:
                return False
            else:
                at += not (self._state is _State.START and after is _State.PLAIN)  # which reads it again
                self._state = after
        return True

    def _after(self, character: str, before: str) -> _State | None:
        """Return the state after a character; None if it is not allowed there."""
        csv_format, state = self._format, self._state
        if character == csv_format.comment and self._is_cut_by_comments():
            return None
        is_quote = character == csv_format.quote
        if state is _State.START or (state is _State.PLAIN and is_quote and before == csv_format.delimiter):
            self._begun = self._line
            return _State.WITHIN if is_quote else _State.PLAIN
        if state is _State.WITHIN:
            return _State.CLOSED if is_quote else _State.ESCAPED
        if state is _State.ESCAPED and character in (csv_format.quote, csv_format.escape):
            return _State.WITHIN
        if state is _State.CLOSED:
            if is_quote and csv_format.escape == csv_format.quote:
                return _State.WITHIN
            return _State.START if character in (csv_format.delimiter, "\n") else None
        return None
