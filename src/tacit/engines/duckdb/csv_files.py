"""CSV files: detecting their format at registration, copies in UTF-8, and scans that read each row by itself.

Promise of a scan: it reads every field as text and never fails for what a line holds. A missing field is NULL, an extra
field is ignored, a line that cannot be read at all is left out, a field whose quotes do not match is NULL. What the
texts mean is decided by the declared kinds, after the scan (`kinds.cast`).

With a given format, what a line holds changes nothing about another line, unless texts in quotes go over several lines
(`CsvFormat.quoted_newlines`): then a misplaced quote takes the lines after it along. Such files are read by DuckDB's
own parser, and only in strict form (`csv_quotes`). In all others each line is a row, whatever its quotes, and is split
here: by its delimiters if there is no quote in it, otherwise by a regular expression.

Promise of a copy: a byte changes nothing but the character that it belongs to, where DuckDB's own decoders refuse a
whole file for one byte. In Latin-1 every byte is a character; in UTF-16 what is invalid is U+FFFD. Copies lie in a
folder that only its owner can read, and are removed when the rows have been read (`clear`), or by the next process
(`PreparedStore.sweep`).
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

import duckdb

from tacit.engines.csv_format import CsvFormat
from tacit.engines.duckdb.connections import Connection
from tacit.engines.quoting import digest, list_literal, literal, quoted, require_distinct
from tacit.privacy.errors import EngineFailed, InvalidInput, SourceMissing

UTF8: Final = "utf-8"
UTF16: Final = "utf-16"
_NUMBERS: Final = count()
HEAD_BYTES: Final = 1 << 20
HEAD_LINES: Final = 50_000
BINARY_BYTES: Final = 4096
"""A file that is not UTF-8 and has NUL among its first bytes, or in its first line, is no text but an archive, a
database or Parquet."""
LINE_MAX: Final = 16 << 20
"""A line of more bytes is left out."""
LONG: Final = f"max_line_size = {LINE_MAX}, buffer_size = {2 * LINE_MAX}"
LENIENT: Final = f"{LONG}, null_padding = true, ignore_errors = true, strict_mode = false"
_ENDS: Final = r"new_line = '\n'"
"""Makes every \\n and \\r the end of a line; otherwise DuckDB follows the first line that it sees."""
PREAMBLE_MAX: Final = 100
"""If the sniffer skips more lines before the header, it has misread rows."""
NAMES_MORE: Final = 1_000
"""How many columns a file may have beyond those of its format."""
_COLUMNS, _SKIPPED = 6, 4
_NOTHING: Final = ("", "(empty)", None)
_NO_DELIMITER: Final = "\x1e\x1f\x1e\x1f"
"""A delimiter that occurs in no line; if it does, the rest of the line is ignored."""


def is_gzip(path: str) -> bool:
    """Return whether DuckDB decompresses a file, which it decides by the name, ignoring case."""
    return path.lower().endswith(".gz")


class Utf8Copies:
    """The copies in UTF-8 of one engine, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, str] = {}

    def readable(self, path: str, encoding: str) -> str:
        """Return the path at which a file can be read in UTF-8: its own, or that of a copy of its current content."""
        if encoding == UTF8:
            return path
        try:
            status = os.stat(path)
        except OSError:
            raise _unread(path) from None
        key = digest(path, encoding, status.st_size, status.st_mtime_ns, status.st_ino)
        if key not in self._made:
            self._made[key] = self._copy(path, encoding)
        return self._made[key]

    def clear(self) -> None:
        """Remove all copies."""
        self._made.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _copy(self, path: str, encoding: str) -> str:
        copy = self._folder / f"{next(_NUMBERS)}.csv"
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as written:
                for piece in _pieces(path):
                    written.write(decoder.decode(piece, not piece).encode(UTF8, "replace"))
        except OSError:
            raise EngineFailed(f"a copy of {path} cannot be written in {self._folder}; is the disk full?") from None
        return str(copy)


def _pieces(path: str) -> Iterator[bytes]:
    """Yield the content of a file in pieces, and an empty piece at its end."""
    try:
        with gzip.open(path) if is_gzip(path) else open(path, "rb") as file:
            while piece := file.read(HEAD_BYTES):
                yield piece
    except (OSError, EOFError, zlib.error):
        raise _unread(path) from None
    yield b""


def _unread(path: str) -> SourceMissing:
    return SourceMissing(f"{path} cannot be read; check its permissions, and that it is complete")


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A file at `path`, and the path at which it can be read in UTF-8."""

    path: str
    readable: str

    @property
    def unread(self) -> SourceMissing:
        """The error for a file that cannot be read."""
        return SourceMissing(f"{self.path} cannot be read as CSV; check that it is text with a line a row")


def sniff_format(connection: Connection, path: str, copies: Utf8Copies) -> CsvFormat:
    """Return the format of a file, detected from its beginning."""
    head = next(_pieces(path))
    if not head:
        raise SourceMissing(f"{path} is empty; a CSV file begins with a line of names")
    encoding = _encoding(head)
    if encoding != UTF16 and b"\0" in (head.partition(b"\n")[0] if encoding == UTF8 else head[:BINARY_BYTES]):
        raise SourceMissing(f'{path} is not a text file; if it is Parquet, use format="parquet"')
    file = CsvFile(path, copies.readable(path, encoding))
    delimiter, quote, escape, comment, skipped, has_header, columns, date_pattern, time_pattern = _sniff_best(
        connection, file
    )
    text = head.decode(encoding, "replace")
    if quote in _NOTHING:
        quote = '"'  # the first lines may have had no need of it
    elif quote not in text and '"' in text:
        quote = escape = '"'  # one that is never closed makes DuckDB look for another
    comment = "" if comment in _NOTHING else comment
    try:
        csv_format = CsvFormat(
            delimiter=delimiter,
            quote=quote,
            escape=quote if escape in _NOTHING else escape,
            comment=comment,
            newline="\n",
            skipped=skipped + _count_blank_lines(head, encoding, skipped, comment),
            has_header=has_header,
            quoted_newlines=False,
            encoding=encoding,
            names=_unique_names([column["name"] for column in columns]),
            types=tuple(column["type"] for column in columns),
            date_pattern="" if date_pattern in _NOTHING else date_pattern,
            time_pattern="" if time_pattern in _NOTHING else time_pattern,
        )
    except InvalidInput:
        raise file.unread from None
    csv_format = _with_newline(csv_format, file)
    csv_format = replace(csv_format, quoted_newlines=_has_open_lines(connection, csv_format, file))
    if not has_header:
        return csv_format
    header = _header(connection, csv_format, file)
    require_distinct(path, filter(None, map(_stripped, header)))
    return _with_names(csv_format, header)


def match_format(connection: Connection, formats: Sequence[CsvFormat], path: str, copies: Utf8Copies) -> CsvFormat:
    """Return the stored format by which a file is read, with the file's own order of columns and end of line.

    It is the first format whose columns the header has.
    """
    for stored in formats:
        file = CsvFile(path, copies.readable(path, stored.encoding))
        csv_format = _with_newline(stored, file)
        if not csv_format.has_header:
            return csv_format
        header = _header(connection, csv_format, file)
        named = _with_names(csv_format, header)
        if {name.lower() for name in csv_format.names} <= {name.lower() for name in named.names}:
            if named.names != csv_format.names:  # a format stored before names had to be distinct reads as it did
                require_distinct(path, filter(None, map(_stripped, header)))
            return named
    raise SourceMissing(
        f"{path} does not begin with the line of names that its table was registered with; put it back, or register "
        "the table anew"
    )


def scan_sql(csv_format: CsvFormat, paths: Sequence[str]) -> str:
    """Return the FROM item that reads files of one format, in UTF-8, with every column as text."""
    if csv_format.quoted_newlines:
        return _multiline(csv_format, paths, csv_format.names, has_header=csv_format.has_header)
    items = ", ".join(
        f"{_field(csv_format, f'f[{place}]')} AS {quoted(name)}" for place, name in enumerate(csv_format.names, 1)
    )
    return f"(SELECT {items} FROM ({_fields(csv_format, paths, after=csv_format.has_header)}) AS parted)"


def _skip(csv_format: CsvFormat, *, after: bool) -> str:
    """Return the option that skips the lines before the header, or with `after` the header too; \\r\\n counts twice."""
    return f"skip = {(csv_format.skipped + after) * len(csv_format.newline)}"


def _lines(csv_format: CsvFormat, paths: Sequence[str], *, after: bool, parallel: bool = True) -> str:
    """Return the FROM item of a file's lines as they are, in the column `line`."""
    return (
        f"read_csv({list_literal(paths)}, auto_detect = false, columns = {{'line': 'VARCHAR'}}, header = false, "
        f"delim = {literal(_NO_DELIMITER)}, quote = '', escape = '', comment = '', {_skip(csv_format, after=after)}, "
        f"encoding = '{UTF8}', {_ENDS}, parallel = {_truth(parallel)}, {LENIENT})"
    )


def _fields(csv_format: CsvFormat, paths: Sequence[str], *, after: bool, parallel: bool = True) -> str:
    """Return the SELECT of the fields of each line, a list `f`, still in their quotes."""
    delimiter, quote, escape = (_sign(one) for one in (csv_format.delimiter, csv_format.quote, csv_format.escape))
    within = f"[^{quote}]|{quote}{quote}" if csv_format.escape == csv_format.quote else f"[^{quote}{escape}]|{escape}."
    pattern = f"{delimiter}({quote}(?:{within})*{quote}[^{delimiter}]*|[^{delimiter}]*)"
    comment = f" AND NOT starts_with(line, {literal(csv_format.comment)})" if csv_format.comment else ""
    return (
        f"SELECT CASE WHEN contains(line, {literal(csv_format.quote)}) "
        f"THEN regexp_extract_all({literal(csv_format.delimiter)} || line, {literal(pattern)}, 1) "
        f"ELSE string_split(line, {literal(csv_format.delimiter)}) END AS f "
        f"FROM {_lines(csv_format, paths, after=after, parallel=parallel)} WHERE line <> ''{comment}"
    )


def _field(csv_format: CsvFormat, field: str) -> str:
    """Return SQL for a field without its quotes; NULL if they do not match, or if the field is empty."""
    quote, inner = literal(csv_format.quote), f"substring({field}, 2, length({field}) - 2)"
    if csv_format.escape == csv_format.quote:
        text = f"replace({inner}, {literal(2 * csv_format.quote)}, {quote})"
    else:
        text = f"regexp_replace({inner}, {literal(_sign(csv_format.escape) + '(.)')}, '\\1', 'g')"
    bare = f"CASE WHEN length({field}) > 1 AND ends_with({field}, {quote}) THEN {text} END"
    return f"nullif(CASE WHEN starts_with({field}, {quote}) THEN {bare} ELSE {field} END, '')"


def _multiline(csv_format: CsvFormat, paths: Sequence[str], names: Sequence[str], *, has_header: bool) -> str:
    """Return the FROM item of DuckDB's own parser, which reads texts in quotes over several lines.

    It is read by one thread: another that began in the middle would have to guess whether it is within a text.
    """
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv({list_literal(paths)}, auto_detect = false, columns = {{{columns}}}, "
        f"header = {_truth(has_header)}, delim = {literal(csv_format.delimiter)}, "
        f"quote = {literal(csv_format.quote)}, escape = {literal(csv_format.escape)}, "
        f"comment = {literal(csv_format.comment)}, "
        f"{_skip(csv_format, after=False)}, encoding = '{UTF8}', {_ENDS}, parallel = false, {LENIENT})"
    )


def _header(connection: Connection, csv_format: CsvFormat, file: CsvFile) -> list[str]:
    """Return the fields of a file's header."""
    if csv_format.quoted_newlines:
        names = [f"c{place}" for place in range(len(csv_format.names) + NAMES_MORE)]
        sql = f"SELECT * FROM {_multiline(csv_format, [file.readable], names, has_header=False)} LIMIT 1"
    else:
        first = f"{_fields(csv_format, [file.readable], after=False, parallel=False)} LIMIT 1"
        sql = f"SELECT unnest(list_transform(f, lambda x: {_field(csv_format, 'x')})) FROM ({first})"
    try:
        rows = connection.execute(sql).fetchall()
    except duckdb.Error:
        raise file.unread from None
    found = [one for row in rows for one in row]
    while found and found[-1] is None:
        found.pop()
    return [str(one or "") for one in found]


def _with_newline(csv_format: CsvFormat, file: CsvFile) -> CsvFormat:
    """Return a format with the end of line of a file's own lines before its rows, which decides what is skipped.

    A format of another file's would skip the first row, or not the header: whose row that is depends on all others.
    """
    lines = csv_format.skipped + (csv_format.has_header and not csv_format.quoted_newlines)
    head = next(_pieces(file.readable))
    ends = re.findall(rb"\r\n|\n|\r", head)[:lines]
    if len(set(ends)) > 1 or (len(ends) < lines and len(head) == HEAD_BYTES):
        raise SourceMissing(
            f"the lines of {file.path} before its rows must be short and use one line terminator; write the file again"
        )
    return replace(csv_format, newline=ends[0].decode()) if ends else csv_format


def _with_names(csv_format: CsvFormat, header: Sequence[str]) -> CsvFormat:
    """Return a format with the names of a file's own header, and the likely types of the columns of those names."""
    if not header:
        return csv_format
    names = _unique_names(header)
    types = {name.lower(): type_name for name, type_name in zip(csv_format.names, csv_format.types, strict=True)}
    return replace(csv_format, names=names, types=tuple(types.get(name.lower(), "VARCHAR") for name in names))


def _unique_names(header: Sequence[str]) -> tuple[str, ...]:
    """Return distinct names for columns: an empty one becomes column0, a second a becomes a_1."""
    names: list[str] = []
    taken: set[str] = set()
    for place, text in enumerate(header):
        name = wanted = _stripped(text) or f"column{place}"
        number = 1
        while name.lower() in taken:
            name, number = f"{wanted}_{number}", number + 1
        taken.add(name.lower())
        names.append(name)
    return tuple(names)


def _stripped(name: str) -> str:
    return name.strip().strip("\ufeff\0")


def _sniff_best(connection: Connection, file: CsvFile) -> tuple[Any, ...]:
    """Return what DuckDB's sniffer finds with the options under which it sees several columns."""
    sniffed = None
    for options in (
        f"{LONG}, quote = '\"'",
        LONG,
        LENIENT,
    ):  # an apostrophe is seldom a quote; lines may differ in length
        found = _sniff(connection, file.readable, options)
        if found is None or (found[_SKIPPED] > PREAMBLE_MAX and options is not LENIENT):
            continue
        if sniffed is None or len(found[_COLUMNS]) > len(sniffed[_COLUMNS]):
            sniffed = found
        if len(sniffed[_COLUMNS]) > 1:
            break
    if sniffed is None:
        raise file.unread
    return sniffed


def _sniff(connection: Connection, path: str, options: str) -> tuple[Any, ...] | None:
    try:
        return connection.execute(
            'SELECT "Delimiter", "Quote", "Escape", "Comment", "SkipRows", "HasHeader", "Columns", "DateFormat", '
            f"\"TimestampFormat\" FROM sniff_csv({literal(path)}, encoding = '{UTF8}', {options})"
        ).fetchone()
    except duckdb.Error:
        return None


def _has_open_lines(connection: Connection, csv_format: CsvFormat, file: CsvFile) -> bool:
    """Return whether one of the first lines ends within quotes: a field begins with one, and their number is odd."""
    quotes = f"length(line) - length(replace(line, {literal(csv_format.quote)}, ''))"
    begins = f"regexp_matches(line, {literal(f'(^|{_sign(csv_format.delimiter)}) *{_sign(csv_format.quote)}')})"
    lines = f"SELECT line FROM {_lines(csv_format, [file.readable], after=False)} LIMIT {HEAD_LINES}"
    try:
        found = connection.execute(f"SELECT bool_or(({quotes}) % 2 = 1 AND {begins}) FROM ({lines})").fetchone()
    except duckdb.Error:
        raise file.unread from None
    return bool(found and found[0])


def _count_blank_lines(head: bytes, encoding: str, skipped: int, comment: str) -> int:
    """Return the number of empty lines and comments between the skipped lines and the first other one."""
    lines = re.split(r"\r\n|\n|\r", head.decode(encoding, "replace").lstrip("\ufeff"))[skipped:]
    more = 0
    while more < len(lines) - 1 and (not lines[more] or (comment and lines[more].startswith(comment))):
        more += 1
    return more


def _encoding(head: bytes) -> str:
    """Return the encoding in which most lines of a file's beginning are valid."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return UTF16
    lines = head.split(b"\n")
    if len(head) == HEAD_BYTES and len(lines) > 1:
        lines.pop()  # cut off, maybe within a character
    fitting = [_is_utf8(line) for line in lines if not line.isascii()]
    return "utf-8" if 2 * sum(fitting) >= len(fitting) else "latin-1"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _sign(sign: str) -> str:
    """Return a character as it is written in a regular expression, also within brackets."""
    return f"\\x{{{ord(sign):X}}}"
