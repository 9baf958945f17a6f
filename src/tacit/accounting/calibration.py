"""Calibration: the least noise for which an event costs at most a given epsilon at delta.

Gaussian noise has a closed form. For everything else, bounds on a coarse lattice bracket the parameter, and a secant
search over its logarithm with tight bounds ends on the safe side of the target.

Promise: `epsilon(make_event(parameter), delta).upper` of the returned parameter is at most the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from tacit.accounting.composition import WIDTH
from tacit.accounting.conversions import mu_for
from tacit.accounting.curves import check_supported, epsilon, exact_gaussian_mu
from tacit.privacy.errors import InvalidInput, OutOfRange, TacitError, WrongType
from tacit.privacy.events import Event
from tacit.privacy.numbers import inside_unit_interval, not_negative, positive

WASTE: Final = 5e-4
"""The relative distance by which the cost may stay below the target."""

ROUGH: Final = 0.2
FINE: Final = 0.002
"""The widths of bounds while the parameter is bracketed and while it is searched; all are valid upper bounds."""

PARAMETER_MIN, PARAMETER_MAX = 1e-9, 1e12
_EVALUATIONS_MAX: Final = 60


def calibrate(make_event: Callable[[float], Event], epsilon: float, delta: float) -> float:
    """Return the parameter at which `make_event(parameter)` costs `epsilon` at `delta`, and not more.

    The cost must be monotonic in the parameter: falling, as for a noise scale, or rising, as for an epsilon.
    """
    target, at = float(positive("epsilon", epsilon)), float(not_negative("delta", delta))
    if at:
        inside_unit_interval("delta", delta)
    make = _guarded(make_event)
    cost = _Cost(make, at)
    closed = _closed_form(make, target, at)
    if closed is not None and target * (1 - WASTE) <= cost(closed, WIDTH) <= target:
        return closed
    return _search(cost, target)


def _guarded(make_event: object) -> Callable[[float], Event]:
    """Return the caller's function with its exceptions turned into errors of tacit."""
    if not callable(make_event):
        raise WrongType("make_event must be a function from a parameter to an event", name="make_event")

    def make(parameter: float) -> Event:
        try:
            event: Event = make_event(parameter)
        except TacitError:
            raise
        except Exception as error:
            raise InvalidInput(f"make_event({parameter:g}) failed: {error!r}", name="make_event") from error
        check_supported(event)
        return event

    return make


def _closed_form(make_event: Callable[[float], Event], target: float, delta: float) -> float | None:
    """Return the parameter for Gaussian noise whose mu is inversely proportional to it, otherwise None.

    The caller must check it: what holds at two parameters need not hold at the returned one.
    """
    first, second = (exact_gaussian_mu(make_event(parameter)) if delta else None for parameter in (1.0, 2.0))
    if first is None or second is None or not math.isclose(first, 2 * second, rel_tol=1e-9):
        return None
    return first / mu_for(target, delta) * (1 + 2.0**-40)


def _search(cost: _Cost, target: float) -> float:
    falls = cost(2.0, ROUGH) < cost(1.0, ROUGH)
    safe, unsafe = _bracket(cost, target, falls)
    at_safe, at_unsafe = cost(safe, ROUGH), cost(unsafe, ROUGH)
    while at_unsafe <= target * (1 + 2 * ROUGH) and (finely := cost(unsafe, FINE)) <= target:  # it only seemed unsafe
        safe, at_safe, unsafe = unsafe, finely, unsafe * (unsafe / safe)
        _check_range(unsafe)
        at_unsafe = cost(unsafe, ROUGH)
    while at_safe < target * (1 - WASTE) and abs(math.log(unsafe / safe)) > 1e-7:
        middle = _secant(safe, at_safe, unsafe, at_unsafe, target)
        at_middle = cost(middle, FINE)
        if at_middle <= target:
            safe, at_safe = middle, at_middle
        else:
            unsafe, at_unsafe = middle, at_middle
    while cost(safe, WIDTH) > target:  # on its own lattice the accountant may find a little more
        safe *= 1 + WASTE / 4 if safe > unsafe else 1 - WASTE / 4
    return safe


class _Cost:
    """The upper bound on epsilon at a parameter and a width, cached, with a limit on evaluations."""

    def __init__(self, make_event: Callable[[float], Event], delta: float) -> None:
        self._make_event, self._delta = make_event, delta
        self._found: dict[tuple[float, float], float] = {}

    def __call__(self, parameter: float, width: float) -> float:
        if (parameter, width) not in self._found:
            if len(self._found) == _EVALUATIONS_MAX:
                raise OutOfRange("no parameter was found at which the event meets the target; is its cost monotonic?")
            bound = epsilon(self._make_event(parameter), self._delta, width=width)
            self._found[parameter, width] = bound.upper
        return self._found[parameter, width]


def _bracket(cost: _Cost, target: float, falls: bool) -> tuple[float, float]:
    """Return a parameter that meets the target and one that does not, a factor of two apart."""
    parameter, factor = 1.0, 2.0 if falls else 0.5
    if cost(parameter, ROUGH) <= target:
        factor = 1 / factor
        while cost(parameter * factor, ROUGH) <= target:
            parameter *= factor
            _check_range(parameter)
        return parameter, parameter * factor
    while cost(parameter * factor, ROUGH) > target:
        parameter *= factor
        _check_range(parameter)
    return parameter * factor, parameter


def _check_range(parameter: float) -> None:
    if not PARAMETER_MIN < parameter < PARAMETER_MAX:
        raise OutOfRange("no parameter between 1e-9 and 1e12 meets the target", name="epsilon")


def _secant(safe: float, at_safe: float, unsafe: float, at_unsafe: float, target: float) -> float:
    """Return the secant step on logarithms towards a point just below the target, kept well inside the bracket."""
    aim = math.log(target * (1 - WASTE / 2))
    low, high = math.log(max(at_safe, 1e-300)), math.log(min(at_unsafe, 1e300))
    share = min(max((aim - low) / (high - low), 0.02), 0.98)
    return math.exp(math.log(safe) + share * (math.log(unsafe) - math.log(safe)))
