"""Clocks of the ledger: microseconds since the beginning of 1970, and the times they stand for."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

Clock: TypeAlias = Callable[[], int]
"""A function that returns the time in microseconds since the beginning of 1970."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def system_clock() -> int:
    """Return this machine's time in microseconds since the beginning of 1970."""
    return time.time_ns() // 1000


def time_of(at_us: int) -> datetime:
    """Return the UTC time that lies so many microseconds after the beginning of 1970."""
    return _EPOCH + timedelta(microseconds=at_us)
