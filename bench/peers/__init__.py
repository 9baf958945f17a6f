"""Libraries to compare with, each in its own virtual environment with pinned requirements.

`NAME.txt` in this folder pins what a peer needs; `python -m bench.peers install NAME` makes its environment; `run`
starts a script there and returns what it measured. Peers never share tacit's environment: their pins contradict ours
and one another's.

A script is a file that takes one JSON object of arguments as its first argument and writes one JSON object as the last
line of its standard output.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
ENVIRONMENTS: Final = HERE / ".venvs"
INSTALL_COMMAND: Final = "python -m bench.peers install"
SCRIPT_TIMEOUT_S: Final = 600.0
ERROR_LINES_MAX: Final = 20


class PeerFailed(Exception):
    """A peer's environment could not be created, or its script ended without an answer."""


def names() -> list[str]:
    """Return the names of all peers with pinned requirements."""
    return sorted(path.stem for path in HERE.glob("*.txt"))


def is_installed(name: str) -> bool:
    """Return whether the peer's environment was made from its current requirements."""
    stamp, requirements = _stamp(name), HERE / f"{name}.txt"
    return stamp.exists() and stamp.read_text() == requirements.read_text()


def install(name: str) -> None:
    """Create the peer's environment from its pinned requirements."""
    folder, requirements = ENVIRONMENTS / name, HERE / f"{name}.txt"
    _call([sys.executable, "-m", "venv", "--clear", str(folder)])
    pip = [str(_python(name)), "-m", "pip", "--disable-pip-version-check", "-qq", "install"]
    _call([*pip, "--requirement", str(requirements)])
    _stamp(name).write_text(requirements.read_text())


def run(name: str, script: Path, *, timeout_s: float = SCRIPT_TIMEOUT_S, **arguments: Any) -> dict[str, Any] | None:
    """Run `script` in the peer's environment and return its answer, or None where the peer is not installed."""
    if not is_installed(name):
        return None
    output = _call([str(_python(name)), "-I", str(script), json.dumps(arguments)], timeout_s=timeout_s)
    answer = _last_object(output)
    if answer is None:
        raise PeerFailed(f"{script.name} wrote no JSON object as its last line")
    return answer


def _last_object(output: str) -> dict[str, Any] | None:
    lines = output.strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _python(name: str) -> Path:
    return ENVIRONMENTS / name / "bin" / "python"


def _stamp(name: str) -> Path:
    return ENVIRONMENTS / name / "installed.txt"


def _call(command: list[str], *, timeout_s: float | None = None) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"{' '.join(command[:3])} was stopped after {timeout_s} s") from None
    if done.returncode:
        last_lines = "\n".join(done.stderr.strip().splitlines()[-ERROR_LINES_MAX:])
        raise PeerFailed(f"{' '.join(command[:3])} ended with {done.returncode}:\n{last_lines}")
    return done.stdout
