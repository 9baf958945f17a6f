"""The processes of one training: alone, or a group of torch.distributed, of which rank 0 adds the noise and pays.

Promise: sums over all processes are computed before noise is added, once, by rank 0; the others get its result. Each
process holds a part of the data, and no unit is in two parts. What one process refuses, all refuse.

Messages are tensors and JSON, never pickle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from tacit.privacy.errors import InvalidInput, TacitError


class Processes:
    """The group of processes that train together."""

    def __init__(self, *, is_distributed: bool) -> None:
        joined = dist.is_available() and dist.is_initialized()
        if is_distributed and not joined:
            raise InvalidInput("call torch.distributed.init_process_group first", name="distributed")
        if joined and not is_distributed and dist.get_world_size() > 1:
            raise InvalidInput(
                "this process is one of a torch.distributed group; give every process its own part of the data, "
                "without a unit in two parts, and distributed=True",
                name="distributed",
            )
        self._is_group = is_distributed and dist.get_world_size() > 1
        self.size: int = dist.get_world_size() if self._is_group else 1
        self.rank: int = dist.get_rank() if self._is_group else 0

    @property
    def is_first(self) -> bool:
        """Whether this process adds the noise and talks to the ledger."""
        return self.rank == 0

    def total(self, number: int) -> int:
        """Return the sum of a number over the processes."""
        if not self._is_group:
            return number
        found = torch.tensor([number])
        dist.all_reduce(found)
        return int(found.item())

    def all_reduce(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the sums of tensors over the processes, in float64."""
        if not self._is_group:
            return tensors
        totals = {name: tensor.double() for name, tensor in sorted(tensors.items())}
        for total in totals.values():
            dist.all_reduce(total)
        return totals

    def broadcast(self, tensors: Mapping[str, Tensor]) -> None:
        """Replace tensors by those of rank 0."""
        if self._is_group:
            for _, tensor in sorted(tensors.items()):
                dist.broadcast(tensor, 0)

    def decided_by_first(self, decide: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return what rank 0 decides, as values of JSON; if it raises, all processes raise."""
        if not self._is_group:
            return decide()
        if not self.is_first:
            told = self._tell(None)
            if "refused" in told:
                raise InvalidInput(f"rank 0 refused: {told['refused']}")
            return told
        try:
            decided = decide()
        except TacitError as error:
            self._tell({"refused": error.message})
            raise
        self._tell(decided)
        return decided

    def _tell(self, message: dict[str, Any] | None) -> dict[str, Any]:
        written = b"" if message is None else json.dumps(message).encode()
        size = torch.tensor([len(written)])
        dist.broadcast(size, 0)
        text = torch.zeros(int(size.item()), dtype=torch.uint8)
        if written:
            text = torch.frombuffer(bytearray(written), dtype=torch.uint8)
        dist.broadcast(text, 0)
        told: dict[str, Any] = json.loads(bytes(text.tolist()))
        return told
