"""How large a stored answer may be, and the quota that limits all of them; both are checked before the charge.

Promise: an answer whose size is public is refused when it is planned (`require_storable`), and one whose size depends
on what is released keeps the parts that fit (`count_fitting`), so that `commit` never refuses an answer after its
charge. Sizes are those of the JSON form in UTF-8, with a comma behind each value. A plan predicts the size of its
answer (`answer_bytes`); None means that it is not known, because keys are selected.
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
"""An upper bound on what the names of the parts, learnt bounds and single texts take together."""

NAMES_BYTES: Final = 4096
"""What an answer usually takes beside its numbers and keys; an estimate, for quotas."""


class StorageQuota(Protocol):
    """A limit on the bytes of all stored answers, beside the limit of each one."""

    def reserve(self, analyst: str | None, size: int) -> str:
        """Reserve bytes for an answer that is not charged yet, or raise; return the id of the reservation."""

    def settle(self, reservation: str, size: int) -> None:
        """Replace a reservation by the bytes that were stored."""


def require_storable(size: int | None) -> None:
    """Raise TooWide if an answer of `size` bytes, beside its frame, could not be stored."""
    if size is not None and size > ANSWER_BYTES_MAX - FRAME_BYTES:
        raise TooWide(
            f"the answer could take {-(-size // 2**20):,} MiB, and at most {ANSWER_BYTES_MAX // 2**20} are answered",
            accepted="use fewer or coarser groups, or ask for fewer numbers at once",
        )


def reserved_bytes(size: int | None) -> int:
    """Return how many bytes to reserve for an answer whose plan predicts `size` bytes."""
    return ANSWER_BYTES_MAX if size is None else size + NAMES_BYTES


def count_fitting(sizes: Iterable[int]) -> int:
    """Return how many leading parts of an answer fit into it, given the bytes of each."""
    left = ANSWER_BYTES_MAX - FRAME_BYTES
    count = 0
    for size in sizes:
        left -= size
        if left < 0:
            break
        count += 1
    return count


def json_bytes(values: Sequence[Any]) -> int:
    """Return how many bytes values take in JSON, each with its comma."""
    return len(json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()) - (1 if values else 2)
