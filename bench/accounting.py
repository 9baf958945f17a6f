"""Accountants: tightness, width of certified bounds, and speed; all libraries on the same cases in the same run.

A case is a list of parts: ["sgd", sigma, rate, count], ["laplace", epsilon, count], ["gaussian", sigma, count] or
["exponential", epsilon, count], and a delta. Peers' upper bounds count only where they are bounds: the central-limit
accountant of Opacus is left out, since it claims less than is lost.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from bench import peers
from bench.results import Result
from tacit import accounting
from tacit.privacy.events import Composed, Event, Exponential, Gaussian, Laplace, Repeated, Sampled

SCRIPTS: Final = Path(__file__).parent / "peers"
PEERS: Final = ("dp_accounting", "prv_accountant", "autodp", "opacus")
EXCESS_GOAL: Final = 1.001
WIDTH_GOAL: Final = 0.002
SECONDS_GOAL: Final = 0.2
MANY_SECONDS_GOAL: Final = 1.0
CALIBRATION_SECONDS_GOAL: Final = 1.0
WASTE_GOAL: Final = 1e-3
TINY_DELTA: Final = 1e-30

TRAININGS: Final = (
    (1.0, 0.01, 1_000, 1e-5),
    (1.0, 0.01, 10_000, 1e-5),
    (1.0, 0.01, 100_000, 1e-5),
    (4.0, 0.01, 10_000, 1e-5),
    (4.0, 0.01, 40_000, 1e-5),
    (0.8, 0.004, 10_000, 1e-6),
)
TARGETS: Final = (
    (1.0, 1e-5, 0.01, 1_000),
    (2.0, 1e-5, 0.01, 10_000),
    (8.0, 1e-5, 0.01, 10_000),
    (1.0, 1e-6, 1e-3, 10**5),
)


def run(quick: bool) -> Iterator[Result]:
    """Measure tightness, width and speed; `quick` takes fewer cases and repeats."""
    trainings = TRAININGS[:2] if quick else TRAININGS
    mixed = _mixed(30 if quick else 300)
    cases = [{"parts": [["sgd", sigma, rate, count]], "delta": delta} for sigma, rate, count, delta in trainings]
    answers = {peer: _peer(peer, [*cases, mixed], quick) for peer in PEERS}
    for index, case in enumerate(cases):
        yield from _training(case, {peer: _at(answer, index) for peer, answer in answers.items()})
    yield from _mixture(mixed, {peer: _at(answer, len(cases)) for peer, answer in answers.items()})
    tiny = accounting.epsilon(Gaussian(1.0), TINY_DELTA).upper
    yield Result("Gaussian at delta 1e-30, epsilon", tiny, "", goal=12.0)
    yield from _speed(quick)
    yield from _calibration(TARGETS[:2] if quick else TARGETS)


def _training(case: dict[str, Any], found: dict[str, tuple[float, float] | None]) -> Iterator[Result]:
    """Compare the bounds of one training with the best peer, and check that upper bounds exceed all lower bounds."""
    (_, sigma, rate, count), delta = case["parts"][0], case["delta"]
    name = f"σ {sigma:g}, q {rate:g}, {count:,} steps"
    ours = accounting.epsilon(_event(case), delta)
    uppers = {peer: None if bounds is None else bounds[1] for peer, bounds in found.items()}
    yield Result(f"{name}: epsilon", ours.upper, "", uppers)
    known = [upper for upper in uppers.values() if upper is not None and math.isfinite(upper)]
    if known:
        yield Result(f"{name}: over the best peer", ours.upper / min(known), "×", goal=EXCESS_GOAL)
    lowers = [bounds[0] for bounds in found.values() if bounds is not None] + [ours.lower]
    yield Result(f"{name}: over every lower bound", ours.upper / max(lowers), "×", goal=1.0, better="higher")
    yield Result(f"{name}: width", ours.upper / ours.lower - 1, "", goal=WIDTH_GOAL)


def _mixture(case: dict[str, Any], found: dict[str, tuple[float, float] | None]) -> Iterator[Result]:
    ours = accounting.epsilon(_event(case), case["delta"])
    uppers = {peer: None if bounds is None else bounds[1] for peer, bounds in found.items()}
    name = f"{len(case['parts'])} mixed releases"
    yield Result(f"{name}: epsilon", ours.upper, "", uppers)
    known = [upper for upper in uppers.values() if upper is not None and math.isfinite(upper)]
    if known:
        yield Result(f"{name}: over the best peer", ours.upper / min(known), "×", goal=1.0)


def _speed(quick: bool) -> Iterator[Result]:
    sigma, rate, count, delta = TRAININGS[1]
    event = Repeated(Sampled(rate, Gaussian(sigma)), count)
    seconds = [_seconds(lambda: accounting.epsilon(event, delta)) for _ in range(3 if quick else 9)]
    yield Result("one training's epsilon", statistics.median(seconds), "s", goal=SECONDS_GOAL)
    many = Composed(tuple(Sampled(0.005 + 1e-5 * one, Gaussian(0.8 + 1e-3 * one)) for one in range(1000)))
    seconds_of_many = _seconds(lambda: accounting.epsilon(many, 1e-6))
    yield Result("epsilon of 1,000 steps, no two alike", seconds_of_many, "s", goal=MANY_SECONDS_GOAL)


def _calibration(targets: tuple[tuple[float, float, float, int], ...]) -> Iterator[Result]:
    for target, delta, rate, count in targets:

        def make(sigma: float, rate: float = rate, count: int = count) -> Event:
            return Repeated(Sampled(rate, Gaussian(sigma)), count)

        started_s = time.perf_counter()
        sigma = accounting.calibrate(make, target, delta)
        name = f"calibrate to ε {target:g}, q {rate:g}, {count:,} steps"
        yield Result(name, time.perf_counter() - started_s, "s", goal=CALIBRATION_SECONDS_GOAL)
        spent = accounting.epsilon(make(sigma), delta).upper
        yield Result(f"{name}: waste", 1 - spent / target, "", goal=WASTE_GOAL)


def _mixed(count: int) -> dict[str, Any]:
    """Return releases with pairwise different parameters."""
    parts: list[list[Any]] = []
    for index in range(count):
        parts.append(["laplace", 0.01 + 0.0001 * index, 1])
        parts.append(["gaussian", 40.0 + 0.1 * index, 1])
        parts.append(["exponential", 0.01 + 0.00013 * index, 1])
    return {"parts": parts, "delta": 1e-6}


def _event(case: dict[str, Any]) -> Event:
    made: list[Event] = []
    for kind, *parameters, count in case["parts"]:
        match kind, parameters:
            case "sgd", [sigma, rate]:
                made.append(Repeated(Sampled(rate, Gaussian(sigma)), count))
            case "laplace", [epsilon]:
                made.append(Repeated(Laplace(epsilon), count))
            case "gaussian", [sigma]:
                made.append(Repeated(Gaussian(sigma), count))
            case _, [epsilon]:
                made.append(Repeated(Exponential(epsilon), count))
    return Composed(tuple(made))


def _peer(name: str, cases: list[dict[str, Any]], quick: bool) -> dict[str, Any] | None:
    script = SCRIPTS / f"accounting_{name}.py"
    return peers.run(name, script, cases=cases, timeout_each_s=8 if quick else 60)


def _at(answer: dict[str, Any] | None, index: int) -> tuple[float, float] | None:
    """Return a peer's lower and upper bound for one case, or None where it gave none."""
    if answer is None or answer["bounds"][index] is None:
        return None
    lower, upper = answer["bounds"][index]
    return float(lower), float(upper)


def _seconds(call: Callable[[], Any]) -> float:
    started_s = time.perf_counter()
    call()
    return time.perf_counter() - started_s
