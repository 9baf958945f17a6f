"""TPC-H: every query is answered or refused as its file says, and answers are those of the database, noise aside."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Final

import pytest

from bench.__main__ import benchmark_names
from bench.tpch import benchmark, data, engines
from bench.tpch.engines import Opened
from bench.tpch.errors import agree, distance
from bench.tpch.questions import VERDICTS, Query, Statement, Verdict, judged, listed, queries
from bench.tpch.schema import KEYS, NATIONS, UNITS, schema, tables
from tacit.privacy.bounds import Categories
from tacit.query import PlanSettings

QUERIES: Final = queries()
TINY: Final = 0.01
PAGE: Final = Path(__file__).parents[3] / "docs/explanation/tpch.md"
NAMES: Final = ["Supplier#000000001", "Supplier#000000002"]


def test_there_are_22_queries_and_each_says_what_becomes_of_it() -> None:
    assert [query.number for query in QUERIES] == list(range(1, 23))
    for query in QUERIES:
        for statement in (query.asked, query.written):
            assert {verdict.kind for verdict in statement.verdicts.values()} <= set(VERDICTS)
            assert all(bool(one.reason) == (one.kind != "as written") for one in statement.verdicts.values())
        changed = any(verdict.kind == "changed" for verdict in query.asked.verdicts.values())
        assert changed == (query.written is not query.asked)


def test_at_least_twelve_are_answered_for_customers() -> None:
    kinds = [query.asked.verdicts["customer"].kind for query in QUERIES]
    assert kinds.count("as written") >= 12
    assert kinds.count("as written") + kinds.count("changed") >= 16
    assert benchmark.ANSWERED_GOAL == 12


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_tacit_says_to_a_query_what_its_file_says(query: Query, unit: str) -> None:
    held(query.asked, unit, query.settings(unit, lambda _sql: NAMES))
    if query.written is not query.asked:
        held(query.written, unit, PlanSettings())


def held(statement: Statement, unit: str, settings: PlanSettings) -> None:
    expected, found = statement.verdicts[unit], judged(statement, schema(unit), settings)
    if expected.kind == "refused":
        assert found == expected
    else:
        assert found.kind == ("empty" if expected.kind == "empty" else "as written")


def test_the_documentation_has_the_verdict_on_every_query() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for query in QUERIES:
        row = next(line for line in page.splitlines() if line.startswith(f"| Q{query.number}, "))
        for unit, cell in zip(UNITS, row.strip("| ").split(" | ")[1:], strict=True):
            verdict = query.asked.verdicts[unit]
            assert cell == verdict.kind + (", keys stated" if verdict.is_answered and query.keys else "")
            assert verdict.reason in page


def test_a_query_that_is_no_longer_answered_stops_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "judged", lambda *_arguments: Verdict("refused", "T202 not any more"))
    with pytest.raises(AssertionError, match="not any more"):
        benchmark._coverage("customer", QUERIES)


@pytest.mark.parametrize("unit", UNITS)
def test_tables_are_private_or_public_and_nothing_may_be_null(unit: str) -> None:
    found = {table.name: table for table in tables(unit, 1)}
    assert set(found) == set(KEYS)
    assert sum(table.is_private for table in found.values()) == 3
    assert all(table.identified_by for table in found.values() if not table.is_private)
    assert not any(column.nullable for table in found.values() for column in table.columns)
    assert found["nation"].column("n_name").facts == Categories(NATIONS)


def test_the_number_of_suppliers_follows_the_scale() -> None:
    bounds = schema("customer", 0.01).table("lineitem").column("l_suppkey").facts
    assert bounds is not None
    assert (bounds.lower, bounds.upper) == (1, 100)  # type: ignore[union-attr]


def test_keys_are_a_span_a_list_or_a_question_about_public_tables() -> None:
    assert listed("0 to 3", list) == [0, 1, 2, 3]
    assert listed("1994-12-31 to 1995-01-01", list) == [date(1994, 12, 31), date(1995, 1, 1)]
    assert listed("3, 9", list) == [3, 9]
    assert listed("'13', 'AIR'", list) == ["13", "AIR"]
    assert listed("SELECT s_name FROM supplier", lambda _sql: NAMES) == NAMES


def test_errors_are_relative_and_by_group() -> None:
    exact = [{"k": "a", "n": 10}, {"k": "b", "n": Decimal(20)}, {"k": "c", "n": 0}, {"k": "d", "n": 5}]
    found = [{"k": "a", "n": 11}, {"k": "b", "n": 14.0}, {"k": "c", "n": 3}, {"k": "e", "n": 9}]
    measured = distance([found], exact, ["k"])
    assert measured.error == pytest.approx(0.2)
    assert measured.shown == 0.75
    assert distance([[]], exact, ["k"]).error is None


def test_answers_agree_if_groups_that_only_one_has_are_empty() -> None:
    exact = [{"year": 1995.0, "n": 10, "mean": 2.0}]
    same = {"year": 1995, "n": 10.000001, "mean": 2.0}
    assert agree([same, {"year": 1996, "n": 0.0, "mean": 7.5}], exact, ["year"])
    assert not agree([same, {"year": 1996, "n": 1.0, "mean": 7.5}], exact, ["year"])
    assert not agree([{**same, "n": 11}], exact, ["year"])
    assert not agree([], exact, ["year"])


def test_the_benchmark_is_among_those_of_its_folder() -> None:
    assert "tpch" in benchmark_names()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """The smallest scale at which keys are keys, in DuckDB."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "CACHE", tmp_path_factory.mktemp("cache"))
        try:
            data.folder(TINY)
        except data.Missing as missing:
            pytest.skip(str(missing))
        with engines.opened("duckdb", "customer", TINY, tmp_path_factory.mktemp("curator")) as opened:
            assert opened is not None
            yield opened


@pytest.mark.parametrize("name", ["q01", "q04", "q06", "q13", "q21", "q22"])
def test_noise_and_limits_aside_an_answer_is_that_of_the_database(tiny: Opened, name: str) -> None:
    query = next(one for one in QUERIES if one.name == name)
    measured = benchmark._measured(query, "customer", TINY, tiny)
    assert measured.agrees
    assert set(measured.errors) == set(benchmark.EPSILONS)
    assert measured.errors[10.0].shown == 1.0


def test_a_missing_generator_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(data, "CACHE", tmp_path)
    monkeypatch.setattr(data, "GENERATOR", "no-such-generator")
    with pytest.raises(data.Missing, match="pip install"):
        data.folder(TINY)
