"""The tutorial and the how-to guide work: their shell blocks run in order in an empty folder, as a reader would."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tacit.server.process import free_port
from tacit.server.settings import Settings
from tests.style.markdown import LINK, blocks
from tests.style.rules import ROOT

TUTORIAL: Final = ROOT / "docs/tutorial/first-private-answer.md"
HOW_TO: Final = ROOT / "docs/how-to/serve-a-folder.md"
AUDIT: Final = ROOT / "docs/how-to/audit-a-table.md"
ADDRESS: Final = "http://127.0.0.1:8321"
SECONDS_MAX: Final = 120


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose `tacit` is that of this tree."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "tacit").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tacit "$@"\n')
    (programs / "tacit").chmod(0o755)
    given = {name: text for name, text in os.environ.items() if not name.startswith("TACIT_")}
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**given, "PATH": path, "PYTHONPATH": str(ROOT / "src")}


def shell(block: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a block and return what it wrote to standard output."""
    done = subprocess.run(
        ["sh", "-e"],
        input=block,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def serving(line: str, folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Run a `tacit serve` of a guide on a free port, and yield its address."""
    settings = free_port(Settings(folder=folder, port=0))
    words = [*shlex.split(line), "--port", str(settings.port), "--json"]
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert settings.url in process.stdout.readline()
            yield settings.url
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS_MAX)


def run_guide(guide: Path, folder: Path, environment: dict[str, str]) -> list[str]:
    """Run the shell blocks of a guide in order and return their outputs; after `tacit serve` the server runs."""
    outputs: list[str] = []
    before = [*blocks("sh", guide)]
    after: list[str] = []
    server = next((block for block in before if block.startswith("tacit serve")), None)
    if server is not None:
        place = before.index(server)
        before, after = before[:place], before[place + 1 :]
    outputs += [shell(block, folder, environment) for block in before]
    if server is not None:
        with serving(server.strip(), folder, environment) as url:
            outputs += [shell(block.replace(ADDRESS, url), folder, environment) for block in after]
    return outputs


def test_the_tutorial_leads_from_an_empty_folder_to_an_answer_and_the_guide_from_there_to_a_server(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    shown = run_guide(TUTORIAL, folder, environment)
    assert "sex,n,n_low,n_high\nF," in shown[4]
    assert shown[5].count("visits,0.5,2.5,3,") == 1, "the query was repeated at no cost"
    assert "north" in shown[6]
    served = run_guide(HOW_TO, folder, environment)
    assert "sex,n,n_low,n_high\nF," in served[3]
    assert "ana on visits,0.2,0.8,1," in served[3]
    assert "answer-released" in served[4]


def test_the_guide_to_an_audit_refutes_a_claim_and_accepts_it_for_coarser_records(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    shown = run_guide(AUDIT, folder, environment)
    assert "released.csv,linkage,violates," in shown[1]
    assert "released.csv,attribute_linkage,violates," in shown[2]
    assert "coarse.csv,linkage,consistent," in shown[3]
    assert (folder / "findings.xml").exists()


@pytest.mark.parametrize("guide", [TUTORIAL, HOW_TO, AUDIT], ids=lambda guide: guide.name)
def test_every_link_of_a_guide_leads_somewhere_and_the_readme_names_it(guide: Path) -> None:
    targets = LINK.findall(guide.read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (guide.parent / target).exists()] == []
    assert str(guide.relative_to(ROOT)) in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
