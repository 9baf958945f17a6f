"""Questions of somebody who wants one unit to show: everything that multiplies rows, texts or arithmetic.

Each is written from a seed over the tables of `hostile_worlds`: joins of a table with itself, with another and with
public tables, unions of a filter with itself, chains of common table expressions that use a column twice, windows,
rows added up by unit; on top of these towers of functions of texts, sums of hundreds of terms, CASE in CASE, and
literals from the ends of their types. Whether a question is allowed is the planner's to say.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from tacit.ledger import Budget
from tacit.privacy.tables import Kind, Limits
from tacit.query import PlanSettings, Target
from tests.property.query.hostile_worlds import VICTIM
from tests.property.query.questions import Asked
from tests.property.query.scalar_sql import BY_NAME, COLUMNS, LITERALS, SHAPES, Writer

SQL_MAX: Final = 5_000
"""How long conditions are together at most, as planning takes time, too."""

_POWERS: Final = [str(2**power + more) for power in (31, 48, 49, 50, 53, 61, 62) for more in (-1, 0, 1)]
EXTREME: Final[dict[Kind, list[str]]] = {
    **LITERALS,
    Kind.INTEGER: [*LITERALS[Kind.INTEGER], *_POWERS, *(f"(-{one})" for one in _POWERS)],
    Kind.REAL: [*LITERALS[Kind.REAL], "1e308", "(-1e308)", "5e-324", "1.7976931348623157e308", "562949953421311.5"],
    Kind.TEXT: [*LITERALS[Kind.TEXT], f"'{'ab' * 1_000}'", "'%_%'", "'🙂'"],
    Kind.TIME: [*LITERALS[Kind.TIME], "TIMESTAMP '9999-12-31 23:59:59.999999'", "TIMESTAMP '0001-01-01 00:00:00'"],
}
_SHAPES: Final = {
    kind: [one for one in shapes if not any(re.search(rf"(?<!\{{)\b{name}\b(?!\}})", one) for name in BY_NAME)]
    for kind, shapes in SHAPES.items()
}
"""Without those that name a column, which need not be in sight."""

_BROKEN: Final = ("'a\0b'", "'\ud800'")
"""Texts that no engine takes; they are in few questions, since those are refused for them."""

_CLAMPS: Final = [(-3, 10), (0, 2**48), (2**50 - 9, 2**50 - 1), (-(2**50) + 1, 9 - 2**50), (2**49, 2**62), (0, 10**308)]


@dataclass
class Sight:
    """A FROM clause, what stands before the SELECT, and the columns in sight by kind."""

    sql: str
    columns: dict[Kind, list[str]]
    unit: str
    before: str = ""
    where: list[str] = field(default_factory=list)


def hostile_question(seed: int) -> Asked:
    """Write a question."""
    return _Hostile(random.Random(seed)).asked()


class _Hostile(Writer):
    """Scalars are those of `Writer`, over the columns in sight."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng.choice)
        self.literals = EXTREME if rng.random() < 0.97 else {**EXTREME, Kind.TEXT: [*EXTREME[Kind.TEXT], *_BROKEN]}
        self.shapes = _SHAPES
        self.rng, self.features = rng, set[str]()
        self.sight = Sight("", {}, "")

    def leaf(self, kind: Kind) -> str:
        known = self.sight.columns.get(kind)
        return self.rng.choice(known) if known and self.rng.random() < 0.75 else self.rng.choice(self.literals[kind])

    def asked(self) -> Asked:
        rng = self.rng
        self.sight = self.source()
        where = [*self.sight.where]
        if rng.random() < 0.5:
            self.features.add("of one unit")
            where.append(f"{self.sight.unit} = {VICTIM}")
        where += [self.condition() for _ in range(rng.choices([0, 1, 2, 8, 30], [6, 6, 3, 2, 1])[0])]
        keys = [rng.choice([self.tower(2), self.write(rng.choice(list(Kind)), 1)])] if rng.random() < 0.3 else []
        values = [f"{self.aggregate()} AS v{index}" for index in range(rng.choice([1, 1, 2, 4]))]
        while len(" AND ".join(where)) > SQL_MAX:
            where.pop()
        sql = f"{self.sight.before}SELECT {', '.join([*keys, *values])} FROM {self.sight.sql}"
        sql += f" WHERE {' AND '.join(where)}" if where else ""
        sql += f" GROUP BY {keys[0]}" if keys else ""
        most = [None, None, 1, 64, 10**6]
        limits = Limits(groups_per_unit=rng.choice(most[:4]), rows_per_group=rng.choice(most))
        budget = Budget(epsilon=1e4, delta=1e-6)
        return Asked(sql, PlanSettings(limits), budget.cap, Target(epsilon=rng.choice([0.1, 1.0, 30.0])), self.features)

    # What stands in FROM.

    def source(self) -> Sight:
        name, make = self.rng.choice(list(_SOURCES.items()))
        self.features.add(name)
        return make(self)

    def table(self, alias: str = "a", name: str = "p") -> Sight:
        columns = {kind: [f"{alias}.{one}" for one in _names(name, kind)] for kind in Kind}
        return Sight(f"{name} AS {alias}", columns, f"{alias}.uid")

    def joined(self) -> Sight:
        found = self.table()
        for number in range(self.rng.choice([1, 1, 2, 2, 3, 5])):
            other = self.table(f"b{number}", self.rng.choice(["p", "p", "o"]))
            side = self.rng.choice(["JOIN", "JOIN", "LEFT JOIN"])
            more = f" AND a.i <= b{number}.i" if self.rng.random() < 0.2 else ""
            found.sql += f" {side} {other.sql} ON a.uid = {other.unit}{more}"
            found.columns = {kind: [*found.columns[kind], *other.columns[kind]] for kind in Kind}
        return found

    def crossed(self) -> Sight:
        found, public = self.joined() if self.rng.random() < 0.3 else self.table(), self.table("q", "pub")
        self.features.add("cross join")
        on = self.rng.choice(["CROSS JOIN {0}", "JOIN {0} ON a.i = q.i", "JOIN {0} ON a.s = q.s", "CROSS JOIN {0}"])
        found.sql += f" {on.format(public.sql)}"
        found.columns = {kind: [*found.columns[kind], *public.columns[kind]] for kind in Kind}
        return found

    def united(self) -> Sight:
        self.sight = self.table()
        part = f"SELECT a.uid, a.s, a.i, a.kg FROM p AS a WHERE {self.condition()}"
        sql = " UNION ALL ".join([part] * self.rng.choice([2, 3, 8, 40]))
        return _of_four(f"({sql[:SQL_MAX].rpartition(' UNION ALL ')[0] if len(sql) > SQL_MAX else sql}) AS c")

    def chained(self) -> Sight:
        steps = [f"c0 AS (SELECT a.uid AS uid, a.s AS s, a.i AS i, a.kg AS kg FROM {self.table().sql})"]
        twice = self.rng.choice(["c.s || c.s", "c.s || UPPER(c.s)", "UPPER(LOWER(c.s))", "LEFT(c.s || c.s, 4000)"])
        adds = self.rng.choice(["c.i + c.i", "c.i * c.i", "LEAST(c.i, 5) * LEAST(c.i, 5)", "c.i", "c.i"])
        more = self.rng.choice(["c.kg + c.kg", "c.kg", "c.kg"])
        joined = self.rng.choice([0, 0, 1, 2])
        for number in range(1, self.rng.randint(2, 12)):
            inner = f"SELECT c.uid AS uid, {twice} AS s, {adds} AS i, {more} AS kg FROM c{number - 1} AS c"
            if number == joined:
                inner += f" JOIN c{number - 1} AS e ON c.uid = e.uid"
            steps.append(f"c{number} AS ({inner})")
        found = _of_four(f"c{len(steps) - 1} AS c", f"WITH {', '.join(steps)} ")
        return replace(found, where=[self.rng.choice(_ON_TEXTS).format("c.s", "'b'")])

    def per_unit(self) -> Sight:
        self.sight = self.rng.choice([self.table, self.joined, self.crossed])()
        number = self.number()
        made = f"MAX({self.tower(3)}) AS s, COUNT(DISTINCT {self.tower(2)}) AS i, SUM({number}) AS kg"
        more = f" HAVING COUNT(*) > {self.rng.choice([0, 3, 2**62])}" if self.rng.random() < 0.3 else ""
        inner = f"SELECT {self.sight.unit} AS uid, {made} FROM {self.sight.sql} GROUP BY {self.sight.unit}{more}"
        twice = "SELECT d.uid AS uid, d.s || d.s AS s, d.i AS i, d.kg AS kg FROM"
        return _of_four(f"({f'{twice} ({inner}) AS d' if self.rng.random() < 0.4 else inner}) AS c")

    def windowed(self) -> Sight:
        self.sight = self.rng.choice([self.table, self.joined])()
        over = f"OVER (PARTITION BY {self.sight.unit} ORDER BY {self.write(self.rng.choice(list(Kind)), 1)})"
        whole = self.rng.choice([f"ROW_NUMBER() {over}", f"RANK() {over}", f"COUNT(*) {over}"])
        made = f"LAG({self.tower(2)}) {over} AS s, {whole} AS i, SUM({self.number()}) {over} AS kg"
        return _of_four(f"(SELECT {self.sight.unit} AS uid, {made} FROM {self.sight.sql}) AS c")

    # Values of a row.

    def tower(self, height: int) -> str:
        """Return a text: functions on functions of a column."""
        found, rng = self.leaf(Kind.TEXT), self.rng
        for _ in range(rng.randint(0, height)):
            shapes = [
                "UPPER({0})",
                "LOWER({0})",
                "({0} || {0})",
                "SUBSTRING({0}, 2, 9000)",
                "TRIM({0})",
                "({0} || {1})",
            ]
            shapes += ["LEFT({0}, 2000)", "COALESCE({0}, {1})", "CONCAT({0}, '-', {0})", "GREATEST({0}, {1})"]
            found = rng.choice(shapes).format(found, self.leaf(Kind.TEXT))
        return found

    def condition(self) -> str:
        roll = self.rng.random()
        if roll < 0.4:
            return f"({self.rng.choice(_ON_TEXTS).format(self.tower(4), self.tower(2))})"
        if roll < 0.5 and self.sight.sql:
            about = self.rng.choice(
                ["", " AND z.i < 5", f" AND z.s < {self.leaf(Kind.TEXT)}", " AND UPPER(z.s) LIKE '%a%b'"]
            )
            return f"EXISTS (SELECT * FROM o AS z WHERE z.uid = {self.sight.unit}{about})"
        if roll < 0.6:
            return f"({self.many_terms()} > 3)"
        return self.write(Kind.BOOLEAN, 3)

    def many_terms(self) -> str:
        count, one = (
            self.rng.choice([3, 3, 3, 20, 20, 20, 60, 200]),
            self.leaf(self.rng.choice([Kind.INTEGER, Kind.REAL])),
        )
        if self.rng.random() < 0.5:
            return self.rng.choice([" + ", " - ", " * "]).join([one] * count)
        found = one
        for number in range(min(count, 40)):
            found = f"CASE WHEN {one} > {number} THEN {found} ELSE {number} END"
        return found

    def number(self) -> str:
        """Return a number between bounds that are narrow, wide, or far from zero."""
        low, high = self.rng.choice(_CLAMPS)
        inner = self.rng.choice([self.leaf, lambda kind: self.write(kind, 2)])(
            self.rng.choice([Kind.INTEGER, Kind.REAL])
        )
        return f"LEAST(GREATEST({inner}, {low}), {high})"

    def aggregate(self) -> str:
        name, sql = self.rng.choice(list(_AGGREGATES.items()))
        self.features.add(name)
        some = self.write(self.rng.choice(list(Kind)), 2)
        return sql.format(n=self.number(), m=self.number(), s=self.tower(3), v=some, c=self.condition())


def _names(table: str, kind: Kind) -> list[str]:
    if table == "p":
        return [one.name for one in COLUMNS if one.kind is kind]
    known = "i s" if table == "pub" else "i s kg age sex day"
    return [one.name for one in COLUMNS if one.kind is kind and one.name in known.split()]


def _of_four(sql: str, before: str = "") -> Sight:
    return Sight(sql, {Kind.TEXT: ["c.s"], Kind.INTEGER: ["c.i"], Kind.REAL: ["c.kg"]}, "c.uid", before)


_SOURCES: Final[dict[str, Callable[[_Hostile], Sight]]] = {
    "table": _Hostile.table,
    "join": _Hostile.joined,
    "public": _Hostile.crossed,
    "union": _Hostile.united,
    "chain": _Hostile.chained,
    "per unit": _Hostile.per_unit,
    "window": _Hostile.windowed,
}
_ON_TEXTS: Final = [
    "{0} LIKE '%a%b%c%'", "{0} ILIKE '%a_b%é%'", "STRPOS({0}, {1}) > 1", "CONTAINS({0}, {1})", "{0} < {1}",
    "LENGTH({0}) > 4000", "ENDS_WITH({0}, {1})", "CAST({0} AS INTEGER) > 3", "CAST({0} AS DATE) IS NULL",
    "CAST({0} AS DOUBLE) < 1e300", "UPPER({0}) = {1}", "{0} IN ('a', 'b', {1})", "STARTS_WITH({0}, {1})",
]  # fmt: skip
_AGGREGATES: Final = {
    "rows": "COUNT(*)",
    "present": "COUNT({v})",
    "values": "COUNT(DISTINCT {s})",
    "sum": "SUM({n})",
    "avg": "AVG({n})",
    "var": "VAR_POP({n})",
    "corr": "CORR({n}, {m})",
    "median": "MEDIAN({n})",
    "quantile": "QUANTILE_CONT({n}, 0.9)",
    "max": "MAX({n})",
    "mode": "MODE(CASE WHEN {c} THEN 'yes' ELSE 'no' END)",
}
