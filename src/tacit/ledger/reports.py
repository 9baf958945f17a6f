"""What was admitted, and what it comes to: three numbers, each with what it is worth.

    guaranteed   the cap: kept by the filter whatever was asked, in whatever order, whenever the run stops
    bound        by loss distributions (PLD), from below and above; valid if parameters did not depend on answers
    meaning      what an attacker gains, under the same condition as the bound

Only the first decides anything. The other two are computed when they are first read, and may take seconds; they are
None where they cannot be computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np

from tacit.accounting import Meaning, epsilon, meaning
from tacit.accounting.bounds import Bound, Cost
from tacit.ledger.accounts import FAILURES, Measured
from tacit.ledger.amounts import at_least, up
from tacit.ledger.caps import Cap
from tacit.privacy.events import Composed, Event, Repeated, ZeroConcentrated
from tacit.privacy.figures import at_most
from tacit.privacy.relations import Relation

Computed = TypeVar("Computed")

DISTINCT_MAX: Final = 1024
"""How many different events are kept one by one; the rest is kept as its total rho."""

LABELS: Final = {
    "guaranteed": "guaranteed by the filter, whatever was asked and whenever it stops",
    "bound": "valid if parameters did not depend on answers",
    "meaning": "an attacker's best, valid if parameters did not depend on answers",
}


class Tally:
    """Admitted events, equal ones counted together; its size does not grow with the number of admissions."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self._counts: dict[Event, int] = {}
        self._rho_units = 0
        self.unlisted = 0
        """How many events are in no entry of `events`, because they have no rho to be added up."""

    def add(self, measured: Measured, count: int = 1) -> None:
        """Count an event."""
        event = measured.event
        if event in self._counts or len(self._counts) < DISTINCT_MAX:
            self._counts[event] = self._counts.get(event, 0) + count
            return
        rho, delta = measured.concentrated
        units = up(rho)
        if units is None or delta:
            self.unlisted += count
        else:
            self._rho_units += count * units

    def copy(self) -> Tally:
        """Return the same counts, to be read while others go on counting."""
        other = Tally(self._relation)
        other._counts, other._rho_units, other.unlisted = dict(self._counts), self._rho_units, self.unlisted
        return other

    @property
    def events(self) -> dict[Event, int]:
        """Events with how often each was admitted; beyond the limit, one event with the total rho of the rest."""
        if not self._rho_units:
            return dict(self._counts)
        return {**self._counts, ZeroConcentrated(at_least(self._rho_units), under=self._relation): 1}


@dataclass(frozen=True)
class Report:
    """What a budget has admitted so far and what that means."""

    scope: str
    cap: Cap
    spent: Cost
    remaining: Cost
    events: Mapping[Event, int]
    unlisted: int
    epsilon_min: float = 0.0
    """The least epsilon that a release costs."""
    _computed: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def guaranteed(self) -> Cost:
        """What the filter keeps whenever the run stops."""
        return Cost(self.cap.epsilon, self.cap.delta, self.spent.rho)

    @property
    def event(self) -> Event | None:
        """Everything that was admitted as one event, or None where nothing was or not all of it is known."""
        if self.unlisted or not self.events:
            return None
        parts = [Repeated(event, count) if count > 1 else event for event, count in self.events.items()]
        return Composed(tuple(parts))

    @property
    def bound(self) -> Bound | None:
        """Epsilon at the cap's delta, enclosed; valid if parameters did not depend on answers."""
        return self._once("bound", lambda whole: epsilon(whole, self.cap.delta))

    @property
    def meaning(self) -> Meaning | None:
        """What an attacker gains; valid if parameters did not depend on answers."""
        return self._once("meaning", lambda whole: meaning(whole, self.cap.delta))

    def _once(self, name: str, compute: Callable[[Event], Computed]) -> Computed | None:
        if name not in self._computed:
            whole = self.event
            self._computed[name] = None if whole is None else _attempted(lambda: compute(whole))
        computed: Computed | None = self._computed[name]
        return computed

    def __str__(self) -> str:
        at_delta = f"at delta {self.cap.delta:g}"
        lines = [f"epsilon {self.cap.epsilon:g} {at_delta}: {LABELS['guaranteed']}"]
        if self.epsilon_min:
            lines.append(f"a release costs at least epsilon {at_most(self.epsilon_min, 4)}")
        if self.bound is not None:
            lower, upper, _ = self.bound
            lines.append(f"epsilon between {lower:.4g} and {upper:.4g} {at_delta}: {LABELS['bound']}")
        known = self.meaning
        if known is not None and (sentence := _attempted(lambda: known.sentence)) is not None:
            lines.append(f"{sentence} ({LABELS['meaning']})")
        return "\n".join(lines)


def _attempted(compute: Callable[[], Computed]) -> Computed | None:
    """Return what is computed, or None where arithmetic fails."""
    try:
        with np.errstate(all="ignore"):
            return compute()
    except FAILURES:
        return None
