"""The two zeros of the reals are one value: nothing that can be asked tells 0.0 and -0.0 apart, in any engine.

They are equal to every comparison, so that MIN, MAX, a window, DISTINCT, GROUP BY or a limit on rows keeps whichever of
the two it met first, which other units decide. That is harmless only if nothing that follows can see which it was.
Every scalar rule is asked here with either zero in each of its places; a difference is allowed in the sign of a zero
and in nothing else. What is computed from such results then differs by the signs of zeros again, and so on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache
from typing import Any, Final

import pytest
from sqlglot import exp

from tacit.privacy.errors import InvalidInput, QueryRefused
from tacit.privacy.tables import Column, Kind, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, PlanSettings, Target
from tacit.query.expressions import Expression, Range
from tacit.query.parse import Text, parse
from tacit.query.run import add_noise
from tacit.query.scalars import FUNCTION_NAMES, scalar, trees
from tests.conformance.engines.conftest import Place
from tests.conformance.query.engines import ENGINES, TYPES, place
from tests.support.plans import plan_sql

ZEROS: Final = {"z": None, "b": Range.of(-2, 2)}
"""Columns that are a zero of either sign, by what is known of them."""

OTHERS: Final = {"y": Kind.REAL, "k": Kind.INTEGER, "t": Kind.TEXT, "d": Kind.DATE, "f": Kind.BOOLEAN}
FORMS: Final = {
    **{sign: ("{0} " + sign + " {1}",) for sign in ("%", "*", "**", "+", "/", "//", "^", "||", "<", "<=", "<>", "=")},
    **{
        sign: ("{0} " + sign + " {1}",) for sign in (">", ">=", "AND", "OR", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
    },
    "-": ("{0} - {1}", "-({0})"),
    "BETWEEN": ("{0} BETWEEN {1} AND {2}",),
    "CASE": ("CASE WHEN {0} THEN {1} ELSE {2} END", "CASE {0} WHEN {1} THEN {2} END"),
    "CAST": tuple(f"CAST({{0}} AS {kind})" for kind in (*TYPES.values(), "DECIMAL(9, 2)", "FLOAT", "CHAR(3)")),
    "TRY_CAST": tuple(f"TRY_CAST({{0}} AS {kind})" for kind in TYPES.values()),
    "EXTRACT": ("EXTRACT(year FROM {0})",),
    "FALSE": ("{0} IS FALSE",),
    "ILIKE": ("{0} ILIKE '%0%'",),
    "IN": ("{0} IN ({1}, {2})", "{0} IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)", "{0} IN (1e0, -0e0)"),
    "IS": ("{0} IS NULL", "{0} IS TRUE"),
    "LIKE": ("{0} LIKE '-%'",),
    "NOT": ("NOT {0}",),
    "NULL": ("{0} IS NULL",),
    "POSITION": ("POSITION({0} IN {1})",),
    "ROUND": ("ROUND({0})", *(f"ROUND({{0}}, {digits})" for digits in (-1, 1, 15))),
    "TRUE": ("{0} IS TRUE",),
    "WIDTH_BUCKET": ("WIDTH_BUCKET({0}, -1, 1, 4)", "WIDTH_BUCKET({0}, 0, 1, 4)"),
}
"""How each rule is written that is not called by its name with one to three arguments."""

LOGIC: Final = "AND OR NOT TRUE FALSE PI //"
DATES: Final = """
DATE DATE_ADD DATE_DIFF DATEDIFF DATE_PART DATEPART DATE_TRUNC DAY DAYOFMONTH DAYOFWEEK DAYOFYEAR EPOCH EXTRACT HOUR
ISODOW LAST_DAY MINUTE MONTH QUARTER SECOND WEEK WEEKOFYEAR YEAR
"""
TEXTS: Final = """
CHAR_LENGTH CONCAT CONTAINS ENDS_WITH ILIKE INSTR LEFT LEN LENGTH LIKE LOWER LTRIM POSITION PREFIX RIGHT RTRIM
STARTS_WITH STRPOS SUBSTR SUBSTRING SUFFIX TRIM UPPER ||
"""
"""Functions that take no reals, so that no text is made of one but by a cast."""

FEW: Final = ("z", "b", "y", "-1e0", "2", "d")
MANY: Final = (*FEW, "k", "-3", "0.5e0", "-0.5e0", "'1'", "t", "f")
TOGETHER: Final = 40


def bind(node: exp.Expression) -> Expression:
    """Return what a node of scalar SQL stands for."""
    if not isinstance(node, exp.Column):
        return scalar(node, bind, lambda _: None)
    if node.name in ZEROS:
        made = exp.Mul(this=trees.cast(exp.column(f"sign_{node.name}"), Kind.REAL), expression=trees.constant(0.0))
        return Expression(made, Kind.REAL, ZEROS[node.name])
    return Expression(exp.column(node.name), OTHERS[node.name])


def written() -> Iterator[tuple[str, str]]:
    """Write every function with zeros in each of its places."""
    for name in FUNCTION_NAMES:
        calls = [f"{name}({', '.join(f'{{{place}}}' for place in range(count))})" for count in (1, 2, 3)]
        for form in FORMS.get(name, calls):
            places = 1 + max((number for number in range(4) if f"{{{number}}}" in form), default=-1)
            for arguments in itertools.product(FEW if places == 3 else MANY, repeat=places):
                if set(arguments) & set(ZEROS):
                    yield name, form.format(*arguments)


@cache
def understood() -> tuple[set[str], list[tuple[str, exp.Expression]]]:
    """Return which functions allow it, and each tree once, with the SQL that it comes from."""
    names, found = set[str](), dict[str, tuple[str, exp.Expression]]()
    for name, sql in written():
        try:
            one = bind(parse(Text(f"SELECT {sql}")).selects[0])
        except (InvalidInput, QueryRefused):
            continue
        names.add(name)
        found.setdefault(one.text, (sql, one.tree))
    return names, list(found.values())


@cache
def signs(engine: str) -> Place:
    """Return an engine that holds rows in fours, which differ by the signs of zeros alone."""
    there, rows = place(engine), list[tuple[Any, ...]]()
    values = itertools.product((0.0, 1.0, -1.0, 2.5, -3.0, math.inf, -math.inf, None), (0, -2))
    for number, (real, whole) in enumerate(values):
        for two in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
            rows.append((len(rows), number, *two, real, whole, "0", date(2024, 2, 29), True))
    named = {"row_number": Kind.INTEGER, "same": Kind.INTEGER, **{f"sign_{name}": Kind.INTEGER for name in ZEROS}}
    table = Table("signs", tuple(Column(name, kind) for name, kind in {**named, **OTHERS}.items()))
    types = {column.name: TYPES[column.kind] for column in table.columns}
    there.engine.register(table, there.put("signs", types, rows), {})
    return there


def values(engine: str, computed: list[exp.Expression]) -> list[list[Any]]:
    """Return the values of expressions, in fours that should be one."""
    items = [exp.alias_(tree.copy(), f"x{number}") for number, tree in enumerate(computed)]
    tree = exp.select(*items).from_(exp.table_("signs", db="tacit_data")).order_by("row_number")
    there = signs(engine)
    columns = there.engine.run(there.engine.write(tree))
    return [[plain(one) for one in columns[f"x{number}"]] for number in range(len(computed))]


def plain(value: Any) -> str:
    """Return a value as a text that tells everything of it but the sign of a zero."""
    value = value.item() if hasattr(value, "item") else value
    return repr(value + 0.0 if isinstance(value, float) else value)


def apart(found: list[str]) -> bool:
    """Whether rows differ that differ by the signs of zeros alone."""
    return any(len(set(found[start : start + 4])) > 1 for start in range(0, len(found), 4))


def test_every_rule_is_asked_with_zeros_unless_it_takes_no_reals() -> None:
    names, found = understood()
    assert set(FUNCTION_NAMES) - names == {*LOGIC.split(), *DATES.split(), *TEXTS.split()}
    assert len(found) > 500


@pytest.mark.parametrize("engine", ENGINES)
def test_no_function_of_a_row_tells_the_two_zeros_apart(engine: str) -> None:
    raw = [trees.cast(bind(exp.column(name)).tree, Kind.TEXT) for name in ZEROS]
    assert all(map(apart, values(engine, raw)))  # the engine itself does: the zeros are there
    told = []
    for start in range(0, len(understood()[1]), TOGETHER):
        some = understood()[1][start : start + TOGETHER]
        found = values(engine, [tree for _, tree in some])
        told += [sql for (sql, _), column in zip(some, found, strict=True) if apart(column)]
    assert told == []


PEOPLE: Final = Table(
    "people",
    (Column("uid", Kind.INTEGER, nullable=False), Column("n", Kind.INTEGER), Column("x", Kind.REAL)),
    Unit("uid"),
)
PLACES: Final = list(itertools.product(range(12), range(5)))
LISTED: Final = "(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)"
QUESTIONS: Final = [
    question.format(z=zero)
    for zero in ("x", "n * 0e0")
    for question in (
        "SELECT COUNT(*) FROM (SELECT uid, MIN({z}) AS z FROM people GROUP BY uid) WHERE CAST(z AS VARCHAR) LIKE '-%'",
        "SELECT COUNT(*) FROM (SELECT uid, MAX({z}) AS z FROM people GROUP BY uid) WHERE POWER(z, -1) < 0",
        "SELECT COUNT(*) FROM (SELECT uid, MEDIAN({z}) AS z FROM people GROUP BY uid) WHERE POWER(z, -3) < 0",
        "SELECT CAST({z} AS VARCHAR) AS s, COUNT(*) FROM people GROUP BY s",
        "SELECT {z} AS z, COUNT(*), COUNT(DISTINCT uid), COUNT(DISTINCT {z}) FROM people GROUP BY z",
        "SELECT COUNT(*) FROM (SELECT DISTINCT uid, {z} AS z FROM people)",
        "SELECT COUNT(*) FROM people WHERE {z} = 0",
        "SELECT COUNT(*) FROM people WHERE {z} IN " + LISTED,
        "SELECT COUNT(*) FROM people WHERE {z} NOT IN " + LISTED,
        "SELECT COUNT(*) FROM people WHERE {z} >= 0 AND NOT {z} < 0 AND {z} IS NOT DISTINCT FROM 0",
        "SELECT COUNT(*) FROM (SELECT uid, {z} AS z FROM people) AS a JOIN (SELECT uid, {z} AS z FROM people) AS b "
        "ON a.uid = b.uid AND a.z = b.z",
        "SELECT SUM(LEAST(r, 9)) FROM (SELECT RANK() OVER (PARTITION BY uid ORDER BY {z}) AS r FROM people)",
        "SELECT SUM(LEAST(c, 9)) FROM (SELECT COUNT(DISTINCT {z}) OVER (PARTITION BY uid) AS c FROM people)",
        "SELECT SUM(LEAST(c, 9)) FROM (SELECT COUNT(*) OVER (PARTITION BY uid, {z}) AS c FROM people)",
    )
]


def answers(engine: str, signs: Sequence[int]) -> list[tuple[str, Any, str]]:
    """Return the exact answers on rows whose zeros have these signs in turn, and the keys that are shown."""
    there, known = place(engine), Schema([PEOPLE])
    rows = [(unit, sign, sign * 0.0) for (unit, _), sign in zip(PLACES, itertools.cycle(signs), strict=False)]
    types = {column.name: TYPES[column.kind] for column in PEOPLE.columns}
    there.engine.register(PEOPLE, there.put("people", types, rows), {})
    found = []
    for sql in QUESTIONS:
        plan = plan_sql(sql, known, Target(epsilon=1.0), BudgetTerms(delta=0.5), PlanSettings())
        results = [
            there.engine.run(one.sql(there.engine.write), {"salt": 5} if one.is_salted else None)
            for one in plan.statements
        ]
        exact = [{name: [plain(value) for value in column] for name, column in one.items()} for one in results]
        found.append((sql, exact, repr(add_noise(plan, results).keys)))
    return found


@pytest.mark.parametrize(
    "engine", [pytest.param(one, marks=pytest.mark.soak) if one == "spark" else one for one in ENGINES]
)
def test_the_signs_of_zeros_change_no_answer(engine: str) -> None:
    """The zeros are stored, or made by the question; those that are shown have no sign."""
    for one, other in zip(answers(engine, (-1,)), answers(engine, (1, -1, -1)), strict=True):
        assert one[1] == other[1], one[0]
        assert "-0.0" not in one[2] + other[2], one[0]
