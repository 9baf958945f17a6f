"""Intervals of SQL answers hold the number without noise as often as they say: all aggregates, expressions, windows,
totals, and rows that noisy numbers select; and private choices keep within the rows that are stated for them.

False alarms: each test calls `accept` once, so at most 1e-6 each over the choice of seeds, which are fixed. Intervals
made for half of the noise, and intervals that ignore the selection, are refuted by the same check.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats as laws

from bench.sql_intervals import CHOICES, EPSILONS, LEVEL, TIGHT, Asked, World, questions
from tacit.query import Plan
from tacit.query.question import Question
from tests.statistical.evidence import Refuted, accept

WORLD = World()
ASKED = questions()
RELEASES = 12
AT_MOST = 0.985
"""Of numbers with smooth noise, no more than this share may be held."""
WIDE = {("STDDEV", 0.1)}
"""Where it may be: some draws leave fewer rows than one in most wards, and are counted at both limits (0.994 hold)."""


def asked(name: str, epsilon: float) -> Asked:
    return WORLD.asked(ASKED[name], epsilon)


def too_rarely_p(held: list[bool]) -> float:
    """Return how likely so few of independent trials are, if the level is kept."""
    return float(laws.binom.cdf(sum(held), len(held), LEVEL))


@pytest.mark.sampled(26, each="name")
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", ASKED)
def test_intervals_hold_the_number_without_noise(name: str, epsilon: float) -> None:
    held = asked(name, epsilon).held(RELEASES, first=300)
    assert held
    accept(too_rarely_p(held))
    assert name not in TIGHT or (name, epsilon) in WIDE or np.mean(held) < AT_MOST


@pytest.mark.parametrize("name", ["SUM", "AVG", "running count", "totals of ROLLUP"])
def test_intervals_for_half_the_noise_are_noticed(name: str) -> None:
    one = asked(name, 0.1)
    with pytest.raises(Refuted):
        accept(too_rarely_p(one.held(RELEASES, first=300, told=_for_half_the_noise(one.plan))))


@pytest.mark.parametrize("sql", ["SELECT ward, SUM(cost) AS y FROM people GROUP BY ward ORDER BY y DESC LIMIT 1"])
def test_intervals_that_ignore_the_selection_are_noticed(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = WORLD.asked(sql, 0.003)  # noise that decides nearly alone which ward comes first
    accept(too_rarely_p(one.held(300, first=1)))
    monkeypatch.setattr(Question, "selects_by_noise", False)
    with pytest.raises(Refuted):
        accept(too_rarely_p(one.held(300, first=1)))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", CHOICES)
def test_private_choices_keep_within_the_stated_rows(name: str, epsilon: float) -> None:
    value, share = CHOICES[name]
    within, _ = WORLD.chosen(f"SELECT {value} FROM people", epsilon, share, 100)
    accept(float(laws.binom.cdf(round(within), 100, LEVEL)))


def _for_half_the_noise(plan: Plan) -> Plan:
    noises = tuple(replace(one, epsilon=2 * Fraction(one.epsilon)) for one in plan.price.noises)  # type: ignore[arg-type]
    return replace(plan, price=replace(plan.price, noises=noises))
