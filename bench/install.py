"""Installation: time from a fresh clone to the first private answer, and the download size of the core.

What is cloned is the last commit, not the working tree. The first run makes the virtual environment without pip's
cache; the second finds everything in place. Network and disk are those of the machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.results import Result

ROOT: Final = Path(__file__).parent.parent
FIRST_ANSWER: Final = "private answer"
"""What stands on the line of `tacit demo` that holds the first answer."""


def run(quick: bool) -> Iterator[Result]:
    """Time `make demo` on a fresh clone, cold and warm, and weigh the core; `quick` leaves the weighing out."""
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as folder:
        clone = Path(folder) / "tacit"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        yield Result("first private answer, fresh clone", seconds_to_first_answer(clone), "s", goal=60)
        yield Result("first private answer, second run", seconds_to_first_answer(clone), "s", goal=2)
        if not quick:
            yield Result("core download", download_megabytes(clone, Path(folder) / "wheels"), "MB", goal=80)


def seconds_to_first_answer(clone: Path) -> float:
    """Run `make demo` to its end and return after how many seconds the first private answer stood there."""
    command = ["make", "--silent", "demo", "DEMO=--no-serve", f"PYTHON={sys.executable}"]
    environment = {**os.environ, "PIP_NO_CACHE_DIR": "1"}
    started_s = time.perf_counter()
    answered_s: float | None = None
    with subprocess.Popen(command, cwd=clone, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if answered_s is None and FIRST_ANSWER in line:
                answered_s = time.perf_counter() - started_s
    if process.returncode or answered_s is None:
        raise SystemExit(f"make demo gave no private answer and ended with {process.returncode}")
    return answered_s


def download_megabytes(clone: Path, wheels: Path) -> float:
    """Download the core at its tested versions and add up the files."""
    pip = [str(clone / ".venv/bin/python"), "-m", "pip", "--disable-pip-version-check", "-qq"]
    options = ["--no-cache-dir", "--constraint", "constraints.txt", "--dest", str(wheels)]
    subprocess.run([*pip, "download", *options, "."], cwd=clone, check=True)
    return sum(file.stat().st_size for file in wheels.iterdir()) / 1e6
