"""Imports point inwards only, and ARCHITECTURE.md shows the rings as they are."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.style.rules import ROOT

RING_ROW: Final = re.compile(r"^\| \w+ \| `(?P<folder>\w+)/` \| (?P<state>here|planned) \|", re.MULTILINE)
FOLDERS: Final = {path.parent.name for path in (ROOT / "src/tacit").glob("*/__init__.py")}

OUTWARDS: Final = {
    "privacy/events.py": "from tacit.mechanisms import laplace",
    "storage/migrations.py": "from tacit.ledger import journal",
    "storage/files.py": "from tacit.mechanisms import laplace",
    "storage/postgres.py": "import tacit",
    "privacy/bounds.py": "import tacit.cli.output",
    "privacy/units.py": "import tacit",
    "accounting/closed_forms.py": "from tacit.mechanisms import laplace",
    "accounting/meaning.py": "def plot():\n    from tacit.report import trade_off",
    "mechanisms/laplace.py": "from tacit import TacitError",
    "cli/commands/sql.py": "def late():\n    from tacit.ledger.accounts import Sum",
    "cli/commands/stats.py": "from tacit.accounting.conversions import epsilon_of_rho",
    "cli/options.py": "from tacit.accounting import Cost",
    "mechanisms/values.py": "def late():\n    from tacit.cli import main",
}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of `folder/pyproject.toml` against the package that lies beside it."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src/tacit", tmp_path / "tacit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_imports_point_inwards_only(copy: Path) -> None:
    outcome = lint_imports(copy)
    assert outcome.returncode == 0, outcome.stdout


@pytest.mark.parametrize("module", OUTWARDS)
def test_an_import_that_points_outwards_is_noticed(copy: Path, module: str) -> None:
    with (copy / "tacit" / module).open("a", encoding="utf-8") as source:
        source.write(f"\n{OUTWARDS[module]}\n")
    outcome = lint_imports(copy)
    assert outcome.returncode == 1
    assert f"tacit.{module.removesuffix('.py').replace('/', '.')} -> " in outcome.stdout


def test_a_folder_without_a_place_in_the_rings_is_noticed(copy: Path) -> None:
    (copy / "tacit/nowhere").mkdir()
    (copy / "tacit/nowhere/__init__.py").write_text('"""Not in any ring."""\n')
    assert lint_imports(copy).returncode == 1


def test_the_architecture_names_exactly_the_folders_that_exist() -> None:
    rows = RING_ROW.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert {folder for folder, state in rows if state == "here"} == FOLDERS
    assert not {folder for folder, state in rows if state == "planned"} & FOLDERS


MODULE_ROW: Final = re.compile(r"^ {4}(?P<file>\w+\.py)\b", re.MULTILINE)


@pytest.mark.parametrize(
    "package", sorted((ROOT / "src/tacit").rglob("__init__.py")), ids=lambda path: path.parent.name
)
def test_every_module_that_a_package_lists_exists(package: Path) -> None:
    listed = MODULE_ROW.findall(ast.get_docstring(ast.parse(package.read_text()), clean=False) or "")
    assert not [name for name in listed if not (package.parent / name).exists()]
