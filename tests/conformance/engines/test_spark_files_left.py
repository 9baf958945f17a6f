"""A Spark that an engine starts writes nothing into the current folder, and removes its temporary files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.style.rules import ROOT
from tests.support.spark_session import OPTIONS

pytest.importorskip("pyspark")

SCRIPT = """
from tacit.engines.spark import sessions

session = sessions.open_session("local[1]")
session.sql("CREATE SCHEMA extra")
print(session.catalog.databaseExists("extra"))
sessions.close_session(session)
"""


@pytest.mark.soak  # it starts a Java of its own
def test_a_local_spark_leaves_no_files_behind(tmp_path: Path) -> None:
    current, temporary = tmp_path / "current", tmp_path / "temporary"
    current.mkdir()
    temporary.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(temporary), "JDK_JAVA_OPTIONS": OPTIONS}
    command = [sys.executable, "-c", SCRIPT]
    said = subprocess.run(command, cwd=current, env=environment, capture_output=True, text=True, check=False)
    assert said.stdout == "True\n", said.stderr
    assert list(current.iterdir()) == []
    assert [path.name for path in temporary.iterdir() if path.name.startswith("tacit-")] == []
