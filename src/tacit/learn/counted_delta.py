"""The delta that a training takes of its budget: one rule for arrays, tables, searches, PATE and DP-SGD.

A budget keeps a tenth of its delta for events that state one (`ledger.accounts`). A training takes the delta that is
stated, and at most a half of what each cap that is charged has left of that tenth: one with (epsilon, d) for d below
delta also has (epsilon, delta). So trainings never use the tenth up, after which all later epsilons would be counted as
rhos, and what is taken falls neither when more is stated nor when more is left.

A fit that states no delta takes a slice of it (`ledger.accounts.SLICES`) by the same rule, and none where less than a
thousandth of the slice would be left for it. Where the plain sum is exceeded already, an event with a distribution of
its losses costs no delta, and still takes at most a half of the tenth of each cap: its (epsilon, delta) is said of the
training. One of which only (epsilon, delta) is known takes at most a half of what the account has left that is open.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from tacit.ledger import Budget
from tacit.ledger.accounts import DELTA_SHARE, WIDENING, steps
from tacit.privacy.errors import BudgetExceeded
from tacit.privacy.events import Converted, Event
from tacit.privacy.figures import at_least, at_most
from tacit.privacy.numbers import rounded_down, rounded_up
from tacit.privacy.warnings import CountedDeltaWarning

SHARE_OF_LEFT: Final = Fraction(1, 2)
STATED_MIN: Final = Fraction(1, 10**6)
"""The least share of a stated delta that a training is counted at; with less it is refused."""
SLICE_MIN: Final = Fraction(1, 1000)
"""The least share of a slice that a fit takes that states no delta; with less it has purely private noise."""
DIGITS: Final = 4

MORE_NOISE: Final = "with somewhat more noise"
HIGHER_EPSILON: Final = "at a somewhat higher epsilon"


def counted_delta(budget: Budget, stated: float, *, is_approximate: bool = False) -> float:
    """Return the delta at which a training is counted that states `stated`; raise BudgetExceeded for a negligible one.

    Of a budget without a delta it is `stated`: the ledger refuses the training, unless it turns out to be pure.
    `is_approximate` is for a training of which only (epsilon, delta) is known (`events.Approximate`).
    """
    most = _most(budget, is_approximate=is_approximate)  # first: it raises NotPermitted for an analyst without a cap
    if not budget.cap.delta:
        return stated
    found = min(stated, most)
    if found < STATED_MIN * Fraction(stated):
        whose = f" for {budget.name}" if budget.name else ""
        raise BudgetExceeded(
            f"asked for delta {at_most(stated, DIGITS)}, {at_least(2 * found, DIGITS)} is left{whose} of the tenth for "
            "stated deltas; leave delta= out for purely private noise, where that is possible, or use another budget",
            remaining=budget.remaining(),
            scope=budget.name,
        )
    return found


def default_delta(budget: Budget, slice: float) -> float:
    """Return the delta of a fit that states none: a slice, less where less is left, or 0 for purely private noise."""
    found = min(slice, _most(budget)) if slice else 0.0
    return found if found >= SLICE_MIN * Fraction(slice) else 0.0


def budget_delta(stated: float) -> float:
    """Return the least delta of an unused budget that counts a training at `stated`."""
    return rounded_up(Fraction(stated) / (DELTA_SHARE * SHARE_OF_LEFT))


def delta_of(event: Event) -> float | None:
    """Return the delta at which a fit is counted; None for purely private noise, and for a rho."""
    return max((one.delta for one in steps(event) if isinstance(one, Converted)), default=None)


def charged_deltas(events: Mapping[Event, int], most: float) -> list[float]:
    """Return the deltas up to one that earlier trainings were counted at, the greatest first."""
    found = {delta for event in events if (delta := delta_of(event)) is not None and delta <= most}
    return sorted(found, reverse=True)


def warn_if_less(counted: float | None, stated: float | None, effect: str = MORE_NOISE) -> None:
    """Warn if a training is counted at less than it states."""
    if counted is None or stated is None or counted >= stated:
        return
    said, now, needed = (at_most(one, DIGITS) for one in (stated, counted, budget_delta(stated)))
    warnings.warn(
        f"the budget counts this training at delta {now}, not {said}, {effect}; a budget with a delta of at least "
        f"{needed} counts it as stated",
        CountedDeltaWarning,
        stacklevel=_callers_level(),
    )


def counted_line(counted: float | None, stated: float | None) -> str:
    """Return what previews and cards say of a training that is counted at less than it states, or an empty text."""
    if counted is None or stated is None or counted >= stated:
        return ""
    now, said = at_most(counted, DIGITS), at_most(stated, DIGITS)
    return (
        f"counted at delta {now}, not at the stated {said}: a training takes at most half of what its budget has left "
        "for stated deltas"
    )


def card_sentence(counted: float | None, stated: float | None) -> str:
    """Return the same as a sentence that follows another one, or an empty text."""
    line = counted_line(counted, stated)
    return f" It is {line}." if line else ""


def _most(budget: Budget, *, is_approximate: bool = False) -> float:
    """Return the most that a training takes; widened as caps are, so that 20 times a decimal is enough.

    The cap of a payer lies within that of the data set, so its tenth is the least of all that are charged.
    """
    left = budget.stated_delta_left()
    if is_approximate:
        open_left = budget.remaining().delta  # that of a measure alone is 0, also while the sum is open
        left = min(left, open_left) if open_left or left == math.inf else left
    tenth = DELTA_SHARE * Fraction(budget.cap.delta)
    found = tenth if left == math.inf else min(Fraction(left), tenth)
    return rounded_down(found * SHARE_OF_LEFT * (1 + WIDENING)) if found else 0.0


def _callers_level() -> int:
    """Return the stack level, for `warn_if_less`, of the first caller outside of tacit and scikit-learn."""
    level, frame = 2, sys._getframe(2)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in ("tacit", "sklearn"):
        level, frame = level + 1, frame.f_back
    return level
