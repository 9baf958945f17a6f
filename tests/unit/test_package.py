"""The package's own names: few, all there, and loaded only when they are named."""

import subprocess
import sys

import pytest

import tacit
from tests.style.rules import ROOT

SURFACES = {"cli", "report", "server"}
INTERNAL = {"measuring", "pipeline", "storage", "wire"}


@pytest.mark.parametrize("name", tacit.__all__)
def test_every_name_of_the_package_is_there(name: str) -> None:
    assert getattr(tacit, name) is not None
    assert name in dir(tacit)


def test_every_part_but_surfaces_and_internal_ones_is_a_name_of_the_package() -> None:
    folders = {path.parent.name for path in (ROOT / "src/tacit").glob("*/__init__.py")}
    assert folders - SURFACES - INTERNAL <= set(tacit.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tacit' has no attribute 'Budgets'"):
        _ = tacit.Budgets


def test_importing_the_package_loads_no_part_of_it_but_its_version() -> None:
    program = "import sys, tacit; print(sorted(name for name in sys.modules if name.startswith('tacit.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['tacit.version']\n"
