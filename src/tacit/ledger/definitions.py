"""What is set up once: a data set's budget, caps of analysts and groups on it, and epochs.

A budget is created once and never raised: what it promised it promised to the units. The same definition again changes
nothing, another one is refused.

Epochs. A data set may be cut by time, and a release names the epochs that it touches and is charged to each. With
`per_epoch` the data set's cap holds for each epoch instead of for all time together: new data brings its own budget,
spent stays spent, and nothing is refreshed by the calendar. What is then promised to a unit is the cap for what it
contributed to any one epoch; a unit that returns in every epoch is told the sum, which stays counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from tacit.ledger.caps import Cap
from tacit.ledger.permits import Scope
from tacit.ledger.rows import ScopeRow
from tacit.ledger.work import Work
from tacit.privacy.errors import InvalidInput, MixedRelations, NameTaken, OutOfRange, WrongType


def create_budget(work: Work, dataset: str, cap: Cap, *, per_epoch: bool, epsilon_min: float) -> None:
    """Give a data set its cap, and its releases the least epsilon that each costs."""
    scope = Scope(dataset)
    known = work.rows.scope(scope)
    if known is not None:
        _require_same(known, cap, per_epoch=per_epoch, epsilon_least=epsilon_min)
        return
    facts = {"cap": cap.to_dict(), "epsilon_min": epsilon_min, "per_epoch": per_epoch, "scope": scope.key}
    work.write("budget-created", facts)


def create_cap(work: Work, dataset: str, analyst: str, cap: Cap) -> None:
    """Give an analyst or a group a cap on a data set, within the data set's."""
    _require_within(cap, work.dataset(dataset).cap, dataset)
    scope = Scope(dataset, "analyst", analyst)
    if (known := work.rows.scope(scope)) is not None:
        _require_same(known, cap)
        return
    work.write("cap-created", {"cap": cap.to_dict(), "scope": scope.key})


def add_epoch(work: Work, dataset: str, name: str, cap: Cap, starts: str | None, ends: str | None) -> None:
    """Add a stretch of time with a cap within the data set's."""
    _require_within(cap, work.dataset(dataset).cap, dataset)
    scope = Scope(dataset, "epoch", name)
    if (known := work.rows.scope(scope)) is not None:
        _require_same(known, cap, starts=starts, ends=ends)
        return
    if starts is not None and ends is not None:
        _require_apart(work, dataset, name, starts, ends)
    work.write("epoch-added", {"cap": cap.to_dict(), "ends": ends, "scope": scope.key, "starts": starts})


def stretch(starts: object, ends: object) -> tuple[str | None, str | None]:
    """Return the two ends of an epoch in their written form; the first is in it, the last is not."""
    if (starts is None) != (ends is None):
        raise InvalidInput("an epoch has both ends or none", name="starts", value=starts)
    if starts is None:
        return None, None
    first, last = _moment("starts", starts), _moment("ends", ends)
    if not first < last:
        raise OutOfRange(f"an epoch must start before it ends, and {first} is not before {last}", name="starts")
    return first, last


def _moment(name: str, value: object) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise WrongType(f"{name} must be a date, or a time with its time zone", name=name, value=value)
        return value.astimezone(UTC).isoformat()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).isoformat()
    raise WrongType(f"{name} must be a date or a time, not {type(value).__name__}", name=name, value=value)


def _require_apart(work: Work, dataset: str, name: str, starts: str, ends: str) -> None:
    for row in work.rows.scopes(dataset):
        if row.starts is not None and row.ends is not None and starts < row.ends and row.starts < ends:
            raise OutOfRange(
                f"epoch {name} would overlap {row.scope}; epochs must not share time, or a unit's rows count in both",
                name="starts",
            )


def _require_within(cap: Cap, whole: Cap, dataset: str) -> None:
    if cap.relation is not whole.relation:
        raise MixedRelations(f"the budget of {dataset} counts {whole.relation} events; a cap on it must do so too")
    if not cap.is_within(whole):
        raise OutOfRange(
            f"a cap on {dataset} must lie within its budget of epsilon {whole.epsilon:g} and delta {whole.delta:g}",
            name="epsilon",
        )


def _require_same(known: ScopeRow, cap: Cap, **facts: Any) -> None:
    stored: Mapping[str, Any] = {name: getattr(known, name) for name in facts}
    if known.cap != cap or stored != facts:
        raise NameTaken(
            f"{known.scope} has epsilon {known.cap.epsilon:g} and delta {known.cap.delta:g} ({known.cap.filter}) since "
            f"record {known.record}; what was promised is not changed",
            name="dataset",
            value=str(known.scope),
        )
