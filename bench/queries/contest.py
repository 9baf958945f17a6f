"""Contestants timed in turn, each in its own process, so that a slow moment of the machine affects all.

Promise: the first answer of each is not counted, seconds are those inside the process (starting it is not among them),
and memory is the process's own. Peers that need an environment of their own measure themselves (`peer`).
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any, Final, cast

from bench import peers
from bench.queries.data import LOWER, UPPER
from bench.queries.tables import DELTA

ROOT: Final = Path(__file__).parent.parent.parent
PEERS: Final = ("opendp", "pipeline_dp", "smartnoise")
SCRIPTS: Final = ROOT / "bench" / "peers"
NUMBERS: Final = count(1)
"""Numbers of repetitions, unique within a run."""


class ContestantFailed(Exception):
    """A contestant ended early."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Measurements of one contestant: least and median wall seconds, least CPU seconds, peak memory."""

    wall_s: float
    median_s: float
    cpu_s: float
    peak_mb: float

    @classmethod
    def of(cls, wall_s: list[float], cpu_s: list[float], peak_mb: float) -> Figures:
        """Return the summary of several repetitions."""
        return cls(min(wall_s), statistics.median(wall_s), min(cpu_s), peak_mb)


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time by which peers must have answered, so that a quick run ends."""

    at_s: float = math.inf

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return a deadline in some seconds."""
        return cls(time.monotonic() + seconds)

    def left_s(self, most_s: float) -> float:
        """Return how long one peer may take, at most `most_s`."""
        return max(1.0, min(most_s, self.at_s - time.monotonic()))


def contest(
    contestants: Mapping[str, Mapping[str, Any]], repeats: int, *, warm: bool = True, most_s: float = math.inf
) -> dict[str, Figures]:
    """Time contestants, given by their arguments, in turn; `warm` leaves out the first round.

    No turn is begun after `most_s` seconds, and if the first one took longer than that, it is the one that counts.
    """
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
    opened: dict[str, subprocess.Popen[str]] = {}
    peaks_mb: dict[str, float] = {}
    try:
        for name, arguments in contestants.items():
            opened[name] = _open(arguments)
            _read(name, opened[name])
        started_s = time.monotonic()
        for turn in range(repeats + warm):
            if turn and time.monotonic() - started_s > most_s:
                break
            for name, process in opened.items():
                _tell(process, f"{next(NUMBERS)}\n")
                taken[name].append(_read(name, process))
        for name, process in opened.items():
            cast(IO[str], process.stdin).close()
            peaks_mb[name] = _read(name, process)["peak_mb"]
            process.wait()
    finally:
        for process in opened.values():
            if process.poll() is None:
                process.kill()
            process.__exit__(None, None, None)
    return {
        name: Figures.of([one["wall_s"] for one in counted], [one["cpu_s"] for one in counted], peaks_mb[name])
        for name, records in taken.items()
        if (counted := records[warm:] or records)
    }


def peer(name: str, *, timeout_s: float = peers.SCRIPT_TIMEOUT_S, **arguments: Any) -> Figures | None:
    """Run a peer on the same query; return None if it is not installed or does not answer in time."""
    found = told(name, timeout_s=timeout_s, task="time", **arguments)
    return None if found is None else Figures.of(found["wall_s"], found["cpu_s"], found["peak_mb"])


def told(name: str, *, timeout_s: float, **arguments: Any) -> dict[str, Any] | None:
    """Run a peer's query script; its failure is reported and ends nothing."""
    try:
        return peers.run(name, SCRIPTS / f"query_{name}.py", timeout_s=timeout_s, **arguments)
    except peers.PeerFailed as failure:
        sys.stderr.write(f"{name} gave no figure: {failure}\n")
        return None


def question(*, by: str, groups: int, groups_per_unit: int, rows_per_group: int, public: bool = True) -> dict[str, Any]:
    """Return the arguments that every peer's script takes; `keys` is 0 where keys are not public."""
    return {
        "by": by,
        "groups": groups,
        "keys": groups if public else 0,
        "groups_per_unit": groups_per_unit,
        "rows_per_group": rows_per_group,
        "bounds": [float(LOWER), float(UPPER)],
        "epsilon": 1.0,
        "delta": DELTA,
    }


def _open(arguments: Mapping[str, Any]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.queries.contestant", json.dumps(dict(arguments))]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _tell(process: subprocess.Popen[str], line: str) -> None:
    place = cast(IO[str], process.stdin)
    place.write(line)
    place.flush()


def _read(name: str, process: subprocess.Popen[str]) -> dict[str, float]:
    line = cast(IO[str], process.stdout).readline()
    if not line:
        raise ContestantFailed(f"{name} ended with {process.wait()} before it had answered")
    return cast(dict[str, float], json.loads(line))
