"""Messages of refusals for budget, in one sentence: what was asked, what is left and for whom, and what would fit.

Numbers are rounded against the reader: what was asked upwards, what is left downwards. So a number that is said to fit
does, and a refusal never shows two equal numbers. Differences beyond the fourteenth digit are rounded away first:
1 - 0.8 is shown as 0.2, and fits, because caps are widened by more than that (`accounts`).
"""

from __future__ import annotations

import math
import shlex
from typing import Final, Literal, TypeAlias

from tacit.accounting.closed_forms import pure_epsilon
from tacit.accounting.conversions import Cost
from tacit.ledger.permits import Scope
from tacit.ledger.rows import ScopeRow
from tacit.privacy.errors import BudgetExceeded, NotPriced, TooCheap, UnknownName
from tacit.privacy.events import Event
from tacit.privacy.figures import left_over, strictly_at_most
from tacit.privacy.units import Relation

DIGITS: Final = 6
Unit: TypeAlias = Literal["epsilon", "delta", "rho"]
DELTA: Final = "1e-7"
"""The delta that is proposed: below one in ten million."""


def refusal(
    asked: Cost,
    remaining: Cost,
    scope: Scope | str = "",
    to_delta: str = "",
    *,
    sum_left: tuple[float, float] | None = None,
    is_pure: bool = False,
    has_price: bool = True,
) -> BudgetExceeded:
    """Return the error for an event that no account of a scope's budget admits.

    `to_delta` says how a budget without a delta gets one (`way_to_delta`); `is_pure` says that it is one. `sum_left` is
    the epsilon and delta that the plain sum has left, for an event that states both (`events.Converted`): such an event
    is refused in epsilon, also where its noise is Gaussian. Without `has_price`, no account that is still open has a
    price for such an event, however small it is. An analyst is told how to ask for more.
    """
    if not has_price:
        unit: Unit = "epsilon"
        wanted, left = asked.epsilon, 0.0
    elif sum_left is not None and sum_left[0] > 0:
        unit = "epsilon" if asked.epsilon > sum_left[0] else "delta"
        wanted, left = getattr(asked, unit), sum_left[unit == "delta"]
    else:
        unit = _scarce_unit(asked, remaining)
        wanted, left = getattr(asked, unit), getattr(remaining, unit)
    at_delta = f" at delta {_up(asked.delta)}" if asked.delta > 0 and unit == "epsilon" else ""
    whose = f" for {scope}" if scope else ""
    way_out = f"{unit}={_down(left)} would fit" if left > 0 else "nothing more fits"
    if left <= 0 and remaining.epsilon > 0:
        way_out = f"purely private noise of epsilon={_down(remaining.epsilon)} would fit"
        if not has_price:
            way_out += ": leave delta= out, where that is possible, or use another budget"
    if is_pure and asked.delta > 0:
        way_out = f"this budget has no delta: leave delta= out, or {to_delta or 'give it one'}"
    elif unit == "epsilon" and sum_left is not None and asked.delta > sum_left[1]:
        way_out = f"epsilon={_down(left)} at delta={_down(sum_left[1])} would fit"
    if isinstance(scope, Scope) and scope.kind == "analyst":
        more = f"tacit budget request {shlex.quote(scope.dataset)} --epsilon E --reason TEXT"
        way_out += f"; to ask for more: {more}, or client.file_request"
    return BudgetExceeded(
        f"asked for {unit} {_up(wanted)}{at_delta}, {_down(left)} is left{whose}; {way_out}",
        asked=asked,
        remaining=remaining,
        fits=_fitting(remaining),
        scope=str(scope),
    )


def way_to_delta(row: ScopeRow) -> str:
    """Return how a budget or a cap without a delta gets one: the command that replaces it while nothing is charged."""
    scope, cap = row.scope, row.cap
    if not row.is_unspent or scope.kind == "epoch":
        return f"use another budget: the delta of {scope} cannot change any more, since something is charged to it"
    names = [scope.dataset] if scope.kind == "dataset" else [scope.name, scope.dataset]
    command = ["tacit", "budget", "set" if scope.kind == "dataset" else "analyst", *map(shlex.quote, names)]
    relation = [] if cap.relation is Relation.ADD_REMOVE else ["--relation", cap.relation.value]
    words = [*command, "--epsilon", f"{cap.epsilon:.15g}", "--delta", DELTA, *(relation * (scope.kind == "dataset"))]
    return f"give it a delta, since nothing is charged to it yet: {' '.join(words)}"


def not_priced(
    event: Event, asked: Cost, remaining: Cost, scope: Scope | str, filter_name: str, to_delta: str = ""
) -> NotPriced:
    """Return the error for an event that no account of the budget has a price for."""
    whose = f" of {scope}" if scope else ""
    pure = pure_epsilon(event)
    if math.isfinite(pure):  # it has a price, which is beyond all amounts
        whole = refusal(Cost(pure, 0.0, math.inf), remaining, scope)
        return NotPriced(
            f"no budget can pay so much: {whole.message}",
            asked=asked,
            remaining=remaining,
            fits=whole.fits,
            scope=str(scope),
        )
    way_out = (
        f"use noise that is purely private, such as Laplace, or {to_delta or 'a budget with delta above 0'}"
        if filter_name == "pure"
        else "use another mechanism, or a budget with the filter renyi"
    )
    return NotPriced(
        f"the {filter_name} filter{whose} has no price for {_named(event)}; {way_out}",
        asked=asked,
        remaining=remaining,
        fits=_fitting(remaining),
        scope=str(scope),
    )


def no_budget(scope: Scope) -> UnknownName:
    """Return the error for a scope that has no budget, with the command that creates one."""
    dataset, name = shlex.quote(scope.dataset), shlex.quote(scope.name)
    how = {
        "dataset": f"create one: tacit budget set {dataset} --epsilon 1 --delta 1e-7",
        "analyst": f"create one: tacit budget analyst {name} {dataset} --epsilon 1",
        "epoch": "add it with Ledger.add_epoch",
    }
    return UnknownName(f"{scope} has no budget; {how[scope.kind]}", name=scope.kind, value=scope.name or scope.dataset)


def too_cheap(dataset: str, epsilon_min: float) -> TooCheap:
    """Return the error for a release below the smallest price of a data set."""
    least = _up(epsilon_min)
    return TooCheap(
        f"a release from {dataset} costs at least epsilon {least}", accepted=f"ask for epsilon={least} or more"
    )


def _scarce_unit(asked: Cost, remaining: Cost) -> Unit:
    """Return the unit of a refusal: rho for Gaussian noise where any is left, otherwise epsilon or delta."""
    if asked.delta > 0 and remaining.rho > 0 and remaining.rho < asked.rho < math.inf:
        return "rho"
    return "epsilon" if asked.epsilon > remaining.epsilon else "delta"


def _fitting(remaining: Cost) -> Cost | None:
    return Cost(remaining.epsilon, 0.0, remaining.rho) if remaining.epsilon > 0 or remaining.rho > 0 else None


def _named(event: Event) -> str:
    return f"{'an' if event.kind[:1] in 'aeiou' else 'a'} {event.kind} event"


def _up(number: float) -> str:
    return strictly_at_most(_to_14_digits(number), DIGITS)


def _down(number: float) -> str:
    return left_over(number, DIGITS)


def _to_14_digits(number: float) -> float:
    return float(f"{number:.14g}")
