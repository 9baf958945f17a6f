"""Noise of logistic regression: that of the stated law, and neighbours that are no easier to tell than was charged.

The check of the law has a false-alarm rate of 1e-6 (`evidence`), the audit one of 5 %; seeds are fixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as laws

from tacit import accounting
from tacit.attack.mechanism_audit import audit
from tacit.learn import LogisticRegression
from tacit.learn.estimators.exact_gradients import RESIDUAL, UNIT
from tacit.learn.estimators.logistic import NoisyDescent
from tacit.learn.estimators.model_plan import deviation
from tacit.mechanisms import Gaussian
from tacit.mechanisms.additive import Additive
from tacit.mechanisms.simulation import SeededSource
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.rows import NoRows
from tests.statistical.evidence import Refuted, accept

ROUNDS = {None: 4, 1e-5: 12}
"""Rounds of Laplace noise, and of Gaussian noise at a delta."""


def plan_of(delta: float | None) -> NoisyDescent:
    """Return the plan of a regression on two numbers."""
    asked: Any = {"bounds": (-1, 1), "classes": [0, 1], "max_iter": ROUNDS[delta], "clip": 0.5}
    model = LogisticRegression(epsilon=1.0, delta=delta, **asked)
    found = model.prepare(np.zeros((1, 2)), np.zeros(1, dtype=int)).plan
    assert isinstance(found, NoisyDescent)
    return found


def noises_of(plan: NoisyDescent, runs: int, seed: int) -> NDArray[np.float64]:
    """Return the noise of all rounds without any rows, over its stated deviation."""
    seen: list[NDArray[Any]] = []
    release = Additive.release

    def recorded(self: Any, value: Any, *, source: Any) -> Any:
        noisy = release(self, value, source=source)
        seen.append((np.asarray(noisy, dtype=float) - np.asarray(value)).ravel() / deviation(self))
        return noisy

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Additive, "release", recorded)
        source = SeededSource(seed)
        for _ in range(runs):
            plan.measure(NoRows(), source)
    return np.concatenate(seen)


def check(noises: NDArray[np.float64], law: str) -> None:
    """Refute noise whose law is not the stated one."""
    stated: Any = laws.norm if law == "Gaussian" else laws.laplace(scale=2**-0.5)
    accept(float(laws.kstest(noises, stated.cdf).pvalue), f"{law} noise of the stated deviation")


@pytest.mark.parametrize(("delta", "law"), [(1e-5, "Gaussian"), (None, "Laplace")])
def test_every_round_has_the_stated_noise_and_half_of_it_is_noticed(delta: float | None, law: str) -> None:
    plan = plan_of(delta)
    assert plan.noises.law == law
    found = noises_of(plan, 300, seed=3)
    assert len(found) == 300 * (5 + 3 * ROUNDS[delta])
    check(found, law)
    with pytest.raises(Refuted):
        check(found / 2, law)


def test_the_noise_of_all_rounds_is_what_epsilon_needs() -> None:
    """Precisions of Gaussian noises over their sensitivities add up to that of one Gaussian; epsilons to epsilon."""
    plan = plan_of(1e-5)
    mechanisms = zip(plan.noises.noises, plan.noises.times, strict=True)
    precision = sum(times * (float(one.sensitivity) / deviation(one)) ** 2 for one, times in mechanisms)
    cost = accounting.epsilon(Gaussian(1.0, sigma=precision**-0.5).event, 1e-5)
    assert 0.999 < cost.upper <= 1
    pure = plan_of(None)
    scales = zip(pure.noises.noises, pure.noises.times, strict=True)
    assert sum(times * float(one.sensitivity) / float(one.scale) for one, times in scales) == pytest.approx(1)
    assert plan.limit == UNIT * RESIDUAL // 2


def rows_of(count: int) -> ArrayRows:
    """Return equal rows far from the middle, all of the second class."""
    return ArrayRows(*read_arrays({"x0": np.ones(count), "x1": np.ones(count), "target": np.ones(count, dtype=int)}))


@pytest.mark.soak
@pytest.mark.parametrize("delta", [1e-5, None])
def test_an_audit_of_neighbours_finds_no_more_than_was_charged_and_finds_a_fiftieth_of_the_noise(
    delta: float | None,
) -> None:
    """Eleven rows or ten, the last one with the greatest gradient; all noisy sums of the rounds are seen."""
    plan = plan_of(delta)

    def transcripts(rows: int, count: int, share: float = 1.0) -> NDArray[np.float64]:
        source, found = SeededSource(rows * 1000 + int(share * 100)), []
        held, release = rows_of(rows), Additive.release

        def recorded(self: Any, value: Any, *, source: Any) -> Any:
            exact = np.asarray(value)
            noise = np.asarray(release(self, np.zeros_like(exact), source=source))
            noisy = exact + (noise * share).astype(np.int64)
            seen.append(noisy.ravel() / float(self.sensitivity))
            return noisy

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Additive, "release", recorded)
            for _ in range(count):
                seen: list[NDArray[Any]] = []
                plan.measure(held, source)
                found.append(np.concatenate(seen))
        return np.array(found)

    claimed = (1.0, 1e-6 if delta else 0.0)
    assert not audit(transcripts, 10, 11, claimed, samples=400, seed=1, many=True).is_violation
    planted = audit(lambda rows, count: transcripts(rows, count, 0.02), 10, 11, claimed, samples=400, seed=1, many=True)
    assert planted.lower_bound > 1.0
