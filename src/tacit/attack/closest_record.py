"""Membership in synthetic data by the distance to the closest synthetic record (Hilprecht et al. 2019).

A generator that memorises puts synthetic records nearer to its real records than to others of the same population. The
distance is Gower's: the mean over columns of the difference, as a share of the column's range, or of 0 and 1 for values
that are no numbers.

Fair coins: of k records, n' ~ Binomial(k, 1/2) are drawn from the real ones and k - n' from the control. If both are
random parts of one population, each of the k is real by an independent fair coin, and the bound of one run holds.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tacit.attack.canary_audit import CANARIES_MIN, audited_in_one_run
from tacit.attack.finding import ThreatModel
from tacit.attack.kit import Outcome, Setting, attack
from tacit.attack.records import Records
from tacit.attack.targets import DoesNotFit, Numbers
from tacit.attack.training_targets import Synthetic

TOO_MANY: Final = 1e-9
"""The probability that more real or control records are drawn than there are; they are then drawn again."""
BLOCK: Final = 2**20
"""How many distances are held at a time."""
ASSUMED: Final = (
    "real and control records are random parts of one population; the number of real records is fixed, and exchanging "
    "one costs up to twice the epsilon of adding one"
)


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
    real, synthetic, control = _columns(target)
    chosen = [
        setting.random.choice(len(one), size, replace=False) for one, size in ((real, drawn), (control, count - drawn))
    ]
    records = np.concatenate([real[chosen[0]], control[chosen[1]]])
    is_text = _texts(target)
    return audited_in_one_run(
        -_closest(records, synthetic, is_text),
        np.arange(count) < drawn,
        setting,
        (ASSUMED,),
        threat=ThreatModel("the synthetic records", "all columns of the records asked about", 0),
        planted_scores=-_closest(records, real[chosen[0]], is_text),
        planted_leak="a copy of the real records",
    )


def _drawable(least: int) -> int:
    """Return how many records can be drawn by fair coins if there are `least` of either kind."""
    found = 2 * least
    while found > 0 and stats.binom.sf(least, found, 0.5) > TOO_MANY:
        found = min(found - 1, int(found - math.sqrt(found) / 4))
    return found


def _texts(target: Synthetic) -> NDArray[np.bool_]:
    """Return which columns hold anything but numbers."""
    parts = (target.real, target.synthetic, target.control)
    return np.array([not all(map(_is_number, _cells(name, *parts))) for name in target.real.columns])


def _cells(name: str, *parts: Records) -> list[Any]:
    return [one for records in parts for one in records[name].tolist()]


def _is_number(cell: Any) -> bool:
    return cell is None or (isinstance(cell, Real) and not isinstance(cell, bool))


def _columns(target: Synthetic) -> list[Numbers]:
    """Return real, synthetic and control records as rows of numbers: shares of the range, or a code for each value.

    A value that is missing or not finite is a code of its own, far from all numbers.
    """
    parts = (target.real, target.synthetic, target.control)
    found = [np.empty((one.size, len(target.real.columns))) for one in parts]
    for place, (name, is_text) in enumerate(zip(target.real.columns, _texts(target), strict=True)):
        cells = _cells(name, *parts)
        if is_text:
            codes: dict[Any, int] = {}
            numbers = np.array([codes.setdefault(_code(one), len(codes)) for one in cells], dtype=np.float64)
        else:
            numbers = np.array([math.nan if one is None else float(one) for one in cells])
            numbers[~np.isfinite(numbers)] = math.nan
            known = numbers[~np.isnan(numbers)] if not np.isnan(numbers).all() else np.zeros(1)
            low, high = float(known.min()) / 2, float(known.max()) / 2  # halves, whose difference is finite
            numbers = (numbers / 2 - low) / ((high - low) or 1.0)
        for matrix, part in zip(found, np.split(numbers, np.cumsum([one.size for one in parts])[:-1]), strict=True):
            matrix[:, place] = part
    return found


def _code(cell: Any) -> Any:
    return (type(cell).__name__, str(cell))


def _closest(records: Numbers, among: Numbers, is_text: NDArray[np.bool_]) -> Numbers:
    """Return the Gower distance of each record to the closest of others."""
    if not len(among):
        return np.zeros(len(records))
    found, step = [], max(1, BLOCK // len(among))
    for start in range(0, len(records), step):
        block = records[start : start + step]
        distance = np.zeros((len(block), len(among)))
        for place, differs in enumerate(is_text):
            gap = np.abs(block[:, place, None] - among[None, :, place])
            if differs:
                gap = np.minimum(gap, 1.0)
            elif np.isnan(gap).any():
                alike = np.isnan(block[:, place, None]) & np.isnan(among[None, :, place])
                gap = np.where(alike, 0.0, np.nan_to_num(gap, nan=1.0))
            distance += gap
        found.append(distance.min(axis=1))
    return np.concatenate(found) / len(is_text)
