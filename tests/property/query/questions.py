"""Questions as an analyst, or an attacker, might write them: SQL generated from a seed over the tables of a world.

Not all of them are allowed; those that are must keep their promise. Each names the features that it uses, so that a
test can tell whether all of them were put to it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tacit.ledger import Budget
from tacit.ledger.caps import Cap
from tacit.privacy.bounds import Bounds
from tacit.privacy.tables import Kind, Limits, Schema, Table
from tacit.privacy.units import Relation
from tacit.query import BudgetTerms, PlanSettings, Target
from tests.property.query.worlds import quoted

NUMBERS: Final = (Kind.INTEGER, Kind.REAL)


@dataclass(frozen=True)
class Item:
    """A column in sight: how it is written, its kind, whether it has bounds, whether it is (or comes of) the unit."""

    sql: str
    kind: Kind
    bounded: bool = False
    unit: bool = False


@dataclass(frozen=True)
class From:
    """A FROM clause and what is in sight behind it."""

    sql: str
    items: tuple[Item, ...]
    where: tuple[str, ...] = ()

    def of(self, *kinds: Kind, unit: bool = False) -> list[Item]:
        return [one for one in self.items if one.kind in kinds and (unit or not one.unit)]


@dataclass
class Asked:
    """A question with what was said beside it."""

    sql: str
    settings: PlanSettings
    cap: Cap
    target: Target
    features: set[str] = field(default_factory=set)

    @property
    def terms(self) -> BudgetTerms:
        """What the budget allows a question."""
        return BudgetTerms.of(self.cap)


def question(seed: int, schema: Schema) -> Asked:
    """Write a question."""
    return _Writer(random.Random(seed), schema).asked()


class _Writer:
    def __init__(self, rng: random.Random, schema: Schema) -> None:
        self.rng = rng
        self.private = [table for table in schema.tables.values() if table.is_private]
        self.public = [table for table in schema.tables.values() if not table.is_private]
        self.features: set[str] = set()
        self.names = 0

    def asked(self) -> Asked:
        rng = self.rng
        source = self.source()
        keys = self.keys(source)
        values = [self.aggregate(source) for _ in range(rng.choice([1, 1, 2, 3]))]
        items = [*keys, *(f"{value} AS v{index}" for index, value in enumerate(values))]
        where = list(source.where)
        if rng.random() < 0.4:
            self.features.add("where")
            where.append(self.condition(source))
        sql = f"SELECT {', '.join(items)} FROM {source.sql}"
        sql += f" WHERE {' AND '.join(where)}" if where else ""
        if keys:
            sql += f" GROUP BY {self.grouped(keys)}"
        if rng.random() < 0.1:
            self.features.add("having")
            sql += f" HAVING {rng.choice(values)} > 2"
        limits = Limits()
        if rng.random() < 0.5:
            self.features.add("limits")
            limits = Limits(groups_per_unit=rng.choice([None, 1, 2, 3]), rows_per_group=rng.choice([None, 1, 2, 3]))
        relation = Relation.REPLACE_ONE if rng.random() < 0.3 else Relation.ADD_REMOVE
        self.features.add(relation.value)
        budget = Budget(epsilon=1e4, delta=rng.choice([1e-6, 0.5] if keys else [0.0, 1e-6, 0.5]), relation=relation)
        other = rng.random() < 0.2
        return Asked(sql, PlanSettings(limits, other=other), budget.cap, self.target(), self.features)

    def target(self) -> Target:
        if self.rng.random() < 0.25:
            self.features.add("rho")
            return Target(rho=self.rng.choice([0.001, 0.1, 3.0]))
        return Target(epsilon=self.rng.choice([0.1, 1.0, 1.0, 30.0]))

    def alias(self) -> str:
        self.names += 1
        return f"a{self.names}"

    def pick(self, *choices: tuple[float, Callable[[], From]]) -> From:
        weights = [weight for weight, _ in choices]
        return self.rng.choices([make for _, make in choices], weights)[0]()

    # What stands in FROM.

    def source(self, depth: int = 0) -> From:
        deep = 0.0 if depth >= 2 else 1.0
        return self.pick(
            (4.0, self.table),
            (1.5 * deep, lambda: self.joined_private(depth)),
            (1.5 * deep if self.public else 0.0, lambda: self.joined_public(depth)),
            (1.2 * deep, lambda: self.subquery(depth)),
            (1.5 * deep, lambda: self.per_unit(depth)),
            (1.2 * deep, lambda: self.windowed(depth)),
            (0.8 * deep, lambda: self.union(depth)),
            (0.7 * deep, lambda: self.members(depth)),
            (0.8 * deep, lambda: self.zeros(depth)),
        )

    def table(self, chosen: Table | None = None) -> From:
        table = chosen or self.rng.choice(self.private)
        name = self.alias()
        own = table.unit.column if table.unit is not None and table.unit.is_direct else ""
        items = tuple(
            Item(f"{name}.{quoted(one.name)}", one.kind, isinstance(one.facts, Bounds), one.name == own)
            for one in table.columns
        )
        return From(f"{quoted(table.name)} AS {name}", items)

    def joined_private(self, depth: int) -> From:
        left, right = self.table(), self.source(depth + 1) if self.rng.random() < 0.3 else self.table()
        mine, theirs = self.unit_of(left), self.unit_of(right)
        side = self.rng.choice(["JOIN", "JOIN", "LEFT JOIN"])
        on = f"{mine} = {theirs}"
        leads = [one.sql for one in left.items if one.sql.endswith('"visit"')]
        ids = [one.sql for one in right.items if one.sql.endswith('"id"')]
        if leads and ids and self.rng.random() < 0.7:
            self.features.add("foreign key")
            on = f"{leads[0]} = {ids[0]}"
        elif not mine or not theirs:
            return left
        if self.rng.random() < 0.4 and (pair := self.alike(left, right)):
            on += f" AND {pair[0]} = {pair[1]}"
        self.features.add("left join" if side == "LEFT JOIN" else "unit join")
        return From(f"{left.sql} {side} {right.sql} ON {on}", (*left.items, *right.items), right.where)

    def joined_public(self, depth: int) -> From:
        left, right = self.source(depth + 1), self.table(self.rng.choice(self.public))
        self.features.add("public join")
        pair = self.alike(left, right, unit=True)
        both = (*left.items, *right.items)
        if pair is None or self.rng.random() < 0.15:
            return From(f"{left.sql} CROSS JOIN {right.sql}", both, left.where)
        if self.rng.random() < 0.2:
            return From(f"{left.sql}, {right.sql}", both, (*left.where, f"{pair[0]} = {pair[1]}"))
        side = self.rng.choice(["JOIN", "LEFT JOIN", "INNER JOIN"])
        if self.rng.random() < 0.2:
            return From(f"{right.sql} JOIN {left.sql} ON {pair[0]} = {pair[1]}", both, left.where)
        return From(f"{left.sql} {side} {right.sql} ON {pair[0]} = {pair[1]}", both, left.where)

    def subquery(self, depth: int) -> From:
        inner = self.source(depth + 1)
        columns = [self.value(inner) for _ in range(self.rng.randint(1, 4))]
        columns += self.keep_unit(inner)
        distinct = self.rng.random() < 0.15
        self.features.add("subquery")
        return self.derived(inner, columns, "DISTINCT " if distinct else "")

    def per_unit(self, depth: int) -> From:
        inner = self.source(depth + 1)
        unit = self.unit_of(inner)
        if not unit:
            return inner
        self.features.add("per unit")
        keys = [Item(unit, self.kind_of_unit(inner), unit=True)]
        roll = self.rng.random()
        if roll < 0.3:
            keys.append(self.value(inner))
        elif roll < 0.6:  # comes of the unit, but is not the same on all of its rows
            condition = self.condition(inner)
            keys.append(Item(f"CASE WHEN {condition} THEN {unit} END", keys[0].kind, unit=True))
        made = [self.inner_aggregate(inner) for _ in range(self.rng.randint(1, 3))]
        shown = keys if self.rng.random() < 0.8 else keys[:1]
        having = f" HAVING COUNT(*) > {self.rng.randint(0, 3)}" if self.rng.random() < 0.2 else ""
        by = ", ".join(one.sql for one in keys)
        return self.derived(inner, [*shown, *made], after=f" GROUP BY {by}{having}")

    def windowed(self, depth: int) -> From:
        inner = self.source(depth + 1)
        unit = self.unit_of(inner)
        if not unit:
            return inner
        self.features.add("window")
        columns = [self.window(inner, unit) for _ in range(self.rng.randint(1, 2))]
        columns += [self.value(inner), *self.keep_unit(inner)]
        return self.derived(inner, columns)

    def zeros(self, depth: int) -> From:
        """Keep one of a unit's zeros, which are equal, and ask which one it is."""
        inner = self.source(depth + 1)
        numbers = inner.of(*NUMBERS)
        unit = self.unit_of(inner)
        if not unit or not numbers:
            return inner
        self.features.add("zeros")
        number = self.rng.choice(numbers).sql
        zero = self.rng.choice([f"{number} * 0e0", f"ROUND(({number} - 1) / 3e9)", f"CAST({number} AS DOUBLE)"])
        made = self.derived(inner, [Item(unit, self.kind_of_unit(inner), unit=True), Item(zero, Kind.REAL)])
        own, real = made.items
        over = f"OVER (PARTITION BY {own.sql} ORDER BY {real.sql})"
        function, after = self.rng.choice(
            [
                (f"MIN({real.sql})", f" GROUP BY {own.sql}"),
                (f"MAX({real.sql})", f" GROUP BY {own.sql}"),
                (real.sql, f" GROUP BY {own.sql}, {real.sql}"),
                (f"LAG({real.sql}) {over}", ""),
                (f"CASE WHEN ROW_NUMBER() {over} = 1 THEN {real.sql} END", ""),
            ]
        )
        kept = self.derived(made, [own, Item(function, Kind.REAL)], after=after)
        zero = kept.items[1].sql
        told = self.rng.choice([f"CAST({zero} AS VARCHAR) LIKE '-%'", f"POWER({zero}, -1) < 0"])
        return replace(kept, where=(told,)) if self.rng.random() < 0.6 else kept

    def union(self, depth: int) -> From:
        left, right = self.source(depth + 1), self.source(depth + 1)
        kinds = [self.rng.choice(list(Kind)) for _ in range(self.rng.randint(1, 3))]
        ones = [self.of_kind(left, kind) for kind in kinds]
        others = [self.of_kind(right, kind) for kind in kinds]
        units = self.keep_unit(left), self.keep_unit(right)
        if all(units):
            ones, others = ones + units[0], others + units[1]
            if self.rng.random() < 0.1:
                others[-1] = replace(others[-1], sql=f"CAST(3 AS {_TYPE[others[-1].kind]})")
        self.features.add("union")
        name = self.alias()
        parts = [self.select(one, some) for one, some in ((left, ones), (right, others))]
        items = tuple(
            Item(f"{name}.x{index}", one.kind, one.bounded and other.bounded, one.unit)
            for index, (one, other) in enumerate(zip(ones, others, strict=True))
        )
        return From(f"({' UNION ALL '.join(parts)}) AS {name}", items)

    def members(self, depth: int) -> From:
        inner, other = self.source(depth + 1), self.table()
        mine, theirs = self.unit_of(inner), self.unit_of(other)
        if self.public and self.rng.random() < 0.4:
            listed = self.table(self.rng.choice(self.public))
            if pair := self.alike(inner, listed):
                self.features.add("in public")
                condition = f"{pair[0]} IN (SELECT {pair[1]} FROM {listed.sql})"
                return replace(inner, where=(*inner.where, condition))
        if keyed := self.keyed(inner):
            return keyed
        if not mine or not theirs:
            return inner
        self.features.add("in units")
        roll = self.rng.random()
        if roll > 0.7:
            no = self.rng.choice(["", "NOT "])
            about = self.condition(From("", (*inner.items, *other.items)) if roll > 0.85 else other)
            condition = f"{no}EXISTS (SELECT 1 FROM {other.sql} WHERE {theirs} = {mine} AND ({about}))"
            self.features.add("exists")
            return replace(inner, where=(*inner.where, condition))
        if roll < 0.1:
            theirs = f"CASE WHEN {self.condition(other)} THEN {theirs} ELSE {theirs} END"
        elif roll < 0.2:
            mine = f"COALESCE({mine}, {mine})" if roll < 0.15 else f"CASE WHEN {self.condition(inner)} THEN {mine} END"
        condition = f"{mine} IN (SELECT {theirs} FROM {other.sql} WHERE {self.condition(other)})"
        return replace(inner, where=(*inner.where, condition))

    def keyed(self, inner: From) -> From | None:
        """Tie the rows of another table by the key of a visit, if both have one."""
        others = [table for table in self.private if {one.name for one in table.columns} & {"visit", "id"}]
        mine = [one.sql for one in inner.items if one.sql.endswith(('"visit"', '"id"'))]
        if not mine or not others or self.rng.random() < 0.3:
            return None
        other = self.table(self.rng.choice(others))
        theirs = next(one.sql for one in other.items if one.sql.endswith(('"visit"', '"id"')))
        no, key = self.rng.choice(["", "NOT "]), self.rng.choice(mine)
        self.features.add("by key")
        if self.rng.random() < 0.4:
            many = f" GROUP BY {theirs} HAVING COUNT(*) > 1" if self.rng.random() < 0.5 else ""
            condition = f"{key} {no}IN (SELECT {theirs} FROM {other.sql} WHERE {self.condition(other)}{many})"
        else:
            about = self.condition(From("", (*inner.items, *other.items)))
            condition = f"{no}EXISTS (SELECT * FROM {other.sql} WHERE {theirs} = {key} AND ({about}))"
        return replace(inner, where=(*inner.where, condition))

    def derived(self, inner: From, columns: Sequence[Item], before: str = "", after: str = "") -> From:
        name = self.alias()
        sql = self.select(inner, columns, before) + after
        items = tuple(replace(one, sql=f"{name}.x{index}") for index, one in enumerate(columns))
        return From(f"({sql}) AS {name}", items)

    def select(self, inner: From, columns: Sequence[Item], before: str = "") -> str:
        listed = ", ".join(f"{one.sql} AS x{index}" for index, one in enumerate(columns))
        where = list(inner.where)
        if self.rng.random() < 0.25:
            where.append(self.condition(inner))
        return f"SELECT {before}{listed} FROM {inner.sql}" + (f" WHERE {' AND '.join(where)}" if where else "")

    def keep_unit(self, source: From) -> list[Item]:
        units = [one for one in source.items if one.unit]
        return units[:1] if units and self.rng.random() < 0.9 else []

    def unit_of(self, source: From) -> str:
        units = [one.sql for one in source.items if one.unit]
        return self.rng.choice(units) if units else ""

    def kind_of_unit(self, source: From) -> Kind:
        return next(one.kind for one in source.items if one.unit)

    def alike(self, left: From, right: From, *, unit: bool = False) -> tuple[str, str] | None:
        numbers = self.rng.random() < 0.2
        pairs = [
            (one.sql, other.sql)
            for one in left.items
            for other in right.items
            if (one.kind is other.kind or (numbers and one.kind in NUMBERS and other.kind in NUMBERS))
            and (unit or not one.unit)
        ]
        return self.rng.choice(pairs) if pairs else None

    # Values of a row.

    def value(self, source: From) -> Item:
        return self.of_kind(source, self.rng.choice(list(Kind)))

    def of_kind(self, source: From, kind: Kind) -> Item:
        known = source.of(kind)
        if known and self.rng.random() < 0.6:
            return self.rng.choice(known)
        return _BY_KIND[kind](self, source)

    def bounded(self, source: From) -> str:
        known = [one for one in source.of(*NUMBERS) if one.bounded]
        roll = self.rng.random()
        if known and roll < 0.45:
            return self.rng.choice(known).sql
        if known and roll < 0.65:
            return self.reckoned(source, known)
        if roll < 0.95:
            inner = self.of_kind(source, self.rng.choice(NUMBERS)).sql
            low, high = sorted(self.rng.choices([-3, -1, 0, 1, 4, 10], k=2))
            return f"LEAST(GREATEST({inner}, {low}), {high})"
        return self.of_kind(source, self.rng.choice(NUMBERS)).sql

    def reckoned(self, source: From, known: Sequence[Item]) -> str:
        """Return a number that has bounds because it is reckoned from numbers that have them."""
        a, b = self.rng.choice(known).sql, self.rng.choice(known).sql
        made = [f"{a} + {b}", f"{a} - {b}", f"{a} * {b}", f"3 * {a}", f"ABS({a})", f"-{a}", f"{a} / 4", f"{a} % 3"]
        made.append(f"CASE WHEN {self.condition(source)} THEN {a} ELSE 2 * {b} END")
        return self.rng.choice(made)

    def whole(self, source: From) -> Item:
        rng = self.rng
        a = [one.sql for one in source.of(Kind.INTEGER)] or ["2"]
        dates = [one.sql for one in source.of(Kind.DATE, Kind.TIME)] or ["DATE '2024-01-01'"]
        texts = [one.sql for one in source.of(Kind.TEXT)] or ["'abc'"]
        made = [
            f"{rng.choice(a)} + {rng.choice(a)}", f"{rng.choice(a)} * {rng.randint(-2, 3)}", f"ABS({rng.choice(a)})",
            f"{rng.choice(a)} // {rng.choice(a)}", f"{rng.choice(a)} % {rng.randint(0, 4)}",
            f"YEAR({rng.choice(dates)})", f"MONTH({rng.choice(dates)})", f"LENGTH({rng.choice(texts)})",
            f"CAST({rng.choice(texts)} AS INTEGER)",
            f"CASE WHEN {self.condition(source)} THEN {rng.choice(a)} ELSE {rng.randint(-3, 3)} END",
            f"COALESCE({rng.choice(a)}, {rng.randint(0, 3)})", str(rng.randint(-2, 5)),
            f"CAST({self.comparison(source)} AS INTEGER)", f"SIGN({rng.choice(a)})",
        ]  # fmt: skip
        return Item(f"CAST({rng.choice(made)} AS BIGINT)", Kind.INTEGER)

    def real(self, source: From) -> Item:
        rng = self.rng
        a = [one.sql for one in source.of(*NUMBERS)] or ["2.5"]
        made = [
            f"{rng.choice(a)} / {rng.choice(a)}", f"{rng.choice(a)} * {rng.choice(a)}", f"SQRT({rng.choice(a)})",
            f"LN({rng.choice(a)})", f"EXP({rng.choice(a)})", f"{rng.choice(a)} - {rng.choice(a)}",
            f"ROUND({rng.choice(a)}, 1)", f"POWER({rng.choice(a)}, 2)", f"{rng.choice(a)} + 0.5",
            f"CASE WHEN {self.condition(source)} THEN {rng.choice(a)} END", "0.25",
            f"{rng.choice(a)} * 0e0", f"POWER({rng.choice(a)}, -1)", f"ROUND({rng.choice(a)} / 1e9)",
        ]  # fmt: skip
        return Item(f"CAST({rng.choice(made)} AS DOUBLE)", Kind.REAL)

    def text(self, source: From) -> Item:
        rng = self.rng
        a = [one.sql for one in source.of(Kind.TEXT)] or ["'x'"]
        some = [one.sql for one in source.of(Kind.INTEGER, Kind.REAL, Kind.BOOLEAN, Kind.DATE)] or ["1"]
        made = [
            f"UPPER({rng.choice(a)})", f"{rng.choice(a)} || 'z'", f"SUBSTRING({rng.choice(a)}, 1, 1)", "'k'",
            f"CASE WHEN {self.condition(source)} THEN 'yes' ELSE 'no' END", f"TRIM({rng.choice(a)})",
            f"CAST({rng.choice(some)} AS VARCHAR)", f"COALESCE({rng.choice(a)}, 'none')",
        ]  # fmt: skip
        return Item(rng.choice(made), Kind.TEXT)

    def boolean(self, source: From) -> Item:
        return Item(f"({self.comparison(source)})", Kind.BOOLEAN)

    def day(self, source: From) -> Item:
        a = [one.sql for one in source.of(Kind.DATE, Kind.TIME)] or ["DATE '2024-02-29'"]
        made = [f"DATE_TRUNC('month', {self.rng.choice(a)})", self.rng.choice(a), f"LAST_DAY({self.rng.choice(a)})"]
        return Item(f"CAST({self.rng.choice(made)} AS DATE)", Kind.DATE)

    def time(self, source: From) -> Item:
        a = [one.sql for one in source.of(Kind.DATE, Kind.TIME)] or ["DATE '2024-02-29'"]
        made = [f"{self.rng.choice(a)} + INTERVAL '1' DAY", self.rng.choice(a)]
        return Item(f"CAST({self.rng.choice(made)} AS TIMESTAMP)", Kind.TIME)

    def comparison(self, source: From) -> str:
        rng, kinds = self.rng, [Kind.INTEGER, Kind.REAL, Kind.TEXT, Kind.DATE, Kind.BOOLEAN]
        kind = rng.choice(kinds)
        known = [one.sql for one in source.of(kind, unit=rng.random() < 0.05)]
        if not known:
            return "TRUE"
        a = rng.choice(known)
        if kind is Kind.BOOLEAN:
            return rng.choice([a, f"NOT {a}", f"{a} IS NULL"])
        if kind is Kind.DATE:
            return rng.choice([f"{a} >= DATE '2024-01-02'", f"{a} = {rng.choice(known)}"])
        if kind is Kind.TEXT:
            return rng.choice([f"{a} = 'F'", f"{a} LIKE '%s'", f"{a} < {rng.choice(known)}", f"{a} IN ('F', 'ß', '')"])
        sign = rng.choice(["<", "<=", ">", ">=", "=", "<>"])
        return rng.choice([f"{a} {sign} {rng.randint(-1, 8)}", f"{a} BETWEEN 1 AND 4", f"{a} IS NOT NULL"])

    def condition(self, source: From) -> str:
        parts = [f"({self.comparison(source)})" for _ in range(self.rng.choice([1, 1, 2]))]
        return self.rng.choice([" AND ", " OR "]).join(parts)

    # Aggregates, of units and of all.

    def inner_aggregate(self, source: From) -> Item:
        rng = self.rng
        number = self.bounded(source)
        some = self.value(source)
        made = [
            Item("COUNT(*)", Kind.INTEGER, True), Item(f"SUM({number})", Kind.REAL, True),
            Item(f"AVG({number})", Kind.REAL, True), Item(f"MAX({some.sql})", some.kind, some.bounded),
            Item(f"COUNT(DISTINCT {some.sql})", Kind.INTEGER, True), Item(f"MIN({number})", Kind.REAL, True),
            Item(f"COUNT(*) FILTER (WHERE {self.condition(source)})", Kind.INTEGER, True),
        ]  # fmt: skip
        chosen = rng.choice(made)
        if chosen.kind is Kind.REAL:  # so that kinds agree, whatever the number was
            return replace(chosen, sql=f"CAST({chosen.sql} AS DOUBLE)")
        return chosen

    def window(self, source: From, unit: str) -> Item:
        number, order, some = self.bounded(source), self.value(source), self.value(source)
        direction = self.rng.choice(["", " DESC"])
        extra = f", {self.value(source).sql}" if self.rng.random() < 0.2 else ""
        over = f"OVER (PARTITION BY {unit}{extra} ORDER BY {order.sql}{direction})"
        made = [
            Item(f"ROW_NUMBER() {over}", Kind.INTEGER, True), Item(f"RANK() {over}", Kind.INTEGER, True),
            Item(f"LAG({some.sql}) {over}", some.kind, some.bounded), Item(f"SUM({number}) {over}", Kind.REAL, True),
            Item(f"COUNT(*) OVER (PARTITION BY {unit}{extra})", Kind.INTEGER, True),
            Item(f"AVG({number}) OVER (PARTITION BY {unit})", Kind.REAL, True),
            Item(f"LEAD({some.sql}, 2) {over}", some.kind, some.bounded), Item(f"DENSE_RANK() {over}", Kind.INTEGER),
        ]  # fmt: skip
        chosen = self.rng.choice(made)
        return replace(chosen, sql=f"CAST({chosen.sql} AS DOUBLE)") if chosen.kind is Kind.REAL else chosen

    def aggregate(self, source: From) -> str:
        rng = self.rng
        name = rng.choice(list(_AGGREGATES))
        unit = self.unit_of(source)
        if name == "units" and not unit:
            name = "rows"
        self.features.add(name)
        number, other, some = self.bounded(source), self.bounded(source), self.value(source).sql
        sql = _AGGREGATES[name].format(n=number, m=other, v=some, u=unit)
        if rng.random() < 0.25:
            self.features.add("filter")
            sql += f" FILTER (WHERE {self.condition(source)})"
        return sql

    def keys(self, source: From) -> list[str]:
        count = self.rng.choices([0, 1, 2, 3], [3, 4, 2, 1])[0]
        keys: list[str] = []
        for _ in range(count):
            kind = self.rng.choice(list(Kind))
            self.features.add(f"key {kind.value}")
            sql = self.of_kind(source, kind).sql
            if sql not in keys and sql not in ("'k'", "0.25"):
                keys.append(sql)
        return keys

    def grouped(self, keys: Sequence[str]) -> str:
        listed = ", ".join(keys)
        roll = self.rng.random()
        if roll < 0.15:
            self.features.add("grouping sets")
            form = self.rng.choice(["ROLLUP", "CUBE", "GROUPING SETS"])
            return f"{form} ({', '.join(f'({one})' for one in keys) if form == 'GROUPING SETS' else listed})"
        return listed if roll < 0.8 else ", ".join(str(index + 1) for index in range(len(keys)))


_TYPE: Final = {Kind.INTEGER: "BIGINT", Kind.TEXT: "VARCHAR"}
_BY_KIND: Final[dict[Kind, Callable[[_Writer, From], Item]]] = {
    Kind.INTEGER: _Writer.whole,
    Kind.REAL: _Writer.real,
    Kind.TEXT: _Writer.text,
    Kind.BOOLEAN: _Writer.boolean,
    Kind.DATE: _Writer.day,
    Kind.TIME: _Writer.time,
}
_AGGREGATES: Final = {
    "rows": "COUNT(*)",
    "present": "COUNT({v})",
    "units": "COUNT(DISTINCT {u})",
    "values": "COUNT(DISTINCT {v})",
    "sum": "SUM({n})",
    "avg": "AVG({n})",
    "var": "VAR_POP({n})",
    "stddev": "STDDEV({n})",
    "covar": "COVAR_POP({n}, {m})",
    "corr": "CORR({n}, {m})",
    "median": "MEDIAN({n})",
    "quantile": "QUANTILE_CONT({n}, 0.3)",
    "min": "MIN({n})",
    "max": "MAX({n})",
    "mode": "MODE({v})",
    "count_if": "COUNT_IF({n} > 1)",
}
