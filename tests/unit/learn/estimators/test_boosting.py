"""Boosted additive models: without noise as good as logistic regression on cells, and paid table by table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats as laws
from sklearn.linear_model import LogisticRegression

import tacit
from tacit.learn import HistGradientBoostingClassifier, from_document
from tacit.learn.estimators import boosting
from tacit.learn.estimators.boosting import AdditiveScores
from tacit.learn.estimators.exact_gradients import RESIDUAL
from tacit.learn.estimators.model_plan import deviation
from tacit.mechanisms.additive import Additive
from tacit.mechanisms.simulation import SeededSource
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.rows import NoRows

STATED: Any = {
    "bounds": {"u": (0, 1), "v": (0, 1)},
    "categories": {"colour": ["red", "green", "blue"]},
    "classes": ["no", "yes"],
}


def made(rows: int = 4000, seed: int = 0) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return rows whose logit is a sum of functions of each feature."""
    random = np.random.default_rng(seed)
    u, v, colour = random.uniform(size=rows), random.uniform(size=rows), random.integers(0, 3, rows)
    logits = 3 * np.sin(6 * u) + 2 * (v > 0.25) - colour
    labels = np.where(random.uniform(size=rows) < 1 / (1 + np.exp(-logits)), "yes", "no")
    return pd.DataFrame({"u": u, "v": v, "colour": np.array(["red", "green", "blue"])[colour]}), labels


def test_without_noise_it_is_logistic_regression_on_cells() -> None:
    frame, labels = made()
    model = HistGradientBoostingClassifier(epsilon=1e5, delta=1e-6, n_bins=8, max_iter=100, **STATED)
    model.fit(frame, labels)
    cells = [(np.floor(frame[name] * 8).astype(int).to_numpy()[:, None] == np.arange(8)) for name in ("u", "v")]
    colours = frame["colour"].to_numpy()[:, None] == np.array(["red", "green", "blue"])
    encoded = np.hstack([*cells, colours]).astype(float)
    plain = LogisticRegression(C=100, max_iter=5000).fit(encoded, labels)
    assert np.abs(model.predict_proba(frame) - plain.predict_proba(encoded)).max() < 0.05
    assert [len(one) for one in model.term_scores_] == [8, 8, 3]
    read = from_document(model.to_document())
    assert (read.predict(frame) == model.predict(frame)).all()


@pytest.mark.parametrize("delta", [1e-5, None])
def test_a_fit_learns_and_costs_what_was_asked(delta: float | None) -> None:
    frame, labels = made(20_000)
    model = HistGradientBoostingClassifier(epsilon=1.0, delta=delta, max_iter=5, **STATED).fit(frame, labels)
    assert model.score(frame, labels) > 0.75  # 0.84 without noise, 0.53 by the larger class
    assert 0.99 < model.cost.epsilon <= 1


def test_a_table_is_fitted_as_arrays_are(tmp_path: Path) -> None:
    frame, labels = made(1000)
    frame.assign(y=labels, who=np.arange(len(frame))).to_parquet(tmp_path / "people.parquet")
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("people", tmp_path / "people.parquet", unit="who", columns={})
        with pytest.warns(UserWarning, match="epsilon"):
            curator.set_budget("people", epsilon=1e6, delta=9e-4)
        asked: Any = {"epsilon": 5e5, "rows_per_unit": 1, "n_bins": 8, "max_iter": 5, **STATED}
        theirs = HistGradientBoostingClassifier(**asked).fit_table(curator.table("people"), list(frame), "y")
    ours = HistGradientBoostingClassifier(delta=9e-4, **asked).fit(frame, labels)
    np.testing.assert_allclose(theirs.decision_function(frame), ours.decision_function(frame), atol=0.05)


def plan_of(delta: float | None) -> AdditiveScores:
    """Return the plan of a fit of two rounds."""
    model = HistGradientBoostingClassifier(epsilon=1.0, delta=delta, max_iter=2, n_bins=20, **STATED)
    found = model.prepare(*made(1)).plan
    assert isinstance(found, AdditiveScores)
    return found


@pytest.mark.parametrize(("delta", "law"), [(1e-2, laws.norm), (None, laws.laplace(scale=2**-0.5))])
def test_every_table_has_the_stated_noise_and_is_paid_once(
    delta: float | None, law: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Kolmogorov-Smirnov test has a false-alarm rate of 1e-6; the seed is fixed."""
    plan, release = plan_of(delta), Additive.release
    seen: dict[Any, list[NDArray[Any]]] = {}

    def recorded(self: Any, value: Any, *, source: Any) -> Any:
        noisy = release(self, value, source=source)
        seen.setdefault(self, []).append(np.asarray(noisy, dtype=float).ravel() / deviation(self))
        return noisy

    monkeypatch.setattr(Additive, "release", recorded)
    source = SeededSource(5)
    for _ in range(5):
        plan.measure(NoRows(), source)
    assert [len(seen[one]) for one in plan.noises.noises] == [5 * times for times in plan.noises.times]
    noises = np.concatenate(seen[plan.noises.noises[1]])
    assert laws.kstest(noises, law.cdf).pvalue > 1e-6
    assert laws.kstest(noises / 2, law.cdf).pvalue < 1e-6


def moved(monkeypatch: pytest.MonkeyPatch) -> float:
    """Return how far one unit of five rows moves the first tables at most, over their stated sensitivity."""
    plan, (frame, labels) = plan_of(None), made(60)
    tables: list[list[NDArray[Any]]] = []
    for last in (60, 55):
        columns = {**{name: frame[name].to_numpy()[:last] for name in frame}, "target": labels[:last]}
        read, unit = read_arrays(columns, [*range(55), *[55] * 5][:last])
        tables.append([])
        with monkeypatch.context() as patched:
            patched.setattr(
                Additive,
                "release",
                lambda self, value, *, source: (tables[-1].append(value / self.sensitivity), value * 0)[1],
            )
            plan.measure(ArrayRows(read, unit, 1), SeededSource(1))
    return max(float(np.abs(one - other).sum()) for one, other in zip(*tables, strict=True))


def test_a_unit_moves_a_table_by_its_sensitivity_and_bugs_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.5 <= moved(monkeypatch) <= 1
    with monkeypatch.context() as planted:
        planted.setattr(ArrayRows, "kept_rows", lambda self, needs: np.ones(self._length, dtype=bool))
        assert moved(monkeypatch) > 1
    exact = boosting.residuals_of
    with monkeypatch.context() as planted:  # residuals beyond those that were stated
        planted.setattr(boosting, "residuals_of", lambda *given: exact(*given) + np.sign(exact(*given)) * RESIDUAL)
        assert moved(monkeypatch) > 1


def test_rows_whose_label_is_not_listed_add_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, (frame, labels) = plan_of(None), made(60)
    labels = np.append(labels[:40], ["perhaps"] * 20)
    tables: list[list[NDArray[Any]]] = []

    def recorded(self: Any, value: Any, *, source: Any) -> Any:
        tables[-1].append(np.asarray(value))
        return value

    monkeypatch.setattr(Additive, "release", recorded)
    for last in (60, 40):
        tables.append([])
        columns = {**{name: frame[name].to_numpy()[:last] for name in frame}, "target": labels[:last]}
        read, unit = read_arrays(columns)
        plan.measure(ArrayRows(read, unit, 1), SeededSource(1))
    assert sum(int(one.sum()) for one in tables[1][:3]) == 3 * 40
    assert all((one == other).all() for one, other in zip(*tables, strict=True))


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"classes": ["a", "b", "c"]}, "two classes|not among"),
        ({"max_iter": 0}, "max_iter"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"n_bins": 10**6}, "n_bins"),
    ],
)
def test_bad_arguments_charge_nothing(stated: dict[str, Any], words: str) -> None:
    budget = tacit.Budget(2.0)
    with pytest.raises(tacit.TacitError, match=words):
        HistGradientBoostingClassifier(**{"epsilon": 1.0, "budget": budget, **STATED, **stated}).fit(*made(50))
    assert budget.spent().epsilon == 0
