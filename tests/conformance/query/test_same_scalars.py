"""Generated scalar SQL has the same value in every engine, on rows as bad as they come; and none of them fails."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from tacit.query.parse import Text, parse
from tacit.query.scalars import grid_steps, scalar
from tests.conformance.query.engines import OTHERS, TYPES, place
from tests.conformance.query.same_scalars import (
    ACCEPTED,
    EXTREMES,
    MORE,
    PAIR,
    TOGETHER,
    check,
    check_texts_are_read_as_the_same_values,
    check_types,
    pair_column,
    understood,
)
from tests.property.query.scalar_sql import STEPS, TRAPS


@pytest.mark.parametrize("engine", OTHERS)
def test_known_traps_have_the_same_values(engine: str) -> None:
    known = understood([one.strip() for one in (TRAPS + MORE).replace("\n", " ; ").split(" ; ") if one.strip()])
    assert len(known) > 150
    check(engine, {sql: one.tree for sql, one in known.items()})
    for step, centre in STEPS:
        ranged = {sql: one for sql, one in known.items() if one.kind.is_number and one.range is not None}
        small = {sql: one for sql, one in ranged.items() if one.range is not None and one.range.size / step < 2**60}
        check(engine, {sql: grid_steps(one, step, centre) for sql, one in small.items()})


@pytest.mark.parametrize("engine", ["duckdb", *OTHERS])
def test_a_value_has_the_type_of_its_kind(engine: str) -> None:
    check_types(engine)


@pytest.mark.parametrize("engine", OTHERS)
@settings(max_examples=40)
@given(st.lists(ACCEPTED, min_size=TOGETHER, max_size=TOGETHER))
def test_generated_expressions_have_the_same_values(engine: str, texts: list[str]) -> None:
    check(engine, {sql: one.tree for sql, one in understood(texts).items()})


@pytest.mark.parametrize("engine", OTHERS)
def test_operations_on_the_ends_of_doubles_have_the_same_values(engine: str) -> None:
    """All pairs of doubles at which a sum, product or quotient begins to overflow, to underflow or to be rounded."""
    pairs = [(number, x, y) for number, (x, y) in enumerate(itertools.product(EXTREMES, EXTREMES))]
    literals = [sign + repr(one) for one in EXTREMES[:: len(EXTREMES) // 20] for sign in ("+ ", "- ", "* ", "/ ")]
    texts = ["x + y", "x - y", "x * y", "x / y", *(f"x {one}" for one in literals)]
    known = {sql: scalar(parse(Text(f"SELECT {sql}")).selects[0], pair_column, lambda _: None).tree for sql in texts}
    found = {}
    for name in ("duckdb", engine):
        there = place(name)
        types = {column.name: TYPES[column.kind] for column in PAIR.columns}
        there.engine.register(PAIR, there.put("pairs", types, pairs), {})
        row = exp.column("row_number")
        items = [exp.alias_(tree.copy(), f"x{number}") for number, tree in enumerate(known.values())]
        tree = exp.select(row, *items).from_(exp.table_("pairs", db="tacit_data")).order_by(row.copy())
        found[name] = there.engine.run(there.engine.write(tree))
    for number, sql in enumerate(known):
        mine, theirs = (np.asarray(found[name][f"x{number}"], dtype=float) for name in ("duckdb", engine))
        different = [pairs[at] for at in np.flatnonzero((mine != theirs) & ~(np.isnan(mine) & np.isnan(theirs)))[:3]]
        assert not different, (sql, different)


@pytest.mark.parametrize("engine", OTHERS)
def test_texts_are_read_as_the_same_values(engine: str) -> None:
    check_texts_are_read_as_the_same_values(engine)
