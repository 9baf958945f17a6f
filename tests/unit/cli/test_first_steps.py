"""What newcomers stumble over: misspelt names, rows that are people, budgets that do not add up, pipes and files."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

import tacit
from tacit.cli.app import run, with_options
from tacit.cli.rendering import category_hints
from tacit.cli.statistics.presentation import Row, Span, figures
from tacit.privacy.bounds import Categories
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import Unit
from tests.style.rules import ROOT

Shell = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """A folder with a catalog, and a command line in it."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 40},{20 + i % 60},{'FM'[i % 2]}\n" for i in range(400))
    (tmp_path / "visits.csv").write_text(f"patient,age,sex\n{rows}", encoding="utf-8")

    def typed(line: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(shlex.split(line))
        out, err = capsys.readouterr()
        return code, out, err

    assert typed("init")[0] == 0
    return typed


@pytest.fixture
def visits(shell: Shell) -> Shell:
    """The same with a table and a budget."""
    code, _, err = shell(
        "table add visits visits.csv --unit patient --bounds age=0:120 --categories sex=F,M --rows-per-unit 10 "
        "--epsilon 9"
    )
    assert code == 0, err
    return shell


def test_lower_limits_are_proposed_where_a_unit_has_several_rows(visits: Shell) -> None:
    assert "less noise: --rows-per-group" in visits('sql "SELECT COUNT(*) AS n FROM visits" --epsilon 0.1')[2]


class TestEachRow:
    def test_every_row_can_be_a_person(self, shell: Shell, tmp_path: Path) -> None:
        code, out, err = shell("table add people visits.csv --each-row --bounds age=0:120 --epsilon 900 --delta 1e-7")
        assert code == 0, err
        assert "protected: each row" in out
        assert "rows of each" not in err
        code, out, err = shell('sql "SELECT COUNT(*) AS n FROM people" --epsilon 400 --yes')
        assert (code, out.splitlines()[1].split(",")[0]) == (0, "400"), err
        assert "less noise" not in err, "a person has one row already"
        with tacit.Curator(tmp_path) as curator:
            assert curator.catalog.schema.table("people").limits.rows_per_unit == 1
        (copy,) = (tmp_path / "tables").iterdir()
        assert copy.stat().st_mode & 0o077 == 0

    @pytest.mark.parametrize("words", ["--unit patient", "--public", "--rows-per-unit 3"])
    def test_a_row_that_is_a_person_has_no_other_unit(self, shell: Shell, tmp_path: Path, words: str) -> None:
        code, _, err = shell(f"table add people visits.csv --each-row {words}")
        assert code == 2
        assert "--each-row" in err
        assert not (tmp_path / "tables").exists()

    def test_a_refused_table_leaves_no_copy(
        self, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise tacit.InvalidInput("refused")

        monkeypatch.setattr("tacit.Curator.register", refuse)
        assert shell("table add people visits.csv --each-row")[0] == 2
        assert list((tmp_path / "tables").iterdir()) == []


class TestRowLimits:
    def test_an_open_bound_on_rows_is_said_in_one_line(self, shell: Shell) -> None:
        _, _, err = shell("table add visits visits.csv --unit patient")
        (line,) = [line for line in err.splitlines() if "--rows-per-unit" in line]
        assert "at most 4 rows of each patient" in line

    @pytest.mark.parametrize("words", ["--rows-per-unit 3", "--identified-by patient"])
    def test_a_bound_that_is_known_is_not_spoken_of(self, shell: Shell, words: str) -> None:
        _, _, err = shell(f"table add visits visits.csv --unit patient {words}")
        assert "--rows-per-unit" not in err


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ('sql "SELECT COUNT(*) AS n FROM visit" --epsilon 1', "visits"),
        ('sql "SELECT COUNT(*) AS n FROM visits WHERE agee > 3" --epsilon 1', "age"),
        ("stats mean visist age --epsilon 1", "visits"),
        ("stats mean visits agee --epsilon 1", "age"),
        ("stats meen visits age --epsilon 1", "mean"),
        ("table show visit", "visits"),
        ("budget show visit", "visits"),
        ("budget analyst ana visit --epsilon 1", "visits"),
        ("budgte show", "budget"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_one_that_is_near(visits: Shell, line: str, meant: str) -> None:
    code, out, err = visits(line)
    assert (code, out) == (2, "")
    assert f"did you mean {meant}?" in err


def test_a_misspelt_category_is_said_before_it_is_paid_for(visits: Shell) -> None:
    _, _, err = visits("preview \"SELECT COUNT(*) AS n FROM visits WHERE sex IN ('F', 'n')\" --epsilon 1")
    assert "hint: 'n' is not one of the categories of sex (F, M)\n" in err
    _, _, err = visits("preview \"SELECT COUNT(*) AS n FROM visits WHERE sex = 'f'\" --epsilon 1")
    assert "did you mean F?" in err
    _, _, err = visits("preview \"SELECT COUNT(*) AS n FROM visits WHERE sex = 'F'\" --epsilon 1")
    assert "categor" not in err
    _, _, err = visits('sql "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex" --keys sex=F,female --epsilon 0.1')
    assert err.startswith("hint: 'female' is not one of the categories of sex (F, M)\n")


@pytest.mark.parametrize(
    ("condition", "is_hinted"),
    [
        ("sex = 'x'", True),
        ("v.sex <> 'x'", True),
        ("'x' = sex", True),
        ("v.sex NOT IN ('F', 'x')", True),
        ("CASE sex WHEN 'x' THEN 1 ELSE 0 END = 1", True),
        ("sex = 'M'", False),
        ("LOWER(sex) = 'x'", False),
        ("ward = 'x'", False),
    ],
)
def test_a_value_outside_of_the_categories_of_the_table_that_is_read_is_hinted_at(
    condition: str, is_hinted: bool
) -> None:
    def table(name: str, facts: Categories | None) -> Table:
        columns = (Column("id", Kind.INTEGER), Column("sex", Kind.TEXT, facts), Column("ward", Kind.TEXT))
        return Table(name, columns, Unit("id"))

    tables = [table("visits", Categories(["F", "M"])), table("others", None)]
    hints = category_hints(f"SELECT COUNT(*) FROM visits AS v WHERE {condition}", tables)
    assert hints == (["'x' is not one of the categories of sex (F, M)"] if is_hinted else [])


@pytest.mark.parametrize(
    ("query", "hinted"),
    [
        ("SELECT COUNT(*) FROM visits WHERE day = '2024-01-01' OR at IN ('2024-01-01', '2024-01-01 01:00+01:00')", ""),
        ("SELECT COUNT(*) FROM visits WHERE day = '2024-02-02'", "2024-02-02"),
        ("SELECT COUNT(*) FROM visits WHERE at = '2024-01-01 12:00'", "2024-01-01T12:00:00"),
        ("SELECT COUNT(*) FROM visits WHERE day = 'never' OR floor = '7' OR floor = '1' OR old = 'true'", ""),
        ("WITH visits AS (SELECT 'x' AS sex FROM others) SELECT COUNT(*) FROM visits WHERE sex = 'x'", ""),
        ("WITH v AS (SELECT 'x' AS sex FROM visits) SELECT COUNT(*) FROM v WHERE sex = 'x'", ""),
        ("SELECT COUNT(*) FROM (SELECT UPPER(sex) AS sex FROM visits) AS v WHERE sex = 'x' AND v.sex = 'x'", ""),
        ("SELECT COUNT(*) FROM (SELECT id FROM visits WHERE sex = 'x') AS v", "x"),
        ("WITH v AS (SELECT id FROM visits) SELECT 1 FROM v JOIN visits AS w ON v.id = w.id WHERE w.sex = 'x'", "x"),
    ],
)  # fmt: skip
def test_a_text_is_compared_as_the_value_it_stands_for_with_columns_of_the_catalog(query: str, hinted: str) -> None:
    first = datetime(2024, 1, 1)
    columns = [
        Column("id", Kind.INTEGER),
        Column("sex", Kind.TEXT, Categories(["F", "M"])),
        Column("day", Kind.DATE, Categories([first.date()])),
        Column("at", Kind.TIME, Categories([first])),
        Column("floor", Kind.INTEGER, Categories([1, 2])),
        Column("old", Kind.BOOLEAN, Categories([True])),
    ]
    tables = [Table("visits", tuple(columns), Unit("id")), Table("others", tuple(columns[:1]), Unit("id"))]
    hints = category_hints(query, tables)
    assert [one.split("'")[1] for one in hints] == ([hinted] if hinted else [])


def test_keys_outside_of_declared_categories_are_refused_before_the_charge(visits: Shell) -> None:
    for words in (
        "histogram visits sex --keys M,W",
        "mean visits age --by sex --keys M,W",
        "mode visits sex --keys M,W",
    ):
        code, out, err = visits(f"stats {words} --epsilon 0.1")
        assert (code, out) == (2, "")
        assert "T100 'W' is not one of the categories of sex (F, M); list some of them with --keys" in err
    assert visits("stats histogram visits sex --keys M --epsilon 0.1")[0] == 0
    assert visits("""stats histogram visits sex --keys '["M", null]' --epsilon 0.1""")[0] == 0


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (0, 0, 0, ("0", "0 to 0")),
        (0.0, 0.0, 0.0, ("0", "0 to 0")),
        (0, 0, 7, ("0", "0 to 7")),
        (5, 2, 8, ("5 ± 3", "2 to 8")),
        (5.0, 4.0, 9.0, ("5.0", "4.0 to 9.0")),
        (5.0, 4.0, 6.0, ("5.0 ± 1.0", "4.0 to 6.0")),
    ],
)
def test_a_value_has_half_its_interval_beside_it_only_in_the_middle(
    value: float, low: float, high: float, shown: tuple[str, str]
) -> None:
    assert figures(Row((), value, Span(low, high))) == shown


class TestBudgets:
    def test_a_budget_without_a_delta_gets_the_usual_one_and_says_so(self, visits: Shell) -> None:
        code, out, err = visits("budget set other --epsilon 1")
        assert code == 0
        assert "δ 1e-07" in out
        assert "--delta" in err
        assert "δ 0 " in visits("budget set pure --epsilon 1 --filter pure")[1]
        assert "δ 0 " in visits("budget set zero --epsilon 1 --delta 0")[1]

    def test_in_a_pipe_budgets_and_previews_have_names(self, visits: Shell) -> None:
        _, out, _ = visits("budget show")
        assert out.splitlines()[0] == "budget,epsilon_spent,epsilon_left,epsilon,epsilon_min,delta,filter"
        assert out.splitlines()[1].startswith("visits,0,")
        assert visits("budget show --format markdown")[1].startswith("| budget | epsilon_spent |")
        assert json.loads(visits("budget show --format json")[1])["budgets"][0]["dataset"] == "visits"
        _, out, _ = visits('preview "SELECT COUNT(*) AS n FROM visits" --epsilon 1')
        assert out.splitlines()[:2] == ["fact,value", "cost,ε 1"]

    def test_it_is_said_why_what_is_spent_and_left_does_not_add_up(
        self, visits: Shell, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tacit.cli.output.Screen.console", _terminal())
        assert "composition bounds" not in visits("budget show")[1]
        visits('sql "SELECT COUNT(*) AS n FROM visits" --epsilon 1 --yes')
        assert "each is the better of two composition bounds" in visits("budget show")[1]


def _terminal() -> object:
    from rich.console import Console

    return property(lambda _: Console(force_terminal=True, width=120))


@pytest.mark.parametrize(
    ("sentence", "typed"),
    [
        ("epsilon=0.6 would fit", "--epsilon 0.6 would fit"),
        ("use epsilon= instead of error=", "use --epsilon instead of --error"),
        ("rows_per_unit=1, or more", "--rows-per-unit 1, or more"),
        ("list them (keys=[...])", "list them (--keys A,B,C)"),
        ("or public=True says so", "or --public says so"),
    ],
)
def test_keywords_of_python_become_options(sentence: str, typed: str) -> None:
    assert with_options(sentence) == typed


def test_a_refusal_at_the_command_line_names_options(visits: Shell) -> None:
    _, _, err = visits('sql "SELECT COUNT(*) AS n FROM visits" --epsilon 90')
    assert "--epsilon 9 would fit" in err
    assert not re.search(r"\b(epsilon|rho|error|keys)=", err)


def test_a_missing_file_is_one_sentence_with_its_code(shell: Shell) -> None:
    code, out, err = shell("stats mean nowhere.csv age --each-row --bounds 0:120 --epsilon 1")
    assert (code, out) == (4, "")
    assert re.fullmatch(r"tacit: T\d+ there is no file nowhere.csv here\n", err)


def test_the_recipe_for_a_server_works_line_by_line_without_a_terminal(visits: Shell, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = [one for one in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "tacit access people add" in one]
    (tmp_path / "clinic").mkdir()
    for name in ("catalog.toml", "ledger.sqlite"):
        (tmp_path / name).rename(tmp_path / "clinic" / name)
    assert len(block.splitlines()) >= 5
    for line in block.splitlines():
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(line)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stderr)
