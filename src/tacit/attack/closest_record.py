"""Membership in synthetic data by the distance to the closest synthetic record (Hilprecht et al. 2019).

A generator that memorises puts synthetic records nearer to its real records than to others of the same population. The
distance is Gower's: the mean over columns of the difference, as a share of the column's range, or of 0 and 1 for values
that are no numbers. A column is of numbers, or of dates, if most of its cells are, also as texts; its other cells are
missing.

The least epsilon that is noticed is measured on exact copies of records, each published by randomized response about
whether it was used. Records that were altered, or that tell in another way, may need a greater one.

Fair coins: of k records, n' ~ Binomial(k, 1/2) are drawn from the real ones and k - n' from the control. If both are
random parts of one population, each of the k is real by an independent fair coin, and the bound of one run holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, Final

import numpy as np
from scipy import stats

from tacit.attack.canary_audit import CANARIES_MIN, audited_in_one_run
from tacit.attack.confidence import best_guesses
from tacit.attack.finding import ThreatModel
from tacit.attack.kit import Outcome, Setting, attack
from tacit.attack.power import accuracy
from tacit.attack.targets import DoesNotFit, Mask, Numbers
from tacit.attack.training_targets import Synthetic

TOO_MANY: Final = 1e-9
"""The probability that more real or control records are drawn than there are; they are then drawn again."""
BLOCK: Final = 2**20
"""How many distances are held at a time."""
ASSUMED: Final = (
    "real and control records are random parts of one population; the number of real records is fixed, and exchanging "
    "one costs up to twice the epsilon of adding one"
)
COPIES: Final = (
    "the attack notices copies and near copies of records; synthetic records that tell of the real ones in another way "
    "may go unnoticed, and the least epsilon speaks of exact copies"
)
COMPARED_MAX: Final = 1_000
"""Among how many records copies are simulated for the least epsilon that is noticed."""
SIMULATED: Final = 400
"""How many guesses about copies are simulated at least, at one epsilon."""


@attack(
    "closest_record",
    Synthetic,
    paper="Hilprecht, Haerterich, Bernau 2019; Houssiau et al. 2022 (TAPAS); one run: Steinke, Nasr, Jagielski 2023",
    summary="whether synthetic records lie nearer to the real records than to others",
)
def measure_closeness(target: Synthetic, setting: Setting) -> Outcome:
    """Guess which records were used by their distance to the closest synthetic record."""
    count = min(_drawable(min(target.real.size, target.control.size)), setting.scaled(1_000, 4_000, 20_000))
    if count < CANARIES_MIN:
        raise DoesNotFit("closest_record needs more real and control records", name="control")
    drawn = int(setting.random.binomial(count, 0.5))
    while drawn > target.real.size or count - drawn > target.control.size:
        drawn = int(setting.random.binomial(count, 0.5))
    (real, synthetic, control), is_text = _columns(target)
    chosen = [
        setting.random.choice(len(one), size, replace=False) for one, size in ((real, drawn), (control, count - drawn))
    ]
    records = np.concatenate([real[chosen[0]], control[chosen[1]]])
    compared = records[setting.random.permutation(count)[:COMPARED_MAX]]
    return audited_in_one_run(
        -_closest(records, synthetic, is_text),
        np.arange(count) < drawn,
        setting,
        (ASSUMED, COPIES),
        share=_share_of_copies(_distances(compared, compared, is_text), count),
        threat=ThreatModel("the synthetic records", "all columns of the records asked about", 0),
        planted_scores=-_closest(records, real[chosen[0]], is_text),
        planted_leak="a copy of the real records",
    )


def _share_of_copies(distances: Numbers, count: int) -> Callable[[float, int], float]:
    """Return the share of right guesses, by epsilon and their number, about records that are copied or not.

    Whether a record was used is drawn by a fair coin; its copy is published with the probability of randomized
    response. `distances` are those between some of `count` records.
    """

    def share(epsilon: float, guesses: int) -> float:
        random, compared, right = np.random.default_rng(0), len(distances), 0
        each = max(1, round(guesses * compared / count))
        times = math.ceil(SIMULATED / each)
        for _ in range(times):
            used = random.integers(0, 2, compared).astype(bool)
            copied = used == (random.random(compared) < accuracy(epsilon))
            scores = -distances[:, copied].min(axis=1) if copied.any() else np.zeros(compared)
            chosen, guessed = best_guesses(scores, each)
            right += int((used[chosen] == guessed).sum())
        return right / (times * each)

    return share


def _drawable(least: int) -> int:
    """Return how many records can be drawn by fair coins if there are `least` of either kind."""
    found = 2 * least
    while found > 0 and stats.binom.sf(least, found, 0.5) > TOO_MANY:
        found = min(found - 1, int(found - math.sqrt(found) / 4))
    return found


def _columns(target: Synthetic) -> tuple[list[Numbers], Mask]:
    """Return real, synthetic and control records as rows of numbers, and which columns are of texts.

    Numbers are shares of the range, texts a code for each value. A number that is missing or not finite is NaN.
    """
    parts = (target.real, target.synthetic, target.control)
    found, is_text = [np.empty((one.size, len(target.real.columns))) for one in parts], []
    for place, name in enumerate(target.real.columns):
        cells = [one for records in parts for one in records[name].tolist()]
        numbers = _numbers(cells)
        is_text.append(numbers is None)
        if numbers is None:
            codes: dict[Any, int] = {}
            numbers = np.array([codes.setdefault(_code(one), len(codes)) for one in cells], dtype=np.float64)
        else:
            known = numbers[~np.isnan(numbers)] if not np.isnan(numbers).all() else np.zeros(1)
            low, high = float(known.min()) / 2, float(known.max()) / 2  # halves, whose difference is finite
            numbers = (numbers / 2 - low) / ((high - low) or 1.0)
        for matrix, part in zip(found, np.split(numbers, np.cumsum([one.size for one in parts])[:-1]), strict=True):
            matrix[:, place] = part
    return found, np.array(is_text)


def _numbers(cells: list[Any]) -> Numbers | None:
    """Return a column as numbers if most cells that are not missing are numbers, or dates; otherwise None."""
    stated = sum(not (one is None or (isinstance(one, str) and not one.strip())) for one in cells)
    for read in (_number, _moment):
        found = np.array([read(one) for one in cells], dtype=np.float64)
        found[~np.isfinite(found)] = math.nan
        if 2 * np.count_nonzero(~np.isnan(found)) > stated or not stated:
            return found
    return None


def _number(cell: Any) -> float:
    """Return a number, or a text that is one, as a float; NaN for anything else, and for what no float holds."""
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    if isinstance(cell, bool | np.bool_) or not isinstance(cell, Real | Decimal | str):
        return math.nan
    with suppress(ValueError, OverflowError):
        return float(cell)
    return math.nan


def _moment(cell: Any) -> float:
    """Return a date or a time, or a text that is one in the form of ISO 8601, in seconds; NaN for anything else."""
    with suppress(ValueError, OverflowError):
        found = datetime.fromisoformat(cell.strip()) if isinstance(cell, str) else cell
        if isinstance(found, np.datetime64):
            return float(found.astype("datetime64[us]").astype(np.int64)) / 1e6
        if isinstance(found, datetime):
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        if isinstance(found, date):
            return 86_400.0 * (found.toordinal() - date(1970, 1, 1).toordinal())
    return math.nan


def _code(cell: Any) -> Any:
    return cell.strip() if isinstance(cell, str) else (type(cell).__name__, str(cell))


def _closest(records: Numbers, among: Numbers, is_text: Mask) -> Numbers:
    """Return the Gower distance of each record to the closest of others."""
    if not len(among):
        return np.zeros(len(records))
    step = max(1, BLOCK // len(among))
    starts = range(0, len(records), step)
    return np.concatenate([_distances(records[one : one + step], among, is_text).min(axis=1) for one in starts])


def _distances(records: Numbers, among: Numbers, is_text: Mask) -> Numbers:
    """Return the Gower distance of each record to each of others."""
    distance = np.zeros((len(records), len(among)))
    for place, differs in enumerate(is_text):
        gap = np.abs(records[:, place, None] - among[None, :, place])
        if differs:
            gap = np.minimum(gap, 1.0)
        elif np.isnan(gap).any():
            alike = np.isnan(records[:, place, None]) & np.isnan(among[None, :, place])
            gap = np.where(alike, 0.0, np.nan_to_num(gap, nan=1.0))
        distance += gap
    return distance / len(is_text)
