"""Errors of tacit and its peers at the same epsilon and bounds: the median of |error| over many releases.

For counts and histograms it is the mean, since the median of whole numbers jumps.

Not all promise the same. tacit and "opendp" hide how many rows there are (add or remove one); "opendp, n public" and
diffprivlib know that number and hide what is in one row (replace one). diffprivlib's noise is drawn in floating point.
Counts and sums are noise of the same law everywhere: equal up to chance. Errors are in standard deviations of the data
(of their square for variances, of one row's share for counts and sums); those below a thousandth count as that.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench import peers
from bench.results import Result
from bench.statistics.data import BINS, SHAPES, TRUE, Data, made, planned, rows_of

SCRIPTS: Final = Path(peers.__file__).parent
STATISTICS: Final = ("count", "sum", "mean", "variance", "median", "quantile 0.9", "histogram")
PEERS: Final = {"opendp": ("opendp", "opendp, n public"), "diffprivlib": ("diffprivlib",)}
LEAST: Final = 1e-3
SAME_LAW: Final = ("count", "sum", "histogram")
CHANCE: Final = 0.1
"""Tolerance of a ratio above 1 between equal distributions."""
PEER_SECONDS_MAX: Final = 600.0
QUICK_PEER_S: Final = 10.0
STARTING_S: Final = 16.0
"""Time limits of a peer: to start, and to answer each query at least three times."""

Errors = dict[tuple[str, str, int, float], float]
"""Errors by statistic, shape, rows and epsilon."""


def measured(sizes: Sequence[int], epsilons: Sequence[float], repeats: int, seconds: float) -> Iterator[Result]:
    """Measure tacit and every installed peer, and yield errors and their ratio to the best peer's."""
    sets = [made(shape, rows) for rows in sizes for shape in SHAPES]
    with ThreadPoolExecutor(len(PEERS)) as together:
        asked = [together.submit(_theirs, peer, sets, epsilons, repeats, seconds) for peer in PEERS]
        found: dict[str, Errors] = {"tacit": _ours(sets, epsilons, repeats)}
        for one in asked:
            found |= one.result()
    names = [name for kinds in PEERS.values() for name in kinds]
    for statistic in STATISTICS:
        for epsilon in epsilons:
            yield from _lines(statistic, epsilon, found, names)


def _lines(statistic: str, epsilon: float, found: dict[str, Errors], names: Sequence[str]) -> Iterator[Result]:
    """Compare on the data that all libraries with this statistic have answered."""
    cells = [key for key in found["tacit"] if key[0] == statistic and key[3] == epsilon]
    known = [name for name in names if any(key in found.get(name, {}) for key in cells)]
    cells = [key for key in cells if all(key in found[name] for name in known)]
    typical = {name: _typical([found[name][key] for key in cells]) for name in ("tacit", *known)}
    label = f"{statistic}, epsilon {epsilon:g}"
    yield Result(f"{label}: error", typical["tacit"], "spreads", {name: typical.get(name) for name in names})
    if known:
        best = min(typical[name] for name in known)
        goal = 1 + CHANCE if statistic in SAME_LAW else 1.0
        yield Result(f"{label}: error over the best peer's", typical["tacit"] / best, "×", goal=goal)
        worst = max(found["tacit"][key] / min(found[name][key] for name in known) for key in cells)
        yield Result(f"{label}: error over the best peer's, worst data", worst, "×")


def _typical(errors: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(errors))))


def _ours(sets: Sequence[Data], epsilons: Sequence[float], repeats: int) -> Errors:
    errors: Errors = {}
    for data in sets:
        rows = rows_of("mean", data)
        for statistic in STATISTICS:
            for epsilon in epsilons:
                plan = planned(statistic, data, epsilon)
                answers = [plan.value(plan.measure(rows)) for _ in range(repeats)]
                errors[statistic, data.shape, data.rows, epsilon] = error_of(statistic, data, answers)
    return errors


def _theirs(
    peer: str, sets: Sequence[Data], epsilons: Sequence[float], repeats: int, seconds: float
) -> dict[str, Errors]:
    """Run a peer in one process on arrays that it reads from files."""
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as folder:
        listed = []
        for index, data in enumerate(sets):
            path = Path(folder) / f"{index}.npy"
            np.save(path, data.values)
            listed.append({"path": str(path), "bounds": data.bounds})
        asked = {"sets": listed, "epsilons": list(epsilons), "repeats": repeats, "bins": BINS, "seconds": seconds}
        try:
            answer = peers.run(
                peer, SCRIPTS / f"stats_{peer}.py", timeout_s=seconds + max(STARTING_S, seconds / 2), **asked
            )
        except peers.PeerFailed as error:
            sys.stderr.write(f"no figures of {peer}: {error}\n")
            answer = None
    found: dict[str, Errors] = {kind: {} for kind in PEERS[peer]}
    reached = len({(line["set"], line["epsilon"]) for line in (answer or {}).get("answers", [])})
    if answer and reached < len(sets) * len(epsilons):
        sys.stderr.write(f"{peer} ran out of time: {reached} of {len(sets) * len(epsilons)} data sets are compared\n")
    for line in (answer or {}).get("answers", []):
        data = sets[line["set"]]
        key = (line["statistic"], data.shape, data.rows, line["epsilon"])
        found[line["kind"]][key] = error_of(line["statistic"], data, line["values"])
    return found


def error_of(statistic: str, data: Data, answers: Sequence[Any]) -> float:
    """Return the typical |error|; of a histogram, that of its bins."""
    off = np.abs(np.asarray(answers, dtype=np.float64) - np.asarray(TRUE[statistic](data), dtype=np.float64))
    if statistic in ("count", "histogram"):
        off = off / data.rows
    elif statistic == "sum":
        off = off / (data.rows * data.spread)
    else:
        off = off / data.spread ** (2 if statistic == "variance" else 1)
    typical = np.mean(off) if statistic in ("count", "histogram") else np.median(off)
    least = LEAST if statistic in ("median", "quantile 0.9") else 1e-12
    return float(max(typical, least))
