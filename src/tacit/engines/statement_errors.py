"""What a caller is told of a statement that did not end well: that it was cancelled, or that it failed.

Promise: an error that leaves `with_uniform_errors` is Cancelled, or EngineFailed with one class, code and sentence and
nothing chained to it. Why a statement failed may depend on a single row: one person's text may exhaust the memory, and
an analyst who is told so has an exact bit about that person.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tacit.engines.protocol import FAILED
from tacit.privacy.errors import Cancelled, EngineFailed

T = TypeVar("T")


def with_uniform_errors(work: Callable[[], T]) -> T:
    """Do work of a statement that runs, and raise the same EngineFailed for every error except a cancellation."""
    error: EngineFailed
    try:
        return work()
    except Cancelled as cancelled:
        error = Cancelled(cancelled.message)
    except Exception:
        error = EngineFailed(FAILED)
    raise error  # here and not above, so that it carries nothing along
