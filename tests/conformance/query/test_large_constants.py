"""Integers that are written in a query are exact in comparisons on every engine, also where doubles are not."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Final

import pytest
from sqlglot import exp

from tacit.privacy.tables import Column, Kind, Table
from tacit.query.disjoint_conditions import are_disjoint
from tacit.query.expressions import Expression
from tests.conformance.query.engines import ENGINES, place
from tests.unit.query.scalars.clinic import of

EDGES: Final = [*range(2**53 - 2, 2**53 + 4), 2**62 + 1, 2**63 - 513, 2**63 - 2, 2**63 - 1]
VALUES: Final = [0, *EDGES, *(-edge for edge in EDGES), -(2**63)]
CONSTANTS: Final = [*VALUES, 2**63, 2**63 + 1, -(2**63) - 1, 2**64, 10**30, -(10**30)]
COMPARED: Final[dict[str, Callable[[int, int], bool]]] = {
    "n = {}": operator.eq,
    "n <> {}": operator.ne,
    "n < {}": operator.lt,
    "n <= {}": operator.le,
    "{} < n": operator.gt,
    "n >= {}": operator.ge,
    "n IN ({}, 7)": operator.eq,
    "n BETWEEN {} AND {}": operator.eq,
    "n IS NOT DISTINCT FROM {}": operator.eq,
    "{} IS DISTINCT FROM n": operator.ne,
    "CASE n WHEN {} THEN TRUE ELSE FALSE END": operator.eq,
    "NULLIF(n, {}) IS NULL": operator.eq,
}
CASES: Final = [(text, constant) for text in COMPARED for constant in CONSTANTS]
TOGETHER: Final = 80
"""How many comparisons are computed by one statement."""


def expression(text: str, constant: int) -> Expression:
    return of(text.replace("{}", f"({constant})"))


@pytest.mark.parametrize("engine", ENGINES)
def test_an_integer_is_compared_with_the_constant_that_is_written(engine: str) -> None:
    there, table = place(engine), Table("wide", (Column("n", Kind.INTEGER),))
    there.engine.register(table, there.put("wide", {"n": "BIGINT"}, [(value,) for value in VALUES]), {})
    for start in range(0, len(CASES), TOGETHER):
        some = CASES[start : start + TOGETHER]
        items = [exp.alias_(expression(*case).tree.copy(), f"x{number}") for number, case in enumerate(some)]
        tree = exp.select(exp.column("n"), *items).from_(exp.table_("wide", db="tacit_data"))
        columns = there.engine.run(there.engine.write(tree))
        for number, (text, constant) in enumerate(some):
            found = {int(n): bool(value) for n, value in zip(columns["n"], columns[f"x{number}"], strict=True)}
            assert found == {n: COMPARED[text](n, constant) for n in VALUES}, (text, constant)


def test_conditions_that_are_proven_disjoint_are_met_by_no_integer_together() -> None:
    cases = [case for case in CASES if case[0].startswith("n ") and "IN" not in case[0] and "IS" not in case[0]]
    found = [(case, expression(*case)) for case in cases]
    proven = 0
    for (one, mine), (other, theirs) in itertools.combinations(found, 2):
        if are_disjoint(mine, theirs):
            proven += 1
            both = [n for n in VALUES if COMPARED[one[0]](n, one[1]) and COMPARED[other[0]](n, other[1])]
            assert not both, (one, other)
    assert proven > 1_000
