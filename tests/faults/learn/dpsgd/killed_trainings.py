"""Kill trainings between every two operations of a step, resume them, and print what came of each.

Run as a program by `test_killed_training`: it forks before it has threads, so torch is loaded once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import tacit.learn
from tacit import attack
from tacit.learn.dpsgd import checkpoints
from tacit.ledger import Ledger
from tacit.mechanisms.bulk_gaussian import BulkGaussian
from tacit.pipeline.steps import StepAnchor
from tests.support.trainings import model, optimizer, private, rows, train

STEPS = 6
POINTS: dict[str, tuple[Any, str, bool]] = {
    "before the noise": (BulkGaussian, "add", False),
    "after the noise": (BulkGaussian, "add", True),
    "after the weights are changed": (torch.optim.SGD, "step", True),
    "before the state is written": (checkpoints, "_replace", False),
    "before it gets its name": (checkpoints.os, "replace", False),
    "after it has its name": (checkpoints.os, "replace", True),
    "before it is noted": (StepAnchor, "advance", False),
    "after it is noted": (StepAnchor, "advance", True),
}


def kill_at(place: Any, name: str, is_after: bool) -> None:
    """Replace a function by one that kills the process before or after the function is called."""
    plain: Callable[..., Any] = getattr(place, name)

    def killing(*arguments: Any, **keywords: Any) -> None:
        if is_after:
            plain(*arguments, **keywords)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(place, name, killing)


def forked(work: Callable[[], None]) -> int:
    """Run a function in a forked process, and return the status that it ended with."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitpid(child, 0)[1]


def one_case(folder: Path, point: str, every: int, kills: int) -> dict[str, Any]:
    folder.mkdir()
    with Ledger.open(folder / "ledger") as ledger:
        ledger.create_budget("visits", 30.0, 1e-3)

    def begin() -> None:
        with Ledger.open(folder / "ledger") as ledger:
            training = private(
                budget=ledger.budget("visits"),
                steps=STEPS,
                checkpoint=folder / "state",
                checkpoint_every=every,
                audit=20,
            )
            train(training, 2)
            kill_at(*POINTS[point])
            train(training)

    def resume(*, is_killed: bool) -> None:
        with Ledger.open(folder / "ledger") as ledger:
            net = model(seed=9)
            training = tacit.learn.resume(
                folder / "state",
                net,
                optimizer(net),
                rows(),
                budget=ledger.budget("visits"),
                checkpoint_every=every,
            )
            if is_killed:
                kill_at(*POINTS[point])
            train(training)
            (folder / "end").write_text(json.dumps([training.steps, training._progress.counted]))

    statuses = [forked(begin), *(forked(lambda: resume(is_killed=True)) for _ in range(kills - 1))]
    last = forked(lambda: resume(is_killed=False))
    steps, counted = json.loads((folder / "end").read_text())
    with Ledger.open(folder / "ledger") as ledger:
        charges = sum(record.kind == "reserved" for record in ledger.history())
        left = len(ledger.reservations())
    return {"killed": statuses, "last": last, "steps": steps, "counted": counted, "charges": charges, "left": left}


def main() -> None:
    """Print the outcomes by point as JSON."""
    attack.attacks()  # what is loaded and computed here is not in every child
    private(steps=STEPS)
    folder, every, kills = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    points = list(POINTS)[int(sys.argv[4]) :: 2] if len(sys.argv) > 4 else list(POINTS)
    found = {point: one_case(folder / str(number), point, every, kills) for number, point in enumerate(points)}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
