"""CSV files: their form, found once from the first lines, and scans that no line can break.

Promise: a scan reads every field as text and never fails for what a line holds. A missing field is NULL, a field too
many is ignored, a line that cannot be read at all is left out. What the texts mean is decided by the declared kinds,
after the scan (`kinds.cast`).
"""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from tacit.engines.duckdb.connecting import Connection
from tacit.engines.names import listed, literal
from tacit.privacy.errors import SourceMissing

LOOKED_AT_BYTES: Final = 1 << 20
LONG: Final = f"max_line_size = {16 << 20}, buffer_size = {32 << 20}"
LENIENT: Final = f"{LONG}, null_padding = true, ignore_errors = true, strict_mode = false"
_COLUMNS: Final = 6
_NOTHING: Final = ("", "(empty)", None)


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How the lines of a file are written, and the names and likely types of its columns."""

    delimiter: str
    quote: str
    escape: str
    comment: str
    skipped: int
    has_header: bool
    encoding: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    date_pattern: str
    time_pattern: str

    def pattern(self, type_name: str) -> str:
        """Return how the dates or times of a likely type are written; nothing for the usual way, or other types."""
        return {"DATE": self.date_pattern, "TIMESTAMP": self.time_pattern}.get(type_name, "")


def form_of(connection: Connection, path: str) -> CsvForm:
    """Find out the form of a file from its beginning."""
    begins = _beginning(path)
    if not begins:
        raise SourceMissing(f"{path} is empty; a CSV file begins with a line of names")
    encoding = _encoding(begins)
    sniffed = None
    for way in (f"{LONG}, quote = '\"'", LONG, LENIENT):  # an apostrophe is seldom a quote; lines may differ in length
        found = _sniffed(connection, path, encoding, way)
        if found is not None and (sniffed is None or len(found[_COLUMNS]) > len(sniffed[_COLUMNS])):
            sniffed = found
        if sniffed is not None and len(sniffed[_COLUMNS]) > 1:
            break
    if sniffed is None:
        raise SourceMissing(f"{path} cannot be read as CSV; check that it is text with a line a row")
    delimiter, quote, escape, comment, skipped, has_header, columns, date_pattern, time_pattern = sniffed
    quote = '"' if quote in _NOTHING else quote  # the first lines may have had no need of it
    return CsvForm(
        delimiter=delimiter,
        quote=quote,
        escape=quote if escape in _NOTHING else escape,
        comment="" if comment in _NOTHING else comment,
        skipped=skipped,
        has_header=has_header,
        encoding=encoding,
        names=tuple(column["name"] for column in columns),
        types=tuple(column["type"] for column in columns),
        date_pattern="" if date_pattern in _NOTHING else date_pattern,
        time_pattern="" if time_pattern in _NOTHING else time_pattern,
    )


def scan(form: CsvForm, paths: Sequence[str], *, parallel: bool = True) -> str:
    """Return the FROM item that reads files of one form, every column as text.

    In parallel is fast, and fails where a text in quotes goes over several lines.
    """
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in form.names)
    header = "true" if form.has_header else "false"
    return (
        f"read_csv({listed(paths)}, auto_detect = false, columns = {{{columns}}}, header = {header}, "
        f"delim = {literal(form.delimiter)}, quote = {literal(form.quote)}, escape = {literal(form.escape)}, "
        f"comment = {literal(form.comment)}, skip = {form.skipped}, encoding = {literal(form.encoding)}, "
        f"parallel = {'true' if parallel else 'false'}, {LENIENT})"
    )


def _sniffed(connection: Connection, path: str, encoding: str, way: str) -> tuple[Any, ...] | None:
    try:
        return connection.execute(
            'SELECT "Delimiter", "Quote", "Escape", "Comment", "SkipRows", "HasHeader", "Columns", "DateFormat", '
            f'"TimestampFormat" FROM sniff_csv({literal(path)}, encoding = {literal(encoding)}, {way})'
        ).fetchone()
    except duckdb.Error:
        return None


def _encoding(begins: bytes) -> str:
    """Return the encoding that the beginning of a file can be read in."""
    if begins.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(begins)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _beginning(path: str) -> bytes:
    if path.endswith(".zst"):
        return b"\n"  # packed in a way that Python may not know; taken as UTF-8
    try:
        if path.endswith(".gz"):
            with gzip.open(path) as packed:
                return packed.read(LOOKED_AT_BYTES)
        with open(path, "rb") as file:
            return file.read(LOOKED_AT_BYTES)
    except (OSError, EOFError):
        raise SourceMissing(f"{path} cannot be read; check its permissions, and that it is complete") from None
