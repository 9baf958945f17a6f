"""Tables as TOML for the catalog's file, and edits that leave the rest of the file unchanged.

A new table is appended. A changed one is edited key by key in its own section, so that comments and the order of lines
stay; new keys come last. A comment right above a header belongs to that header and is removed with its table. The
catalog reads the outcome of an edit and compares it with what was intended before it writes the file.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from datetime import date
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from tacit.curator.catalog_reader import LIMITS, Keys, Section, sections
from tacit.curator.table_sources import source_text
from tacit.engines.protocol import Source
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Column, Table
from tacit.privacy.units import Unit

ALIGNED_MAX: Final = 24
"""Names of columns up to this length are padded to align the values."""

HEADER: Final = """\
# What is public about these tables, and whom they protect. Everything here is a statement by the owner of the data,
# made without looking at it: a bound that was read off the data would itself reveal something about a person.
# You may edit this file; `tacit table show` checks it. A table looks like this:
#
#   [tables.visits]
#   source = "visits.parquet"     # relative to this folder, or absolute; in a DuckDB file: "clinic.duckdb#visits"
#   format = "parquet"            # csv, parquet or duckdb; with csv = [ ... ] for how CSV files are written
#   unit = "patient_id"           # the column that identifies the protected people; for other tables: public = true
#   dataset = "clinic"            # the budget that pays; without it, one with the name of the table
#   rows_per_unit = 20            # of each unit, so many rows are counted at most; leave it out for no limit
#
#   [tables.visits.columns]
#   patient_id = { kind = "integer", nullable = false }         # kinds: boolean, integer, real, text, date, time
#   age        = { kind = "integer", bounds = [0, 120] }        # what lies outside is moved to the nearer bound
#   sex        = { kind = "text", categories = ["F", "M"] }     # other values count as none of them
#
# A table that has no column of its own for the unit leads to it through others:
#
#   unit = { column = "patient_id", through = [ { column = "visit_id", table = "visits", target = "id" } ] }
"""

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def table_text(table: Table, source: Source, folder: Path) -> str:
    """Return a table as TOML."""
    facts, columns = _facts(table, source, folder), {column.name: column_text(column) for column in table.columns}
    header = f"tables.{key_text(table.name)}"
    width = max((len(key) for key in map(key_text, columns) if len(key) <= ALIGNED_MAX), default=0)
    return "\n".join(
        [
            f"[{header}]",
            *(f"{key} = {value}" for key, value in facts.items()),
            "",
            f"[{header}.columns]",
            *(f"{key_text(name):{width}} = {value}" for name, value in columns.items()),
            "",
        ]
    )


def column_text(column: Column) -> str:
    """Return a column as an inline table."""
    parts = [f"kind = {value_text(column.kind.value)}"]
    if isinstance(column.facts, Bounds):
        parts.append(f"bounds = {value_text([column.facts.lower, column.facts.upper])}")
    elif isinstance(column.facts, Categories):
        parts.append(f"categories = {value_text(list(column.facts.values))}")
    if not column.nullable:
        parts.append("nullable = false")
    return f"{{ {', '.join(parts)} }}"


def key_text(name: str) -> str:
    """Return a name as a TOML key."""
    return name if _BARE.fullmatch(name) else value_text(name)


def value_text(value: Any) -> str:
    """Return a value as TOML, with invisible and formatting characters escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{"".join(map(_character, value))}"'
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Fraction):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key_text(key)} = {value_text(one)}' for key, one in value.items())} }}"
    return "{ missing = true }" if value is None else repr(value)


def with_table(text: str, table: Table, source: Source, folder: Path, known: str | None = None) -> str:
    """Return the text with a table added, or changed where it is there under the name `known`."""
    stated = table_text(table, source, folder)
    if known is not None:
        keys, parts = ("tables", known), sections(text)
        own = [part for part in parts if part.path[:2] == keys]
        changed = _change_sections(own, stated) if known == table.name else None
        if changed is not None:
            return "".join(changed.get(part.path, part.text) if part in own else part.text for part in parts)
        text = without_table(text, known)
    start = text if text.strip() else HEADER
    return f"{start.rstrip()}\n\n{stated}"


def without_table(text: str, name: str) -> str:
    """Return the text without a table."""
    parts = sections(text)
    kept = [part.text for part in parts if part.path[:2] != ("tables", name)]
    if len(kept) < len(parts):
        return "".join(kept).rstrip() + "\n"
    document = tomlkit.parse(text)  # the table is written as a key of another one
    try:
        del document["tables"][name]
    except (TOMLKitError, LookupError):
        return text
    return tomlkit.dumps(document)


def _facts(table: Table, source: Source, folder: Path) -> dict[str, str]:
    """Return the keys of a table besides its columns, with their values as TOML."""
    stated: dict[str, Any] = {"source": source_text(source, folder), "format": source.form}
    texts = {key: value_text(value) for key, value in stated.items()}
    if source.csv:
        texts["csv"] = value_text([form.to_dict() for form in source.csv])
    texts |= {"public": "true"} if table.unit is None else {"unit": _unit_text(table.unit)}
    if table.dataset != table.name:
        texts["dataset"] = value_text(table.dataset)
    texts |= {key: value_text(value) for key in LIMITS if (value := getattr(table.limits, key)) is not None}
    if table.identified_by:
        texts["identified_by"] = value_text(list(table.identified_by))
    if table.rows is not None:
        texts["rows"] = value_text(table.rows)
    return texts


def _unit_text(unit: Unit) -> str:
    if unit.is_direct:
        return value_text(unit.column)
    steps = ", ".join(
        f"{{ column = {value_text(key.column)}, table = {value_text(key.target_table)}, "
        f"target = {value_text(key.target_column)} }}"
        for key in unit.through
    )
    return f"{{ column = {value_text(unit.column)}, through = [ {steps} ] }}"


def _change_sections(own: list[Section], stated: str) -> dict[Keys, str] | None:
    """Return the changed sections of a table, or None if they are not laid out as `table_text` does it."""
    fresh = sections(stated)[1:]
    if [part.path for part in own] != [part.path for part in fresh]:
        return None
    try:
        return {part.path: _merge(part, new) for part, new in zip(own, fresh, strict=True)}
    except (TOMLKitError, LookupError):
        return None


def _merge(part: Section, new: Section) -> str:
    """Return one section with the keys changed that differ."""
    before, wanted = (_inside(tomllib.loads(one.text), part.path) for one in (part, new))
    changed = [key for key in wanted if repr(before.get(key)) != repr(wanted[key])]  # repr tells 1 from true and 1.0
    if not changed and before.keys() == wanted.keys():
        return part.text
    lines = {key: line for line in new.text.splitlines() for key in tomllib.loads(line) if not line.startswith("[")}
    document = tomlkit.parse(part.text)
    items = _inside(document, part.path)
    for key in before.keys() - wanted.keys():
        del items[key]
    for key in changed:
        items[key] = tomlkit.parse(f"{lines[key]}\n")[key]
    return tomlkit.dumps(document)


def _inside(document: Any, path: Keys) -> Any:
    return reduce(lambda inside, key: inside[key], path, document)


def _character(character: str) -> str:
    if character in ('"', "\\"):
        return f"\\{character}"
    category = unicodedata.category(character)
    if category == "Cs":
        raise InvalidInput("names and categories must be valid UTF-8 text", value=character)
    if character == " " or category[0] not in "CZ":
        return character
    return f"\\u{ord(character):04X}" if ord(character) < 0x10000 else f"\\U{ord(character):08X}"
