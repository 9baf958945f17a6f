"""How large a released answer may be, decided before it is charged.

Promise: an answer whose size is public is refused when it is planned (`require_keepable`), and one whose size depends
on what is released keeps the parts that fit (`fitting`), so that `commit` never refuses an answer that was paid for.
Sizes are those of the written form, JSON in UTF-8, a comma behind each value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from tacit.privacy.errors import TooWide

ANSWER_BYTES_MAX: Final = 64 * 2**20
INTEGER_BYTES: Final = len("-9223372036854775808,")
REAL_BYTES: Final = len("-1.7976931348623157e+308,")
FRAME_BYTES: Final = 2**20
"""What the names of the parts, learnt bounds and single texts take together, and more."""

NAMES_BYTES: Final = 4096
"""What an answer takes beside its numbers and keys as a rule, where a guess is enough."""


class AnswerQuota(Protocol):
    """Who decides how much of the answers may be stored, beside what one of them may take."""

    def reserve(self, analyst: str | None, size: int) -> str:
        """Set so many bytes apart for an answer that is not charged yet, or raise."""

    def settle(self, reservation: str, size: int) -> None:
        """Count so many bytes as stored in the place of what was reserved."""


def require_keepable(size: int) -> None:
    """Raise TooWide if an answer may take so many bytes, beside its frame, that it cannot be kept."""
    if size > ANSWER_BYTES_MAX - FRAME_BYTES:
        raise TooWide(
            f"the answer could take {-(-size // 2**20):,} MiB, and at most {ANSWER_BYTES_MAX // 2**20} are answered",
            accepted="use fewer or coarser groups, or ask for fewer numbers at once",
        )


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
