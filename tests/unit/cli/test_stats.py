"""`tacit stats` of registered tables: every statistic, its formats, and that nothing is charged for what is refused."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from tacit import stats
from tacit.cli.app import run
from tacit.cli.statistics.registry import STATISTICS
from tacit.privacy.errors import Cancelled
from tests.unit.cli.stats_commands import CASES, epsilon_spent, run_stats, stats_object
from tests.unit.cli.terminal import Typist

MEAN = "mean visits age --epsilon 1"


def test_every_function_is_a_command_and_has_a_case_here() -> None:
    functions = {name for name in stats.__all__ if name.islower()} - {"prepare", "preview", "quantiles", "workload"}
    assert {one.function for one in STATISTICS} == functions
    assert set(CASES) == {one.name for one in STATISTICS}


@pytest.mark.parametrize("name", CASES)
def test_a_registered_table_is_asked_and_its_budget_pays_once(
    rich_clinic: str, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    words, count = CASES[name]
    answer = stats_object(capsys, f"{name} visits {words} --epsilon 20 --folder {rich_clinic}")
    assert len(answer["rows"]) == count
    assert answer["cost"]["epsilon"] == pytest.approx(20)
    assert (answer["remembered"], answer["simulated"]) == (True, False)
    assert answer["permit"]
    again = stats_object(capsys, f"{name} visits {words} --epsilon 20 --folder {rich_clinic}")
    assert again["cost"]["epsilon"] == 0
    assert again["rows"] == answer["rows"]
    assert again["remaining"] == answer["remaining"]


def test_an_answer_for_programs_is_one_object(clinic: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = stats_object(capsys, f"mean visits age --by sex --epsilon 20 --folder {clinic}")
    assert answer["label"] == "mean of age"
    assert answer["columns"] == ["age"]
    assert [row["keys"] for row in answer["rows"]] == [{"sex": "F"}, {"sex": "M"}]
    assert answer["value"] == [row["value"] for row in answer["rows"]]
    for row in answer["rows"]:
        assert row["low"] <= row["value"] <= row["high"]
        assert row["value"] == pytest.approx(49.5, abs=3)
    assert "Protects each unit, with all of its rows" in answer["card"]
    assert answer["remaining"]["visits"]["epsilon"] == pytest.approx(40)
    wider = stats_object(capsys, f"mean visits age --by sex --epsilon 20 --level 0.999 --folder {clinic}")
    assert wider["rows"][0]["high"] > answer["rows"][0]["high"]


def test_in_a_pipe_an_answer_is_keys_value_low_and_high(clinic: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run_stats(capsys, f"count visits age --by ward --keys a,b --epsilon 20 --folder {clinic} --card")
    assert code == 0
    names, *rows = [line.split(",") for line in out.splitlines()]
    assert names == ["ward", "value", "low", "high"]
    assert [row[0] for row in rows] == ["a", "b"]
    for _, value, low, high in rows:
        assert float(low) <= int(value) <= float(high)
    assert "\x1b" not in out
    assert "\ncounted: rows with another ward than the listed ones" in err
    assert "\nThe count of age." in err


def test_on_a_terminal_an_answer_is_a_table_with_bars_its_cost_and_what_is_left(
    clinic: str, csv: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    typist = Typist(monkeypatch)
    words = "count visits age --by ward --keys a,b,z --epsilon 2"
    code, shown = typist.runs("stats", *words.split(), "--folder", clinic)
    assert code == 0
    for text in ("count of age", "95 % interval", "±", "█", "each patient", "ε 2", "ε 58 on visits"):
        assert text in shown
    code, shown = typist.runs("stats", *f"mean visits age --by sex --epsilon 1 --folder {clinic}".split())
    assert "──●──" in shown
    code, shown = typist.runs("stats", *f"mean {csv} age --bounds 0:120 --each-row --epsilon 1".split())
    assert code == 0
    assert "each row is one person" in shown
    assert "the charge is not recorded" in shown


def test_a_two_way_table_and_a_test_have_tables_of_their_own(clinic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    typist = Typist(monkeypatch)
    words = f"contingency visits sex ward --keys ward=a,b --epsilon 2 --folder {clinic}"
    _, shown = typist.runs("stats", *words.split())
    assert "sex \\ ward" in shown
    _, shown = typist.runs("stats", *f"t-test visits age --by sex --epsilon 2 --folder {clinic}".split())
    for text in ("p-value", "estimate", "whether the mean of age is the same for F and M", "at most 1 row"):
        assert text in shown
    _, shown = typist.runs("stats", *f"mode visits age --epsilon 2 --folder {clinic}".split())
    assert "no value leads by enough" in shown


def test_a_test_for_programs_has_its_p_value_and_the_interval_of_its_estimate(
    clinic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = stats_object(capsys, f"t-test visits age --mean 40 --epsilon 20 --folder {clinic}")
    (row,) = answer["rows"]
    assert answer["value"] == row["p_value"] < 0.01
    assert row["estimate_low"] < row["estimate"] < row["estimate_high"]
    assert answer["hypothesis"] == "the mean of age is 40"
    wider = stats_object(capsys, f"t-test visits age --mean 40 --epsilon 20 --level 0.999 --folder {clinic}")["rows"][0]
    assert wider["estimate_high"] > row["estimate_high"]


def test_bounds_that_nobody_knows_are_learned(clinic: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = stats_object(capsys, f"correlation visits weight age --bounds weight=LEARN --epsilon 20 --folder {clinic}")
    low, high = answer["bounds"]["weight"]
    assert low <= 50
    assert high >= 80
    assert answer["cost"]["epsilon"] == pytest.approx(20)


def test_another_range_of_the_same_release_costs_nothing(clinic: str, capsys: pytest.CaptureFixture[str]) -> None:
    first = stats_object(capsys, f"ranges visits age --range 20:60 --epsilon 20 --folder {clinic}")
    assert first["value"] == [pytest.approx(800, abs=30)]
    assert first["rows"][0]["keys"] == {"age from": 20, "age to": 60}
    other = stats_object(capsys, f"ranges visits age --range 60:80 --epsilon 20 --folder {clinic}")
    assert other["cost"]["epsilon"] == 0
    assert other["value"] == [pytest.approx(400, abs=30)]
    below = stats_object(capsys, f"prefixes visits age --bins 6 --below 40 --epsilon 20 --folder {clinic}")
    assert below["value"] == [pytest.approx(400, abs=30)]


def test_many_tables_are_shown_one_by_one(clinic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    typist = Typist(monkeypatch)
    words = f"marginals visits age sex --bins age=3 --epsilon 2 --folder {clinic}"
    code, shown = typist.runs("stats", *words.split())
    assert code == 0
    assert "age \\ sex" in shown
    assert "0 to 40" in shown
    assert "█" in shown


def test_groups_of_places_are_read_from_a_file(clinic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "regions.csv").write_text("a,north\nb,north\nc,south\n", encoding="utf-8")
    answer = stats_object(
        capsys, f"hierarchy visits ward --levels @{tmp_path}/regions.csv --epsilon 20 --folder {clinic}"
    )
    assert [next(iter(row["keys"].values())) for row in answer["rows"]] == ["north", "south", "a", "b", "c"]
    assert answer["rows"][0]["value"] == pytest.approx(800, abs=20)
    typed = stats_object(
        capsys, f"hierarchy visits ward --levels a=north,b=north,c=south --epsilon 20 --folder {clinic}"
    )
    assert typed["cost"]["epsilon"] == 0


def test_alone_it_lists_what_there_is_with_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_stats(capsys, "")
    assert code == 0
    for one in STATISTICS:
        assert f"  {one.name} " in out
        assert one.explanation.split()[0] in out
    listed = stats_object(capsys, "")["statistics"]
    assert [one["name"] for one in listed] == [one.name for one in STATISTICS]


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_a_plot_is_written(clinic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str) -> None:
    pytest.importorskip("vl_convert")
    picture = tmp_path / f"mean{suffix}"
    code, out, _ = run_stats(capsys, f"mean visits age --by sex --epsilon 1 --plot {picture} --folder {clinic}")
    assert (code, len(out.splitlines())) == (0, 3)
    assert picture.read_bytes()[:4] in (b"<svg", b"\x89PNG")
    again = stats_object(capsys, f"mean visits age --by sex --epsilon 1 --plot {picture} --folder {clinic}")
    assert again["plot"] == str(picture)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("mean visits age", 2, "--epsilon or --rho"),
        ("mean visits age --epsilon 1 --rho 1", 2, "--epsilon or --rho"),
        ("mean visits age --epsilon -1", 2, "T101"),
        ("mean visits age --epsilon nan", 2, "T102"),
        ("mean visits age --epsilon 61", 3, "T300"),
        ("mean visits age --epsilon 0.0001", 3, "ask for --epsilon 0.006 or more"),
        ("mean visits aeg --epsilon 1", 2, "T131"),
        ("mean elsewhere age --epsilon 1", 2, "T131"),
        ("mean visits weight --epsilon 1", 3, "T204"),
        ("mean visits weight --bounds 9:1 --epsilon 1", 2, "lower bound"),
        ("mean visits weight --bounds heavy --epsilon 1", 2, "T100"),
        ("mean visits weight --bounds wieght=1:9 --epsilon 1", 2, "T131"),
        ("mean visits ward --bounds 1:9 --epsilon 1", 2, "ward is text"),
        ("mean visits sex --epsilon 1", 2, "T132"),
        ("mean visits age --by ward --epsilon 1", 3, "T204"),
        ("mean visits age --by ward --keys wrad=a,b --epsilon 1", 2, "T131"),
        ("mean visits age --by ward --by sex --keys a,b --epsilon 1", 2, "--keys COLUMN=A,B,C"),
        ("mean visits age --by age --keys 1,2 --bounds age=0:9 --epsilon 1", 2, "not both"),
        ("correlation visits age weight --bounds 0:120 --epsilon 1", 2, "--bounds COLUMN=0:120"),
        ("correlation visits age --epsilon 1", 2, "OTHER"),
        ("mean visits age --epsilon 1 --analyst nobody", 3, "T400"),
        ("mean visits age --epsilon 1 --unit patient", 2, "has its unit"),
        ("mean visits age --epsilon 1 --delta 1e-6", 2, "its own delta"),
        ("mean visits age --epsilon 1 --plot out.gif", 2, ".svg or .png"),
        ("mean visits age --epsilon 1 --plot nowhere/out.svg", 2, "does not exist"),
        ("mean visits age --epsilon 1 --rows-per-unit 0", 2, "T100"),
        ("mean CSV age --epsilon 1", 2, "--each-row"),
        ("mean CSV age --epsilon 1 --unit patient --each-row", 2, "not both"),
        ("mean CSV age --epsilon 1 --unit patient", 3, "T202"),
        ("mean missing.csv age --epsilon 1 --unit patient", 4, "T613"),
        ("quantile visits age --epsilon 1", 2, "--q"),
        ("quantile visits age --q 1 --epsilon 1", 2, "T103"),
        ("histogram visits age --edges 0,old --epsilon 1", 2, "comma-separated numbers"),
        (f"histogram visits age --edges {','.join(map(str, range(4097)))} --epsilon 1", 2, "T106"),
        ("histogram visits age --edges 0,9 --bins 3 --epsilon 1", 2, "bins, edges and keys"),
        ("t-test visits age --epsilon 1", 2, "--mean"),
        ("t-test visits age --by sex --rows-per-unit 2 --epsilon 1", 2, "--rows-per-unit 1"),
        ("t-test visits weight --by sex --bounds learn --epsilon 1", 2, "tacit stats bounds"),
        ("mean visits age --by ward --bounds ward=learn --epsilon 1", 2, "group column"),
        ("top-k visits sex --k 3 --epsilon 1", 2, "T103"),
        ("chi-squared visits sex ward --expected 1,2 --keys ward=a,b --epsilon 1", 2, "one column"),
        ("marginals visits age ward --epsilon 1", 3, "T204"),
        ("marginals visits age sex --bins 3 --epsilon 1", 2, "COLUMN=VALUE"),
        ("marginals visits age sex --bins weight=3 --epsilon 1", 2, "T131"),
        ("marginals visits age sex --bins age=many --epsilon 1", 2, "0:120:12"),
        ("marginals visits age sex --bins age=3 --edges age=0,9 --epsilon 1", 2, "not both"),
        ("marginals visits age sex --ways 3 --epsilon 1", 2, "T103"),
        ("ranges visits age --range 20:60.5 --epsilon 1", 2, "not among the edges"),
        ("ranges visits weight --epsilon 1", 3, "--bins weight=0:120:12"),
        ("prefixes visits age --bins 6 --below 41 --epsilon 1", 2, "not among the edges"),
        ("hierarchy visits day --epsilon 1", 2, "--levels"),
        ("hierarchy visits day --levels year --bins 7 --bounds 2024-01-01:2024-12-31 --epsilon 1", 2, "day, month or"),
        ("hierarchy visits day --levels year --bounds 1990-01-01:2024-12-31 --epsilon 1", 3, "T207"),
        ("hierarchy visits age --levels year --epsilon 1", 2, "T132"),
        ("hierarchy visits ward --levels decade --epsilon 1", 2, "year, quarter"),
        ("hierarchy visits ward --levels @missing --epsilon 1", 2, "missing cannot be read"),
        ("mode-of-things visits age --epsilon 1", 2, "no such command"),
    ],
)
def test_what_cannot_be_answered_has_a_code_a_sentence_and_costs_nothing(
    new_clinic: str, csv: str, capsys: pytest.CaptureFixture[str], words: str, code: int, says: str
) -> None:
    found, out, err = run_stats(capsys, f"{words.replace('CSV', csv)} --folder {new_clinic}")
    assert (found, out) == (code, "")
    assert says.lower() in err.lower()
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert epsilon_spent(capsys, new_clinic) == 0


def test_an_analyst_asks_from_her_own_budget_with_a_purpose(clinic: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"budget analyst ana visits --epsilon 2 --delta 1e-7 --folder {clinic}".split()) == 0
    answer = stats_object(capsys, f"{MEAN} --analyst ana --purpose census --folder {clinic}")
    assert answer["remaining"]["visits"]["epsilon"] == pytest.approx(1)
    code, _, err = run_stats(capsys, f"mean visits age --by sex --epsilon 1.5 --analyst ana --folder {clinic}")
    assert (code, "T300" in err) == (3, True)


def test_the_same_statistic_with_other_bounds_is_another_one(clinic: str, capsys: pytest.CaptureFixture[str]) -> None:
    first = stats_object(capsys, f"{MEAN} --folder {clinic}")
    other = stats_object(capsys, f"{MEAN} --bounds 0:30 --folder {clinic}")
    assert other["cost"]["epsilon"] == pytest.approx(1)
    assert other["value"] < 31 < first["value"]
    assert stats_object(capsys, f"{MEAN} --folder {clinic}")["cost"]["epsilon"] == 0


def test_ctrl_c_stops_the_engine_and_ends_as_other_tools_do(
    clinic: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.engines import DuckDBEngine

    stopped = threading.Event()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests may run where interrupts are ignored

    def interrupted(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert stopped.wait(10)
        raise Cancelled("the query was cancelled while it ran; what was charged stays charged")

    monkeypatch.setattr(DuckDBEngine, "run", interrupted)
    monkeypatch.setattr(DuckDBEngine, "cancel", lambda *_: stopped.set())
    try:
        assert run_stats(capsys, f"{MEAN} --folder {clinic}")[:2] == (130, "")
    finally:
        signal.signal(signal.SIGINT, before)
    assert stopped.is_set()


def test_a_picture_that_fails_costs_nobody_the_answer(
    clinic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.privacy.errors import InvalidInput
    from tacit.stats.plots import Plot

    def full(_: Plot, path: Path) -> None:
        raise InvalidInput(f"{path} cannot be written: no space left on device")

    pytest.importorskip("vl_convert")
    monkeypatch.setattr(Plot, "save", full)
    code, out, err = run_stats(capsys, f"{MEAN} --plot {tmp_path / 'a.svg'} --folder {clinic}")
    assert (code, len(out.splitlines())) == (2, 2)
    assert "no space left" in err


def test_a_folder_that_nobody_made_is_not_made_by_a_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run_stats(capsys, f"{MEAN} --folder {tmp_path / 'nowhere'}")
    assert code == 2
    assert "tacit init" in err
    assert not (tmp_path / "nowhere").exists()


def test_names_of_tables_columns_and_statistics_are_completed(
    clinic: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(clinic)
    for typed, expected in (
        ("tacit stats cor", "plain,correlation"),
        ("tacit stats mean vi", "plain,visits"),
        ("tacit stats mean visits we", "plain,weight"),
        ("tacit stats mean visits age --ro", "plain,--rows-per-unit"),
    ):
        monkeypatch.setenv("_TACIT_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
        capsys.readouterr()
        run([])
        assert expected in capsys.readouterr().out.splitlines()
