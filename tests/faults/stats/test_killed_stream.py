"""A running total whose process is killed at any moment goes on with the same noise, and pays nothing again.

The steps are told by a child process that writes what it was given, and is killed without notice (SIGKILL) at a moment
that differs from run to run, or at a stated line: after the noise of a step is used and before it is stored, after it
is stored and before it is released.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tacit import Budget
from tacit.ledger import Ledger, LedgerBudget
from tacit.stats import RunningCount
from tacit.stats.stream_files import decode_state
from tacit.stats.streams import _prefix_sums

STEPS: Final = [17, 3, 250, 0, 12, 9, 88, 41, 5, 6] * 20

CHILD: Final = """
import os, signal, sys
from pathlib import Path
from tacit.ledger import Ledger, LedgerBudget
from tacit.stats import RunningCount
from tacit.pipeline import StepAnchor
from tacit.stats.stream_files import StateFile

path, log, steps, when = Path(sys.argv[1]), Path(sys.argv[2]), eval(sys.argv[3]), sys.argv[4]
append = StateFile.append

def killed(self, data):
    if when == "before" and running.steps == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    if when == "torn" and running.steps == 6:
        os.pwrite(self._file, data[:11], self._size)
        os.kill(os.getpid(), signal.SIGKILL)
    append(self, data)
    if when == "after" and running.steps == 6:
        os.kill(os.getpid(), signal.SIGKILL)

def noted(self, *given):
    advance(self, *given)
    if when == "noted" and running.steps == 6:
        os.kill(os.getpid(), signal.SIGKILL)

advance, StepAnchor.advance = StepAnchor.advance, noted

StateFile.append = killed
running = RunningCount.open(path, budget=Ledger.open(path.parent / "ledger").budget("visits"))
with log.open("a") as file:
    for step in range(running.steps, len(steps)):
        total = running.add(steps[step], step=step)
        file.write(f"{step} {total.estimate!r}\\n")
        file.flush()
"""


def told(path: Path, log: Path, when: str, seconds: float | None = None) -> int:
    command = [sys.executable, "-c", CHILD, str(path), str(log), repr(STEPS), when]
    child = subprocess.Popen(command)
    if seconds is not None:
        deadline = time.monotonic() + 60
        while not log.exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(seconds)
        child.kill()
    return child.wait()


def released(log: Path) -> list[tuple[int, str]]:
    """Return what was released, without a line that was cut off."""
    lines = log.read_text().splitlines(keepends=True)
    return [(int(line.split()[0]), line.split()[1]) for line in lines if line.endswith("\n")]


@pytest.mark.parametrize("when", ["before", "torn", "after", "noted", "any moment"])
def test_a_killed_stream_releases_no_two_numbers_for_one_step_and_is_charged_once(when: str, tmp_path: Path) -> None:
    path, log = tmp_path / "state", tmp_path / "log"
    with Ledger.open(tmp_path / "ledger") as ledger:
        compared(when, path, log, ledger.create_budget("visits", 1.0, 1e-6))


def compared(when: str, path: Path, log: Path, budget: LedgerBudget) -> None:
    """Hold what a stream released that was killed against what it would have released."""
    running = RunningCount(len(STEPS), budget=budget, rho=0.01, path=path)
    spent = budget.spent().epsilon
    start = decode_state(running.to_bytes())
    expected = _prefix_sums(start.header, start.noises)
    running.close()
    assert told(path, log, when, 0.02 if when == "any moment" else None) in (-9, 0)
    with RunningCount.open(path, budget=budget) as again:
        stored = again.steps
        for step in range(stored, len(STEPS)):
            again.add(STEPS[step])
    never_killed = []
    for place, step in enumerate(STEPS, 1):
        expected.measure(step)
        never_killed.append(expected.total(place)[0])
    seen = released(log)
    assert stored >= len(seen)  # nothing was released that was not stored
    assert [repr(never_killed[step]) for step, _ in seen] == [number for _, number in seen]
    with RunningCount.open(path, budget=budget) as after:
        assert [row["value"] for row in after.rows] == [max(0, round(number)) for number in never_killed]
    assert budget.spent().epsilon == spent
    if when != "any moment":
        assert stored == (6 if when in ("after", "noted") else 5)
        assert len(seen) == 5


def test_fresh_noise_after_a_crash_would_be_seen(tmp_path: Path) -> None:
    """The planted bug: noise that is drawn anew when a state is opened."""
    running = RunningCount(8, budget=Budget(1.0), epsilon=0.01)
    start = decode_state(running.to_bytes())
    first = [running.add(5).estimate for _ in range(8)]
    for noises, is_same in ((start.noises, True), (tuple(noise[::-1].copy() for noise in start.noises), False)):
        again = _prefix_sums(start.header, noises)
        for _ in range(8):
            again.measure(5)
        assert ([again.total(place)[0] for place in range(1, 9)] == first) is is_same
