"""A table before it is registered: what options and answers state so far, and what the names of columns suggest.

Hints are guesses from names, said to the owner and never acted on; no value of the data is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tacit.cli.value_parsing import bounds_of, categories_of, key_of, kind_of, pair_of
from tacit.curator.catalog import Catalog
from tacit.curator.file_table import row_number_column
from tacit.curator.registration import column_named, table_of
from tacit.engines.protocol import SourceColumn
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Column, Kind, Limits, Table
from tacit.privacy.units import Unit
from tacit.query.contribution import ROWS_PER_GROUP

LIMITS = ("rows_per_unit", "groups_per_unit", "rows_per_group")


@dataclass
class Draft:
    """What is known of a table before it is complete."""

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
    """Whether every row is a unit by itself."""

    @classmethod
    def of(cls, table: Table) -> Draft:
        """Return the draft that leads to a table as it is."""
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
        """Whether it is said whom the table protects."""
        return self.public or self.each_row or self.unit is not None

    def column(self, name: str) -> SourceColumn:
        """Return a column by its name in any case."""
        return column_named(self.name, self.described, name)

    def kind(self, name: str) -> Kind | None:
        """Return the kind that a column is to have."""
        column = self.column(name)
        return self.kinds.get(column.name, column.kind)

    def take(self, options: Mapping[str, Any], catalog: Catalog) -> None:
        """Take over what the options of a command say; what they leave out stays as it is."""
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
                "with --each-row every row is a unit with one row; leave --unit, --public, --through and "
                "--rows-per-unit out"
            )
        self._take_unit(options["unit"], options["public"], options["through"], catalog)
        if self.public and any(options[key] is not None for key in LIMITS):
            raise InvalidInput(f"{self.name} is public: no unit in it can be limited; leave the limits out")

    def lead_through(self, steps: Sequence[str], catalog: Catalog, unit: str | None = None) -> None:
        """Protect those to whom foreign keys lead; the last table says who that is, if no column is named."""
        keys = tuple(key_of(step) for step in steps)
        target = catalog.schema.table(keys[-1].target_table)
        if unit is not None:
            self.unit = Unit(unit, keys)
        elif target.unit is not None:
            self.unit = Unit(target.unit.column, (*keys, *target.unit.through))
        else:
            raise InvalidInput(f"{target.name} is public; name the column of the unit in it with --unit")
        self.public = False

    def table(self) -> Table:
        """Return the table, or refuse what does not fit together."""
        described, unit, limits = self.described, self.unit, self.limits
        if self.each_row:
            number = row_number_column(self.described)
            described, unit, limits = [number, *self.described], number.name, replace(self.limits, rows_per_unit=1)
        table = table_of(
            self.name,
            described,
            unit=unit,
            public=self.public,
            columns=self.facts,
            limits=limits,
            identified_by=self.identified_by,
            dataset=self.dataset,
            kinds=self.kinds,
        )
        return replace(table, columns=tuple(self._completed(column) for column in table.columns))

    def _take_unit(self, unit: str | None, public: bool, through: Sequence[str], catalog: Catalog) -> None:
        if public and (unit is not None or through):
            raise InvalidInput("a table is public, or it protects a unit: --public or --unit, not both", name="unit")
        if public:
            self.unit, self.public, self.limits = None, True, Limits()
        elif through:
            self.lead_through(through, catalog, unit)
        elif unit is not None:
            self.unit, self.public = unit, False

    def _pair(self, text: str, example: str) -> tuple[str, str]:
        """Part a column from what is said of it, also where the column has = in its name."""
        for one in sorted(self.described, key=lambda one: -len(one.name)):
            if text.lower().startswith(f"{one.name.lower()}=") and text[len(one.name) + 1 :].strip():
                return one.name, text[len(one.name) + 1 :].strip()
        return pair_of(text, example)

    def _usable(self, name: str) -> Kind:
        kind = self.kind(name)
        if kind is None:
            column = self.column(name)
            raise InvalidInput(f"{name} is of the type {column.type}; give it a kind first: --kind {name}=text")
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
    """Return columns whose names look as if they said whose row it is."""
    return [one.name for one in described if _PERSON.fullmatch(one.name.replace(" ", "_"))]


def column_hint(name: str, kind: Kind | None) -> str:
    """Say what the name of a column suggests about it, or nothing."""
    plain = name.replace(" ", "_")
    if _BIRTH.fullmatch(plain) and kind in (Kind.DATE, Kind.TIME, Kind.TEXT):
        return f"{name} looks like a date of birth: its bounds must hold for anybody, say from 1900-01-01 on"
    if _NAMES_PEOPLE.fullmatch(plain):
        return f"{name} looks like it names people: state no categories of it, for they would be public"
    return ""


def unit_hint(table: str, unit: str) -> str:
    """Doubt a unit that seems to number rows instead of people, or say nothing."""
    singular = table.lower().removesuffix("s")
    if _ROW_ID.fullmatch(unit) or re.fullmatch(rf"{re.escape(singular)}s?{_ID}", unit.lower()):
        if _PERSON.fullmatch(unit):
            return ""
        return (
            f"{unit} looks like it numbers rows: then each row is protected by itself, and a person with several rows "
            "less than promised; the unit is whoever a row is about"
        )
    return ""


def row_limit_hint(table: Table) -> list[str]:
    """Say how many rows a unit counts with where nothing was stated and a unit may have several."""
    unit = table.unit
    if unit is None or table.limits != Limits() or {*map(str.lower, table.identified_by)} == {unit.column.lower()}:
        return []
    return [
        f"an answer counts at most {ROWS_PER_GROUP} rows of each {unit.column} in a group; --rows-per-unit N sets how "
        "many rows of each count in all (the fewer, the less noise)"
    ]


def table_hints(table: Table) -> list[str]:
    """Return what the names in a table suggest, for its owner to weigh."""
    unit = table.unit
    hints = [unit_hint(table.name, unit.column)] if unit is not None and unit.is_direct else []
    if unit is None:
        people = likely_units([SourceColumn(one.name, one.kind, "") for one in table.columns])
        hints += [f"{table.name} is public, and {people[0]} looks like it is about people"] if people else []
    own = "" if unit is None else unit.column.lower() if unit.is_direct else unit.through[0].column.lower()
    for column in table.columns:
        if column.facts is not None and column.name.lower() != own and _NAMES_PEOPLE.fullmatch(column.name):
            hints.append(column_hint(column.name, column.kind))
    return [hint for hint in hints if hint]
