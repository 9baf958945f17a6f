"""Isolation of teachers that run in one process: what one of them draws or warns about does not reach another.

Promise: inside `isolated` the generators of `random`, numpy and torch that a process shares start from fresh seeds, and
afterwards they are where they were before. Without it, a teacher that draws more numbers, because its part has one unit
more, would move the votes of all teachers after it where the caller has fixed a seed (torch starts with a fixed one).
No noise is drawn from these generators: that of aggregators is `tacit.mechanisms`.
"""

from __future__ import annotations

import random
import secrets
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np


@contextmanager
def isolated() -> Iterator[None]:
    """Seed the generators of the process with fresh randomness, silence warnings, and restore both at the end.

    A warning about one teacher's data would be an observation of it. Seeds are not those of noise, and no secret.
    """
    seed, torch = secrets.randbits(32), sys.modules.get("torch")
    plain, arrays = random.getstate(), np.random.get_state()
    with ExitStack() as stack:
        stack.callback(random.setstate, plain)
        stack.callback(np.random.set_state, arrays)
        random.seed(seed)
        np.random.seed(seed)
        if torch is not None:
            stack.enter_context(torch.random.fork_rng())
            torch.manual_seed(seed)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        yield
