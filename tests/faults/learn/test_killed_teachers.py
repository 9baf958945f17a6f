"""A training of teachers that is killed continues with the teachers that are missing, and was charged nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from tacit.learn.pate.teachers import TeacherTraining
from tacit.mechanisms.simulation import SeededSource

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 2))
Y = (X[:, 0] > 0).astype(np.int64)
QUERIES = RNG.normal(size=(30, 2))
TRAINED: list[int] = []


def teacher(x: np.ndarray, y: np.ndarray) -> Any:
    """Classify by the nearest mean; slow enough to be killed in between."""
    time.sleep(float(os.environ.get("TEACHER_S", "0")))
    TRAINED.append(len(x))
    means = np.stack([x[y == label].mean(axis=0) for label in (0, 1)])
    return lambda queries: np.argmin(((queries[:, None] - means) ** 2).sum(axis=2), axis=1)


def run(folder: Path | None) -> np.ndarray:
    training = TeacherTraining(teacher, 20, 2, X, Y, np.arange(200))
    return training.votes(QUERIES, SeededSource(1), folder=folder)


def test_a_killed_training_continues_where_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "teachers"
    here = Path(__file__)
    code = f"import sys; sys.path.insert(0, {str(here.parent)!r}); import pathlib, {here.stem} as t; "
    code += f"t.run(pathlib.Path({str(folder)!r}))"
    child = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "TEACHER_S": "0.2"})
    deadline = time.monotonic() + 60
    while len(list(folder.glob("votes-*.npy"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    kept = len(list(folder.glob("votes-*.npy")))
    assert 3 <= kept < 20
    TRAINED.clear()
    found = run(folder)
    assert len(TRAINED) == 20 - kept
    assert (found == run(None)).all()
