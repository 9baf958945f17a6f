"""CSV files: their format, found once at registration, copies in UTF-8, and scans that read every row by itself.

CSV files that are not in UTF-8, as copies that are: DuckDB's own decoders refuse a whole file for one byte.

Promise: a byte changes nothing but the characters that it stands in. In Latin-1 every byte is a character; in UTF-16
what is none is U+FFFD. Copies lie in a folder that only its owner can read, and are removed when the rows have been
read (`clear`), or by the next process (`PreparedStore.sweep`).

Promise: a scan reads every field as text and never fails for what a line holds. A missing field is NULL, a field too
many is ignored, a line that cannot be read at all is left out, a field whose quotes do not match is NULL. What the
texts mean is decided by the declared kinds, after the scan (`kinds.cast`).

With a given form, what a line holds changes nothing about another line, unless texts in quotes go over several lines
(`CsvForm.quoted_newlines`): then a quote out of place takes the lines after it along. Such files are read by DuckDB's
own parser, and only in strict form (`csv_quotes`). In all others each line is a row, whatever its quotes, and is parted
here: by its delimiters if there is no quote in it, otherwise by a regular expression.
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

from tacit.engines.csv_format import CsvForm
from tacit.engines.duckdb.connections import Connection
from tacit.engines.quoting import digest, listed, literal, quoted, require_distinct
from tacit.privacy.errors import EngineFailed, InvalidInput, SourceMissing

UTF8: Final = "utf-8"
_PIECE_BYTES: Final = 1 << 20
_NUMBERS: Final = count()


def is_gzip(path: str) -> bool:
    """Return whether DuckDB unpacks a file, by its name in any case."""
    return path.lower().endswith(".gz")


class Recoder:
    """The copies of one engine, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, str] = {}

    def readable(self, path: str, encoding: str) -> str:
        """Return where a file can be read in UTF-8: where it is, or in a copy of what it holds now."""
        if encoding == UTF8:
            return path
        try:
            status = os.stat(path)
        except OSError:
            raise _unread(path) from None
        key = digest(path, encoding, status.st_size, status.st_mtime_ns, status.st_ino)
        if key not in self._made:
            self._made[key] = self._copied(path, encoding)
        return self._made[key]

    def clear(self) -> None:
        """Remove all copies."""
        self._made.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _copied(self, path: str, encoding: str) -> str:
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
    """Yield what a file holds, and nothing at its end."""
    try:
        with gzip.open(path) if is_gzip(path) else open(path, "rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece
    except (OSError, EOFError, zlib.error):
        raise _unread(path) from None
    yield b""


def _unread(path: str) -> SourceMissing:
    return SourceMissing(f"{path} cannot be read; check its permissions, and that it is complete")


LOOKED_AT_BYTES: Final = 1 << 20
LOOKED_AT_LINES: Final = 50_000
LINE_MAX: Final = 16 << 20
"""A line of more bytes is left out."""
LONG: Final = f"max_line_size = {LINE_MAX}, buffer_size = {2 * LINE_MAX}"
LENIENT: Final = f"{LONG}, null_padding = true, ignore_errors = true, strict_mode = false"
_ENDS: Final = r"new_line = '\n'"
"""Makes every \\n and \\r the end of a line; otherwise DuckDB goes by the end of the first line that it sees."""
PREAMBLE_MAX: Final = 100
"""More lines than these before the line of names are rows that the sniffer misunderstood."""
NAMES_MORE: Final = 1_000
"""How many columns a file may have beyond those of its form."""
_COLUMNS, _SKIPPED = 6, 4
_NOTHING: Final = ("", "(empty)", None)
_NO_DELIMITER: Final = "\x1e\x1f\x1e\x1f"
"""What stands in no line; the rest of a line in which it does is ignored."""


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A file at `path`, and where it can be read in UTF-8."""

    path: str
    readable: str

    @property
    def unread(self) -> SourceMissing:
        """The error that it cannot be read."""
        return SourceMissing(f"{self.path} cannot be read as CSV; check that it is text with a line a row")


def form_of(connection: Connection, path: str, recoder: Recoder) -> CsvForm:
    """Find out the form of a file from its beginning."""
    begins = _beginning(path)
    if not begins:
        raise SourceMissing(f"{path} is empty; a CSV file begins with a line of names")
    encoding = _encoding(begins)
    file = CsvFile(path, recoder.readable(path, encoding))
    delimiter, quote, escape, comment, skipped, has_header, columns, date_pattern, time_pattern = _best(
        connection, file
    )
    text = begins.decode(encoding, "replace")
    if quote in _NOTHING:
        quote = '"'  # the first lines may have had no need of it
    elif quote not in text and '"' in text:
        quote = escape = '"'  # one that is never closed makes DuckDB look for another
    comment = "" if comment in _NOTHING else comment
    ends = re.search(r"\r\n|\n|\r", text)
    newline = ends[0] if ends else "\n"
    try:
        form = CsvForm(
            delimiter=delimiter,
            quote=quote,
            escape=quote if escape in _NOTHING else escape,
            comment=comment,
            newline=newline,
            skipped=skipped + _without_row(begins, encoding, skipped, comment),
            has_header=has_header,
            quoted_newlines=False,
            encoding=encoding,
            names=_named([column["name"] for column in columns]),
            types=tuple(column["type"] for column in columns),
            date_pattern="" if date_pattern in _NOTHING else date_pattern,
            time_pattern="" if time_pattern in _NOTHING else time_pattern,
        )
    except InvalidInput:
        raise file.unread from None
    form = replace(form, quoted_newlines=_has_open_lines(connection, form, file))
    if not has_header:
        return form
    header = _header(connection, form, file)
    require_distinct(path, filter(None, map(_stripped, header)))
    return _with_names(form, header)


def form_for(connection: Connection, forms: Sequence[CsvForm], path: str, recoder: Recoder) -> CsvForm:
    """Return by which of the kept forms a file is read: the first whose columns its line of names has, in any order."""
    for form in forms:
        if not form.has_header:
            return form
        file = CsvFile(path, recoder.readable(path, form.encoding))
        header = _header(connection, form, file)
        named = _with_names(form, header)
        if {name.lower() for name in form.names} <= {name.lower() for name in named.names}:
            if named.names != form.names:  # a form that was kept before names had to be distinct reads as it did
                require_distinct(path, filter(None, map(_stripped, header)))
            return named
    raise SourceMissing(
        f"{path} does not begin with the line of names that its table was registered with; put it back, or register "
        "the table anew"
    )


def scan(form: CsvForm, paths: Sequence[str]) -> str:
    """Return the FROM item that reads files of one form, which are in UTF-8, every column as text."""
    if form.quoted_newlines:
        return _whole(form, paths, form.names, has_header=form.has_header)
    items = ", ".join(f"{_field(form, f'f[{place}]')} AS {quoted(name)}" for place, name in enumerate(form.names, 1))
    return f"(SELECT {items} FROM ({_fields(form, paths, after=form.has_header)}) AS parted)"


def _skip(form: CsvForm, *, after: bool) -> str:
    """Return the option that leaves out the lines before the line of names, or `after` it; each \\r and \\n counts."""
    return f"skip = {(form.skipped + after) * len(form.newline)}"


def _lines(form: CsvForm, paths: Sequence[str], *, after: bool, parallel: bool = True) -> str:
    """Return the FROM item of a file's lines as they are, in the column `line`."""
    return (
        f"read_csv({listed(paths)}, auto_detect = false, columns = {{'line': 'VARCHAR'}}, header = false, "
        f"delim = {literal(_NO_DELIMITER)}, quote = '', escape = '', comment = '', {_skip(form, after=after)}, "
        f"encoding = '{UTF8}', {_ENDS}, parallel = {_truth(parallel)}, {LENIENT})"
    )


def _fields(form: CsvForm, paths: Sequence[str], *, after: bool, parallel: bool = True) -> str:
    """Return the SELECT of the fields of each line, a list `f`, still in their quotes."""
    delimiter, quote, escape = (_sign(one) for one in (form.delimiter, form.quote, form.escape))
    within = f"[^{quote}]|{quote}{quote}" if form.escape == form.quote else f"[^{quote}{escape}]|{escape}."
    pattern = f"{delimiter}({quote}(?:{within})*{quote}[^{delimiter}]*|[^{delimiter}]*)"
    comment = f" AND NOT starts_with(line, {literal(form.comment)})" if form.comment else ""
    return (
        f"SELECT CASE WHEN contains(line, {literal(form.quote)}) "
        f"THEN regexp_extract_all({literal(form.delimiter)} || line, {literal(pattern)}, 1) "
        f"ELSE string_split(line, {literal(form.delimiter)}) END AS f "
        f"FROM {_lines(form, paths, after=after, parallel=parallel)} WHERE line <> ''{comment}"
    )


def _field(form: CsvForm, field: str) -> str:
    """Return SQL for a field without its quotes; one whose quotes do not match is NULL, and so is an empty one."""
    quote, inner = literal(form.quote), f"substring({field}, 2, length({field}) - 2)"
    if form.escape == form.quote:
        text = f"replace({inner}, {literal(2 * form.quote)}, {quote})"
    else:
        text = f"regexp_replace({inner}, {literal(_sign(form.escape) + '(.)')}, '\\1', 'g')"
    bare = f"CASE WHEN length({field}) > 1 AND ends_with({field}, {quote}) THEN {text} END"
    return f"nullif(CASE WHEN starts_with({field}, {quote}) THEN {bare} ELSE {field} END, '')"


def _whole(form: CsvForm, paths: Sequence[str], names: Sequence[str], *, has_header: bool) -> str:
    """Return the FROM item of DuckDB's own parser, by which texts in quotes may go over several lines.

    One thread reads it: one that began in the middle would have to guess whether it is within a text.
    """
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv({listed(paths)}, auto_detect = false, columns = {{{columns}}}, "
        f"header = {_truth(has_header)}, delim = {literal(form.delimiter)}, "
        f"quote = {literal(form.quote)}, escape = {literal(form.escape)}, comment = {literal(form.comment)}, "
        f"{_skip(form, after=False)}, encoding = '{UTF8}', {_ENDS}, parallel = false, {LENIENT})"
    )


def _header(connection: Connection, form: CsvForm, file: CsvFile) -> list[str]:
    """Return the fields of a file's line of names."""
    if form.quoted_newlines:
        names = [f"c{place}" for place in range(len(form.names) + NAMES_MORE)]
        sql = f"SELECT * FROM {_whole(form, [file.readable], names, has_header=False)} LIMIT 1"
    else:
        first = f"{_fields(form, [file.readable], after=False, parallel=False)} LIMIT 1"
        sql = f"SELECT unnest(list_transform(f, lambda x: {_field(form, 'x')})) FROM ({first})"
    try:
        rows = connection.execute(sql).fetchall()
    except duckdb.Error:
        raise file.unread from None
    found = [one for row in rows for one in row]
    while found and found[-1] is None:
        found.pop()
    return [str(one or "") for one in found]


def _with_names(form: CsvForm, header: Sequence[str]) -> CsvForm:
    """Return a form with the names of a file's own first line, and the likely types of the columns called so."""
    if not header:
        return form
    names = _named(header)
    types = {name.lower(): type_name for name, type_name in zip(form.names, form.types, strict=True)}
    return replace(form, names=names, types=tuple(types.get(name.lower(), "VARCHAR") for name in names))


def _named(header: Sequence[str]) -> tuple[str, ...]:
    """Return names for columns: one without a name is called column0, and one whose name is taken a_1."""
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


def _best(connection: Connection, file: CsvFile) -> tuple[Any, ...]:
    """Return what DuckDB finds of a file in the way that tells most columns apart."""
    sniffed = None
    for way in (f"{LONG}, quote = '\"'", LONG, LENIENT):  # an apostrophe is seldom a quote; lines may differ in length
        found = _sniffed(connection, file.readable, way)
        if found is None or (found[_SKIPPED] > PREAMBLE_MAX and way is not LENIENT):
            continue
        if sniffed is None or len(found[_COLUMNS]) > len(sniffed[_COLUMNS]):
            sniffed = found
        if len(sniffed[_COLUMNS]) > 1:
            break
    if sniffed is None:
        raise file.unread
    return sniffed


def _sniffed(connection: Connection, path: str, way: str) -> tuple[Any, ...] | None:
    try:
        return connection.execute(
            'SELECT "Delimiter", "Quote", "Escape", "Comment", "SkipRows", "HasHeader", "Columns", "DateFormat", '
            f"\"TimestampFormat\" FROM sniff_csv({literal(path)}, encoding = '{UTF8}', {way})"
        ).fetchone()
    except duckdb.Error:
        return None


def _has_open_lines(connection: Connection, form: CsvForm, file: CsvFile) -> bool:
    """Return whether one of the first lines ends within quotes: a field begins with one, and their number is odd."""
    quotes = f"length(line) - length(replace(line, {literal(form.quote)}, ''))"
    begins = f"regexp_matches(line, {literal(f'(^|{_sign(form.delimiter)}) *{_sign(form.quote)}')})"
    lines = f"SELECT line FROM {_lines(form, [file.readable], after=False)} LIMIT {LOOKED_AT_LINES}"
    try:
        found = connection.execute(f"SELECT bool_or(({quotes}) % 2 = 1 AND {begins}) FROM ({lines})").fetchone()
    except duckdb.Error:
        raise file.unread from None
    return bool(found and found[0])


def _without_row(begins: bytes, encoding: str, skipped: int, comment: str) -> int:
    """Return how many lines after the skipped ones are empty or comments, before the first that is neither."""
    lines = re.split(r"\r\n|\n|\r", begins.decode(encoding, "replace").lstrip("\ufeff"))[skipped:]
    more = 0
    while more < len(lines) - 1 and (not lines[more] or (comment and lines[more].startswith(comment))):
        more += 1
    return more


def _encoding(begins: bytes) -> str:
    """Return the encoding that the beginning of a file can be read in; single lines in another one do not decide."""
    if begins.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    lines = begins.split(b"\n")
    if len(begins) == LOOKED_AT_BYTES and len(lines) > 1:
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
    """Return a sign in a regular expression, also within brackets."""
    return f"\\x{{{ord(sign):X}}}"


def _beginning(path: str) -> bytes:
    try:
        if is_gzip(path):
            with gzip.open(path) as packed:
                return packed.read(LOOKED_AT_BYTES)
        with open(path, "rb") as file:
            return file.read(LOOKED_AT_BYTES)
    except (OSError, EOFError):
        raise SourceMissing(f"{path} cannot be read; check its permissions, and that it is complete") from None
