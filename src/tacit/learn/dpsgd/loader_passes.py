"""The passes over a caller's loader: one begins where a charged pass begins, and nowhere else (`schedule`).

A pass whose read fails, or that has fewer batches than the loader said, has ended, since an iterator that failed may
give its rows again; batches beyond that number are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from tacit.privacy.errors import InvalidInput


class LoaderPasses:
    """Reads the batches of one pass after another."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._batches: Iterator[Any] | None = None

    def read(self, *, is_first: bool) -> Any:
        """Return the first batch of a new pass, or the next one of the pass under way; None if that has ended."""
        if is_first:
            self._batches = iter(self._loader)
        batches, self._batches = self._batches, None  # a read that fails ends the pass
        batch = None if batches is None else next(batches, None)
        if is_first and batch is None:
            raise InvalidInput("the loader gives no batch; its data must not be emptied meanwhile", name="loader")
        self._batches = None if batch is None else batches
        return batch


def rows_in(batch: Any) -> int:
    """Return the number of rows of a batch: that of its first tensor, or of its entries if it has none."""
    tensor = _first_tensor(batch)
    return len(batch if tensor is None else tensor)


def _first_tensor(batch: Any) -> Tensor | None:
    if isinstance(batch, Tensor):
        return batch
    values = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, tuple | list) else ()
    return next((found for one in values if (found := _first_tensor(one)) is not None), None)
