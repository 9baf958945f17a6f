"""Two processes of torch.distributed train one model with the noise and the charge of one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("two_processes.py")


@pytest.mark.soak  # two more imports of torch
def test_two_processes_pay_once_and_have_the_same_weights(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    started = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(rank), str(port), str(tmp_path)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for one in started:
        _, said = one.communicate(timeout=300)
        assert one.returncode == 0, said
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first["weights"] == second["weights"]
    assert first["clip"] == second["clip"]
    assert (first["steps"], first["units"]) == (second["steps"], second["units"]) == (20, 400)
    assert first["epsilon"] == second["epsilon"] <= 1.0
    assert (first["charges"], second["charges"]) == (1, None)
    assert first["finding"] == "consistent"
    assert first["ratio"][1] <= 1.0005 <= first["ratio"][2]  # noise once, not once per process
    assert first["correlated"] == second["correlated"]  # with banded noise
    assert first["groups"] != second["groups"]
    assert first["same groups"]
    assert second["same groups"]
    assert first["correlated ratio"][1] <= 1.001 <= first["correlated ratio"][2]
    assert first["refusals"] == ["BudgetExceeded", "InvalidInput"]
    assert second["refusals"] == [True, True]
