"""Trees and forests: without noise as good as scikit-learn's, counted alike in engines, and paid table by table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats as laws
from sklearn.tree import DecisionTreeClassifier as PlainTree

import tacit
from tacit.learn import DecisionTreeClassifier, RandomForestClassifier, from_document
from tacit.learn.estimators.model_plan import deviation
from tacit.learn.estimators.trees import TreeTables
from tacit.mechanisms.additive import Additive
from tacit.mechanisms.simulation import SeededSource
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.rows import NoRows
from tests.property.stats.neighbouring import Recorded

STATED: Any = {
    "bounds": {"u": (0, 1), "v": (0, 1)},
    "categories": {"colour": ["red", "green", "blue"]},
    "classes": ["a", "b", "c"],
}


def made(rows: int = 2000, seed: int = 0) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return rows whose class depends on both numbers and the colour."""
    random = np.random.default_rng(seed)
    u, v, colour = random.uniform(size=rows), random.uniform(size=rows), random.integers(0, 3, rows)
    labels = np.where(colour == 2, 2, (u > 0.5) ^ (v > 0.25))
    labels = np.where(random.uniform(size=rows) < 0.05, random.integers(0, 3, rows), labels)
    return pd.DataFrame({"u": u, "v": v, "colour": np.array(["red", "green", "blue"])[colour]}), np.array(list("abc"))[
        labels
    ]


def test_without_noise_a_tree_is_as_good_as_that_of_scikit_learn() -> None:
    frame, labels = made()
    test, truth = made(seed=1)
    model = DecisionTreeClassifier(epsilon=1e5, delta=1e-6, **STATED).fit(frame, labels)

    def plain(one: pd.DataFrame) -> Any:
        return one.assign(colour=one["colour"] == "blue")

    theirs = PlainTree(max_depth=4, random_state=0).fit(plain(frame), labels).score(plain(test), truth)
    assert model.score(test, truth) > theirs - 0.03
    assert model.score(test, truth) > 0.9
    assert model.predict_proba(test).sum(axis=1) == pytest.approx(1)
    read = from_document(model.to_document())
    assert (read.predict(test) == model.predict(test)).all()


@pytest.mark.parametrize("delta", [1e-5, None])
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_a_fit_learns_and_costs_what_was_asked(kind: Any, delta: float | None) -> None:
    frame, labels = made(20_000)
    model = kind(epsilon=1.0, delta=delta, max_depth=3, **STATED).fit(frame, labels)
    assert model.score(frame, labels) > 0.6  # 0.38 by the largest class
    assert 0.99 < model.cost.epsilon <= 1


def test_a_table_is_fitted_as_arrays_are(tmp_path: Path) -> None:
    frame, labels = made()
    frame.loc[:50, "u"] = np.nan
    frame.assign(y=labels, who=np.arange(len(frame))).to_parquet(tmp_path / "people.parquet")
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("people", tmp_path / "people.parquet", unit="who", columns={})
        with pytest.warns(UserWarning, match="epsilon"):
            curator.set_budget("people", epsilon=1e6, delta=9e-4)
        asked: Any = {"epsilon": 5e5, "rows_per_unit": 1, "max_depth": 3, **STATED}
        theirs = DecisionTreeClassifier(**asked).fit_table(curator.table("people"), ["u", "v", "colour"], "y")
    ours = DecisionTreeClassifier(delta=9e-4, **asked).fit(frame, labels)
    assert (theirs.splits_ == ours.splits_).all()
    np.testing.assert_allclose(theirs.leaf_proba_, ours.leaf_proba_, atol=1e-3)


def plan_of(kind: Any, rows: int = 1, **stated: Any) -> TreeTables:
    """Return the plan of a fit."""
    frame, labels = made(rows)
    found = kind(epsilon=1.0, max_depth=2, **STATED, **stated).prepare(frame, labels).plan
    assert isinstance(found, TreeTables)
    return found


@pytest.mark.parametrize(("delta", "law"), [(1e-5, laws.norm), (None, laws.laplace(scale=2**-0.5))])
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_every_table_has_the_stated_noise_and_is_paid_once(
    kind: Any, delta: float | None, law: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Kolmogorov-Smirnov test has a false-alarm rate of 1e-6; the seed is fixed."""
    plan, seen, release = plan_of(kind, delta=delta), {}, Additive.release  # type: ignore[var-annotated]

    def recorded(self: Any, value: Any, *, source: Any) -> Any:
        noisy = release(self, value, source=source)
        seen.setdefault(self, []).append(np.asarray(noisy, dtype=float).ravel() / deviation(self))
        return noisy

    monkeypatch.setattr(Additive, "release", recorded)
    plan.measure(NoRows(), SeededSource(5))
    assert [len(seen[one]) for one in plan.noises.noises] == list(plan.noises.times)
    noises = np.concatenate([part for parts in seen.values() for part in parts])
    assert laws.kstest(noises, law.cdf).pvalue > 1e-6
    assert laws.kstest(noises / 2, law.cdf).pvalue < 1e-6


def moved(plan: TreeTables) -> float:
    """Return how far one unit of five rows moves a table at most; one of its rows is counted."""
    frame, labels = made(60)
    sums = []
    for last in (60, 55):
        columns = {**{name: frame[name].to_numpy()[:last] for name in frame}, "target": labels[:last]}
        read, unit = read_arrays(columns, [*range(55), *[55] * 5][:last])
        recorded = Recorded(ArrayRows(read, unit, 1))
        plan.grown(range(3), recorded, SeededSource(1))
        sums.append(recorded.sums_seen[:3])  # later tables depend on noisy splits
    return max(float(np.abs(one - other).sum()) for one, other in zip(*sums, strict=True))


def test_a_unit_moves_a_table_by_its_counted_rows_and_uncounted_ones_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = plan_of(DecisionTreeClassifier)
    assert moved(plan) == 1
    monkeypatch.setattr(ArrayRows, "kept_rows", lambda self, needs: np.ones(self._length, dtype=bool))
    assert moved(plan) == 5


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"max_depth": 0}, "max_depth"),
        ({"max_depth": 99}, "max_depth"),
        ({"n_bins": 1}, "n_bins"),
        ({"classes": None}, "listed"),
        ({"bounds": None}, "bounds"),
    ],
)
def test_bad_arguments_charge_nothing(stated: dict[str, Any], words: str) -> None:
    budget = tacit.Budget(2.0)
    with pytest.raises(tacit.TacitError, match=words):
        DecisionTreeClassifier(**{"epsilon": 1.0, "budget": budget, **STATED, **stated}).fit(*made(50))
    assert budget.spent().epsilon == 0
