"""Isolation of teachers that run in one process: what one of them draws or warns about does not reach another.

Promise: inside `isolated` the generators of `random`, numpy and torch start from secret seeds, and afterwards they are
where they were before (`secret_seeds`). Without it, a teacher that draws more numbers, because its part has one unit
more, would move the votes of all teachers after it where the caller has fixed a seed. What numpy does about overflows,
and torch's gradient mode, default dtype, number of threads, deterministic mode and precision of matrix products, are
restored as well. torch is imported first if it is installed: what a teacher that imports it has changed could not be
told from what it was.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Final

import numpy as np

from tacit.learn.secret_seeds import SecretSeeds
from tacit.mechanisms.randomness import SYSTEM

TORCH_SETTINGS: Final = ("default_dtype", "num_threads", "deterministic_debug_mode", "float32_matmul_precision")


@contextmanager
def isolated() -> Iterator[None]:
    """Seed the generators of the process in secret, silence warnings, and restore both at the end.

    A warning about one teacher's data would be an observation of it.
    """
    with suppress(Exception):  # a torch that cannot be imported changes nothing
        import_module("torch")
    seeds = SecretSeeds(SYSTEM)
    seeds.seed()
    try:
        with warnings.catch_warnings(), np.errstate(), _torch_settings():
            warnings.simplefilter("ignore")
            yield
    finally:
        seeds.restore()


@contextmanager
def _torch_settings() -> Iterator[None]:
    """Restore at the end what torch keeps for the whole process, if it is installed."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = {name: getattr(torch, f"get_{name}")() for name in TORCH_SETTINGS}
    try:
        with torch.set_grad_enabled(torch.is_grad_enabled()):
            yield
    finally:
        for name, value in before.items():
            getattr(torch, f"set_{name}")(value)
