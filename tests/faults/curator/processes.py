"""A process that asks what others ask at the same moment: `python -m tests.faults.curator.processes FOLDER GATE`.

It says that it is ready, waits until the file GATE is there, asks one question and one statistic, and prints both
answers and what they cost as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Final

import tacit

SQL: Final = "SELECT COUNT(*) AS n FROM visits"


def main(folder: Path, gate: Path) -> None:
    """Ask when the gate opens."""
    with tacit.Curator(folder) as curator:
        curator.preview(SQL, epsilon=0.5)
        print("ready", flush=True)
        while not gate.exists():
            time.sleep(0.001)
        release = curator.sql(SQL, epsilon=0.5, analyst="ana")
        answer = tacit.stats.mean(curator.table("visits")["age"], epsilon=0.5, analyst="ana")
        print(json.dumps([release.rows[0]["n"], answer.value]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
