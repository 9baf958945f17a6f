"""No function takes longer than the steps that the planner counts for it, whatever its arguments hold.

A server chooses the time class of an answer by these steps (`query.row_limits`, `server.jobs`). A function that takes
longer than they say makes the answer late for its class if one unit has the rows that are slow, which is an exact
answer about that unit. Here one row of one unit is joined with a public table. The time that a function adds to a
statement, for each step that it adds to the plan, is compared with the time that a step is taken to last. The long form
does that on every engine. The short form compares functions with one another, since machines differ and are busy at
times, and fails where one is slower than its steps by far.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from tacit.privacy.bounds import Bounds
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, PlanSettings, Target
from tacit.query.scalars import FUNCTION_NAMES
from tacit.query.scalars.casts import CAST_KINDS
from tacit.server.jobs import STEP_S
from tests.conformance.engines.conftest import Place
from tests.conformance.query.engines import ENGINES, TYPES
from tests.support.plans import plan_sql

ROWS = 8_000
FLOOR_S = {"duckdb": 0.02, "postgres": 0.02, "spark": 0.3}
"""By how much the times of equal statements differ."""

SHORT_ROWS = 100
SHORT_FLOOR_S = 0.005
SHORT_RATIO = 5
SHORT_STEPS_MAX = 30_000
"""The short form leaves out functions of many steps, which take long."""

AGAIN = 5
SHORT_AGAIN = 40
"""How many times a function that seems slow is measured anew: the machine may have been busy."""

TEXTS = {
    "a": "a" * 4_090,
    "ab": "ab" * 2_045,
    "é": "é" * 4_090,
    "ß": "ß" * 4_090,
    "İΣ": "İΣ" * 2_045,
    "🙂": "🙂" * 4_090,
    "space": " " * 4_090,
    "ideographic space": "\u3000" * 4_090,
    "digits": "1" * 4_090,
    "digits apart": "1_" * 499 + "1",
    "fraction": "." + "9" * 980 + "e-999_9",
    "exponent": "1e999_9",
    "small": "1" * 900 + "e-4000",
    "least": "1e-5000",
    "hexadecimal": "0x" + "f" * 15,
    "binary": "0b" + "1" * 62,
    "word": "-infinity",
    "letter": "x",
    "day": "2024-01-01",
    "odd day": "2024-01/01",
    "odd day and digits": "2024-01/01 10:10:10." + "1" * 970,
    "time": "2024-02-29 10:10:10",
    "long time": "2024-02-29     10:10:10.1234567890123456789012345678 +05:30",
    "time and spaces": "2024-01-01 " + " " * 320 + "10:10:10." + "1" * 320 + " " * 320,
}
"""Texts that were slow to read, or could be."""


@dataclass(frozen=True, slots=True)
class Case:
    """A condition over {s}, the beginning of one of TEXTS, or over numbers and times of the public table."""

    condition: str
    content: str = ""
    length: int = 4_096

    @property
    def base(self) -> str:
        """The condition that reads the same values, and does nothing with them."""
        used = [name for name in _VALUES if f"{{{name}}}" in self.condition]
        return self._written(" AND ".join(f"{{{name}}} IS NOT NULL" for name in used) or "id >= 0")

    @property
    def asked(self) -> str:
        return self._written(self.condition)

    def _written(self, condition: str) -> str:
        unit = list(TEXTS).index(self.content) if self.content else 0
        text = f"LEFT({_VALUES['s']}, {self.length})" if self.length < 4_096 else _VALUES["s"]
        return f"uid = {unit} AND ({condition.format(**{**_VALUES, 's': text})})"


_VALUES = {name: f"(CASE WHEN i + id >= 0 THEN {name} END)" for name in ("s", "x", "y", "n", "d", "t", "b")}
"""Values that belong to a row of the join, so that no engine computes anything of them before it."""


def of_texts(condition: str, *contents: str, length: int = 4_096) -> list[Case]:
    return [Case(condition, content, min(length, len(TEXTS[content]))) for content in contents]


def repeated(condition: str) -> list[Case]:
    """Return a condition with eight different constants, written {k}: one by itself is too fast to be measured."""
    return [Case(" OR ".join(f"({condition.replace('{k}', str(k))})" for k in range(2, 10)))]


_LETTERS = ("a", "é", "ß", "İΣ", "🙂")
_NUMBERS = ("digits", "digits apart", "fraction", "exponent", "small", "least", "hexadecimal", "binary", "word")
_MOMENTS = ("day", "odd day", "odd day and digits", "time", "long time", "time and spaces", "word", "digits")

CASTS: dict[tuple[Kind, Kind], list[Case]] = {
    (Kind.TEXT, Kind.INTEGER): of_texts("CAST({s} AS BIGINT) = 2", *_NUMBERS, "letter"),
    (Kind.TEXT, Kind.REAL): of_texts("CAST({s} AS DOUBLE) = 2", *_NUMBERS, "letter"),
    (Kind.TEXT, Kind.BOOLEAN): of_texts("CAST({s} AS BOOLEAN)", "letter", "é"),
    (Kind.TEXT, Kind.DATE): of_texts("CAST({s} AS DATE) IS NOT NULL", *_MOMENTS),
    (Kind.TEXT, Kind.TIME): of_texts("CAST({s} AS TIMESTAMP) IS NOT NULL", *_MOMENTS),
    (Kind.REAL, Kind.INTEGER): repeated("CAST({x} / {k} AS BIGINT) = 1"),
    (Kind.INTEGER, Kind.REAL): repeated("CAST({n} * {k} AS DOUBLE) = 0.5"),
    (Kind.INTEGER, Kind.BOOLEAN): repeated("CAST({n} * {k} AS BOOLEAN)"),
    (Kind.REAL, Kind.BOOLEAN): repeated("CAST({x} / {k} AS BOOLEAN)"),
    (Kind.BOOLEAN, Kind.INTEGER): repeated("CAST({b} AS BIGINT) > {k}"),
    (Kind.BOOLEAN, Kind.REAL): repeated("CAST({b} AS DOUBLE) > {k}"),
    (Kind.DATE, Kind.TIME): repeated("CAST({d} AS TIMESTAMP) < TIMESTAMP '0900-01-0{k} 01:00:00'"),
    (Kind.TIME, Kind.DATE): repeated("CAST({t} AS DATE) < DATE '0900-01-0{k}'"),
    (Kind.BOOLEAN, Kind.TEXT): repeated("CAST({b} AS VARCHAR) < '{k}'"),
    (Kind.INTEGER, Kind.TEXT): repeated("CAST({n} * {k} AS VARCHAR) = '{k}'"),
    (Kind.REAL, Kind.TEXT): [Case(f"CAST({x} AS VARCHAR) = 'x'") for x in ("{x}", "{y}", "({y} / 3)", "({x} / 3)")],
    (Kind.DATE, Kind.TEXT): repeated("CAST({d} AS VARCHAR) < '/{k}'"),
    (Kind.TIME, Kind.TEXT): repeated("CAST({t} AS VARCHAR) < '/{k}'"),
}
_DATES = {
    "DATE_TRUNC": "DATE_TRUNC('week', {t}) < TIMESTAMP '0900-01-0{k} 00:00:00'",
    "DATE_DIFF": "DATE_DIFF('week', {t}, TIMESTAMP '2000-01-0{k} 00:00:00') < -90000{k}",
    "DATEDIFF": "DATEDIFF('month', {t}, TIMESTAMP '2000-01-0{k} 00:00:00') < -90000{k}",
    "DATE_ADD": "DATE_ADD({t}, INTERVAL '{k}' MONTH) = TIMESTAMP '2000-01-01 00:00:00'",
    "DATE_PART": "DATE_PART('week', {d}) < -{k}",
    "DATEPART": "DATEPART('doy', {t}) < -{k}",
    "EXTRACT": "EXTRACT(second FROM {t}) < -{k}",
    "LAST_DAY": "LAST_DAY({d}) < DATE '0900-01-0{k}'",
    "EPOCH": "EPOCH({t}) < -{k}e18",
    **{
        name: f"{name}({{t}}) < -{{k}}"
        for name in (
            *(
                "YEAR",
                "QUARTER",
                "MONTH",
                "WEEK",
                "WEEKOFYEAR",
                "DAY",
                "DAYOFMONTH",
                "DAYOFWEEK",
                "ISODOW",
                "DAYOFYEAR",
            ),
            *("HOUR", "MINUTE", "SECOND"),
        )
    },
}
_REALS = {
    "+": "{x} + {y} * {k} = 1",
    "-": "{x} - {y} * {k} = 1",
    "*": "{x} * {y} * {k} = 1",
    "/": "{y} / {k} / {x} = 1",
    "**": "{x} ** ({y} * {k}) = 1",
    "^": "{y} ^ ({y} / {k}) = 1",
    "POW": "POW({y}, {y} * {k}) = 1",
    "POWER": "POWER(POWER({x}, {y}), 0.{k}) = 1",
    "ABS": "ABS({x} / {k}) = 1",
    "CEIL": "CEIL({x} / {k}) = 1",
    "FLOOR": "FLOOR({y} / {k}) = 1",
    "EXP": "EXP({y} * {k}) = 1",
    "LN": "LN({x} / {k}) = 1",
    "LOG": "LOG({x} / {k}) = 1",
    "LOG2": "LOG2({x} / {k}) = 1",
    "LOG10": "LOG10({x} / {k}) = 1",
    "ROUND": "ROUND({y} / {k}, 2) = 1",
    "TRUNC": "TRUNC({x} / {k}) = 1",
    "SIGN": "SIGN({x} / {k}) = 5",
    "SQRT": "SQRT({x} / {k}) = 1",
    "PI": "{x} / {k} = PI()",
    "WIDTH_BUCKET": "WIDTH_BUCKET({x} / {k}, 0, 1, 10) = 20",
    "//": "{n} // {k} = -1",
    "=": "{x} / {k} = 0.5",
    "<": "{x} < {k}.5",
    "<=": "{n} <= -{k}",
    "<>": "{n} <> {n} + {k} - {k}",
    ">": "{n} < -{k}",
    ">=": "{n} * {k} >= 1e30",
    "BETWEEN": "{x} BETWEEN {k}.25 AND {k}.5",
    "IN": "{n} IN (-{k}, -1{k})",
    "IS": "{x} IS NULL",
    "IS DISTINCT FROM": "{x} IS NOT DISTINCT FROM {k}.5",
    "IS NOT DISTINCT FROM": "{n} IS NOT DISTINCT FROM -{k}",
    "AND": "{x} > 1 AND {y} > {k} AND {n} < 0",
    "OR": "{n} < -{k} OR {n} < -1{k}",
    "NOT": "NOT ({n} > -{k})",
    "TRUE": "({n} > {k}) IS NULL OR ({n} < -{k}) = TRUE",
    "FALSE": "({n} > -{k}) = FALSE",
    "NULL": "{n} = {k} AND NULL",
    "CASE": "CASE WHEN {x} > {k} THEN {y} * {k} WHEN {y} > 2 THEN {x} / {k} ELSE {y} / 3 END = 1",
    "IF": "IF({x} > {k}, {y}, {x}) = 0.5",
    "IIF": "IF({x} > {k}, {y}, {x}) = 0.25",
    "COALESCE": "COALESCE({x}, {y}, {k}) < -{k}",
    "IFNULL": "IFNULL({x}, {k}) = 0.5",
    "NVL": "NVL({x}, {k}) = 0.5",
    "NULLIF": "NULLIF({x}, {k}) = 0.5",
    "GREATEST": "GREATEST({x}, {y}, {k}) = 0.5",
    "LEAST": "LEAST({x}, {y}, {k}) = 0.5",
}
CASES: dict[str, list[Case]] = {
    **{name: repeated(condition) for name, condition in (_DATES | _REALS).items()},
    "%": [Case("{x} % {y} = 1"), Case("{x} % ({y} / 1e300) = 1"), Case("{x} % (1 / {x}) = 1")],
    "MOD": repeated("MOD({n} * 1000, {n} + {k}) = -1"),
    "CAST": [case for cases in CASTS.values() for case in cases],
    "TRY_CAST": of_texts("TRY_CAST({s} AS BIGINT) = 2", "binary", "digits"),
    "DATE": of_texts("DATE({s}) = DATE '1000-01-01'", "time"),
    "UPPER": [*of_texts("UPPER({s}) = 'x'", *_LETTERS), *of_texts("UPPER({s}) = 'x'", "a", "ß", length=1)],
    "LOWER": [*of_texts("LOWER({s}) = 'x'", *_LETTERS), *of_texts("LOWER({s}) = 'x'", "a", "İΣ", length=1)],
    "TRIM": of_texts("TRIM({s}) = 'x'", "a", "space", "ideographic space"),
    "LTRIM": of_texts("LTRIM({s}) = 'x'", "space", "ideographic space"),
    "RTRIM": of_texts("RTRIM({s}) = 'x'", "space", "ideographic space"),
    "SUBSTRING": of_texts("SUBSTRING({s}, 4000, 5) = 'x'", *_LETTERS),
    "SUBSTR": of_texts("SUBSTR({s}, 2) = 'x'", "é", "🙂"),
    "LEFT": of_texts("LEFT({s}, 4000) = 'x'", "é", "🙂"),
    "RIGHT": of_texts("RIGHT({s}, 4000) = 'x'", "é", "🙂") + of_texts("RIGHT({s}, 1) = 'x'", "é", "🙂"),
    "LENGTH": of_texts("LENGTH({s}) = 5", *_LETTERS),
    "LEN": of_texts("LEN({s}) = 5", "é"),
    "CHAR_LENGTH": of_texts("CHAR_LENGTH({s}) = 5", "🙂"),
    "STRPOS": of_texts(f"STRPOS({{s}}, '{'a' * 254}b') = 1", "a"),
    "POSITION": of_texts(f"POSITION('{'b' * 200}a' IN {{s}}) = 1", "ab"),
    "INSTR": of_texts(f"INSTR({{s}}, '{'é' * 200}a') = 1", "é", "🙂"),
    "||": of_texts("{s} || {s} = 'x'", "é", "🙂"),
    "CONCAT": of_texts("CONCAT({s}, 'a', {s}) = 'x'", "é"),
    "LIKE": of_texts(f"{{s}} LIKE '%{'a' * 254}b%'", "a")
    + of_texts(f"{{s}} LIKE '%{'_a' * 120}b%'", "a", "é", length=250)
    + of_texts("{s} LIKE '%aaab%aab%b%'", "a", "ab"),
    "ILIKE": of_texts(f"{{s}} ILIKE '%{'_a' * 120}b%'", "a", length=250) + of_texts("{s} ILIKE '%x%'", *_LETTERS),
    "STARTS_WITH": of_texts("STARTS_WITH({s}, {s})", "a", "🙂"),
    "PREFIX": of_texts("PREFIX({s}, 'aaab')", "a"),
    "ENDS_WITH": of_texts("ENDS_WITH({s}, {s})", "a", "🙂"),
    "SUFFIX": of_texts("SUFFIX({s}, 'b')", "a"),
    "CONTAINS": of_texts(f"CONTAINS({{s}}, '{'a' * 254}b')", "a") + of_texts("CONTAINS({s}, 'aaaaaab')", "a"),
}


def test_every_function_has_a_case() -> None:
    assert set(CASES) == set(FUNCTION_NAMES)
    assert set(CASTS) == set(CAST_KINDS)


class Costs:
    """One row for each of TEXTS, each of its own unit, and a public table with which one of them is joined."""

    def __init__(self, engine: str, rows: int, folder: Path) -> None:
        self.rows = rows
        self.place: Place = ENGINES[engine](folder)
        people = (Column("uid", Kind.INTEGER, nullable=False), Column("s", Kind.TEXT), Column("i", Kind.INTEGER))
        public = (
            *(Column("id", Kind.INTEGER), Column("x", Kind.REAL), Column("y", Kind.REAL, Bounds(0, 50))),
            *(Column("n", Kind.INTEGER, Bounds(0, 2**31)), Column("b", Kind.BOOLEAN)),
            *(Column("d", Kind.DATE), Column("t", Kind.TIME)),
        )
        first = date(1850, 1, 1), datetime(1850, 1, 1)
        self.tables = [
            Table("people", people, Unit("uid"), Limits(rows_per_unit=1)),
            Table("numbers", public, None, rows=rows),
        ]
        content = [
            [(index, text, 7) for index, text in enumerate(TEXTS.values())],
            [
                (
                    *(k, 1.7e308 / (k + 1), 50 / (k / 7 + 1), k * 65_537 % 2**31, k % 3 == 0),
                    *(first[0] + timedelta(days=k), first[1] + timedelta(days=k, microseconds=k)),
                )
                for k in range(rows)
            ],
        ]
        for table, values in zip(self.tables, content, strict=True):
            types = {column.name: TYPES[column.kind] for column in table.columns}
            self.place.engine.register(table, self.place.put(table.name, types, values), {})
        self._plans: dict[str, tuple[str, dict[str, int] | None, int]] = {}
        self._shortest_s: dict[str, float] = {}

    def added(self, case: Case, runs: int = 3) -> tuple[float, int]:
        """Return the time and the steps that a case adds to the statement that only reads its values."""
        base_s, base_steps = self._measured(case.base, runs)
        seconds, steps = self._measured(case.asked, runs)
        return seconds - base_s, max(steps - base_steps, 1)

    def steps(self, case: Case) -> int:
        """Return the steps of a case for one row."""
        return self._planned(case.asked)[2] // self.rows

    def _planned(self, condition: str) -> tuple[str, dict[str, int] | None, int]:
        if condition not in self._plans:
            sql = f"SELECT COUNT(*) FROM people, numbers WHERE {condition}"
            plan = plan_sql(sql, Schema(self.tables), Target(epsilon=1.0), BudgetTerms(delta=0.5), PlanSettings())
            (statement,) = plan.statements
            written = statement.sql(self.place.engine.write)
            self._plans[condition] = written, {"salt": 5} if statement.is_salted else None, plan.steps * self.rows
        return self._plans[condition]

    def _measured(self, condition: str, runs: int) -> tuple[float, int]:
        """Return the shortest time of a statement so far in seconds, and its steps."""
        written, parameters, steps = self._planned(condition)
        for _ in range(runs):
            started_s = time.perf_counter()
            self.place.engine.run(written, parameters)
            taken_s = time.perf_counter() - started_s
            self._shortest_s[condition] = min(taken_s, self._shortest_s.get(condition, taken_s))
        return self._shortest_s[condition], steps


@pytest.fixture(scope="module", params=FLOOR_S)
def costs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Costs]]:
    made = Costs(request.param, ROWS, tmp_path_factory.mktemp("costs"))
    yield request.param, made
    made.place.engine.close()


def is_late(there: Costs, case: Case, step_s: float, floor_s: float, runs: int, again: int = AGAIN) -> bool:
    """Return whether a case takes longer than its steps, each time that it is measured."""
    for _ in range(again):
        seconds, steps = there.added(case, runs)
        if seconds <= step_s * steps + floor_s:
            return False
    return True


@pytest.mark.soak
@pytest.mark.parametrize("name", CASES)
def test_no_function_takes_longer_than_its_steps(costs: tuple[str, Costs], name: str) -> None:
    engine, there = costs
    assert [case for case in CASES[name] if is_late(there, case, 2 * STEP_S, FLOOR_S[engine], 3)] == []


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_no_function_of_texts_takes_far_longer_for_its_steps_than_another(engine: str, tmp_path: Path) -> None:
    there = Costs(engine, SHORT_ROWS, tmp_path)
    try:
        seconds, steps = there.added(Case("{s} LIKE '%aaab%aab%b%'", "a"), AGAIN)
        step_s = SHORT_RATIO * max(seconds / steps, STEP_S / 4)
        cases = [
            case for name in CASES for case in CASES[name] if case.content and there.steps(case) <= SHORT_STEPS_MAX
        ]
        assert [case for case in cases if is_late(there, case, step_s, SHORT_FLOOR_S, 1, SHORT_AGAIN)] == []
    finally:
        there.place.engine.close()
