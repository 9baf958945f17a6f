"""Types of PEP 249: constructors of values, and objects that the type codes of a description equal.

The type code of a column is its kind: "integer", "real", "boolean", "text", "date" or "time".
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Final

from tacit.privacy.tables import Kind

Date = date
Time = time
Timestamp = datetime
Binary = bytes


def DateFromTicks(ticks: float) -> date:  # noqa: N802  # PEP 249 names it
    """Return the date of so many seconds after the beginning of 1970, in UTC."""
    return datetime.fromtimestamp(ticks, UTC).date()


def TimeFromTicks(ticks: float) -> time:  # noqa: N802  # PEP 249 names it
    """Return the time of day of so many seconds after the beginning of 1970, in UTC."""
    return datetime.fromtimestamp(ticks, UTC).time()


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802  # PEP 249 names it
    """Return the time of so many seconds after the beginning of 1970, in UTC and without a zone."""
    return datetime.fromtimestamp(ticks, UTC).replace(tzinfo=None)


class TypeObject:
    """What some type codes have in common: it equals each of them."""

    def __init__(self, *kinds: Kind) -> None:
        self._kinds: Final = frozenset(kind.value for kind in kinds)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self is other
        return isinstance(other, str) and str(other) in self._kinds

    def __hash__(self) -> int:
        return hash(self._kinds)


STRING: Final = TypeObject(Kind.TEXT)
NUMBER: Final = TypeObject(Kind.INTEGER, Kind.REAL, Kind.BOOLEAN)
DATETIME: Final = TypeObject(Kind.DATE, Kind.TIME)
BINARY: Final = TypeObject()
ROWID: Final = TypeObject()
