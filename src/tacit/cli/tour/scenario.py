"""What the analyst asks of the clinic: a question, the same one again, and one that is too dear.

Every step returns what was asked, what came back, what is true and what it cost; how that looks is left to `display`.
The true values are counted from the invented people, never asked of the curator.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
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
TOO_DEAR: Final = "SELECT diagnosis, SUM(cost) AS total FROM visits GROUP BY diagnosis"
TOO_DEAR_EPSILON: Final = 1.0


@dataclass(frozen=True, slots=True)
class Cell:
    """A private number beside the true one, and between what the number without noise lies, 95 times in 100."""

    answer: float
    low: float
    high: float
    truth: float


@dataclass(frozen=True, slots=True)
class Item:
    """One part of a price: what is measured, with which noise, for which epsilon."""

    measures: str
    noise: str
    epsilon: float | None
    """None for Gaussian noise, which has no epsilon of its own."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A question and its answer: for each ward its numbers by their names, and what they cost, item by item."""

    sql: str
    rows: Mapping[str, Mapping[str, Cell]]
    items: tuple[Item, ...]
    previewed: float
    epsilon: float
    left: float
    """What the analyst may still spend."""


@dataclass(frozen=True, slots=True)
class Again:
    """What the same question gave, asked once more."""

    is_same: bool
    epsilon: float
    left: float


@dataclass(frozen=True, slots=True)
class Refused:
    """A question for which not enough is left: the error's own words, and what would fit."""

    sql: str
    code: str
    message: str
    asked: float
    fits: float | None
    left: float


def protected(patients: int) -> str:
    """Say who is protected, and how well."""
    return (
        f"Each of the {patients:,} patients, with all their visits: an answer of cost ε {EPSILON:g} "
        f"is at most {math.exp(EPSILON):.2f} times as likely if any one of them is in the data than if not, and the "
        "other way round."
    )


def first_answer(curator: Curator, patients: list[Patient]) -> Answered:
    """Ask the question as the analyst."""
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
    return Answered(SQL, rows, tuple(items), preview.epsilon, release.cost.epsilon, left(curator))


def ask_again(curator: Curator, first: Answered) -> Again:
    """Ask the same question once more."""
    release = curator.sql(SQL, EPSILON, analyst=ANALYST)
    known = [[row["ward"], row["patients"], row["mean_cost"]] for row in release.rows]
    before = [[ward, cells["patients"].answer, cells["mean_cost"].answer] for ward, cells in first.rows.items()]
    return Again(known == before, release.cost.epsilon, left(curator))


def ask_too_much(curator: Curator) -> Refused:
    """Ask for more than is left, and return the refusal."""
    try:
        curator.sql(TOO_DEAR, TOO_DEAR_EPSILON, analyst=ANALYST)
    except BudgetExceeded as refusal:
        fits = refusal.fits.epsilon if refusal.fits is not None else None
        return Refused(TOO_DEAR, refusal.code, refusal.message, TOO_DEAR_EPSILON, fits, left(curator))
    raise AssertionError("the ledger admitted more than the analyst's budget holds")


def plan_of(curator: Curator, sql: str, epsilon: float) -> Plan:
    """Return the priced plan by which the curator answers a question of the analyst."""
    from tacit.query import QuerySpec

    return curator.queries().plan(QuerySpec.of_plan(sql, epsilon, {}, ANALYST))


def true_values(patients: list[Patient]) -> dict[str, dict[str, Any]]:
    """Count what the question is about, ward by ward, without noise."""
    found = {}
    for ward in sorted(WARDS):
        theirs = [one for one in patients if one.ward == ward]
        costs = [cost for one in theirs for cost, _ in one.visits]
        found[ward] = {"patients": len(theirs), "mean_cost": fmean(costs)}
    return found


def left(curator: Curator) -> float:
    """Return what the analyst may still spend."""
    return curator.budget(TABLE, ANALYST).remaining().epsilon


def _cell(answer: float, span: Interval | None, truth: float) -> Cell:
    low, high = span if span is not None else (-math.inf, math.inf)
    return Cell(answer, low, high, truth)


DIAGNOSIS: Final = "depression"
EPSILON_EACH: Final = 0.25
TIMES: Final = 10
"""How often each target is attacked, each time with other noise."""

SEED: Final = 1854
EVERYBODY: Final = f"SELECT COUNT(DISTINCT patient_id) AS n FROM visits\nWHERE diagnosis = '{DIAGNOSIS}'"


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack for real, and how often many simulated ones guess right."""

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
    """What the two questions about one target cost."""
    epsilon_simulated: float
    """What all the simulated ones were charged, in a budget of their own."""
    is_simulated: bool


@dataclass(frozen=True, slots=True)
class Rates:
    """How often the attack guesses right, with exact and with private answers, and what the latter were charged."""

    attacks: int
    exact: float
    private: float
    epsilon_charged: float


def differencing(curator: Curator, patients: list[Patient]) -> Attack:
    """Attack one patient for real, and every target many times in a simulation."""
    chosen = targets(patients)
    victim = next(one for one in chosen if has_it(one))
    everybody, but_one = (
        int(curator.sql(sql, EPSILON_EACH, analyst=ANALYST).rows[0]["n"]) for sql in (EVERYBODY, everybody_but(victim))
    )
    rates = simulated(plan_of(curator, EVERYBODY, EPSILON_EACH), sum(map(has_it, patients)), list(map(has_it, chosen)))
    epsilon = 2 * EPSILON_EACH
    return Attack(
        everybody=EVERYBODY,
        but_one=everybody_but(victim),
        target=in_words(victim),
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


def simulated(plan: Plan, count: int, secrets: list[bool]) -> Rates:
    """Attack everybody whose secret is given, `TIMES` times each; `count` have the diagnosis in all."""
    import numpy as np

    from tacit import Budget
    from tacit.mechanisms.simulation import SeededSource
    from tacit.privacy.events import Repeated

    truths = np.repeat(np.array(secrets), TIMES)
    everybody, but_one = np.full(len(truths), count), count - truths.astype(np.int64)
    budget = Budget(epsilon=math.ceil(2 * EPSILON_EACH * len(truths)))
    budget.charge(Repeated(plan.event, 2 * len(truths)), purpose="a simulated attack")
    source, noise = SeededSource(SEED), plan.price.noises[0]
    private = _right(noise.release(everybody, source=source), noise.release(but_one, source=source), truths)
    return Rates(len(truths), _right(everybody, but_one, truths), private, budget.spent().epsilon)


def targets(patients: list[Patient]) -> list[Patient]:
    """Return patients who are alone with their age, sex and town: as many who have the diagnosis as who do not."""
    alike = Counter((one.age, one.sex, one.town) for one in patients)
    alone = [one for one in patients if alike[one.age, one.sex, one.town] == 1]
    with_it = [one for one in alone if has_it(one)]
    without = [one for one in alone if not has_it(one)]
    size = min(len(with_it), len(without))
    return [*with_it[:size], *without[:size]]


def has_it(patient: Patient) -> bool:
    """Whether a patient has the diagnosis: the secret."""
    return patient.diagnosis == DIAGNOSIS


def everybody_but(victim: Patient) -> str:
    """Return the question about everybody but one."""
    return f"{EVERYBODY}\nAND NOT (age = {victim.age} AND sex = '{victim.sex}' AND town = '{victim.town}')"


def in_words(victim: Patient) -> str:
    """Return what the attacker knows of somebody."""
    return f"the {'woman' if victim.sex == 'F' else 'man'} of {victim.age} from {victim.town}"


def _right(everybody: Any, but_one: Any, truths: Any) -> float:
    """Return how often the difference tells the secret: who lies nearer to 1 than to 0 is taken to have it."""
    return float(((everybody - but_one > 0.5) == truths).mean())
