"""The eight tables as Parquet files, made by `tpchgen-cli` and kept in the system's temporary place."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

CACHE: Final = Path(tempfile.gettempdir()) / "tacit-bench-tpch"
GENERATOR: Final = "tpchgen-cli"
INSTALL_COMMAND: Final = "pip install tpchgen-cli"


class Missing(Exception):
    """What the benchmark needs is not installed."""


def folder(scale: float) -> Path:
    """Return the folder of the tables at a scale, made if it is missing."""
    kept = CACHE / f"scale-{scale:g}"
    if kept.exists():
        return kept
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as place:
        made = Path(place) / "made"
        command = [_generator(), "parquet", "--scale-factor", f"{scale:g}", "--output-dir", str(made)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        made.rename(kept)
    return kept


def _generator() -> str:
    beside = Path(sys.executable).parent / GENERATOR
    found = str(beside) if beside.exists() else shutil.which(GENERATOR)
    if found is None:
        raise Missing(f"{GENERATOR} makes the tables and is not installed; {INSTALL_COMMAND}")
    return found
