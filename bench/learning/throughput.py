"""Private training steps beside plain torch: samples a second, and peak memory.

A step is zero_grad, forward, backward, clip 1, noise multiplier 1 and SGD on a fixed batch of generated data. Blocks
of private and of plain steps alternate in one process; the ratio is that of the medians of their processor times with
one thread of torch, which other programs on the machine disturb less than clock time. It counts what the second thread
for noise uses. Peak memory is that of processes that make one kind of step only. Opacus runs the same in its own
environment, with its own LSTM, beside plain torch there.

All processes keep freed memory (`ALLOCATOR`), plain torch and Opacus as well: glibc would give it back after some
steps, and the time of getting it again is that of the kernel. Ratios of one processor do not carry over to another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench import peers
from bench.results import Result

SCRIPT: Final = Path(__file__).parent / "training_steps.py"
RATIO_GOALS: Final = {
    "MLP 784-1000-10, batch 256": 0.75,
    "CNN 26k, batch 256": 0.9,
    "CNN 490k, batch 256": 0.9,
    "transformer 2 x 64, batch 64": 0.75,
    "LSTM 128, batch 64": 0.9,
}
MEMORY_GOAL: Final = 1.3
GHOST_FACTOR: Final = 2.0
ALLOCATOR: Final = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**28)}
OPACUS: Final = {"opacus hooks": "opacus_hooks", "opacus ghost": "opacus_ghost"}


def run(quick: bool) -> Iterator[Result]:
    """Measure every model; with --quick, two of them."""
    repeats = 4 if quick else 12
    os.environ.update(ALLOCATOR)
    for model, goal in list(RATIO_GOALS.items())[: 2 if quick else None]:
        ratio = _tacit(model, "private", repeats)["ratio"]
        theirs = {name: _opacus(model, mode, 1 if quick else 3) for name, mode in OPACUS.items()}
        yield Result(f"{model}: samples/s over plain torch", ratio, "×", theirs, goal=goal, better="higher")
        ghost = theirs["opacus ghost"]
        if ghost:
            name = f"{model}: samples/s over Opacus ghost"
            yield Result(name, ratio / ghost, "×", goal=GHOST_FACTOR, better="higher")
        memory = _tacit(model, "private", 1, alone=True)["peak"] / _tacit(model, "plain", 1, alone=True)["peak"]
        yield Result(f"{model}: peak memory over plain torch", memory, "×", goal=MEMORY_GOAL)


def _tacit(model: str, mode: str, repeats: int, alone: bool = False) -> dict[str, Any]:
    arguments = json.dumps({"model": model, "mode": mode, "repeats": repeats, "alone": alone})
    done = subprocess.run([sys.executable, str(SCRIPT), arguments], capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _opacus(model: str, mode: str, repeats: int) -> float | None:
    answer = peers.run("opacus", SCRIPT, model=model, mode=mode, repeats=repeats, alone=False)
    return None if answer is None else float(answer["ratio"])
