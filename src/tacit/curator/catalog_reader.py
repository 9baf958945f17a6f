"""The catalog's file as tables and sources, with an error that names its line for each statement that is wrong.

Which line of a TOML file says what, for sentences that name a line and for edits that leave all others alone.

A plain look at headers and keys, not a parser: it may be deceived by a text of several lines that looks like TOML.
Whoever edits by it reads the outcome again and compares.

The catalog's file as tables and sources: what each statement means, and a sentence for each that means nothing.

Promise: whatever the file holds, the outcome is its tables or CatalogInvalid with the file, the line where one is known
and what to write instead. A key that is not known is refused, because a mistyped one would silently not protect.
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
from tacit.engines.csv_format import CsvFormat
from tacit.engines.protocol import Source
from tacit.privacy import texts
from tacit.privacy.bounds import Bounds, Categories, Category
from tacit.privacy.errors import CatalogInvalid, TacitError
from tacit.privacy.tables import EXAMPLES, Column, Kind, Limits, Table, fit_facts
from tacit.privacy.units import ForeignKey, Unit

Keys: TypeAlias = tuple[str, ...]

_PART: Final = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_KEY: Final = re.compile(rf"\s*({_PART}(?:\s*\.\s*{_PART})*)\s*=")


@dataclass(frozen=True, slots=True)
class Section:
    """A header with what stands below it up to the next one, and the comment right above it."""

    path: Keys
    text: str


def line_of(text: str, path: Keys) -> int | None:
    """Return the number of the line that states `path`, or else of the nearest statement that holds it."""
    found, depth = None, 0
    for number, stated in _statements(text):
        together = min(len(stated), len(path))
        if together > depth and stated[:together] == path[:together]:
            found, depth = number, together
    return found


def sections(text: str) -> list[Section]:
    """Cut a file at its headers; the parts joined together are the file. The first part has no header."""
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
    """Return the keys that one line of TOML names, from the outermost to the innermost."""
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


LIMITS: Final = ("rows_per_unit", "groups_per_unit", "rows_per_group")
TABLE_KEYS: Final = (
    *("source", "format", "csv", "unit", "public", "dataset", *LIMITS),
    *("identified_by", "rows", "columns"),
)
COLUMN_KEYS: Final = ("kind", "bounds", "categories", "nullable")
UNIT_KEYS: Final = ("column", "through")
STEP_KEYS: Final = ("column", "table", "target")
WRITTEN: Final = {str: 'a text in quotation marks, such as "visits"', bool: "true or false", int: "a whole number"}


@dataclass(frozen=True, slots=True)
class Contents:
    """What a catalog states: tables and the sources of their rows, by name in lower case."""

    tables: Mapping[str, Table]
    sources: Mapping[str, Source]


def read(text: str, *, folder: Path, file: Path) -> Contents:
    """Read the text of a catalog's file, or raise CatalogInvalid."""
    page = _Page(text, file, folder)
    document = page.parsed()
    page.known_keys(document, ("tables",), ())
    tables: dict[str, Table] = {}
    rows: dict[str, Source] = {}
    for name, stated in page.inner(document.get("tables", {}), ("tables",)).items():
        keys: Keys = ("tables", name)
        with page.blamed(keys):
            texts.name("the name of a table", name)
        if name.lower() in tables:
            raise page.fault(keys, f"two tables are called {name}; case does not tell them apart, so rename one")
        tables[name.lower()] = _table(page, name, page.inner(stated, keys), keys)
        rows[name.lower()] = _source(page, page.inner(stated, keys), keys)
    for table in tables.values():
        with page.blamed(("tables", table.name, "unit")):
            check_way(table, tables)
    with page.blamed(("tables",)):
        in_order = ordered(tables)
    for table in in_order:
        with page.blamed(("tables", table.name, "dataset")):
            tables[table.name.lower()] = in_dataset(table, tables)
    with page.blamed(("tables",)):
        check_units(tables)
    return Contents(tables, rows)


def check_way(table: Table, tables: Mapping[str, Table]) -> None:
    """Refuse a way to the unit that other tables do not have, or that leads in a circle."""
    if table.unit is None or not table.unit.through:
        return
    seen = {table.name.lower()}
    columns = [key.column for key in table.unit.through[1:]] + [table.unit.column]
    for key, column in zip(table.unit.through, columns, strict=True):
        name = key.target_table.lower()
        if name not in tables:
            raise CatalogInvalid(
                f"{table.name} leads to its unit through {key.target_table}, which is not in the catalog; add it first",
                name=table.name,
            )
        if name in seen:
            raise CatalogInvalid(f"the way from {table.name} to its unit passes {key.target_table} twice")
        seen.add(name)
        tables[name].column(key.target_column)
        tables[name].column(column)


def in_dataset(table: Table, tables: Mapping[str, Table]) -> Table:
    """Return a table in the data set of the tables through which it leads to its unit; refuse another one.

    Its rows belong to units by what those tables say, so whoever leaves them leaves it too: one budget pays for all.
    """
    unit = table.unit
    for number, key in enumerate(() if unit is None else unit.through, 1):
        parent = tables[key.target_table.lower()]
        if unit is None or not parent.is_private:
            continue
        if parent.unit != Unit(unit.column, unit.through[number:]):
            raise CatalogInvalid(
                f"{table.name} leads through {parent.name} to {unit.column}, which is not the unit of {parent.name}; "
                "a row would belong to two people",
                name="unit",
            )
        if table.dataset == table.name:  # nothing else was stated
            table = replace(table, dataset=parent.dataset)
        if table.dataset != parent.dataset:
            raise CatalogInvalid(
                f"{table.name} leads to its unit through {parent.name}, so both have one budget; "
                f'write dataset = "{parent.dataset}" for {table.name}',
                name="dataset",
                value=table.dataset,
            )
    return table


def linked(table: Table, tables: Mapping[str, Table]) -> list[Table]:
    """Return a table and those that share its budget because foreign keys link them to one unit."""
    return [one for one in tables.values() if _end(one, tables) == _end(table, tables)]


def _end(table: Table, tables: Mapping[str, Table]) -> str:
    """Return the key of the last private table on the way to the unit, in which the ways of all linked tables end."""
    targets = (step.target_table.lower() for step in through(table))
    return [table.name.lower(), *(key for key in targets if tables[key].is_private)][-1]


def check_units(tables: Mapping[str, Table]) -> None:
    """Refuse a data set whose tables have units of several kinds: compared as one of them, people would merge."""
    kinds: dict[str, tuple[Table, Kind]] = {}
    for table in tables.values():
        if table.unit is not None:
            owner = tables[table.unit.through[-1].target_table.lower()] if table.unit.through else table
            kind = owner.column(table.unit.column).kind
            first, known = kinds.setdefault(table.dataset, (table, kind))
            if kind is not known:
                raise CatalogInvalid(
                    f"units of one data set have one kind, and in {table.dataset} those of {first.name} are {known} "
                    f"and those of {table.name} are {kind}; give both columns one kind, such as text",
                    name="unit",
                )


def ordered(tables: Mapping[str, Table]) -> list[Table]:
    """Return tables so that each stands after those through which it leads to its unit; refuse a circle."""
    ways = {name: {key.target_table.lower() for key in through(table)} for name, table in tables.items()}
    done: dict[str, Table] = {}
    while len(done) < len(ways):
        ready = [name for name in ways if name not in done and ways[name] <= done.keys()]
        if not ready:
            circle = ", ".join(tables[name].name for name in ways if name not in done)
            raise CatalogInvalid(f"{circle} lead to their units through one another; one of them needs its own column")
        done |= {name: tables[name] for name in ready}
    return list(done.values())


def through(table: Table) -> tuple[ForeignKey, ...]:
    """Return the foreign keys by which a table leads to its unit."""
    return () if table.unit is None else table.unit.through


@dataclass(frozen=True, slots=True)
class _Page:
    """The file that is being read, for sentences that say where something stands."""

    text: str
    file: Path
    folder: Path

    def fault(self, keys: Keys, sentence: str, line: int | None = None) -> CatalogInvalid:
        number = line if line is not None else line_of(self.text, keys) if keys else None
        where = f"{self.file}, line {number}" if number else str(self.file)
        return CatalogInvalid(f"{where}: {sentence}", name=".".join(keys) or None, value=number)

    @contextmanager
    def blamed(self, keys: Keys) -> Iterator[None]:
        """Say of an error inside where in the file its cause stands."""
        try:
            yield
        except TacitError as error:
            if error.message.startswith(str(self.file)):
                raise  # a sentence from further inside, which says it more exactly
            raise self.fault(keys, error.message) from None

    def parsed(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            reason, line = _reason(str(error))
            raise self.fault((), f"this is not TOML: {reason}", line) from None
        except (RecursionError, ValueError):  # brackets in brackets, or a number or a date beyond what Python holds
            sentence = "this cannot be read: a value is too large, or brackets stand in brackets too deeply"
            raise self.fault((), sentence) from None

    def known_keys(self, stated: Mapping[str, Any], allowed: tuple[str, ...], keys: Keys) -> None:
        for key in stated:
            if key not in allowed:
                near = get_close_matches(key, allowed, n=1)
                instead = f"is {near[0]} meant?" if near else f"what can stand here is {', '.join(allowed)}"
                raise self.fault((*keys, key), f"nothing is called {key!r} here; {instead}")

    def inner(self, value: Any, keys: Keys) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.fault(keys, f"{keys[-1]} holds statements of its own; write [{'.'.join(keys)}] above them")
        return value

    def typed(self, stated: Mapping[str, Any], key: str, kind: type, keys: Keys) -> Any:
        """Return a value of the wanted type, or None where nothing is stated."""
        value = stated.get(key)
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise self.fault((*keys, key), f"{key} is {WRITTEN[kind]}")
        return value

    def listed(self, value: Any, keys: Keys, what: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.fault(keys, f"{keys[-1]} is a list: {what}")
        return value


def _table(page: _Page, name: str, stated: dict[str, Any], keys: Keys) -> Table:
    page.known_keys(stated, TABLE_KEYS, keys)
    if not isinstance(stated.get("columns"), dict) or not stated["columns"]:
        raise page.fault((*keys, "columns"), f"{name} states no columns; write them below [{'.'.join(keys)}.columns]")
    unit, public = stated.get("unit"), page.typed(stated, "public", bool, keys)
    if (unit is None) == (not public):
        raise page.fault(
            keys if unit is None else (*keys, "public"),
            f'write unit = "COLUMN" for the column whose values {name} protects, or public = true if it is about '
            "nobody" + ("" if unit is None else "; not both"),
        )
    limits = {key: value for key in LIMITS if (value := page.typed(stated, key, int, keys)) is not None}
    if public and limits:
        raise page.fault((*keys, next(iter(limits))), f"{name} is public: no unit in it can be limited; leave it out")
    columns = tuple(
        _column(page, column, page.inner(value, (*keys, "columns", column)), (*keys, "columns", column))
        for column, value in stated["columns"].items()
    )
    identified = page.listed(stated.get("identified_by", []), (*keys, "identified_by"), 'names, such as ["id"]')
    if not all(isinstance(column, str) for column in identified):
        raise page.fault((*keys, "identified_by"), 'identified_by is a list of column names, such as ["id"]')
    dataset = page.typed(stated, "dataset", str, keys)
    if dataset is not None:
        with page.blamed((*keys, "dataset")):
            texts.name("the name of a dataset", dataset)
    protected = None if unit is None else _unit(page, unit, (*keys, "unit"))
    with page.blamed(keys):
        rows = page.typed(stated, "rows", int, keys)
        return Table(name, columns, protected, Limits(**limits), tuple(identified), dataset or "", rows)


def _source(page: _Page, stated: dict[str, Any], keys: Keys) -> Source:
    place, form = page.typed(stated, "source", str, keys), page.typed(stated, "format", str, keys)
    if not place:
        raise page.fault(keys, f'{keys[-1]} has no rows; write source = "FILE", such as "{keys[-1]}.parquet"')
    with page.blamed((*keys, "source" if form is None or form in table_sources.FORMS else "format")):
        source = table_sources.read(place, form, page.folder)
    forms = page.listed(stated.get("csv", []), (*keys, "csv"), "one { ... } for each form of file")
    with page.blamed((*keys, "csv")):
        if forms and source.form != "csv":
            raise CatalogInvalid(f"csv says how CSV files are written, and these are {source.form}; leave it out")
        return replace(source, csv=tuple(map(CsvFormat.from_dict, forms)))


def _unit(page: _Page, value: Any, keys: Keys) -> Unit:
    if isinstance(value, str):
        value = {"column": value}
    if not isinstance(value, dict):
        raise page.fault(keys, 'unit is a column, such as "patient_id", or { column = "…", through = [ … ] }')
    page.known_keys(value, UNIT_KEYS, keys)
    steps = page.listed(value.get("through", []), (*keys, "through"), "the keys on the way to the unit")
    with page.blamed(keys):
        return Unit(page.typed(value, "column", str, keys) or "", tuple(_step(page, step, keys) for step in steps))


def _step(page: _Page, value: Any, keys: Keys) -> ForeignKey:
    if not isinstance(value, dict):
        raise page.fault(keys, 'a step of through is { column = "visit_id", table = "visits", target = "id" }')
    page.known_keys(value, STEP_KEYS, (*keys, "through"))
    return ForeignKey(*(page.typed(value, key, str, (*keys, "through")) or "" for key in STEP_KEYS))


def _column(page: _Page, name: str, stated: dict[str, Any], keys: Keys) -> Column:
    page.known_keys(stated, COLUMN_KEYS, keys)
    kinds = ", ".join(kind.value for kind in Kind)
    if stated.get("kind") not in list(Kind):
        raise page.fault((*keys, "kind"), f'the kind of a column is one of {kinds}: {name} = {{ kind = "text" }}')
    kind, nullable = Kind(stated["kind"]), page.typed(stated, "nullable", bool, keys)
    if "bounds" in stated and "categories" in stated:
        raise page.fault((*keys, "categories"), f"{name} has bounds or categories, not both")
    facts: Bounds | Categories | None = None
    if "bounds" in stated:
        values = stated["bounds"]
        if not isinstance(values, list) or len(values) != 2:
            raise page.fault((*keys, "bounds"), f"bounds are two {EXAMPLES[kind]}, as [lower, upper]")
        with page.blamed((*keys, "bounds")):
            facts = Bounds(*(_bound(name, value) for value in values))
    elif "categories" in stated:
        values = page.listed(stated["categories"], (*keys, "categories"), f"{EXAMPLES[kind]}, in [ ]")
        with page.blamed((*keys, "categories")):
            facts = Categories(_category(name, value) for value in values)
    with page.blamed((*keys, "bounds" if isinstance(facts, Bounds) else "categories")):
        facts = fit_facts(name, kind, facts)
    with page.blamed(keys):
        return Column(name, kind, facts, nullable is not False)


def _bound(name: str, value: Any) -> int | float | Fraction | date | str:
    """Return a bound; a number that no decimal is exactly may be written as a text, such as "1/3"."""
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,400}/\d{1,400}", value, re.ASCII) and int(value.split("/")[1]):
        return Fraction(value)
    if isinstance(value, bool) or not isinstance(value, int | float | date | str):
        raise CatalogInvalid(f"bounds of {name} are two numbers, dates or times, as [lower, upper]")
    return value


def _category(name: str, value: Any) -> Category:
    """Return a category; a missing value, as one of them, is written { missing = true }."""
    if value == {"missing": True}:
        return None
    if not isinstance(value, str | int | date):
        raise CatalogInvalid(f"categories of {name} are texts, whole numbers, dates or {{ missing = true }}")
    return value


def _reason(message: str) -> tuple[str, int | None]:
    """Take apart what the parser says, and add what is usually meant."""
    match = re.fullmatch(r"(.*?) \(at (?:line (\d+), column \d+|end of document)\)", message, re.DOTALL)
    said, line = (match[1], match[2]) if match else (message, None)
    usual = {
        "Invalid value": "; a text stands in quotation marks, a list in [ ]",
        "Invalid statement": "; a line is KEY = VALUE or [tables.NAME], and odd names stand in quotation marks",
    }
    reason = said[:1].lower() + said[1:] + usual.get(said, "")
    return reason, int(line) if line else None
