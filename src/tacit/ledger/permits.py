"""Permits, the scopes charged for them, and the size of the answers they admit.

A permit says that an event was admitted and charged; without one nothing private is released. It is a plain record:
holding one proves nothing to the ledger, which looks its id up in its own journal.

How large a released answer may be, decided before it is charged.

Promise: an answer whose size is public is refused when it is planned (`require_keepable`), and one whose size depends
on what is released keeps the parts that fit (`fitting`), so that `commit` never refuses an answer that was paid for.
Sizes are those of the written form, JSON in UTF-8, a comma behind each value. A plan predicts its own, once
(`answer_bytes` of a plan); None is a size that no plan knows, because values are selected.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Literal, Protocol, TypeAlias

from tacit.accounting.conversions import Cost
from tacit.ledger.accounts import Amounts
from tacit.privacy import strict_json
from tacit.privacy.errors import InvalidInput, LedgerCorrupt, TooWide, WrongType
from tacit.privacy.events import Event
from tacit.privacy.texts import exact_text

ScopeKind: TypeAlias = Literal["dataset", "analyst", "epoch"]
_KINDS: Final = ("dataset", "analyst", "epoch")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """What has a cap: a data set, an analyst (or group) on it, or an epoch of it."""

    dataset: str
    kind: ScopeKind = "dataset"
    name: str = ""

    def __post_init__(self) -> None:
        for part in ("dataset", "kind", "name"):
            text = getattr(self, part)
            if not isinstance(text, str):
                raise WrongType("a scope is named by texts: its data set, its kind and its name", name="scope")
            if type(text) is not str:
                object.__setattr__(self, part, exact_text(text))

    @property
    def key(self) -> str:
        """The scope as one text that no other scope has."""
        return _key(self)

    @classmethod
    def from_key(cls, key: str) -> Scope:
        """Read `key` back."""
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
        f"{dataset}{name}".encode()  # a lone surrogate is no text
    except (InvalidInput, TypeError, ValueError):
        raise LedgerCorrupt(f"{key!r} names no scope", differs="scope") from None
    if kind not in _KINDS or scope.key != key:
        raise LedgerCorrupt(f"{key!r} names no scope", differs="scope")
    return scope


@dataclass(frozen=True, slots=True)
class Permit:
    """The right to run one event, already paid for by every scope in `charged`."""

    id: str
    event: Event
    cost: Cost
    issued_at: datetime
    dataset: str = ""
    purpose: str = ""
    charged: Mapping[Scope, Amounts] = field(default_factory=dict, hash=False)
    is_plan: bool = False

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Who was charged."""
        return tuple(self.charged)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A permit that was never committed: its run is under way, or died; it stays charged either way."""

    permit: Permit
    note: str


def time_of(at_us: int) -> datetime:
    """Return the time that so many microseconds after the beginning of 1970 is, in UTC."""
    return _EPOCH + timedelta(microseconds=at_us)


def cost_to_dict(cost: Cost) -> dict[str, Any]:
    """Return a cost as plain objects; infinity, which JSON does not have, is null."""
    numbers = {"delta": cost.delta, "epsilon": cost.epsilon, "rho": cost.rho}
    return {name: number if math.isfinite(number) else None for name, number in numbers.items()}


def cost_from_dict(record: Mapping[str, float | None]) -> Cost:
    """Read a cost back."""
    numbers = {name: math.inf if number is None else float(number) for name, number in record.items()}
    return Cost(**numbers)


ANSWER_BYTES_MAX: Final = 64 * 2**20
INTEGER_BYTES: Final = len("-9223372036854775808,")
REAL_BYTES: Final = len("-1.7976931348623157e+308,")
FRAME_BYTES: Final = 2**20
"""What the names of the parts, learnt bounds and single texts take together, and more."""

NAMES_BYTES: Final = 4096
"""What an answer takes beside its numbers and keys as a rule, where a guess is enough."""


class StorageQuota(Protocol):
    """Who decides how much of the answers may be stored, beside what one of them may take."""

    def reserve(self, analyst: str | None, size: int) -> str:
        """Set so many bytes apart for an answer that is not charged yet, or raise."""

    def settle(self, reservation: str, size: int) -> None:
        """Count so many bytes as stored in the place of what was reserved."""


def require_keepable(size: int | None) -> None:
    """Raise TooWide if an answer may take so many bytes, beside its frame, that it cannot be kept."""
    if size is not None and size > ANSWER_BYTES_MAX - FRAME_BYTES:
        raise TooWide(
            f"the answer could take {-(-size // 2**20):,} MiB, and at most {ANSWER_BYTES_MAX // 2**20} are answered",
            accepted="use fewer or coarser groups, or ask for fewer numbers at once",
        )


def reserved_bytes(size: int | None) -> int:
    """Return how many bytes are set apart for an answer whose plan predicts so many."""
    return ANSWER_BYTES_MAX if size is None else size + NAMES_BYTES


def fitting(sizes: Iterable[int]) -> int:
    """Return how many of the first parts of an answer fit into it, given the bytes that each takes."""
    left = ANSWER_BYTES_MAX - FRAME_BYTES
    count = 0
    for size in sizes:
        left -= size
        if left < 0:
            break
        count += 1
    return count


def written_bytes(values: Sequence[Any]) -> int:
    """Return how many bytes JSON values take, each with its comma."""
    return len(json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()) - (1 if values else 2)
