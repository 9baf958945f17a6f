"""Permits, reservations, and the scopes that are charged for them.

A permit says that an event was admitted and charged; without one nothing private is released. It is a plain record:
holding one proves nothing to the ledger, which looks its id up in its own journal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from tacit.accounting.conversions import Cost
from tacit.ledger.amounts import Amounts
from tacit.privacy import strict_json
from tacit.privacy.errors import InvalidInput, LedgerCorrupt, WrongType
from tacit.privacy.events import Event
from tacit.privacy.texts import exact_text

ScopeKind: TypeAlias = Literal["dataset", "analyst", "epoch"]
_KINDS: Final = ("dataset", "analyst", "epoch")


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """The holder of a cap: a data set, an analyst (or group) on it, or an epoch of it."""

    dataset: str
    kind: ScopeKind = "dataset"
    name: str = ""

    def __post_init__(self) -> None:
        for part in ("dataset", "kind", "name"):
            text = getattr(self, part)
            if not isinstance(text, str):
                raise WrongType("the data set, kind and name of a scope must be texts", name="scope")
            if type(text) is not str:
                object.__setattr__(self, part, exact_text(text))

    @property
    def key(self) -> str:
        """The scope as a text, unique among scopes."""
        return _key(self)

    @classmethod
    def from_key(cls, key: str) -> Scope:
        """Return the scope of a `key`."""
        return _scope(key)

    def __str__(self) -> str:
        if self.kind == "dataset":
            return self.dataset
        return f"{self.name} on {self.dataset}" if self.kind == "analyst" else f"epoch {self.name} of {self.dataset}"


@lru_cache(maxsize=10_000)
def _key(scope: Scope) -> str:
    return json.dumps([scope.dataset, scope.kind, scope.name], ensure_ascii=True, separators=(",", ":"))


@lru_cache(maxsize=10_000)
def _scope(key: str) -> Scope:
    try:
        dataset, kind, name = strict_json.loads(key)
        scope = Scope(dataset, kind, name)
        f"{dataset}{name}".encode()  # raises for a lone surrogate
    except (InvalidInput, TypeError, ValueError):
        raise LedgerCorrupt(f"{key!r} is not a valid scope key", differs="scope") from None
    if kind not in _KINDS or scope.key != key:
        raise LedgerCorrupt(f"{key!r} is not a valid scope key", differs="scope")
    return scope


@dataclass(frozen=True, slots=True)
class Permit:
    """The right to run one event, already charged to every scope in `charged`."""

    id: str
    event: Event
    cost: Cost
    issued_at: datetime
    dataset: str = ""
    purpose: str = ""
    charged: Mapping[Scope, Amounts] = field(default_factory=dict, hash=False)
    is_refundable: bool = False
    """Whether steps that are not run can be refunded (`Ledger.refund`)."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that were charged."""
        return tuple(self.charged)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A permit that was not committed: its run is under way or died; it stays charged either way."""

    permit: Permit
    note: str


def cost_to_dict(cost: Cost) -> dict[str, Any]:
    """Return a cost as plain objects; infinity, which JSON does not have, is None."""
    numbers = {"delta": cost.delta, "epsilon": cost.epsilon, "rho": cost.rho}
    return {name: number if math.isfinite(number) else None for name, number in numbers.items()}


def cost_from_dict(record: Mapping[str, float | None]) -> Cost:
    """Return the cost that `cost_to_dict` wrote."""
    numbers = {name: math.inf if number is None else float(number) for name, number in record.items()}
    return Cost(**numbers)
