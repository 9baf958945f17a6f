"""Sums by the nearest of several centres: alike from arrays and from every engine."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import InvalidInput, OutOfRange
from tacit.privacy.tables import Kind
from tacit.stats.rows import ColumnSteps, NearestCut, Term
from tests.conformance.engines.conftest import Place
from tests.conformance.engines.test_row_matrix import AGE, COST, YEARS, arrays, engine, people

CENTRES = NearestCut((COST, YEARS), ((-200, -10), (150, 20), (0, 0), (150, 20), (500, -30)))
TERMS = [Term(), Term((COST,)), Term((COST, YEARS))]


def test_an_engine_finds_the_nearest_centres_that_arrays_have(place: Place) -> None:
    expected = arrays(people()).sums(TERMS, (CENTRES, AGE), ("ill",))
    found = engine(place, people()).sums(TERMS, (CENTRES, AGE), ("ill",))
    assert np.array_equal(found, expected)
    counts = expected[0].sum(axis=1)
    assert counts[3] == 0  # equally near as the second, which comes first
    assert (counts[[0, 1, 2, 4]] > 0).all()


def test_a_single_centre_is_the_nearest_of_every_row_that_has_all_values(place: Place) -> None:
    cut = NearestCut((COST, YEARS), ((0, 0),))
    assert engine(place, people()).sums([Term()], (cut,)) == arrays(people()).sums([Term(), Term((COST, YEARS))])[0]


def test_centres_need_a_place_on_each_scale_within_exact_arithmetic() -> None:
    with pytest.raises(InvalidInput):
        NearestCut((COST,), ())
    with pytest.raises(InvalidInput):
        NearestCut((COST,), ((1, 2),))
    with pytest.raises(OutOfRange):
        NearestCut((ColumnSteps.of("cost", Bounds(0, 1), Kind.REAL, 2**40),), ((0,),))
