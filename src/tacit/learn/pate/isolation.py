"""Isolation of teachers that run in one process: what one of them draws or warns about does not reach another.

Promise: inside `isolated` the generators of `random`, numpy and torch start from secret seeds, and afterwards they are
where they were before (`secret_seeds`). Without it, a teacher that draws more numbers, because its part has one unit
more, would move the votes of all teachers after it where the caller has fixed a seed (torch starts with a fixed one).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from tacit.learn.secret_seeds import SecretSeeds
from tacit.mechanisms.randomness import SYSTEM


@contextmanager
def isolated() -> Iterator[None]:
    """Seed the generators of the process in secret, silence warnings, and restore both at the end.

    A warning about one teacher's data would be an observation of it.
    """
    seeds = SecretSeeds(SYSTEM)
    seeds.seed()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        seeds.restore()
