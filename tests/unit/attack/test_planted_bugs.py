"""Bugs that an auditor could have itself: each test here fails for one that was planted while it was written."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

from tacit import attack
from tacit.attack import kit, side_channels
from tacit.attack.confidence import one_run_epsilon
from tacit.attack.finding import Claim, Measurement, ThreatModel
from tacit.attack.kit import Attack, Outcome, Setting
from tacit.curator import self_audit

NULLS = 100
ALARMS_MAX = 13
"""At a rate of 5 %, more than 13 of 100 have a probability below 1e-3."""


def test_the_confidence_of_a_suite_is_the_one_that_its_attacks_use(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []

    def spy(_target: Any, setting: Setting) -> Outcome:
        used.append(setting.confidence)
        return Outcome(ThreatModel("none", "nothing", 0), (Measurement("nothing", 0.0),))

    spy.__module__ = "tacit.attack.linkage"
    both = [Attack(name, attack.Mechanism, "none", "none", spy) for name in ("one", "two")]
    kit.attacks()
    monkeypatch.setattr(kit, "_ATTACKS", both)
    found = attack.suite(attack.Mechanism(lambda x: x, 0, 1), 1.0)
    assert used == [one.confidence for one in found] == [0.975, 0.975]


def test_a_threshold_is_not_measured_on_the_trainings_that_it_was_sought_on() -> None:
    alarms = 0
    for seed in range(NULLS):
        random = np.random.default_rng(seed)
        model = attack.Model(random.normal(size=200), random.integers(0, 2, 200), trainings="independent")
        alarms += (attack.run("canary_audit", model, 0.0, seed=seed).lower_bound or 0.0) > 0
    assert alarms <= ALARMS_MAX


def test_unequal_groups_explain_right_guesses() -> None:
    """Nine of ten people are members: guessing that somebody is one is right nine times in ten."""
    random = np.random.default_rng(2)
    shares = random.uniform(0.2, 0.8, 2_000)
    people = (random.random((100, 2_000)) < shares).astype(float)
    members, outsiders = people[:90], people[90:]
    target = attack.Statistics.of_means(members.mean(axis=0), shares, members=members, outsiders=outsiders)
    found = attack.run("tracing", target, 0.01, seed=2)
    guesses = int(found.details["guesses"])
    right = round(found.measurements[0].value * guesses)
    assert right >= 0.95 * guesses
    assert found.lower_bound == one_run_epsilon(100, guesses, right, 0.0, prior=0.9)


def timed(wait: Callable[[bool], None], secrets: np.ndarray[Any, Any]) -> Callable[[str], float]:
    """Return an interface that waits by the secret of the person who is asked about, and says nothing."""

    def answer(sql: str) -> float:
        found = re.search(r"id = (\d+)", sql)
        assert found is not None
        wait(bool(secrets[int(found[1])]))
        return 0.0

    return answer


def timed_target(wait: Callable[[bool], None]) -> attack.QueryInterface:
    return attack.QueryInterface(
        make=lambda secrets: timed(wait, secrets), people=160, table="t", unit="id", secret="ill"
    )


def test_an_answer_that_takes_longer_for_people_with_the_secret_is_a_violation() -> None:
    target = timed_target(lambda secret: time.sleep(0.004 * secret))
    assert attack.run("timing", target, 1.0, seed=1).verdict == "violates"


def test_times_that_do_not_depend_on_the_secret_are_no_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    alarms = 0
    for seed in range(NULLS):
        random, ticks = np.random.default_rng(1_000 + seed), count()
        clock = np.cumsum(random.exponential(size=1_000)).tolist()
        monkeypatch.setattr(
            side_channels.time, "perf_counter", lambda clock=clock, ticks=ticks: clock[next(ticks) % 1_000]
        )
        alarms += (attack.run("timing", timed_target(lambda _: None), 1.0, seed=seed).lower_bound or 0.0) > 0
    assert alarms <= ALARMS_MAX


@pytest.mark.parametrize("name", ["reconstruction", "differencing", "averaging"])
def test_the_null_twin_shows_nothing_where_the_planted_one_shows_all(name: str) -> None:
    target = attack.QueryInterface(make=lambda secrets: lambda people: float(secrets[people].sum()), people=60)
    power = attack.run(name, target, 1.0, seed=3).power
    assert power is not None
    assert power.null_value < 0.5 < 1.0 < power.planted_value


def test_the_targets_of_the_self_audit_differ_in_one_person_and_promise_one_epsilon() -> None:
    with self_audit.trials() as trials:
        claims = [(one.name, Claim.of(one.promise, one.delta)) for one in trials]
        pairs = [pair for one in trials if isinstance(one.target, attack.Mechanism) for pair in one.target.pairs]
    assert len(claims) >= 15
    assert len(pairs) >= 15
    for name, claim in claims:
        assert claim is not None
        assert claim.epsilon == pytest.approx(self_audit.EPSILON, rel=1e-6), name
    for x, neighbour in pairs:
        assert np.shape(x) != np.shape(neighbour) or np.asarray(x).tolist() != np.asarray(neighbour).tolist()


def laplace_counts(epsilon: float, seed: int) -> attack.QueryInterface:
    random = np.random.default_rng(seed)

    def make(secrets: np.ndarray[Any, Any]) -> Callable[[Any], float]:
        return lambda people: float(secrets[people].sum() + random.laplace(scale=1 / epsilon))

    return attack.QueryInterface(make=make, people=30)


@pytest.mark.parametrize(("epsilon", "verdict"), [(1.0, "consistent"), (8.0, "violates")])
def test_one_count_a_person_tells_a_spent_epsilon_from_the_claimed_one(epsilon: float, verdict: str) -> None:
    found = [attack.run("single_counts", laplace_counts(epsilon, seed), 1.0, seed=seed) for seed in range(5)]
    assert {one.verdict for one in found} == {verdict}
