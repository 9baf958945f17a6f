"""Commands that sentences name work when they are pasted, and NULL can be named where public values are."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tacit.cli.app import add_folder_flag, run

ROWS = "".join(f"{i},{20 + i % 60},{('a', 'b', '')[i % 3]}\n" for i in range(600))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text(f"patient,age,ward\n{ROWS}")
    assert run(["init", "my clinic"]) == 0
    words = ["table", "add", "visits", "visits.csv", "--unit", "patient", "--bounds", "age=0:120", "--folder"]
    assert run([*words, "my clinic"]) == 0
    return "my clinic"


def show_result(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(words)
    return code, *capsys.readouterr()


def test_the_command_of_a_refusal_works_when_it_is_pasted(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    question = ("sql", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1")
    code, _, err = show_result(capsys, *question, "--folder", folder)
    assert code == 2
    command = re.search(r"tacit (budget set .*)", err)
    assert command is not None
    assert run(shlex.split(command[1])) == 0
    assert run([*question, f"--folder={folder}"]) == 0


def test_the_refresh_that_a_changed_catalog_needs_is_named_with_the_folder(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["budget", "set", "visits", "--epsilon", "1", "--folder", folder]) == 0
    path = Path(folder) / "catalog.toml"
    path.write_text(path.read_text().replace("[0, 120]", "[0, 110]"))
    question = ("sql", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1", "--folder", folder)
    _, _, err = show_result(capsys, *question)
    command = re.search(r"tacit (table refresh .*)", err)
    assert command is not None
    assert run(shlex.split(command[1])) == 0
    assert run(question) == 0


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("run tacit table refresh visits", "run tacit table refresh --folder c visits"),
        ("the reason is there (tacit ledger show)", "the reason is there (tacit ledger show --folder c)"),
        ("see tacit access people list", "see tacit access people list --folder c"),
        ("ask tacit stats ... visits, then", "ask tacit stats ... --folder c visits, then"),
        (
            "tacit table edit a --dataset d && tacit table edit b --dataset d",
            "tacit table edit --folder c a --dataset d && tacit table edit --folder c b --dataset d",
        ),
        ("tacit init other", "tacit init other"),
        ("tacit budget set d --epsilon 1 --folder x", "tacit budget set d --epsilon 1 --folder x"),
        ("tacit is a word", "tacit is a word"),
    ],
)
def test_the_folder_stands_behind_the_words_of_the_command(sentence: str, expected: str) -> None:
    assert add_folder_flag(sentence, "c") == expected
    assert add_folder_flag(sentence, None) == sentence


def test_missing_values_are_named_as_keys_and_categories(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    at = ("--folder", folder, "--json")
    assert run(["budget", "set", "visits", "--epsilon", "100", "--folder", folder]) == 0
    by_ward = ("sql", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "--epsilon", "10")
    _, out, _ = show_result(capsys, *by_ward, "--keys", 'ward=["a", null]', *at)
    assert [row["ward"] for row in json.loads(out)["rows"]] == ["a", None]
    histogram = ["stats", "histogram", "visits", "ward", "--epsilon", "10", "--rows-per-unit", "1"]
    _, out, _ = show_result(capsys, *histogram, "--keys", '["b", null]', *at)
    assert [row["keys"]["ward"] for row in json.loads(out)["rows"]] == ["b", None]
    assert run(["table", "edit", "visits", "--categories", 'ward=["a", "b", null]', "--folder", folder]) == 0
    assert 'categories = ["a", "b", { missing = true }]' in (Path(folder) / "catalog.toml").read_text()
    _, out, _ = show_result(capsys, *by_ward, *at)
    assert [row["ward"] for row in json.loads(out)["rows"]] == ["a", "b", None]


@pytest.mark.parametrize("text", ['["a", nul]', '["a"', '[["a"]]', "[0.5]", "[a],[b]"])
def test_a_list_that_is_no_json_is_refused(text: str, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["table", "edit", "visits", "--categories"], ["sql", "SELECT 1", "--epsilon", "1", "--keys"]):
        code, _, err = show_result(capsys, *words, f"ward={text}", "--folder", folder)
        assert code == 2
        assert "JSON list" in err


def test_texts_in_a_list_of_json_stay_texts(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "edit", "visits", "--categories", 'ward=["null", "a,b", "007"]', "--folder", folder]) == 0
    assert 'categories = ["null", "a,b", "007"]' in (Path(folder) / "catalog.toml").read_text()


@pytest.mark.parametrize("words", ["sql", "preview", "table add", "stats histogram"])
def test_the_help_says_how_a_missing_value_is_named(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = show_result(capsys, *words.split(), "--help")
    assert "null]" in " ".join(out.split())
