"""Which numbers of an answer have intervals, how they are made, and what card and preview say where there are none."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.accounting.conversions import Cost
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Release, Target, run
from tacit.query.release import widths_of
from tests.support.memory_engine import MemoryEngine
from tests.support.plans import plan_sql

PEOPLE = Table(
    "people",
    (
        Column("uid", Kind.INTEGER, nullable=False),
        Column("age", Kind.INTEGER, Bounds(0, 120), nullable=False),
        Column("ward", Kind.TEXT, Categories(["a", "b", "c", "d"]), nullable=False),
    ),
    Unit("uid"),
    Limits(rows_per_unit=1),
)
WHY_CHOICE = "computed from a value chosen at random near the right rank"


@pytest.fixture(scope="module")
def engine() -> MemoryEngine:
    held = MemoryEngine()
    held.fill(PEOPLE, [(u, 17 + u % 74, "aaabbcd"[u % 7], u) for u in range(700)])
    return held


@pytest.fixture
def ask(engine: MemoryEngine) -> Any:
    def asked(select: str, rest: str = "GROUP BY ward", *, epsilon: float = 1.0) -> Release:
        sql = f"SELECT {select} FROM people {rest}"
        plan = plan_sql(sql, Schema([PEOPLE]), Target(epsilon=epsilon), BudgetTerms())
        return Release(plan, run(plan, engine, 1, source=SeededSource(4)), Cost(1.0, 0.0, 1.0), ())

    return asked


def width(span: Interval | None) -> float:
    assert span is not None
    return float(span.high - span.low)


@pytest.mark.parametrize(
    "value",
    [
        "MAX(age) - MIN(age)",
        "QUANTILE(age, 0.75) - QUANTILE(age, 0.25)",
        "MEDIAN(age) * COUNT(*)",
        "COALESCE(MEDIAN(age), 0)",
        "CASE WHEN MAX(age) > 50 THEN COUNT(*) ELSE 0 END",
        "SUM(MEDIAN(age)) OVER (ORDER BY ward)",
        "AVG(age) - MEDIAN(age)",
    ],
)
def test_what_is_computed_from_a_private_choice_has_no_interval(ask: Any, value: str) -> None:
    release = ask(f"ward, {value} AS y, COUNT(*) AS n")
    assert all(span["y"] is None for span in release.intervals())
    assert all(span["n"] is not None for span in release.intervals())
    assert f"No interval for y: {WHY_CHOICE}." in release.card
    assert f"no interval for y: {WHY_CHOICE}" in [line.text for line in release.explain() if line.label == "spans"]


def test_a_private_choice_says_how_many_rows_it_may_be_off_and_what_an_empty_group_gets(ask: Any) -> None:
    card = ask("MEDIAN(age) AS m, MIN(age) AS least, MODE(ward) AS w", rest="").card
    rule = "its rank is at most 24 rows off (at 95%); for a group with fewer than 48 rows, or none, it is arbitrary"
    assert rule in card
    assert "rows lie below it (at 95%)" in card
    assert "fewer have it than the most frequent value (at 95%)" in card


def test_a_text_beside_a_number_takes_its_interval_from_none(ask: Any) -> None:
    release = ask("ward, CASE WHEN COUNT(*) > 50 THEN 'many' ELSE 'few' END AS t, COUNT(*) * 2 AS n")
    assert all(span["t"] is None and span["n"] is not None for span in release.intervals())
    assert "No interval for t: it is not a number." in release.card


def test_a_function_of_one_count_ranges_over_its_interval(ask: Any) -> None:
    release = ask("ward, COUNT(*) AS n, 3 * COUNT(*) AS three, ABS(COUNT(*) - 300) AS far, COUNT(*) % 2 AS odd")
    for row, span in zip(release.rows, release.intervals(), strict=True):
        low, high = span["n"]
        assert span["three"] == (3 * low, 3 * high)
        distances = [abs(n - 300) for n in range(low, high + 1)]
        assert span["far"] == (min(distances), max(distances))
        assert span["odd"] == (0, 1)
        assert low <= row["n"] <= high


def test_a_fold_of_two_counts_reaches_down_to_it(ask: Any) -> None:
    half = "COUNT(*) FILTER (WHERE age % 2 = {0})"
    release = ask(f"ABS({half.format(0)} - {half.format(1)}) AS y", rest="", epsilon=0.01)
    (span,) = release.intervals()
    assert span["y"].low < 10 < span["y"].high


@pytest.mark.parametrize(
    "value", ["RANK() OVER (ORDER BY COUNT(*))", "MAX(COUNT(*)) OVER ()", "SUM(COUNT(*)) OVER (ORDER BY COUNT(*))"]
)
def test_what_depends_on_the_order_of_noisy_numbers_has_no_interval(ask: Any, value: str) -> None:
    release = ask(f"ward, {value} AS y")
    assert all(span["y"] is None for span in release.intervals())
    assert "No interval for y: it depends on the order of noisy numbers." in release.card


def test_running_sums_have_intervals_that_grow(ask: Any) -> None:
    release = ask("ward, SUM(COUNT(*)) OVER (ORDER BY ward) AS y", epsilon=0.1)
    widths = [width(span["y"]) for span in release.intervals()]
    assert widths == sorted(widths)
    assert 1.5 < widths[3] / widths[0] < 3  # about twice: the noise of four counts


@pytest.mark.parametrize("rest", ["GROUP BY ward HAVING COUNT(*) > 150", "GROUP BY ward ORDER BY COUNT(*) LIMIT 2"])
def test_rows_that_noise_selects_have_wider_intervals_and_the_card_says_what_they_hold_for(ask: Any, rest: str) -> None:
    plain = ask("ward, COUNT(*) AS n, AVG(age) AS m", epsilon=0.1)
    selected = ask("ward, COUNT(*) AS n, AVG(age) AS m", rest, epsilon=0.1)
    assert 0 < len(selected.rows) < 4
    for name in ("n", "m"):
        assert min(width(span[name]) for span in selected.intervals()) > 1.1 * width(plain.intervals()[0][name])
    assert "so intervals are widened until 95% of those shown hold" in selected.card


@pytest.mark.parametrize("rest", ["ORDER BY n DESC LIMIT 2", "ORDER BY n DESC LIMIT 2 OFFSET 3", "ORDER BY n OFFSET 1"])
def test_a_preview_shows_the_width_that_selected_rows_will_have(ask: Any, rest: str) -> None:
    release = ask("ward, COUNT(*) AS n", f"GROUP BY ward {rest}", epsilon=0.1)
    assert {width(span["n"]) / 2 for span in release.intervals()} == {widths_of(release._plan)["n"]}


def test_a_wanted_width_is_that_of_selected_rows(engine: MemoryEngine) -> None:
    sql = "SELECT ward, COUNT(*) AS n FROM people GROUP BY ward ORDER BY n DESC LIMIT 1"
    plan = plan_sql(sql, Schema([PEOPLE]), Target(error=20), BudgetTerms())
    release = Release(plan, run(plan, engine, 1), Cost(1.0, 0.0, 1.0), ())
    assert 17 <= width(release.intervals()[0]["n"]) / 2 <= 20


@pytest.mark.parametrize(
    ("value", "keys", "groups"), [("SUM(COUNT(*)) OVER (ORDER BY ward)", "ward", 4), ("COUNT(*)", "ROLLUP(ward)", 5)]
)
def test_selected_rows_that_share_noise_have_intervals_for_all_groups_at_once(
    ask: Any, value: str, keys: str, groups: int
) -> None:
    """Three rows are shown: for the share of rows shown instead, the level would be 1 - 3 (1 - level) / groups."""
    plain = ask(f"ward, {value} AS n", f"GROUP BY {keys}", epsilon=0.1)
    selected = ask(f"ward, {value} AS n", f"GROUP BY {keys} ORDER BY n DESC LIMIT 3", epsilon=0.1)
    level = 1 - (1 - 0.95) / groups
    wide = {row["ward"]: span["n"] for row, span in zip(plain.rows, plain.intervals(level), strict=True)}
    assert len(selected.rows) == 3
    for row, span in zip(selected.rows, selected.intervals(0.95), strict=True):
        assert width(span["n"]) == pytest.approx(width(wide[row["ward"]]), rel=0.02)


def test_rows_that_are_selected_by_their_keys_have_the_usual_intervals(ask: Any) -> None:
    few = ask("ward, COUNT(*) AS n", "GROUP BY ward HAVING ward <> 'a' ORDER BY ward LIMIT 2")
    assert width(few.intervals()[0]["n"]) == width(ask("ward, COUNT(*) AS n").intervals()[0]["n"])
    assert "on average over answers" not in few.card


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999999])
def test_an_interval_is_known_at_every_level(ask: Any, level: float) -> None:
    release = ask("ward, AVG(age) AS m, COUNT(*) FILTER (WHERE age > 40) * 1.0 / COUNT(*) AS r")
    for row, span in zip(release.rows, release.intervals(level), strict=True):
        assert span["m"].low <= row["m"] <= span["m"].high
        assert span["r"].low <= row["r"] <= span["r"].high


def test_a_select_over_an_answer_says_that_it_has_no_intervals(engine: MemoryEngine) -> None:
    sql = "SELECT AVG(n) AS y FROM (SELECT ward, COUNT(*) AS n FROM people GROUP BY ward)"
    plan = plan_sql(sql, Schema([PEOPLE]), Target(epsilon=1.0), BudgetTerms())
    release = Release(plan, run(plan, engine, 1), Cost(1.0, 0.0, 1.0), ())
    assert release.intervals() == [{}]
    assert "No intervals: the outer SELECT computes with noisy numbers of several rows." in release.card
