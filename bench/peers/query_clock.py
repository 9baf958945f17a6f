# mypy: ignore-errors
"""Shared by the query scripts of all peers: arguments, timing, and the form of the answer.

A task is either `time` (the same question several times over, in seconds, CPU seconds and peak memory) or `errors` (the
answers themselves, several times over, by group).
"""

import json
import sys
import time
from pathlib import Path

arguments = json.loads(sys.argv[1])


def peak_mb() -> float:
    """Return the most memory that this process has held, without what its parent held before it started."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("the kernel does not say how much memory was held")


def timed(ask) -> None:
    """Run the query `repeats` times, including the first, and write the measured times."""
    wall, cpu = [], []
    for _ in range(arguments["repeats"]):
        started_s, started_cpu_s = time.perf_counter(), time.process_time()
        ask()
        wall.append(time.perf_counter() - started_s)
        cpu.append(time.process_time() - started_cpu_s)
    answer({"wall_s": wall, "cpu_s": cpu, "peak_mb": peak_mb()})


def answer(record) -> None:
    """Write the object that is the script's answer."""
    sys.stdout.write(json.dumps(record) + "\n")
