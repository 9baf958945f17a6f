"""`tacit table edit` without options: the catalog in an editor, replaced only by what can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tacit.cli.app import run
from tacit.privacy import Bounds
from tests.unit.cli.table_commands import ADD, registered, run_table
from tests.unit.cli.terminal import Typist

EDITOR = """\
import sys
from pathlib import Path
file, turns = Path(sys.argv[1]), Path("turns")
texts = turns.read_text().split("\\0")
text = file.read_text()
old, new = texts[0].split("\\1")
assert old in text
file.write_text(text.replace(old, new))
turns.write_text("\\0".join(texts[1:]))
"""


@pytest.fixture
def editor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that prepares what the editor replaces, turn by turn."""
    import sys

    (folder.parent / "editor.py").write_text(EDITOR)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {folder.parent / 'editor.py'}")
    monkeypatch.delenv("VISUAL", raising=False)
    assert run_table(*ADD, "--unit", "patient_id", "--bounds", "age=0:119") == 0

    def prepare(*turns: tuple[str, str]) -> None:
        (folder.parent / "turns").write_text("\0".join("\1".join(turn) for turn in turns))

    return prepare


def test_what_is_saved_in_an_editor_replaces_the_file(
    folder: Path, editor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(("[0, 119]", "[0, 110]"))
    exit_code, shown = Typist(monkeypatch).runs("table", "edit", "visits", "--folder", "clinic")
    assert (exit_code, shown) == (
        0,
        "changed clinic/catalog.toml: 1 table\nvisits, age: 0 to 119 → 0 to 110\n",
    )
    assert registered(folder).column("age").facts == Bounds(0, 110)


def test_an_edited_data_set_does_not_hide_what_was_spent(
    folder: Path, editor: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["budget", "set", "visits", "--epsilon", "1", "--folder", "clinic"]) == 0
    assert run(["sql", "SELECT COUNT(*) FROM visits", "--epsilon", "0.5", "--folder", "clinic"]) == 0
    editor(("\nunit = ", '\ndataset = "other"\nunit = '))
    exit_code, _ = Typist(monkeypatch).runs("table", "edit", "--folder", "clinic")
    assert exit_code == 0
    assert "visits: what was spent from the budget of visits (epsilon 0.5," in capsys.readouterr().err


def test_what_cannot_be_read_is_edited_again(
    folder: Path, editor: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    editor(("[0, 119]", "[119, 0]"), ("[119, 0]", "[1, 119]"))
    exit_code, _ = Typist(monkeypatch).runs("table", "edit", "visits", "--folder", "clinic", types=["y"])
    assert exit_code == 0
    assert "119 > 0" in capsys.readouterr().err
    assert registered(folder).column("age").facts == Bounds(1, 119)


def test_what_cannot_be_read_is_discarded_on_demand(folder: Path, editor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(("[0, 119]", "[119, 0]"))
    exit_code, _ = Typist(monkeypatch).runs("table", "edit", "visits", "--folder", "clinic", types=["n"])
    assert exit_code == 2
    assert registered(folder).column("age").facts == Bounds(0, 119)


def test_a_broken_catalog_can_be_mended_in_an_editor(
    folder: Path, editor: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "catalog.toml"
    path.write_text(path.read_text().replace("[0, 119]", "[0, 119"))
    editor(("[0, 119", "[0, 119]"))
    assert Typist(monkeypatch).runs("table", "edit", "visits", "--folder", "clinic")[0] == 0
    assert "this is not valid TOML" in capsys.readouterr().err
    assert registered(folder).column("age").facts == Bounds(0, 119)


def test_an_editor_that_changes_nothing_changes_nothing(
    folder: Path, editor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (folder / "catalog.toml").read_bytes()
    editor(("[0, 119]", "[0, 119]"))
    _, shown = Typist(monkeypatch).runs("table", "edit", "--folder", "clinic")
    assert shown == "nothing was changed\n"
    assert (folder / "catalog.toml").read_bytes() == before
