"""A benchmark writes nothing into the tree that it is run in."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.style.rules import ROOT

NOT_COPIED = (".git", ".venv*", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info", "dist", "build")


def git(tree: Path, *arguments: str) -> str:
    command = ["git", "-C", str(tree), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_quick_benchmark_leaves_the_tree_as_it_was(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*NOT_COPIED))
    git(tree, "init", "--quiet")
    git(tree, "add", "--all")
    before = git(tree, "status", "--porcelain", "--ignored")
    environment = {**os.environ, "PYTHONPATH": "src", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "bench", "noise", "--quick", "--json"]
    said = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert '"metric"' in said.stdout
    assert git(tree, "status", "--porcelain", "--ignored") == before
