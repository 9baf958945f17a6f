"""`tacit sql` and `tacit preview`: answers for people and programs, and refusals with the right exit code."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import click
import pytest

from tacit.cli.app import run

BY_SEX = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"


@pytest.fixture
def clinic(tmp_path: Path) -> str:
    rows = "".join(f"{i % 400},{20 + i % 60},{'FM'[i % 2]},{'abc'[i % 3]}\n" for i in range(1200))
    (tmp_path / "visits.csv").write_text(f"patient,age,sex,ward\n{rows}", encoding="utf-8")
    folder = str(tmp_path / "clinic")
    for words in (
        ["init", folder],
        f"table add visits {tmp_path}/visits.csv --unit patient --bounds age=0:120 --categories sex=F,M "
        f"--folder {folder}".split(),
        ["budget", "set", "visits", "--epsilon", "50", "--delta", "1e-6", "--folder", folder],
    ):
        assert run(words) == 0
    return folder


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(words)
    out, err = capsys.readouterr()
    return code, out, err


def test_an_answer_in_a_pipe_is_one_line_a_row(clinic: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(capsys, "sql", BY_SEX, "--epsilon", "10", "--folder", clinic)
    assert code == 0
    names, *rows = csv.reader(io.StringIO(out))
    assert names == ["sex", "n", "n_low", "n_high"]
    assert [row[0] for row in rows] == ["F", "M"]
    assert all(float(low) <= int(n) <= float(high) for _, n, low, high in rows)


def test_what_is_left_out_is_said_in_a_pipe_too(clinic: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise a count of rows with a narrow interval looks exact."""
    code, out, err = asked(capsys, "sql", "SELECT COUNT(*) FROM visits", "--epsilon", "10", "--folder", clinic)
    assert (code, out.count("\n")) == (0, 2)
    assert err.startswith("counted: at most 1 group a unit, 4 rows a group; rows beyond that are left out")
    assert "the noise only" in err
    assert "--rows-per-group" in err
    assert "--rows-per-unit" in err
    words = ("sql", "SELECT COUNT(*) FROM visits", "--epsilon", "10", "--folder", clinic, "--json")
    assert asked(capsys, *words)[2] == ""


def test_an_answer_without_groups_says_from_how_many_units_on_there_are_some(
    clinic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """400 patients in 3 wards: with so little epsilon, a group is shown from some thousand units on."""
    words = ("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "--epsilon", "0.01", "--folder", clinic)
    code, out, err = asked(capsys, "sql", *words)
    assert (code, out) == (0, "ward,n\n")
    found = re.search(r"groups with fewer than about ([\d,]+) units are hidden; list the groups with --keys", err)
    assert found
    rule = f"not public: groups with fewer than about {found[1]} units are hidden\n"
    assert f'groups,"{rule.rstrip()}"' in asked(capsys, "preview", *words)[1]
    assert f"groups: {rule}" in err
    none = ("sql", f"{BY_SEX} HAVING COUNT(*) > 1000000", "--epsilon", "1", "--folder", clinic)
    assert "tacit: the answer has no rows\n" in asked(capsys, *none)[2]


@pytest.mark.parametrize(
    ("sql", "about", "told"),
    [
        (BY_SEX, "groups", "rows in which sex is missing or not listed are left out"),
        ("SELECT MAX(age) - MIN(age) AS y FROM visits", "intervals", "computed from a value chosen at random"),
        (f"{BY_SEX} ORDER BY n LIMIT 1", "intervals", "picked by noisy values"),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward", "groups", "units are hidden"),
    ],
)
def test_what_an_answer_lacks_is_said_with_the_answer_and_with_the_preview(
    clinic: str, capsys: pytest.CaptureFixture[str], sql: str, about: str, told: str
) -> None:
    words = (sql, "--epsilon", "2", "--folder", clinic)
    _, _, err = asked(capsys, "sql", *words)
    assert any(line.startswith(f"{about}: ") and told in line for line in err.splitlines())
    _, out, _ = asked(capsys, "preview", *words)
    assert any(line.startswith(f"{about},") and told in line for line in out.splitlines())


def test_a_preview_says_how_many_rows_of_a_unit_are_joined(clinic: str, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.patient = b.patient"
    _, out, _ = asked(capsys, "preview", sql, "--epsilon", "1", "--folder", clinic)
    assert "; of each unit at most 64 rows of visits are joined, and the rest is left out" in out


def test_an_answer_for_programs_is_one_object(clinic: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(capsys, "sql", BY_SEX, "--epsilon", "10", "--folder", clinic, "--json")
    answer = json.loads(out)
    assert code == 0
    assert [row["sex"] for row in answer["rows"]] == ["F", "M"]
    low, high = answer["intervals"][0]["n"]
    assert low <= answer["rows"][0]["n"] <= high
    assert answer["cost"]["epsilon"] == pytest.approx(10)
    assert answer["remaining"]["visits"]["epsilon"] == pytest.approx(40)
    assert answer["permit"]
    again = json.loads(asked(capsys, "sql", BY_SEX, "--epsilon", "10", "--folder", clinic, "--json")[1])
    assert again["rows"] == answer["rows"]
    assert again["cost"]["epsilon"] == 0


def test_a_preview_says_the_price_and_the_widths_and_spends_nothing(
    clinic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--epsilon", "0.5", "--folder", clinic)
    _, out, _ = asked(capsys, "preview", BY_SEX, *words, "--json")
    preview = json.loads(out)
    assert preview["cost"]["epsilon"] == pytest.approx(0.5)
    assert preview["widths"]["n"] > 0
    assert any("FROM tacit_data.visits" in line["text"] for line in preview["explained"])
    code, out, _ = asked(capsys, "preview", BY_SEX, *words, "--explain")
    assert code == 0
    assert 'engine,"SELECT' in out
    _, out, _ = asked(capsys, "ledger", "show", "--folder", clinic, "--json")
    assert json.loads(out)["budgets"][0]["epsilon_spent"] == 0


def test_sql_comes_from_a_file_or_from_standard_input(
    clinic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "q.sql").write_text(BY_SEX, encoding="utf-8")
    code, out, _ = asked(capsys, "sql", f"@{tmp_path / 'q.sql'}", "--epsilon", "1", "--folder", clinic)
    assert code == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(BY_SEX))
    assert asked(capsys, "sql", "-", "--epsilon", "1", "--folder", clinic)[1] == out
    code, _, err = asked(capsys, "sql", "@missing.sql", "--epsilon", "1", "--folder", clinic)
    assert code == 2
    assert "missing.sql" in err


def test_keys_limits_and_the_rest_are_said_by_options(clinic: str, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    code, out, _ = asked(capsys, "sql", sql, "--epsilon", "9", "--folder", clinic, "--keys", "ward=a,b,z")
    assert [line.split(",")[0] for line in out.splitlines()] == ["ward", "a", "b", "z"]
    code, out, _ = asked(capsys, "sql", sql, "--epsilon", "9", "--folder", clinic, "--other", "--groups-per-unit", "1")
    assert code == 0
    assert out.splitlines()[-1].startswith("other,")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((BY_SEX,), 2, "--epsilon"),
        ((BY_SEX, "--epsilon", "-1"), 2, "T101"),
        ((BY_SEX, "--epsilon", "1", "--rho", "1"), 2, "exactly one"),
        (("SELECT * FROM visits", "--epsilon", "1"), 3, "T203"),
        (("SELECT AVG(nothing) FROM visits", "--epsilon", "1"), 2, "T131"),
        (("SELEC", "--epsilon", "1"), 2, "T130"),
        (("SELECT COUNT(*) FROM elsewhere", "--epsilon", "1"), 2, "T131"),
        ((BY_SEX, "--epsilon", "51"), 3, "T300"),
        ((BY_SEX, "--epsilon", "1", "--analyst", "nobody"), 3, "T400"),
    ],
)
def test_what_cannot_be_answered_has_a_code_a_sentence_and_costs_nothing(
    clinic: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, says: str
) -> None:
    found, out, err = asked(capsys, "sql", *words, "--folder", clinic)
    assert (found, out) == (code, "")
    assert says in err
    assert "Traceback" not in err
    spent = json.loads(asked(capsys, "ledger", "show", "--folder", clinic, "--json")[1])["budgets"][0]["epsilon_spent"]
    assert spent == 0


def test_a_folder_that_nobody_made_is_not_made_by_a_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = asked(capsys, "sql", BY_SEX, "--epsilon", "1", "--folder", str(tmp_path / "nowhere"))
    assert code == 2
    assert "tacit init" in err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "1e300", "soon"])
def test_a_time_limit_that_is_none_is_bad_use_and_charges_nothing(
    clinic: str, capsys: pytest.CaptureFixture[str], seconds: str
) -> None:
    for words in (["sql", BY_SEX], ["stats", "mean", "visits", "age", "--rows-per-unit", "1"]):
        code, out, err = asked(capsys, *words, "--epsilon", "1", "--folder", clinic, "--timeout", seconds)
        assert (code, out) == (2, "")
        assert "timeout" in err
    assert asked(capsys, "budget", "show", "--folder", clinic)[1].splitlines()[1].split(",")[1] == "0"


@pytest.mark.parametrize(
    ("where", "interruption", "said"),
    [
        ("preview", KeyboardInterrupt(), "tacit: cancelled; nothing was charged\n"),
        ("preview", click.Abort(), "tacit: cancelled; nothing was charged\n"),
        ("sql", RuntimeError("Query interrupted"), "tacit: cancelled; nothing was charged\n"),
        ("remaining", KeyboardInterrupt(), ""),  # after the charge
        ("remaining", RuntimeError("Query interrupted"), ""),
    ],
)
def test_an_interrupt_says_that_nothing_was_charged_until_the_charge_begins(
    clinic: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    interruption: BaseException,
    said: str,
) -> None:
    def interrupt(*_words: object, **_options: object) -> None:
        raise interruption

    monkeypatch.setattr(f"tacit.cli.backends.FolderBackend.{where}", interrupt)
    assert asked(capsys, "sql", BY_SEX, "--epsilon", "1", "--folder", clinic) == (130, "", said)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["SELEC COUNT(*) FROM visits"], "T130 at 1:1: a query begins with SELECT or WITH, not SELEC\n"),
        (["/* a */ -- b\n selct 1"], "T130 at 2:2: a query begins with SELECT or WITH, not selct\n"),
        (
            ["SELECT", "COUNT*", "FROM", "visits"],
            "(COUNT* FROM visits); put the query in quotes; see tacit sql --help\n",
        ),
        (["SELECT COUNT(*) FROM my table"], '; a name with spaces takes double quotes: "my table"\n'),
        (['SELECT COUNT(*) FROM visits WHERE sex = "Male"'], 'no column is called "Male"; a text takes single quotes'),
    ],
)
def test_what_is_wrong_with_a_query_is_said_with_the_way_out(
    clinic: str, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    code, out, err = asked(capsys, "sql", *words, "--epsilon", "1", "--folder", clinic)
    assert (code, out) == (2, "")
    assert sentence in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("stats men visits age", "did you mean mean? see tacit stats --help\n"),
        ("stats mean visits patient --rows-per-unit 1", "; give --bounds LOW:HIGH, chosen without looking at the data"),
        ("stats histogram visits ward --rows-per-unit 1", "; give --keys A,B,C, listed without looking at the data"),
        ("stats mean visits age", "; give --rows-per-unit 1, or more"),
    ],
)
def test_a_refused_statistic_names_the_option_to_give(
    clinic: str, capsys: pytest.CaptureFixture[str], words: str, sentence: str
) -> None:
    code, _, err = asked(capsys, *words.split(), "--epsilon", "1", "--folder", clinic)
    assert code in (2, 3)
    assert sentence in err
