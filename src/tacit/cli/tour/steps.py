"""What the analyst asks of the clinic: a question, the same one again, and one that is too dear.

Every step returns what was asked, what came back, what is true and what it cost; how that looks is left to `screen`.
The true values are counted from the invented people, never asked of the curator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.tour.clinic import WARDS, Patient
from tacit.cli.tour.setting import ANALYST, TABLE
from tacit.privacy.errors import BudgetExceeded

if TYPE_CHECKING:
    from tacit.curator import Curator
    from tacit.mechanisms.mechanism import Interval
    from tacit.query import Plan

LEVEL: Final = 0.95
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
    for row, spans in zip(release.rows, release.intervals(LEVEL), strict=True):
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
    from tacit.curator.road import Asked
    from tacit.query import Settings, Target

    return curator.road().plan(Asked(sql, Target(epsilon=epsilon), Settings(), ANALYST))


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
