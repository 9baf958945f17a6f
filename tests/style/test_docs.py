"""The documentation says what the code does: generated pages are fresh, and what the README shows works."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from bench.__main__ import benchmark_names
from docs import generate
from tacit.cli.app import app, run
from tacit.cli.commands.errors import error_entries
from tests.style.markdown import LINK, blocks
from tests.style.rules import ROOT

GUIDES: Final = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
EXPLANATIONS: Final = sorted((ROOT / "docs/explanation").glob("*.md"))
SHELL_LINES: Final = [line for block in blocks("sh") for line in block.splitlines()]
COMMANDS: Final = {
    page.name: [line for block in blocks("sh", page) for line in block.splitlines() if line.startswith("tacit ")]
    for page in (ROOT / "README.md", *EXPLANATIONS)
}


def test_the_readme_shows_every_kind_of_line_that_is_checked_here() -> None:
    assert {shlex.split(line)[0] for line in SHELL_LINES} == {"make", ".", "tacit", "python"}
    assert blocks("python")


def test_generated_pages_are_what_the_code_says_now() -> None:
    old = [page.name for page, text in generate.pages().items() if page.read_text(encoding="utf-8") != text]
    assert not old, "run `make docs`"


PAGES: Final = [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").rglob("*.md"))]
OTHER_WORDS: Final = {
    "query": r"\bquestions?\b(?!\.ask|\.preview|_s| mark|` divides)",  # stable names stay
    "remaining": r"ε left",
    "refused (privacy, budget, access or unsupported SQL)": r"refused for privacy",
}
"""What pages for users call by one word, and the other words for it."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_for_users_have_one_word_for_one_thing(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = {word: re.findall(rf".*{others}.*", text, re.IGNORECASE) for word, others in OTHER_WORDS.items()}
    assert not any(found.values()), found


def test_every_error_code_has_a_row_in_the_reference() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    assert [entry.code for entry in error_entries()] == re.findall(r"^\| (T\d{3}) \|", page, re.MULTILINE)


def test_every_command_has_a_section_in_the_reference() -> None:
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    with app.make_context("tacit", [], resilient_parsing=True) as context:
        names = app.list_commands(context)
    assert re.findall(r"^## tacit (\S+)$", page, re.MULTILINE) == names
    assert "## tacit account epsilon" in page


@pytest.mark.parametrize("page", [page for page, lines in COMMANDS.items() if lines])
def test_the_tacit_commands_of_a_page_work_one_after_another_in_an_empty_folder(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in COMMANDS[page]:
        assert run(shlex.split(line)[1:]) == 0, line
        assert capsys.readouterr().out, line


@pytest.mark.parametrize("line", [line for line in SHELL_LINES if line.startswith("make ")])
def test_a_make_command_of_the_readme_exists(line: str) -> None:
    outcome = subprocess.run([*shlex.split(line), "--dry-run"], cwd=ROOT, capture_output=True, check=False)
    assert outcome.returncode == 0


@pytest.mark.parametrize("line", [line for line in SHELL_LINES if line.startswith("python ")])
def test_a_benchmark_of_the_readme_exists(line: str) -> None:
    interpreter, flag, module, *arguments = shlex.split(line)
    assert (interpreter, flag, module) == ("python", "-m", "bench")
    assert set(arguments) <= {"--list", "--quick", "--json", *benchmark_names()}


def test_the_python_of_the_readme_runs_and_prints_what_it_says() -> None:
    program = "\n".join(blocks("python"))
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    promised = re.findall(r"print\(.*\) +# (.*)$", program, re.MULTILINE)
    assert outcome.stdout.splitlines() == promised


@pytest.mark.parametrize("guide", GUIDES)
def test_every_link_between_files_leads_somewhere(guide: str) -> None:
    targets = LINK.findall((ROOT / guide).read_text(encoding="utf-8"))
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_a_link_that_leads_nowhere_would_be_seen() -> None:
    assert LINK.findall("[here](README.md) [part](docs/x.md#part) [web](https://example.org)") == [
        "README.md",
        "docs/x.md",
    ]
