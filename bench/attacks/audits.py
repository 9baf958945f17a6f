"""Audits: canaries of one run of a Gaussian mechanism, and peers' noise under the audit and under the bit test.

A peer's script writes outputs for the inputs 0 and 1; the kit audits them here, as any mechanism. A floating-point
violation is proven by the low bits of outputs alone. Noise of numpy, drawn in doubles, shows that the bit test notices.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bench import peers
from bench.results import Result
from tacit import attack
from tacit.accounting.conversions import mu_for
from tacit.attack.confidence import one_run_epsilon
from tacit.attack.floating_point import TRIED
from tacit.attack.power import accuracy
from tacit.mechanisms import Gaussian, Laplace
from tacit.privacy import events

EPSILON, DELTA = 4.0, 1e-5
CANARIES: Final = 1_000
BOUND_GOALS: Final = {"canary_audit": 1.5, "gaussian_canary_audit": 2.0}
WRONG_RATE: Final = 0.05
SECONDS: Final = 1.0
PEER_EPSILON: Final = 1.0
"""Of the noise of peers, and of randomized response."""
SIGMA: Final = 1 / mu_for(PEER_EPSILON, DELTA)
"""The noise of peers: Laplace for epsilon 1, Gaussian for epsilon 1 at delta 1e-5."""
TESTS: Final = ("mechanism_audit", "floating_point")
PEERS: Final = {"opendp": ("Laplace", "Gaussian"), "diffprivlib": ("Laplace",)}
"""The noise of each peer that is audited."""

Draw = Callable[[Any, int], NDArray[Any]]


def canaries(seeds: int) -> Iterator[Result]:
    """Audit a Gaussian mechanism by one run for each of some seeds."""
    mu = mu_for(EPSILON, DELTA)
    promise = events.Gaussian(1 / mu)
    bounds: dict[str, list[float]] = {name: [] for name in BOUND_GOALS}
    seconds: list[float] = []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        present = random.integers(0, 2, CANARIES).astype(bool)
        model = attack.Model(mu * present + random.normal(size=CANARIES), present)
        for name, found_bounds in bounds.items():
            found = attack.run(name, model, promise, seed=seed, delta=DELTA)
            found_bounds.append(found.lower_bound or 0.0)
            seconds.append(found.seconds)
    label = f"one run, {CANARIES:,} canaries, Gaussian at epsilon {EPSILON:g}"
    for name, goal in BOUND_GOALS.items():
        middle = statistics.median(bounds[name])
        metric = f"{label}: lower bound of {name}, median of {seeds} seeds"
        yield Result(metric, middle, "epsilon", goal=goal, better="higher")
    yield Result(f"{label}: time, median", statistics.median(seconds), "s", goal=SECONDS)
    yield _above_the_truth(10 * seeds)


def _above_the_truth(runs: int) -> Result:
    """Report how often the bound of one run exceeds the truth where it is nearly tight, so that a wrong one would show.

    Under randomized response with all canaries guessed it does so in 4 to 5 % of runs; the goal is what a rate of 5 %
    stays below in 99 % of benchmarks.
    """
    random, wrong = np.random.default_rng(1), 0
    bound = cache(lambda right: one_run_epsilon(CANARIES, CANARIES, right, 0.0))
    for _ in range(runs):
        present = random.integers(0, 2, CANARIES).astype(bool)
        said = np.where(random.random(CANARIES) < accuracy(PEER_EPSILON), present, ~present)
        wrong += bound(int((said == present).sum())) > PEER_EPSILON
    label = f"one run, {CANARIES:,} canaries, randomized response at epsilon {PEER_EPSILON:g}, all guessed"
    goal = float(stats.binom.ppf(0.99, runs, WRONG_RATE)) / runs
    return Result(f"{label}: bounds above the truth, of {runs:,}", wrong / runs, "share", goal=goal)


def noise(samples: int) -> Iterator[Result]:
    """Audit the noise of tacit, of peers (None where they are not installed) and of numpy."""
    laplace, gaussian = Laplace(1.0, PEER_EPSILON), Gaussian(1.0, sigma=SIGMA)
    ours: dict[str, Draw] = {
        "Laplace": lambda x, count: laplace.release(np.full(count, x)),
        "Gaussian": lambda x, count: gaussian.release(np.full(count, x)),
    }
    doubles = np.random.default_rng(0)
    naive: Draw = lambda x, count: x + doubles.laplace(size=count)  # noqa: E731
    with tempfile.TemporaryDirectory() as folder:
        written = {peer: _written(peer, folder, samples) for peer in PEERS}
        for name, draw in ours.items():
            for test in TESTS:
                others = {
                    peer: _of_peer(written[peer], name, test, samples) for peer, has in PEERS.items() if name in has
                }
                value = _violates(test, draw, name, samples)
                yield Result(f"{name}, {test}: violates", value, "", others, goal=0)
    planted = Laplace(0.5, PEER_EPSILON)
    half: Draw = lambda x, count: planted.release(np.full(count, x))  # noqa: E731
    value = _violates("mechanism_audit", half, "Laplace", samples)
    yield Result("half the noise of Laplace, mechanism_audit: violates", value, "", goal=1.0, better="higher")
    for test, goal in (("mechanism_audit", None), ("floating_point", 1.0)):
        value = _violates(test, naive, "Laplace", samples)
        yield Result(f"numpy's Laplace in doubles, {test}: violates", value, "", goal=goal, better="higher")


def _written(peer: str, folder: str, samples: int) -> dict[str, str] | None:
    """Return the files with outputs of a peer by the name of its noise, or None where it is not installed.

    Both tests draw twice as many outputs as samples for the first input, and the bit test draws TRIED before.
    """
    script = Path(peers.__file__).parent / f"attack_{peer}.py"
    arguments: dict[str, Any] = {"folder": folder, "samples": 2 * samples + TRIED}
    answer = peers.run(peer, script, sigma=SIGMA, epsilon=PEER_EPSILON, **arguments)
    return None if answer is None else dict(answer["outputs"])


def _of_peer(files: dict[str, str] | None, name: str, test: str, samples: int) -> float | None:
    return None if files is None else _violates(test, replayed(Path(files[name])), name, samples)


def replayed(path: Path) -> Draw:
    """Return a mechanism whose outputs were drawn before, in a row for each of the inputs 0 and 1."""
    rows = [iter(row) for row in np.load(path)]
    return lambda x, count: np.fromiter(islice(rows[int(x)], count), dtype=np.float64, count=count)


def _violates(test: str, draw: Draw, name: str, samples: int) -> float:
    """Return 1 if a test refutes that noise is (epsilon, delta)-private, otherwise 0."""
    target = attack.Mechanism(draw, 0.0, 1.0, many=True, samples=samples)
    found = attack.run(test, target, (PEER_EPSILON, DELTA if name == "Gaussian" else 0.0), seed=0)
    return float(found.is_violation)
