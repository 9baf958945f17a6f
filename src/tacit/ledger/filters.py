"""Privacy filters: whether the next event may run, with parameters that may depend on all earlier answers.

A filter is an OR of accounts. An event is admitted if at least one account keeps its cap after adding it; every
account then adds it, admitted by it or not. Why an OR: one Laplace answer at epsilon 0.5 has a rho of 0.12, which the
zCDP account of (1, 1e-8) never admits, although the plain sum obviously does; a thousand small ones are the reverse.

Theorem. If each account j alone is a sound filter for (E, D_j), then the OR is sound for (E, D_1 + D_2 + ...).
Proof. Totals are never below what was run, so whenever the interaction ends at least one account has kept its cap with
all that was run. Split the transcripts by the first account that has. Amounts are not negative, so on part j account j
kept its cap at every earlier step too: there the interaction is, step by step, one that account j alone would have
admitted, and a transcript has the same probability in both. Hence, for neighbours P and P' and any set S of transcripts
with parts S_j, P(S_j) <= e^E P'(S_j) + D_j; adding up over j gives P(S) <= e^E P'(S) + D_1 + D_2 + ...

The proof needs only that what is counted is at least what was run. So a plan may be reserved and stopped early: an
account that counted it step by step gets the steps back that were not run, each worth what it was charged. The sum
often counts a plan as a whole, which costs it far less than step by step; it then gets nothing back, for what was run
is a part of what it counted. Which of the two it does is fixed when the plan is reserved: a choice that depends on
answers would not be covered.

Overlapping runs. Several reservations may be open at once, and their runs interleave: the proof above needs each
account to be sound for that too.

- A mechanism that answers once, its parameters fixed when it is reserved. A run that ends later equals one that ran
  when it was reserved and whose answer was handed over late: the analyst chooses the questions in between without it,
  which somebody who has every answer at once could do as well. Sequential adaptive composition covers that.
- A mechanism that is asked several times, with other questions in between: a session of the sparse vector technique, or
  training that is charged as a whole. Haney, Shoemate, Tian, Vadhan, Vyrros, Xu, Zhang 2023 (CCS, "Concurrent
  Composition for Interactive Differential Privacy with Adaptive Privacy-Loss Parameters"): every valid privacy filter
  for mechanisms that answer once is valid for the concurrent composition of interactive ones, if the loss is measured
  by (epsilon, delta), by f-DP or by Rényi divergence of a fixed order. What a plan is charged step by step needs only
  the first case: each step answers once.

      sum     (epsilon, delta)-DP
      gdp     f-DP, the trade-off function being that of N(0, 1) against N(mu, 1)
      renyi   Rényi divergence at the order of the cap
      zcdp    rho bounds the divergence at every order a by a rho, and one rule, that the rhos stay within the cap, is
              the filter at all of them: the theorem holds at each a, and so for rho. It says nothing of the deltas
              beside rho. They come from `Approximate` events alone, and those must be of mechanisms that answer once:
              here key selection and propose-test-release. An interactive mechanism of which no more is known than an
              (epsilon, delta) must not be charged to a zcdp budget.

`spent` is for display: the cost of the totals so far. What is promised, whenever the run stops, is the cap.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from tacit.accounting.conversions import Cost
from tacit.accounting.numerics import bisect
from tacit.ledger.accounts import (
    DELTA_SHARE,
    Account,
    ConcentratedAccount,
    GaussianAccount,
    Measured,
    RenyiAccount,
    SumAccount,
    least_units,
    steps,
)
from tacit.ledger.amounts import (
    Amount,
    Amounts,
    add_amounts,
    ceil_float,
    floor_float,
    floor_units,
    multiply_amounts,
    nearest_float,
    raise_to,
    subtract_amounts,
)
from tacit.ledger.caps import Cap
from tacit.privacy.errors import MixedRelations
from tacit.privacy.events import Converted, Event, Pure, ZeroConcentrated

_NAMED: Final[Mapping[str, Callable[[Cap], Account]]] = {
    "zcdp": ConcentratedAccount.of,
    "renyi": RenyiAccount.of,
    "gdp": GaussianAccount.of,
}


@dataclass(frozen=True, slots=True)
class Filter:
    """The accounts of a cap, of which at least one must keep its cap; the first is always the sum."""

    cap: Cap
    accounts: tuple[Account, ...]

    @property
    def nothing(self) -> Amounts:
        """The totals before the first charge."""
        return tuple((0,) * len(account.caps) for account in self.accounts)

    def counts(self, amounts: Amounts) -> bool:
        """Whether amounts have as many numbers as this filter's accounts."""
        if len(amounts) != len(self.accounts):
            return False
        pairs = zip(self.accounts, amounts, strict=True)
        return all(amount is None or len(amount) == len(account.caps) for account, amount in pairs)

    def price(self, measured: Measured, *, as_plan: bool = False) -> Amounts:
        """Return the price of an event in each account; with `as_plan`, such that steps can be refunded."""
        relation = measured.event.relation
        if relation is not self.cap.relation:
            raise MixedRelations(
                f"this budget counts {self.cap.relation} events, and the event is stated under {relation}; "
                f'state it under {self.cap.relation}, or make a budget for it with relation="{relation}"'
            )
        least = least_units(measured.event)
        whole = tuple(raise_to(account.price(measured), least) for account in self.accounts)
        if not as_plan:
            return whole
        stepped = self.stepwise(measured.event)
        return (_lesser(whole[0], stepped[0]), *stepped[1:])

    def stepwise(self, event: Event) -> Amounts:
        """Return the sum of the prices of an event's steps."""
        total = self.nothing
        for step, count in plan_steps(event).items():
            total = add_amounts(total, multiply_amounts(self.price(Measured(step)), count))
        return total

    def refund(self, plan: Event, reserved: Amounts, ran: Event) -> Amounts:
        """Return the refund of a plan of which `ran` was run: nothing in an account that priced it as a whole."""
        stepped, left = self.stepwise(plan), subtract_amounts(reserved, self.stepwise(ran))
        return tuple(
            more if amount == step else zero
            for amount, step, more, zero in zip(reserved, stepped, left, self.nothing, strict=True)
        )

    def admits(self, totals: Amounts, amounts: Amounts) -> bool:
        """Whether at least one account keeps its cap with these amounts added."""
        return any(map(_holds_with, self.accounts, totals, amounts))

    def has_open_price(self, totals: Amounts, amounts: Amounts) -> bool:
        """Whether an account that still keeps its cap has one of these amounts, admitted or not."""
        pairs = zip(self.accounts, totals, amounts, strict=True)
        return any(amount is not None and account.holds(total) for account, total, amount in pairs)

    def cost(self, measured: Measured, amounts: Amounts) -> Cost:
        """Return the cost to show for amounts: the epsilon and delta of the sum, and the event's rho."""
        rho, _ = measured.concentrated
        for account, amount in zip(self.accounts, amounts, strict=True):
            if amount is not None:
                return Cost(*account.guarantee(amount), rho)
        return Cost(math.inf, 0.0, rho)

    def spent(self, totals: Amounts) -> Cost:
        """Return the totals as a cost, by the account with the least epsilon."""
        accounts = tuple(zip(self.accounts, totals, strict=True))
        alive = [(account, total) for account, total in accounts if account.holds(total)]
        counted = [account.guarantee(total) for account, total in alive or accounts if total is not None]
        epsilon, delta = min(counted, default=(math.inf, self.cap.delta))
        if alive:
            epsilon, delta = min(epsilon, self.cap.epsilon), min(delta, self.cap.delta)
        return Cost(epsilon, delta, self._rho_spent(totals, epsilon))

    def remaining(self, totals: Amounts) -> Cost:
        """Return the greatest pure epsilon, up to the cap's, that is still admitted, and the rho left.

        The delta is what the same account has left for events that state one.
        """
        summed = self.sum_left(totals)

        def others_admit(epsilon: float) -> bool:
            amounts = self.price(Measured(Pure(epsilon, under=self.cap.relation)))
            return any(map(_holds_with, self.accounts[1:], totals[1:], amounts[1:]))

        epsilon = _greatest(summed, self.cap.epsilon, others_admit)
        is_of_sum = epsilon == summed and self.accounts[0].holds(totals[0])
        delta = self._delta_left(*((self.accounts[0], totals[0]) if is_of_sum else (self.accounts[-1], totals[-1])))
        return Cost(epsilon, delta, self._rho_left(totals, epsilon))

    def stated_delta_left(self, totals: Amounts) -> float:
        """Return what the sum has left of its part for deltas that events state; infinity where its cap is exceeded.

        An event then costs no delta: it is admitted by another account, or not at all.
        """
        account, total = self.accounts[0], totals[0]
        return self._delta_left(account, total) if account.holds(total) else math.inf

    def sum_left(self, totals: Amounts) -> float:
        """Return the epsilon that the sum has left.

        The widening of caps is not counted as left, but it makes the nearest float fit: 1 - 0.1 is shown as 0.9.
        """
        if (total := totals[0]) is None or not self.accounts[0].holds(total):
            return 0.0
        return nearest_float(max(floor_units(Fraction(self.cap.epsilon)) - total[0], 0))

    def _delta_left(self, account: Account, total: Amount) -> float:
        """Return what an account has left of its share of delta; those of one measure have none."""
        if total is None or len(total) < 2 or not account.holds(total):
            return 0.0
        share = floor_units(DELTA_SHARE * Fraction(self.cap.delta))
        return nearest_float(max(share - total[1], 0))  # fits, as in `sum_left`

    def _rho_left(self, totals: Amounts, epsilon: float) -> float:
        if self.cap.filter == "pure":
            return _rho_of(epsilon)
        account, total = self.accounts[1], totals[1]
        if not isinstance(account, ConcentratedAccount) or total is None or not account.holds(total):
            return 0.0

        def admits(rho: float) -> bool:
            return _holds_with(account, total, account.price(Measured(ZeroConcentrated(rho))))

        left = floor_float(account.caps[0] - total[0])
        nearly = left * (1 - 2**-40)
        return _greatest(nearly if admits(nearly) else 0.0, left, admits)

    def _rho_spent(self, totals: Amounts, epsilon: float) -> float:
        if self.cap.filter == "pure":
            return _rho_of(epsilon)
        if isinstance(self.accounts[1], ConcentratedAccount) and totals[1] is not None:
            return ceil_float(totals[1][0])
        return 0.0 if totals == self.nothing else math.inf


@lru_cache(maxsize=1024)
def filter_of(cap: Cap) -> Filter:
    """Return the filter of a cap; cached, because computing its limits takes a few milliseconds."""
    named = _NAMED.get(cap.filter)
    return Filter(cap, (SumAccount.of(cap), named(cap)) if named else (SumAccount.of(cap),))


def plan_steps(event: Event) -> Counter[Event]:
    """Return the events that are run one after another in a plan, also in one that is converted as a whole."""
    return steps(event.event if isinstance(event, Converted) else event)


def _lesser(one: Amount, other: Amount) -> Amount:
    if one is None or other is None:
        return one or other
    return min(one, other)


def _holds_with(account: Account, total: Amount, amount: Amount) -> bool:
    if total is None or amount is None:
        return False
    return account.holds(tuple(map(operator.add, total, amount)))


def _rho_of(epsilon: float) -> float:
    return Measured(Pure(epsilon)).concentrated[0]


def _greatest(low: float, high: float, admits: Callable[[float], bool]) -> float:
    """Return the greatest number up to `high` that is admitted, to fifteen digits, or `low` if nothing above it is."""
    if low >= high or admits(high):
        return max(low, high)
    if not admits(max(low * (1 + 2**-40), high * 2.0**-60)):
        return low
    return bisect(low, high, admits, 2.0**-50)[0]
