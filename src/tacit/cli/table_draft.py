"""A table before it is registered: the options and answers given so far, and hints from the names of columns.

Hints are guesses shown to the owner; nothing depends on them, and no value of the data is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tacit.cli.value_parsing import bounds_of, categories_of, key_of, kind_of, pair_of
from tacit.curator.catalog import Catalog
from tacit.curator.registration import FILES, column_named, table_of
from tacit.engines.protocol import Source, SourceColumn
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Column, Kind, Limits, Table
from tacit.privacy.units import Unit
from tacit.query.contribution import ROWS_PER_GROUP

LIMITS = ("rows_per_unit", "groups_per_unit", "rows_per_group")


@dataclass
class Draft:
    """A table that may still be incomplete."""

    name: str
    described: Sequence[SourceColumn]
    unit: str | Unit | None = None
    public: bool = False
    facts: dict[str, Bounds | Categories] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    identified_by: tuple[str, ...] = ()
    dataset: str = ""
    never_missing: set[str] = field(default_factory=set)
    each_row: bool = False
    """Whether each row is its own unit."""

    @classmethod
    def of(cls, table: Table) -> Draft:
        """Return the draft of a registered table."""
        return cls(
            table.name,
            [SourceColumn(column.name, column.kind, column.kind.value) for column in table.columns],
            table.unit,
            not table.is_private,
            {column.name: column.facts for column in table.columns if column.facts is not None},
            {},
            table.limits,
            table.identified_by,
            "" if table.dataset == table.name else table.dataset,
            {column.name for column in table.columns if not column.nullable},
        )

    @property
    def is_decided(self) -> bool:
        """Whether the unit is chosen, or the table is public."""
        return self.public or self.each_row or self.unit is not None

    def column(self, name: str) -> SourceColumn:
        """Return a column by its name, ignoring case."""
        return column_named(self.name, self.described, name)

    def kind(self, name: str) -> Kind | None:
        """Return the kind of a column: as stated, else as in the source."""
        column = self.column(name)
        return self.kinds.get(column.name, column.kind)

    def apply(self, options: Mapping[str, Any], catalog: Catalog) -> None:
        """Apply the options of a command; what they leave out is unchanged."""
        for text in options["kinds"]:
            name, value = pair_of(text, "age=integer")
            self.kinds[self.column(name).name] = kind_of(name, value)
        for text in options["bounds"]:
            name, value = self._pair(text, "age=0:120")
            self.facts[self.column(name).name] = bounds_of(name, self._usable(name), value)
        for text in options["categories"]:
            name, value = self._pair(text, "sex=F,M")
            self.facts[self.column(name).name] = categories_of(name, self._usable(name), value)
        for name in options.get("forget", ()):
            self.facts.pop(self.column(name).name, None)
        self.never_missing |= {self.column(name).name for name in options["never_missing"]}
        self.identified_by = options["identified_by"] or self.identified_by
        self.dataset = options["dataset"] or self.dataset
        self.limits = replace(self.limits, **{key: options[key] for key in LIMITS if options[key] is not None})
        self.each_row = options.get("each_row", False)
        if self.each_row and (options["unit"] or options["public"] or options["through"] or options["rows_per_unit"]):
            raise InvalidInput(
                "--each-row protects each row by itself; leave out --unit, --public, --through and --rows-per-unit"
            )
        self._apply_unit(options["unit"], options["public"], options["through"], catalog)
        if self.public and any(options[key] is not None for key in LIMITS):
            raise InvalidInput(
                f"{self.name} is public and has no units to limit; leave out --rows-per-unit, --groups-per-unit and "
                "--rows-per-group"
            )

    def protect_through(self, steps: Sequence[str], catalog: Catalog, unit: str | None = None) -> None:
        """Protect the units that foreign keys lead to: `unit`, or that of the last table."""
        keys = tuple(key_of(step) for step in steps)
        target = catalog.schema.table(keys[-1].target_table)
        if unit is not None:
            self.unit = Unit(unit, keys)
        elif target.unit is not None:
            self.unit = Unit(target.unit.column, (*keys, *target.unit.through))
        else:
            raise InvalidInput(f"{target.name} is public; give the column of the unit in it with --unit")
        self.public = False

    def protect_each_row(self, source: Source) -> None:
        """Protect each row by itself; raise InvalidInput unless its rows can be numbered in a copy."""
        if source.form not in FILES:
            raise InvalidInput("each row can be a person in files only; type the column that identifies people")
        self.unit, self.public, self.each_row = None, False, True

    def table(self) -> Table:
        """Return the table; raise InvalidInput if its parts do not fit together."""
        table = table_of(
            self.name,
            self.described,
            unit=self.unit,
            public=self.public,
            each_row=self.each_row,
            columns=self.facts,
            limits=self.limits,
            identified_by=self.identified_by,
            dataset=self.dataset,
            kinds=self.kinds,
        )
        return replace(table, columns=tuple(self._completed(column) for column in table.columns))

    def _apply_unit(self, unit: str | None, public: bool, through: Sequence[str], catalog: Catalog) -> None:
        if public and (unit is not None or through):
            raise InvalidInput("a public table has no unit; give --public or --unit, not both", name="unit")
        if public:
            self.unit, self.public, self.limits = None, True, Limits()
        elif through:
            self.protect_through(through, catalog, unit)
        elif unit is not None:
            self.unit, self.public = unit, False

    def _pair(self, text: str, example: str) -> tuple[str, str]:
        """Split "column=value", also where the name of the column contains =."""
        for one in sorted(self.described, key=lambda one: -len(one.name)):
            if text.lower().startswith(f"{one.name.lower()}=") and text[len(one.name) + 1 :].strip():
                return one.name, text[len(one.name) + 1 :].strip()
        return pair_of(text, example)

    def _usable(self, name: str) -> Kind:
        kind = self.kind(name)
        if kind is None:
            column = self.column(name)
            raise InvalidInput(f"{name} has the unsupported type {column.type}; give it a kind: --kind {name}=text")
        return kind

    def _completed(self, column: Column) -> Column:
        return replace(column, nullable=False) if column.name in self.never_missing else column


PEOPLE: Final = (
    r"patient|person|user|customer|client|member|subject|citizen|employee|student|respondent|participant|individual"
    r"|household|account|device|worker|resident|driver|player|owner|voter|donor|guest|tenant"
)
_ID: Final = r"(_?(id|key|no|nr|num|number|code|uid|uuid|pk|ref))"
_PERSON: Final = re.compile(rf"({PEOPLE})s?{_ID}?|ssn|mrn|nhs(_?(no|number))?|uid|pid", re.IGNORECASE)
_NAMES_PEOPLE: Final = re.compile(
    r"(.*_)?(e?_?mail|phone|mobile|ssn|passport|iban|(first|last|full|sur|family|given)_?name|address|street|ip|imei"
    r"|licen[cs]e(_plate)?|social_security.*|tax_?(id|number)|fingerprint|username|login)(_.*)?",
    re.IGNORECASE,
)
_BIRTH: Final = re.compile(r"(.*_)?(dob|birth_?(date|day)?|date_?of_?birth|born(_on)?|bdate)(_.*)?", re.IGNORECASE)
_ROW_ID: Final = re.compile(r"(id|row_?id|rowid|index|pk|nr|no|uuid|guid)", re.IGNORECASE)


def likely_units(described: Sequence[SourceColumn]) -> list[str]:
    """Return columns whose names suggest that they identify people."""
    return [one.name for one in described if _PERSON.fullmatch(one.name.replace(" ", "_"))]


def column_hint(name: str, kind: Kind | None) -> str:
    """Return what the name of a column suggests, or an empty text."""
    plain = name.replace(" ", "_")
    if _BIRTH.fullmatch(plain) and kind in (Kind.DATE, Kind.TIME, Kind.TEXT):
        return f"{name} looks like a date of birth; its bounds must hold for everyone, for example from 1900-01-01"
    if _NAMES_PEOPLE.fullmatch(plain):
        return f"{name} looks like it identifies people; give it no categories, because they are public"
    return ""


def unit_hint(table: str, unit: str) -> str:
    """Return a warning if the name of the unit suggests row numbers rather than people, or an empty text."""
    singular = table.lower().removesuffix("s")
    if _ROW_ID.fullmatch(unit) or re.fullmatch(rf"{re.escape(singular)}s?{_ID}", unit.lower()):
        if _PERSON.fullmatch(unit):
            return ""
        return (
            f"{unit} looks like a row number, which protects each row by itself: a person with several rows would be "
            "protected less than promised; the unit should identify the person that a row is about"
        )
    return ""


def row_limit_hint(table: Table) -> list[str]:
    """Return the default row limit, if none was given and a unit may have several rows."""
    unit = table.unit
    if unit is None or table.limits != Limits() or {*map(str.lower, table.identified_by)} == {unit.column.lower()}:
        return []
    return [
        f"by default an answer counts at most {ROWS_PER_GROUP} rows of each {unit.column} per group; --rows-per-unit N "
        "limits them in all queries (fewer rows mean less noise)"
    ]


def table_hints(table: Table) -> list[str]:
    """Return the hints from the names of a table and its columns."""
    unit = table.unit
    hints = [unit_hint(table.name, unit.column)] if unit is not None and unit.is_direct else []
    if unit is None:
        people = likely_units([SourceColumn(one.name, one.kind, "") for one in table.columns])
        hints += [f"{table.name} is public, but {people[0]} looks like it identifies people"] if people else []
    own = "" if unit is None else unit.column.lower() if unit.is_direct else unit.through[0].column.lower()
    for column in table.columns:
        if column.facts is not None and column.name.lower() != own and _NAMES_PEOPLE.fullmatch(column.name):
            hints.append(column_hint(column.name, column.kind))
    return [hint for hint in hints if hint]
