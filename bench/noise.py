"""Exact noise: samples a second beside OpenDP (as exact) and numpy (unsafe: floating point, no CSPRNG), and one scalar.

Vectors hold 10^6 values, 10^5 with --quick; OpenDP is given 10^4, since its rate does not depend on the length. Every
rate is the median of several runs taken in turns, tacit and numpy one after another.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench import peers
from bench.results import Result
from tacit.mechanisms import DiscreteGaussian, Gaussian, Geometric, Laplace

OPENDP_SCRIPT: Final = Path(__file__).parent / "peers" / "noise_opendp.py"
OPENDP_FACTOR: Final = 100
NUMPY_FACTOR: Final = 0.25
SCALAR_GOAL_US: Final = 50
SCALE: Final = 10


def run(quick: bool) -> Iterator[Result]:
    """Measure vectors of integers and floats, then scalars."""
    size, repeats = (10**5, 5) if quick else (10**6, 9)
    opendp = peers.run("opendp", OPENDP_SCRIPT, scale=SCALE, size=10**4, repeats=2 if quick else 5)
    generator = np.random.default_rng()
    integers, floats = np.zeros(size, dtype=np.int64), np.zeros(size)

    cases: list[tuple[str, Any, Any, Callable[[], Any]]] = [
        ("discrete Laplace, int", Geometric(1, 1 / SCALE), integers, lambda: generator.laplace(0, SCALE, size)),
        ("Laplace, float", Laplace(1.0, 1 / SCALE), floats, lambda: generator.laplace(0, SCALE, size)),
        (
            "discrete Gaussian, int",
            DiscreteGaussian(1, sigma=SCALE),
            integers,
            lambda: generator.normal(0, SCALE, size),
        ),
        ("Gaussian, float", Gaussian(1.0, sigma=SCALE), floats, lambda: generator.normal(0, SCALE, size)),
    ]
    for name, mechanism, values, unsafe in cases:
        ours, numpys = _rates(size, repeats, partial(mechanism.release, values), unsafe)
        theirs = opendp[name] if opendp else None
        yield Result(f"{name}, samples/s", ours, "1/s", {"opendp": theirs, "numpy": numpys})
        if theirs:
            yield Result(f"{name}, over OpenDP", ours / theirs, "×", goal=OPENDP_FACTOR, better="higher")
        yield Result(f"{name}, over numpy", ours / numpys, "×", goal=NUMPY_FACTOR, better="higher")

    for name, mechanism, value in (
        ("Laplace, one int", Laplace(1, 1 / SCALE), 5),
        ("Laplace, one float", Laplace(1.0, 1 / SCALE), 5.0),
        ("Gaussian, one int", Gaussian(1, sigma=SCALE), 5),
        ("Gaussian, one float", Gaussian(1.0, sigma=SCALE), 5.0),
    ):
        theirs = opendp[name] if opendp else None
        yield Result(name, _scalar_us(mechanism, value, repeats), "µs", {"opendp": theirs}, goal=SCALAR_GOAL_US)


def _rates(size: int, repeats: int, *calls: Callable[[], Any]) -> tuple[float, ...]:
    """Return values per second for each call, timed in turn after one uncounted call of each."""
    seconds: list[list[float]] = [[] for _ in calls]
    for turn in range(repeats + 1):
        for call, taken in zip(calls, seconds, strict=True):
            started_s = time.perf_counter()
            call()
            if turn:
                taken.append(time.perf_counter() - started_s)
    return tuple(size / statistics.median(taken) for taken in seconds)


def _scalar_us(mechanism: Any, value: Any, repeats: int) -> float:
    """Return the median microseconds of one release, over batches of a thousand."""
    mechanism.release(value)
    batches = []
    for _ in range(repeats):
        started_s = time.perf_counter()
        for _ in range(1000):
            mechanism.release(value)
        batches.append((time.perf_counter() - started_s) * 1000)
    return statistics.median(batches)
