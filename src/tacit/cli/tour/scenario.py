"""The steps of the tour: a query, the same query again, a differencing attack, and a query over budget.

Each step returns the query, its answer, the true values and the cost; `display` shows them. True values are computed
from the invented patients, not by the curator.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.tour.clinic import ANALYST, TABLE, WARDS, Patient
from tacit.privacy.errors import BudgetExceeded
from tacit.privacy.numbers import DEFAULT_LEVEL

if TYPE_CHECKING:
    from tacit.curator import Curator
    from tacit.mechanisms.mechanism import Interval
    from tacit.query import Plan


EPSILON: Final = 0.5
SQL: Final = """\
SELECT ward, COUNT(DISTINCT patient_id) AS patients, AVG(cost) AS mean_cost
FROM visits
GROUP BY ward ORDER BY ward"""
REFUSED_SQL: Final = "SELECT diagnosis, SUM(cost) AS total FROM visits GROUP BY diagnosis"
REFUSED_EPSILON: Final = 1.0


@dataclass(frozen=True, slots=True)
class Cell:
    """A private number with its 95 % interval, and the true number."""

    answer: float
    low: float
    high: float
    truth: float


@dataclass(frozen=True, slots=True)
class Item:
    """One measurement of an answer: its noise and its share of epsilon."""

    measures: str
    noise: str
    epsilon: float | None
    """None for Gaussian noise, which has no epsilon of its own."""


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """A query with the numbers of each ward by name, and their cost by measurement."""

    sql: str
    rows: Mapping[str, Mapping[str, Cell]]
    items: tuple[Item, ...]
    previewed: float
    epsilon: float
    left: float
    """The remaining epsilon of the analyst."""


@dataclass(frozen=True, slots=True)
class RepeatedAnswer:
    """Whether the repeated query had the same answer, and its cost."""

    is_same: bool
    epsilon: float
    left: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """A query over budget, with the error and the epsilon that would fit."""

    sql: str
    code: str
    message: str
    asked: float
    fits: float | None
    left: float


def protection_text(patients: int) -> str:
    """Return who is protected, and what the guarantee says."""
    return (
        f"Each of the {patients:,} patients, with all their visits. Whether or not one patient is in the data, the "
        f"probability of any answer of cost ε {EPSILON:g} changes by a factor of at most {math.exp(EPSILON):.2f}."
    )


def first_answer(curator: Curator, patients: list[Patient]) -> FirstAnswer:
    """Run the query as the analyst."""
    from tacit.mechanisms import Laplace

    preview = curator.preview(SQL, EPSILON, analyst=ANALYST)
    plan = plan_of(curator, SQL, EPSILON)
    noise = [line.text.rpartition(": ")[2] for line in preview.lines if line.label == "noise"]
    items = [
        Item(measure.label, words, float(mechanism.epsilon) if isinstance(mechanism, Laplace) else None)
        for measure, words, mechanism in zip(plan.measures, noise, plan.price.noises, strict=True)
    ]
    release = curator.sql(SQL, EPSILON, analyst=ANALYST)
    truths, rows = true_values(patients), {}
    for row, spans in zip(release.rows, release.intervals(DEFAULT_LEVEL), strict=True):
        ward = row["ward"]
        rows[ward] = {name: _cell(row[name], spans[name], truth) for name, truth in truths[ward].items()}
    return FirstAnswer(SQL, rows, tuple(items), preview.epsilon, release.cost.epsilon, epsilon_left(curator))


def repeat_query(curator: Curator, first: FirstAnswer) -> RepeatedAnswer:
    """Run the same query again."""
    release = curator.sql(SQL, EPSILON, analyst=ANALYST)
    known = [[row["ward"], row["patients"], row["mean_cost"]] for row in release.rows]
    before = [[ward, cells["patients"].answer, cells["mean_cost"].answer] for ward, cells in first.rows.items()]
    return RepeatedAnswer(known == before, release.cost.epsilon, epsilon_left(curator))


def exceed_budget(curator: Curator) -> Refusal:
    """Run a query that costs more than is left, and return the refusal."""
    try:
        curator.sql(REFUSED_SQL, REFUSED_EPSILON, analyst=ANALYST)
    except BudgetExceeded as refusal:
        fits = refusal.fits.epsilon if refusal.fits is not None else None
        return Refusal(REFUSED_SQL, refusal.code, refusal.message, REFUSED_EPSILON, fits, epsilon_left(curator))
    raise AssertionError("the ledger admitted more than the analyst's budget holds")


def plan_of(curator: Curator, sql: str, epsilon: float) -> Plan:
    """Return the plan of a query of the analyst."""
    from tacit.query import QuerySpec

    return curator.queries().plan(QuerySpec.of_plan(sql, epsilon, {}, ANALYST))


def true_values(patients: list[Patient]) -> dict[str, dict[str, Any]]:
    """Return the numbers of the query by ward, without noise."""
    found = {}
    for ward in sorted(WARDS):
        theirs = [one for one in patients if one.ward == ward]
        costs = [cost for one in theirs for cost, _ in one.visits]
        found[ward] = {"patients": len(theirs), "mean_cost": fmean(costs)}
    return found


def epsilon_left(curator: Curator) -> float:
    """Return the remaining epsilon of the analyst."""
    return curator.budget(TABLE, ANALYST).remaining().epsilon


def _cell(answer: float, span: Interval | None, truth: float) -> Cell:
    low, high = span if span is not None else (-math.inf, math.inf)
    return Cell(answer, low, high, truth)


DIAGNOSIS: Final = "depression"
EPSILON_EACH: Final = 0.25
TIMES: Final = 10
"""Number of simulated attacks on each target, each with other noise."""
SEED: Final = 1854
EVERYBODY: Final = f"SELECT COUNT(DISTINCT patient_id) AS n FROM visits\nWHERE diagnosis = '{DIAGNOSIS}'"


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack on the curator, and the success rates of many simulated ones."""

    everybody: str
    but_one: str
    target: str
    answers: tuple[int, int]
    difference: int
    true_difference: int
    targets: int
    attacks: int
    exact_rate: float
    private_rate: float
    coin_rate: float
    bound: float
    epsilon: float
    """The cost of the two queries of one attack."""
    epsilon_simulated: float
    """The cost of all simulated attacks, charged to a budget of their own."""
    is_simulated: bool


@dataclass(frozen=True, slots=True)
class Rates:
    """Success rates of the attack with exact and with private answers, and the cost of the private ones."""

    attacks: int
    exact: float
    private: float
    epsilon_charged: float


def differencing_attack(curator: Curator, patients: list[Patient]) -> Attack:
    """Attack one patient through the curator, and all targets many times in a simulation."""
    chosen = targets(patients)
    victim = next(one for one in chosen if has_it(one))
    everybody, but_one = (
        int(curator.sql(sql, EPSILON_EACH, analyst=ANALYST).rows[0]["n"]) for sql in (EVERYBODY, everybody_but(victim))
    )
    rates = simulate_attacks(plan_of(curator, EVERYBODY, EPSILON_EACH), list(map(has_it, chosen)))
    epsilon = 2 * EPSILON_EACH
    return Attack(
        everybody=EVERYBODY,
        but_one=everybody_but(victim),
        target=description(victim),
        answers=(everybody, but_one),
        difference=everybody - but_one,
        true_difference=1,
        targets=len(chosen),
        attacks=rates.attacks,
        exact_rate=rates.exact,
        private_rate=rates.private,
        coin_rate=0.5,
        bound=math.exp(epsilon) / (1 + math.exp(epsilon)),
        epsilon=epsilon,
        epsilon_simulated=rates.epsilon_charged,
        is_simulated=True,
    )


def simulate_attacks(plan: Plan, secrets: list[bool]) -> Rates:
    """Attack each secret `TIMES` times by the differencing attack of `tacit.attack`."""
    import numpy as np

    from tacit import Budget, attack
    from tacit.mechanisms.simulation import SeededSource
    from tacit.privacy.events import Repeated

    truths, attacks = np.array(secrets), TIMES * len(secrets)
    budget = Budget(epsilon=math.ceil(2 * EPSILON_EACH * attacks))
    budget.charge(Repeated(plan.event, 2 * attacks), purpose="a simulated attack")
    source, noise = SeededSource(SEED), plan.price.noises[0]

    def rate(answer: Callable[[int], Any]) -> float:
        target = attack.QueryInterface(lambda asked: answer(int(truths[asked].sum())), truth=secrets)
        found = [
            attack.run("differencing", target, 2 * EPSILON_EACH, effort="full", seed=seed) for seed in range(TIMES)
        ]
        return fmean(one.measured("secrets_guessed_right").value for one in found)

    private = rate(lambda count: noise.release(count, source=source))
    return Rates(attacks, rate(lambda count: count), private, budget.spent().epsilon)


def targets(patients: list[Patient]) -> list[Patient]:
    """Return patients with a unique age, sex and town, half of whom have the diagnosis."""
    alike = Counter((one.age, one.sex, one.town) for one in patients)
    alone = [one for one in patients if alike[one.age, one.sex, one.town] == 1]
    with_it = [one for one in alone if has_it(one)]
    without = [one for one in alone if not has_it(one)]
    size = min(len(with_it), len(without))
    return [*with_it[:size], *without[:size]]


def has_it(patient: Patient) -> bool:
    """Return whether a patient has the diagnosis, which is the secret."""
    return patient.diagnosis == DIAGNOSIS


def everybody_but(victim: Patient) -> str:
    """Return the query that counts everybody but one patient."""
    return f"{EVERYBODY}\nAND NOT (age = {victim.age} AND sex = '{victim.sex}' AND town = '{victim.town}')"


def description(victim: Patient) -> str:
    """Return what the attacker knows about a patient."""
    return f"a {'woman' if victim.sex == 'F' else 'man'} aged {victim.age} from {victim.town}"
