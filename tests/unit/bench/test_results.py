"""A benchmark's figures: one JSON object a line, goals in both directions, peers that may be missing."""

import io
import json

import pytest
from click.testing import CliRunner
from rich.console import Console

from bench import __main__ as runner
from bench.results import Result, table

RESULTS = [
    Result("samples", 12_345_678.0, "1/s", peers={"opendp": None, "numpy": 5e6}, goal=1e7, better="higher"),
    Result("wait", 3.0, "s", goal=2),
    Result("size", 54.2, "MB"),
]


@pytest.mark.parametrize(
    ("value", "better", "met"), [(1, "lower", True), (2, "lower", True), (3, "lower", False), (3, "higher", True)]
)
def test_a_goal_is_met_from_its_own_side(value: float, better: str, met: bool) -> None:
    assert Result("wait", value, "s", goal=2, better=better).met is met  # type: ignore[arg-type]


def test_a_figure_without_a_goal_meets_and_misses_nothing() -> None:
    assert Result("size", 54.2, "MB").met is None


def test_a_line_of_json_has_exactly_the_fields_that_readers_expect() -> None:
    assert json.loads(RESULTS[0].to_json()) == {
        "metric": "samples",
        "value": 12_345_678.0,
        "unit": "1/s",
        "peers": {"opendp": None, "numpy": 5e6},
        "goal": 1e7,
        "met": True,
    }


def test_the_table_shows_figures_goals_and_missing_peers() -> None:
    place = io.StringIO()
    Console(file=place, width=120).print(table("noise", RESULTS))
    shown = [line.split() for line in place.getvalue().splitlines() if line.strip()]
    assert ["samples", "12,345,678", "–", "5,000,000", "≥", "10,000,000", "1/s", "yes"] in shown
    assert ["wait", "3", "≤", "2", "s", "no"] in shown


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    asked: list[bool] = []

    def benchmark(quick: bool):  # type: ignore[no-untyped-def]
        asked.append(quick)
        yield from RESULTS

    monkeypatch.setattr(runner, "load", lambda name, part: benchmark)
    monkeypatch.setattr(runner.peers, "is_installed", lambda name: False)
    return asked


def test_with_json_there_is_one_object_a_line_and_missing_peers_are_named(planted: list[bool]) -> None:
    done = CliRunner().invoke(runner.main, ["install", "--quick", "--json"])
    assert [json.loads(line)["metric"] for line in done.stdout.splitlines()] == ["samples", "wait", "size"]
    assert "skipped opendp: not installed; python -m bench.peers install opendp" in done.stderr
    assert planted == [True]


def test_without_json_there_is_a_table(planted: list[bool]) -> None:
    done = CliRunner().invoke(runner.main, ["install"])
    assert done.exit_code == 0
    assert "12,345,678" in done.stdout
    assert planted == [False]


def test_the_list_names_the_benchmarks_and_nothing_else() -> None:
    done = CliRunner().invoke(runner.main, ["--list"])
    names = done.stdout.split()
    assert "install" in names
    assert all(callable(runner.load(name)) for name in names)


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["learn", "--part", "unknown"], ["install", "--part", "steps"]])
def test_a_missing_or_unknown_name_is_bad_use(arguments: list[str]) -> None:
    assert CliRunner().invoke(runner.main, arguments).exit_code == 2
