"""A table while it is being stated: what options and answers say so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tacit.cli.catalog.values import bounds_of, categories_of, key_of, kind_of, pair_of
from tacit.curator.catalog import Catalog
from tacit.curator.stating import column_named, table_of
from tacit.engines.protocol import Described
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Column, Kind, Limits, Table
from tacit.privacy.units import Unit

LIMITS = ("rows_per_unit", "groups_per_unit", "rows_per_group")


@dataclass
class Draft:
    """What is known of a table before it is complete."""

    name: str
    described: Sequence[Described]
    unit: str | Unit | None = None
    public: bool = False
    facts: dict[str, Bounds | Categories] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    identified_by: tuple[str, ...] = ()
    dataset: str = ""
    never_missing: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, table: Table) -> Draft:
        """Return the draft that leads to a table as it is."""
        return cls(
            table.name,
            [Described(column.name, column.kind, column.kind.value) for column in table.columns],
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
        return self.public or self.unit is not None

    def column(self, name: str) -> Described:
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
            raise InvalidInput(f"{target.name} is public and protects nobody; name the unit's column in it, too")
        self.public = False

    def table(self) -> Table:
        """Return the table, or refuse what does not fit together."""
        table = table_of(
            self.name,
            self.described,
            unit=self.unit,
            public=self.public,
            columns=self.facts,
            limits=self.limits,
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
