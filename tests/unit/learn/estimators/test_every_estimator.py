"""What every estimator promises: tables as arrays, one exact charge, shared budgets, documents, refusals for free."""

from __future__ import annotations

import copy
import json
import pickle
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import tacit
from tacit.learn import KernelDensity, from_document
from tacit.privacy.errors import InvalidInput, NotBounded, TacitError
from tacit.stats.array_sums import ArrayRows
from tests.support.estimators import BOUNDS, CLASSES, COSTS, EXACT, EXAMPLES, GROUPS, LABELS, ROWS, SIZE, outputs
from tests.support.transcripts import plan_of, record, rows_of

NAMES = sorted(EXAMPLES)
every_estimator = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    place = tmp_path_factory.mktemp("registered")
    frame = ROWS.assign(person=np.arange(SIZE), label=LABELS, cost=COSTS)
    frame.to_parquet(place / "people.parquet")
    columns: dict[str, Any] = {name: tacit.Bounds(*span) for name, span in BOUNDS.items()}
    columns["group"], columns["label"] = tacit.Categories(GROUPS["group"]), tacit.Categories(CLASSES)
    columns["cost"] = tacit.Bounds(-20, 20)
    with tacit.Curator(place / "folder") as curator:
        curator.add_table("people", Path(place / "people.parquet"), unit="person", columns=columns)
        with pytest.warns(UserWarning, match="epsilon"):
            curator.set_budget("people", epsilon=1e6, delta=9e-4)
        yield curator.table("people")


def target_of(y: Any) -> str | None:
    return None if y is None else "label" if y is LABELS else "cost"


@every_estimator
def test_a_registered_table_is_fitted_as_arrays_are_and_repeated_for_free(name: str, table: Any) -> None:
    example = EXAMPLES[name]
    ours = example.estimator(epsilon=5e4).fit(example.X, example.y)
    asked = (table, list(example.X.columns), target_of(example.y))
    theirs = example.make(epsilon=5e4, rows_per_unit=1).fit_table(*asked)
    for mine, its in zip(outputs(ours, example.X), outputs(theirs, example.X), strict=True):
        if mine.dtype.kind == "f":
            assert mine == pytest.approx(its, abs=0.02)
        else:
            assert (mine == its).mean() > 0.99
    assert theirs.cost.epsilon == pytest.approx(5e4)
    again = example.make(epsilon=5e4, rows_per_unit=1).fit_table(*asked)
    assert again.cost.epsilon == 0
    for before, after in zip(outputs(theirs, example.X), outputs(again, example.X), strict=True):
        assert np.array_equal(before, after)


@every_estimator
def test_a_document_is_the_model_without_data_and_without_budget(name: str) -> None:
    example = EXAMPLES[name]
    model = example.estimator(epsilon=2.0, budget=tacit.Budget(2.0)).fit(example.X, example.y)
    written = json.dumps(model.to_document(), allow_nan=False)
    read = from_document(json.loads(written))
    for before, after in zip(outputs(model, example.X), outputs(read, example.X), strict=True):
        assert np.array_equal(before, after)
    assert (read.cost, read.card, read.budget) == (model.cost, model.card, None)
    assert read.to_document() == model.to_document()
    kept = pickle.loads(pickle.dumps(example.estimator(epsilon=2.0).fit(example.X, example.y)))
    assert outputs(kept, example.X)


@every_estimator
def test_clones_and_copies_share_the_budget(name: str) -> None:
    example, budget = EXAMPLES[name], tacit.Budget(1.0)
    model = example.estimator(epsilon=0.5, budget=budget)
    assert clone(model).budget is copy.deepcopy(model).budget is budget
    clone(model).fit(example.X, example.y)
    copy.deepcopy(model).fit(example.X, example.y)
    assert budget.spent().epsilon == pytest.approx(1.0)
    with pytest.raises(tacit.BudgetExceeded):
        clone(model).fit(example.X, example.y)


@every_estimator
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_preview_is_what_is_charged_and_at_most_what_was_asked(name: str, delta: float) -> None:
    example, budget = EXAMPLES[name], tacit.Budget(1.0, delta)
    prepared = example.estimator(epsilon=1.0, budget=budget).prepare(example.X, example.y)
    quote = prepared.preview()
    assert prepared.release().cost == quote
    assert 0 < quote.epsilon <= 1.0
    assert quote.delta <= delta


@every_estimator
def test_a_fit_takes_the_delta_that_is_stated_or_none(name: str) -> None:
    example = EXAMPLES[name]
    for budget in (None, tacit.Budget(1.0, 1e-3)):
        quote = example.estimator(epsilon=1.0, delta=1e-5, budget=budget).prepare(example.X, example.y).preview()
        assert 0.9999 < quote.epsilon <= 1.0
        assert quote.delta in (0.0, 1e-5)
        assert quote.fits
    for wrong in (-1, 0, 0.2, 1, "1e-5"):
        with pytest.raises(InvalidInput):
            example.estimator(epsilon=1.0, delta=wrong).prepare(example.X, example.y)


@every_estimator
def test_bounds_are_learnt_within_the_charge(name: str) -> None:
    example = EXAMPLES[name]
    if "bounds" not in example.stated:
        pytest.skip("it has no bounds")
    model = example.estimator(bounds="learn", budget=tacit.Budget(EXACT)).fit(example.X, example.y)
    assert set(model.answer_.learned_bounds) == set(BOUNDS)
    exact = example.estimator().fit(example.X, example.y)
    if hasattr(model, "score") and example.y is not None:
        assert model.score(example.X, example.y) == pytest.approx(exact.score(example.X, example.y), abs=0.02)


@every_estimator
def test_rows_of_a_unit_beyond_the_stated_number_are_not_counted(name: str) -> None:
    example = EXAMPLES[name]
    many = pd.concat([example.X.head(1)] * 500 + [example.X], ignore_index=True)
    y = None if example.y is None else np.concatenate([np.repeat(example.y[:1], 500), example.y])
    unit = np.concatenate([np.zeros(500, dtype=int), np.arange(SIZE)])
    few, every = (example.estimator(rows_per_unit=rows).fit(many, y, unit=unit) for rows in (1, 501))
    once = example.estimator().fit(example.X, example.y)
    moved = [np.abs(mine - its).sum() for mine, its in zip(few.answer_.noisy, once.answer_.noisy, strict=True)]
    more = [np.abs(mine - its).sum() for mine, its in zip(every.answer_.noisy, once.answer_.noisy, strict=True)]
    assert moved[0] == 0  # a number of rows, without noise
    assert sum(moved) < 0.01 * sum(more)
    with pytest.raises(NotBounded):
        example.estimator().fit(many, y, unit=unit)


@every_estimator
def test_bad_input_costs_nothing_and_has_a_code(name: str) -> None:
    example = EXAMPLES[name]
    budget = tacit.Budget(1.04e6, 1e-5)
    numbers = {"bounds": None} if "bounds" in example.stated else {"categories": None}
    tried: list[tuple[dict[str, Any], Any, Any]] = [
        ({}, example.X.iloc[:0], None if example.y is None else example.y[:0]),
        ({}, example.X.iloc[:, :0], example.y),
        ({}, example.X.iloc[:, 0], example.y),
        ({}, np.zeros((2, 2, 2)), example.y),
        ({}, np.full((SIZE, len(example.X.columns)), 1j), example.y),
        ({}, 3, example.y),
        (numbers, example.X, example.y),
        ({next(iter(numbers)): {"nothing": (0, 1)}}, example.X, example.y),
        ({next(iter(numbers)): 7}, example.X, example.y),
        ({"epsilon": -1}, example.X, example.y),
        ({"epsilon": 2e6}, example.X, example.y),
        ({"rows_per_unit": 0}, example.X, example.y),
    ]
    if example.y is not None:
        tried += [({}, example.X, None), ({}, example.X, example.y[1:]), ({}, example.X, np.full(SIZE, np.nan))]
        tried += [({}, example.X, np.array(["other"] * SIZE))]
    for changed, x, y in tried:
        with pytest.raises(TacitError) as raised:
            example.estimator(**{"budget": budget, **changed}).fit(x, y)
        assert raised.value.code != "T000", (changed, raised.value)
        assert budget.spent().epsilon == 0


@pytest.mark.parametrize(
    "changed", [{"format": "other"}, {"estimator": "PATE"}, {"fitted": {"x": {"code": 1}}}, {"cost": 1}]
)
def test_damaged_documents_are_refused(changed: dict[str, Any]) -> None:
    example = EXAMPLES["StandardScaler"]
    document = example.estimator().fit(example.X).to_document()
    with pytest.raises(InvalidInput):
        from_document({**document, **changed})


@every_estimator
def test_a_plan_that_reads_rows_itself_states_a_step_for_each_measurement_at_least(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, matrix = [], ArrayRows.matrix

    def reading(self: ArrayRows, *given: Any) -> Any:
        read.append(given)
        return matrix(self, *given)

    monkeypatch.setattr(ArrayRows, "matrix", reading)
    plan = plan_of(name, tacit.privacy.Relation.ADD_REMOVE, 1, 0.0)
    measured, _ = record(plan, rows_of(name, [[(1.0, 2.0, "x", "high", 3.0)]], 1), seed=0)
    assert (plan.row_steps >= len(measured)) if read else (plan.row_steps == 0)


@every_estimator
def test_the_numbers_that_a_prediction_reads_grow_with_the_model(name: str) -> None:
    example = EXAMPLES[name]
    model = example.estimator().fit(example.X, example.y)
    assert len(example.X.columns) < model.numbers_for_a_row < 20_000


def test_a_density_of_many_cells_is_computed_in_little_memory() -> None:
    rows = np.random.default_rng(0).random((20_000, 2))
    model = KernelDensity(epsilon=1e6, bounds=(0, 1), bins=128).fit(rows)
    assert len(model.centres_) > 10_000
    assert model.numbers_for_a_row > 3 * len(model.centres_)
    tracemalloc.start()
    found = model.score_samples(rows[:300])
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()
    assert found == pytest.approx([model.score_samples(rows[place : place + 1])[0] for place in range(300)])
