"""Rows read as integers, and sums by the leaves of a decision tree: alike from arrays and from every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Kind
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.rows import ColumnSteps, Cut, NoRows, Rows, Split, Term, TreeCut
from tacit.stats.table_sums import EngineRows
from tests.conformance.engines.conftest import Place

TYPES = {"owner": "BIGINT", "age": "BIGINT", "cost": "DOUBLE", "sex": "VARCHAR", "ill": "BOOLEAN"}
KINDS = {"age": Kind.INTEGER, "cost": Kind.REAL, "sex": Kind.TEXT, "ill": Kind.BOOLEAN}
AGE, SEX, ILL = Cut("age", edges=(0.0, 20.0, 40.0, 60.0)), Cut("sex", ("f", "m")), Cut("ill", (False, True))
ALL = Cut("sex", ("f", "m", None))
COST = ColumnSteps.of("cost", Bounds(-1.5, 2.5), Kind.REAL, 2**10)
YEARS = ColumnSteps.of("age", Bounds(0, 60), Kind.INTEGER, 2**10)
TREES = {
    "splits of bins, values and booleans": TreeCut(
        Split(AGE, (0, 1), Split(SEX, (1,), 0, 1), Split(ILL, (1,), 2, Split(AGE, (0, 1, 2), 3, 4)))
    ),
    "missing values as a value": TreeCut(Split(ALL, (0, 2), Split(ALL, (2,), 0, 1), 2)),
    "a leaf alone": TreeCut(0),
}


def people(count: int = 300, rows_of_one: int = 1) -> list[list[Any]]:
    """Return rows with missing, clamped and unlisted values; `rows_of_one` rows of each unit."""
    random = np.random.default_rng(4)
    made = []
    for place in range(count):
        age, cost = int(random.integers(-5, 75)), float(np.round(random.normal(), 6))
        sex, ill = random.choice(["f", "m", "x"]), bool(random.integers(2))
        row: list[Any] = [place // rows_of_one, age, cost, str(sex), ill]
        made.append([None if column > 0 and random.uniform() < 0.1 else one for column, one in enumerate(row)])
    return made


def arrays(rows: list[list[Any]], per_unit: int = 1) -> ArrayRows:
    """Return the rows in this process."""
    columns = {name: [row[1 + place] for row in rows] for place, name in enumerate(KINDS)}
    return ArrayRows(*read_arrays(columns, [row[0] for row in rows], KINDS), per_unit)


def engine(place: Place, rows: list[list[Any]], per_unit: int = 1) -> EngineRows:
    """Return the same rows in an engine."""
    return EngineRows(place.engine, place.show("people", TYPES, rows, "owner", kinds=KINDS), 5, per_unit)


def listed(rows: Rows) -> list[list[int]]:
    """Return a matrix of all four columns, sorted by rows."""
    found = rows.matrix((COST, YEARS), (AGE, SEX, ILL, ALL), ("ill",))
    return sorted(np.hstack([found.steps, found.cells]).tolist())


def test_an_engine_returns_the_rows_that_arrays_have(place: Place) -> None:
    found = listed(arrays(people()))
    assert listed(engine(place, people())) == found
    assert 150 < len(found) < 270
    steps, cells = np.array(found)[:, :2], np.array(found)[:, 2:]
    assert steps.min(axis=0).tolist() == [COST.low, YEARS.low]
    assert steps.max(axis=0).tolist() == [COST.high, YEARS.high]
    assert cells.min(axis=0).tolist() == [0, -1, 0, -1]  # -1 of an unlisted value


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_an_engine_sums_by_leaves_as_arrays_do(place: Place, tree: TreeCut) -> None:
    terms, by = [Term(), Term((COST,))], (ILL, tree)
    found = arrays(people()).sums(terms, by, ("cost",))
    assert engine(place, people()).sums(terms, by, ("cost",)).tolist() == found.tolist()
    assert found.shape == (2, 2, tree.cells)
    assert (found[0].sum(axis=0)[:4] > 0).all()  # no row is outside of all bins, the fifth leaf


def test_an_engine_reads_a_limited_number_of_rows_of_a_unit(place: Place) -> None:
    rows = people(rows_of_one=10)
    for limit in (1, 3):
        found = [
            rows_in.matrix((), (AGE,), ("age", "sex", "ill"))
            for rows_in in (arrays(rows, limit), engine(place, rows, limit))
        ]
        assert [len(one) for one in found] == [30 * limit] * 2


def test_a_row_is_in_the_leaf_that_its_splits_name() -> None:
    tree = TREES["splits of bins, values and booleans"]
    ages, sexes, ills = [0, 39, 20, 40, 60, 99], ["m", "f", "x", "f", "m", "f"], [True, True, False, True, False, None]
    read = read_arrays(
        {"age": ages, "sex": sexes, "ill": ills}, None, {name: KINDS[name] for name in ("age", "sex", "ill")}
    )
    assert ArrayRows(*read)._cells(tree).tolist() == [0, 1, 1, 2, 3, -1]
    assert (tree.cells, tree.columns, tree.needs) == (5, ("age", "ill", "sex"), ("age", "ill", "sex"))


def test_no_rows_have_an_empty_matrix() -> None:
    found = NoRows().matrix((COST, YEARS), (AGE,))
    assert (found.steps.shape, found.cells.shape) == ((0, 2), (0, 1))


@pytest.mark.parametrize("cells", [(), (1,), (1, 2)])
def test_a_split_of_bins_takes_the_first_ones(cells: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="first ones"):
        Split(AGE, cells, 0, 1)
