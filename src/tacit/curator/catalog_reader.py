"""The catalog's TOML text as tables and sources.

Promise: the outcome is the tables of the file, or CatalogInvalid with the file, the line where it is known, and what to
write instead. An unknown key is refused, because a mistyped one would silently not protect.

Lines and sections of a TOML text, for errors that name a line and for edits that leave other lines unchanged.

Headers and keys are matched line by line, without parsing, so a multi-line string that looks like TOML can mislead it:
callers that edit read the outcome again and compare.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeAlias

from tacit.curator import table_sources
from tacit.curator.table_links import check_foreign_keys, check_unit_kinds, parents_first, with_dataset
from tacit.engines.csv_format import CsvFormat
from tacit.engines.protocol import Source
from tacit.privacy import texts
from tacit.privacy.bounds import Bounds, Categories, Category
from tacit.privacy.errors import CatalogInvalid, TacitError
from tacit.privacy.tables import EXAMPLES, Column, Kind, Limits, Table, fit_facts
from tacit.privacy.units import ForeignKey, Unit

LIMITS: Final = ("rows_per_unit", "groups_per_unit", "rows_per_group")
TABLE_KEYS: Final = (
    *("source", "format", "csv", "unit", "public", "dataset", *LIMITS),
    *("identified_by", "rows", "columns"),
)
COLUMN_KEYS: Final = ("kind", "bounds", "categories", "nullable")
UNIT_KEYS: Final = ("column", "through")
STEP_KEYS: Final = ("column", "table", "target")
TYPE_HINTS: Final = {str: 'a text in quotation marks, such as "visits"', bool: "true or false", int: "an integer"}


@dataclass(frozen=True, slots=True)
class Contents:
    """The tables of a catalog and the sources of their rows, by name in lower case."""

    tables: Mapping[str, Table]
    sources: Mapping[str, Source]


def read(text: str, *, folder: Path, file: Path) -> Contents:
    """Return the contents of a catalog's text, or raise CatalogInvalid."""
    reader = _CatalogReader(text, file, folder)
    document = reader.parse()
    reader.require_known_keys(document, ("tables",), ())
    tables: dict[str, Table] = {}
    rows: dict[str, Source] = {}
    for name, stated in reader.require_table(document.get("tables", {}), ("tables",)).items():
        keys: Keys = ("tables", name)
        with reader.located(keys):
            texts.name("the name of a table", name)
        if name.lower() in tables:
            raise reader.error(keys, f"duplicate table name {name} (case is ignored); rename one")
        tables[name.lower()] = _table(reader, name, reader.require_table(stated, keys), keys)
        rows[name.lower()] = _source(reader, reader.require_table(stated, keys), keys)
    for table in tables.values():
        with reader.located(("tables", table.name, "unit")):
            check_foreign_keys(table, tables)
    with reader.located(("tables",)):
        in_order = parents_first(tables)
    for table in in_order:
        with reader.located(("tables", table.name, "dataset")):
            tables[table.name.lower()] = with_dataset(table, tables)
    with reader.located(("tables",)):
        check_unit_kinds(tables)
    return Contents(tables, rows)


@dataclass(frozen=True, slots=True)
class _CatalogReader:
    """The text that is being read; its errors name the file and the line."""

    text: str
    file: Path
    folder: Path

    def error(self, keys: Keys, sentence: str, line: int | None = None) -> CatalogInvalid:
        number = line if line is not None else line_of(self.text, keys) if keys else None
        where = f"{self.file}, line {number}" if number else str(self.file)
        return CatalogInvalid(f"{where}: {sentence}", name=".".join(keys) or None, value=number)

    @contextmanager
    def located(self, keys: Keys) -> Iterator[None]:
        """Add the file and the line of a key to errors that the block raises."""
        try:
            yield
        except TacitError as error:
            if error.message.startswith(str(self.file)):
                raise  # an inner block has added a more exact line
            raise self.error(keys, error.message) from None

    def parse(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            reason, line = _reason(str(error))
            raise self.error((), f"this is not valid TOML: {reason}", line) from None
        except (RecursionError, ValueError):  # nested too deeply, or a number or date out of range
            sentence = "this cannot be read: a value is too large, or brackets are nested too deeply"
            raise self.error((), sentence) from None

    def require_known_keys(self, stated: Mapping[str, Any], allowed: tuple[str, ...], keys: Keys) -> None:
        for key in stated:
            if key not in allowed:
                near = get_close_matches(key, allowed, n=1)
                instead = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(allowed)}"
                raise self.error((*keys, key), f"unknown key {key!r}; {instead}")

    def require_table(self, value: Any, keys: Keys) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.error(keys, f"{keys[-1]} must be a table; write [{'.'.join(keys)}] above its keys")
        return value

    def typed_value(self, stated: Mapping[str, Any], key: str, kind: type, keys: Keys) -> Any:
        """Return a value of the given type, or None if the key is absent."""
        value = stated.get(key)
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise self.error((*keys, key), f"{key} must be {TYPE_HINTS[kind]}")
        return value

    def require_list(self, value: Any, keys: Keys, what: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.error(keys, f"{keys[-1]} must be a list: {what}")
        return value


def _table(reader: _CatalogReader, name: str, stated: dict[str, Any], keys: Keys) -> Table:
    reader.require_known_keys(stated, TABLE_KEYS, keys)
    if not isinstance(stated.get("columns"), dict) or not stated["columns"]:
        raise reader.error((*keys, "columns"), f"{name} has no columns; write them below [{'.'.join(keys)}.columns]")
    unit, public = stated.get("unit"), reader.typed_value(stated, "public", bool, keys)
    if (unit is None) == (not public):
        raise reader.error(
            keys if unit is None else (*keys, "public"),
            f'write unit = "COLUMN" for the column whose values {name} protects, or public = true if it is not '
            "about people" + ("" if unit is None else "; not both"),
        )
    limits = {key: value for key in LIMITS if (value := reader.typed_value(stated, key, int, keys)) is not None}
    if public and limits:
        raise reader.error((*keys, next(iter(limits))), f"{name} is public and has no units to limit; leave it out")
    columns = tuple(
        _column(reader, column, reader.require_table(value, (*keys, "columns", column)), (*keys, "columns", column))
        for column, value in stated["columns"].items()
    )
    identified = reader.require_list(stated.get("identified_by", []), (*keys, "identified_by"), 'names, such as ["id"]')
    if not all(isinstance(column, str) for column in identified):
        raise reader.error((*keys, "identified_by"), 'identified_by is a list of column names, such as ["id"]')
    dataset = reader.typed_value(stated, "dataset", str, keys)
    if dataset is not None:
        with reader.located((*keys, "dataset")):
            texts.name("the name of a dataset", dataset)
    protected = None if unit is None else _unit(reader, unit, (*keys, "unit"))
    with reader.located(keys):
        rows = reader.typed_value(stated, "rows", int, keys)
        return Table(name, columns, protected, Limits(**limits), tuple(identified), dataset or "", rows)


def _source(reader: _CatalogReader, stated: dict[str, Any], keys: Keys) -> Source:
    place, form = reader.typed_value(stated, "source", str, keys), reader.typed_value(stated, "format", str, keys)
    if not place:
        raise reader.error(keys, f'{keys[-1]} has no source; write source = "FILE", such as "{keys[-1]}.parquet"')
    with reader.located((*keys, "source" if form is None or form in table_sources.FORMS else "format")):
        source = table_sources.parse_source(place, form, reader.folder)
    forms = reader.require_list(stated.get("csv", []), (*keys, "csv"), "one { ... } for each form of file")
    with reader.located((*keys, "csv")):
        if forms and source.form != "csv":
            raise CatalogInvalid(f"csv is for CSV files, and the format is {source.form}; leave it out")
        return replace(source, csv=tuple(map(CsvFormat.from_dict, forms)))


def _unit(reader: _CatalogReader, value: Any, keys: Keys) -> Unit:
    if isinstance(value, str):
        value = {"column": value}
    if not isinstance(value, dict):
        raise reader.error(keys, 'unit is a column, such as "patient_id", or { column = "…", through = [ … ] }')
    reader.require_known_keys(value, UNIT_KEYS, keys)
    steps = reader.require_list(value.get("through", []), (*keys, "through"), "the foreign keys to the unit")
    with reader.located(keys):
        return Unit(
            reader.typed_value(value, "column", str, keys) or "", tuple(_step(reader, step, keys) for step in steps)
        )


def _step(reader: _CatalogReader, value: Any, keys: Keys) -> ForeignKey:
    if not isinstance(value, dict):
        raise reader.error(keys, 'a step of through is { column = "visit_id", table = "visits", target = "id" }')
    reader.require_known_keys(value, STEP_KEYS, (*keys, "through"))
    return ForeignKey(*(reader.typed_value(value, key, str, (*keys, "through")) or "" for key in STEP_KEYS))


def _column(reader: _CatalogReader, name: str, stated: dict[str, Any], keys: Keys) -> Column:
    reader.require_known_keys(stated, COLUMN_KEYS, keys)
    kinds = ", ".join(kind.value for kind in Kind)
    if stated.get("kind") not in list(Kind):
        raise reader.error((*keys, "kind"), f'the kind of a column is one of {kinds}: {name} = {{ kind = "text" }}')
    kind, nullable = Kind(stated["kind"]), reader.typed_value(stated, "nullable", bool, keys)
    if "bounds" in stated and "categories" in stated:
        raise reader.error((*keys, "categories"), f"{name} has bounds or categories, not both")
    facts: Bounds | Categories | None = None
    if "bounds" in stated:
        values = stated["bounds"]
        if not isinstance(values, list) or len(values) != 2:
            raise reader.error((*keys, "bounds"), f"bounds are two {EXAMPLES[kind]}, as [lower, upper]")
        with reader.located((*keys, "bounds")):
            facts = Bounds(*(_bound(name, value) for value in values))
    elif "categories" in stated:
        values = reader.require_list(stated["categories"], (*keys, "categories"), f"{EXAMPLES[kind]}, in [ ]")
        with reader.located((*keys, "categories")):
            facts = Categories(_category(name, value) for value in values)
    with reader.located((*keys, "bounds" if isinstance(facts, Bounds) else "categories")):
        facts = fit_facts(name, kind, facts)
    with reader.located(keys):
        return Column(name, kind, facts, nullable is not False)


def _bound(name: str, value: Any) -> int | float | Fraction | date | str:
    """Return a bound; a fraction is written as a text, such as "1/3"."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,400}/\d{1,400}", value, re.ASCII) and int(value.split("/")[1]):
        return Fraction(value)
    if isinstance(value, bool) or not isinstance(value, int | float | date | str):
        raise CatalogInvalid(f"bounds of {name} are two numbers, dates or times, as [lower, upper]")
    return value


def _category(name: str, value: Any) -> Category:
    """Return a category; the missing value is written { missing = true }."""
    if value == {"missing": True}:
        return None
    if not isinstance(value, str | int | date):
        raise CatalogInvalid(f"categories of {name} are texts, integers, dates or {{ missing = true }}")
    return value


def _reason(message: str) -> tuple[str, int | None]:
    """Return the reason and the line of the parser's message, with a hint for usual mistakes."""
    match = re.fullmatch(r"(.*?) \(at (?:line (\d+), column \d+|end of document)\)", message, re.DOTALL)
    said, line = (match[1], match[2]) if match else (message, None)
    usual = {
        "Invalid value": "; write texts in quotation marks and lists in [ ]",
        "Invalid statement": "; a line is KEY = VALUE or [tables.NAME], with unusual names in quotation marks",
    }
    reason = said[:1].lower() + said[1:] + usual.get(said, "")
    return reason, int(line) if line else None


Keys: TypeAlias = tuple[str, ...]

_PART: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_KEY: Final = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=")


@dataclass(frozen=True, slots=True)
class Section:
    """A header with the comment right above it, and everything below it up to the next header."""

    path: Keys
    text: str


def line_of(text: str, path: Keys) -> int | None:
    """Return the number of the line that states the key `path`, or else the nearest key that contains it."""
    found, depth = None, 0
    for number, stated in _statements(text):
        common = min(len(stated), len(path))
        if common > depth and stated[:common] == path[:common]:
            found, depth = number, common
    return found


def sections(text: str) -> list[Section]:
    """Split a text at its headers; the first part has no header, and the parts join to the text."""
    lines = re.findall(r"[^\n]*\n|[^\n]+$", text)
    starts: list[tuple[int, Keys]] = [(0, ())]
    for number, line in enumerate(lines):
        if (path := _header(line)) is not None:
            start = number
            while start > starts[-1][0] and lines[start - 1].lstrip().startswith("#"):
                start -= 1
            starts.append((start, path))
    ends = [start for start, _ in starts[1:]] + [len(lines)]
    return [Section(path, "".join(lines[start:end])) for (start, path), end in zip(starts, ends, strict=True)]


def _statements(text: str) -> Iterator[tuple[int, Keys]]:
    header: Keys = ()
    for number, line in enumerate(text.split("\n"), 1):
        if (path := _header(line)) is not None:
            header = path
            yield number, path
        elif (match := _KEY.match(line)) and (keys := _keys(f"{match[1]} = 0")):
            yield number, (*header, *keys)


def _header(line: str) -> Keys | None:
    return _keys(line) if line.lstrip().startswith("[") else None


def _keys(line: str) -> Keys | None:
    """Return the dotted key of one line of TOML, outermost part first."""
    try:
        inside: object = tomllib.loads(line)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    keys: list[str] = []
    while True:
        if isinstance(inside, list) and inside:
            inside = inside[0]
        if not isinstance(inside, dict) or not inside:
            return tuple(keys) or None
        ((key, inside),) = inside.items()
        keys.append(key)
