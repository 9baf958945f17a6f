"""The scores of private choices move by no more than their stated sensitivity, whatever one unit brings to a group.

`test_neighbours_*` check the same over whole questions; here the weights of cells are made up directly, with many ties,
empty cells, groups of a few rows, and weights beyond the one at which they are cut off.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.mechanisms import Exponential
from tacit.privacy.tables import Kind
from tacit.privacy.units import Relation
from tacit.query.contribution import Bounding
from tacit.query.expressions import Expression
from tacit.query.private_choices import COUNT_MAX, WEIGHT, Candidates, PrivateChoice
from tacit.query.scalars import literal

ROWS = 3
CELLS = 6
VALUE: Expression = literal(0)
Weights = NDArray[np.int64]


def choice(function: str, share: Fraction) -> PrivateChoice:
    return PrivateChoice(
        function, VALUE, None, share, Candidates(Fraction(0), Fraction(1), CELLS, Kind.INTEGER), function
    )


choices = st.one_of(
    st.sampled_from(["min", "max", "mode"]).map(lambda function: choice(function, Fraction(0))),
    st.integers(1, 99).map(lambda percent: choice("quantile", Fraction(percent, 100))),
)
counts = st.lists(
    st.one_of(st.just(0), st.integers(0, 40), st.integers(COUNT_MAX // WEIGHT - 2, COUNT_MAX // WEIGHT + 2)),
    min_size=CELLS,
    max_size=CELLS,
).map(lambda rows: np.array(rows, dtype=np.int64) * WEIGHT)


@st.composite
def brought(draw: st.DrawFn) -> Weights:
    """Return what one unit brings to the cells: ROWS at most in all."""
    found = np.zeros(CELLS, dtype=np.int64)
    left = ROWS * WEIGHT
    for cell in draw(st.lists(st.integers(0, CELLS - 1), max_size=4)):
        weight = draw(st.sampled_from([left, left // 2, min(left, WEIGHT)]))
        found[cell] += weight
        left -= weight
    return found


def moved(one: PrivateChoice, mechanism: Exponential, here: Weights, there: Weights) -> int:
    """Return how far the score of any candidate is moved."""
    scores = [one._scores(np.minimum(counts, COUNT_MAX), mechanism) for counts in (here, there)]
    return int(np.abs(scores[0] - scores[1]).max())


@settings(max_examples=400, deadline=None)
@given(choices, counts, brought(), brought(), st.sampled_from([0.1, 1.0, 10.0]))
def test_one_unit_moves_a_score_by_its_sensitivity_at_most(
    one: PrivateChoice, rest: Weights, mine: Weights, other: Weights, epsilon: float
) -> None:
    for relation, there in ((Relation.ADD_REMOVE, rest), (Relation.REPLACE_ONE, rest + other)):
        allowed = Bounding(1, ROWS, relation=relation).per_group(one.sensitivity(ROWS))
        assert moved(one, Exponential(allowed, epsilon, relation=relation), rest + mine, there) <= allowed


def test_the_stated_sensitivity_is_reached() -> None:
    rest, mine = np.full(CELLS, 50 * WEIGHT, dtype=np.int64), np.zeros(CELLS, dtype=np.int64)
    mine[0] = ROWS * WEIGHT
    for one in (choice("quantile", Fraction(1, 4)), choice("max", Fraction(0)), choice("mode", Fraction(0))):
        allowed = one.sensitivity(ROWS)
        mirrored = mine[::-1] if one.function == "max" else mine
        assert moved(one, Exponential(allowed, 1.0), rest + mirrored, rest) == allowed
