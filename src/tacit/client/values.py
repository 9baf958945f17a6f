"""Values on the wire: costs, dates, intervals and cells, in both directions.

JSON has no dates, no infinity and no NaN: dates and times are ISO texts (or {"date": ...}, {"time": ...} where nothing
else tells their kind), a rho that is not known is null, and so is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, Final

from tacit.accounting.bounds import Cost
from tacit.mechanisms.mechanism import Interval
from tacit.privacy.errors import TooLarge, WrongType
from tacit.privacy.numbers import exact
from tacit.privacy.tables import Kind

DEPTH_MAX: Final = 20


def cost_of(document: Mapping[str, Any]) -> Cost:
    """Read a cost; what is null is infinity."""
    return Cost(*(number_of(document[name]) for name in ("epsilon", "delta", "rho")))


def number_of(value: Any) -> float:
    """Read a number of privacy; what is null is infinity."""
    return math.inf if value is None else float(value)


def cost_document(cost: Cost) -> dict[str, float | None]:
    """Return a cost for the wire."""
    numbers = {"epsilon": cost.epsilon, "delta": cost.delta, "rho": cost.rho}
    return {name: number if math.isfinite(number) else None for name, number in numbers.items()}


def costs_of(document: Mapping[str, Any]) -> dict[str, Cost]:
    """Read the costs of several data sets."""
    return {str(name): cost_of(one) for name, one in document.items()}


def number_document(name: str, value: object) -> int | float | None:
    """Return a number that a caller gave, for the wire; the server checks what it means."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    return float(exact(name, value))


def cell_of(value: Any, kind: Kind | None) -> Any:
    """Read a value of a column."""
    if value is None:
        return None
    match kind:
        case Kind.DATE:
            return date.fromisoformat(value)
        case Kind.TIME:
            return datetime.fromisoformat(value)
        case Kind.REAL:
            return float(value)
    return value


def interval_of(ends: Sequence[Any] | None, kind: Kind | None = None) -> Interval | None:
    """Read an interval; numbers stay as they came, since that of a whole number may have ends in between."""
    if ends is None:
        return None
    low, high = ends
    moments = kind if kind in (Kind.DATE, Kind.TIME) else None
    return Interval(cell_of(low, moments), cell_of(high, moments))


def time_text(value: datetime) -> str:
    """Return a time as the engines keep it: in UTC, without a zone."""
    moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo is not None else value
    return moment.isoformat()


def tagged(value: Any, depth: int = 0) -> Any:
    """Return an argument for the wire, with dates and times as {"date": ...} and {"time": ...}."""
    if depth > DEPTH_MAX:
        raise TooLarge(f"an argument is nested {DEPTH_MAX} deep at most", name="arguments")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, datetime):
        return {"time": time_text(value)}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, Mapping):
        return {str(name): tagged(one, depth + 1) for name, one in value.items()}
    if hasattr(value, "tolist"):  # an array or a number of numpy
        return tagged(value.tolist(), depth + 1)
    if isinstance(value, Sequence | set | frozenset | range):
        return [tagged(one, depth + 1) for one in value]
    if isinstance(value, int | float | Fraction) or hasattr(value, "__float__"):
        return number_document("an argument", value)
    raise WrongType(f"an argument of a statistic cannot be {type(value).__name__}", name="arguments", value=value)
