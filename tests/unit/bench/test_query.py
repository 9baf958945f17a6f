"""The query benchmark: its data are the same every time and keep what is said of them; contestants run in turns."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from bench import peers, query
from bench.queries import accuracy, contest, data
from bench.queries.contest import ContestantFailed, Deadline, Figures

ROWS = 20_000


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "CACHE", tmp_path / "cache")


def asked(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(sql).fetchall()


def test_the_same_table_is_made_again_row_by_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = asked(f"FROM '{data.events(ROWS)}/*.parquet'")
    monkeypatch.setattr(data, "CACHE", tmp_path / "another")
    monkeypatch.setattr(data, "ROWS_A_FILE", ROWS // 3)
    folder = data.events(ROWS)
    assert len(list(folder.iterdir())) == 4
    assert sorted(first) == sorted(asked(f"FROM '{folder}/*.parquet'"))


def test_a_table_is_made_once() -> None:
    folder = data.events(100)
    made_ns = folder.stat().st_mtime_ns
    assert data.events(100) == folder
    assert folder.stat().st_mtime_ns == made_ns


def test_events_lie_within_what_is_said_of_them() -> None:
    source = f"'{data.events(ROWS)}/*.parquet'"
    [(lowest, highest, groups, fine, users)] = asked(
        f"SELECT min(value), max(value), max(grp), max(grp_fine), max(user_id) FROM {source}"
    )
    assert data.LOWER <= lowest < highest <= data.UPPER
    assert groups < data.GROUPS
    assert fine < data.FINE_GROUPS
    assert users < ROWS // data.ROWS_A_USER


def test_few_users_have_rows_in_many_groups() -> None:
    source = f"'{data.events(ROWS)}/*.parquet'"
    [(most, median)] = asked(
        f"SELECT max(n), median(n) FROM (SELECT count(DISTINCT grp) AS n FROM {source} GROUP BY user_id)"
    )
    assert most > 50
    assert median < 10


def test_every_unit_of_visits_fills_the_bounds_and_passes_none() -> None:
    source = f"'{data.visits(ROWS)}/*.parquet'"
    by_group = f"SELECT user_id, grp, count(*) AS n FROM {source} GROUP BY ALL"
    found = asked(f"SELECT DISTINCT count(*), min(n), max(n) FROM ({by_group}) GROUP BY user_id")
    assert found == [(data.VISIT_GROUPS, data.VISIT_ROWS, data.VISIT_ROWS)]
    [(lowest, highest)] = asked(f"SELECT min(value), max(value) FROM {source}")
    assert data.LOWER <= lowest < highest <= data.UPPER


def test_the_csv_and_the_database_hold_the_same_rows() -> None:
    in_parquet = asked(f"SELECT count(*), sum(grp), sum(value)::DECIMAL(18, 2) FROM '{data.events(ROWS)}/*.parquet'")
    assert asked(f"SELECT count(*), sum(grp), sum(value)::DECIMAL(18, 2) FROM '{data.csv(ROWS)}'") == in_parquet
    with duckdb.connect(str(data.database(ROWS)), read_only=True) as connection:
        sql = "SELECT count(*), sum(grp), sum(value)::DECIMAL(18, 2) FROM events"
        assert connection.execute(sql).fetchall() == in_parquet


def test_the_bare_grouping_gives_the_plain_answers() -> None:
    source = f"'{data.events(ROWS)}/*.parquet'"
    plain, bare = (sorted(asked(make("grp", source))) for make in (query.plain, query.bare))
    assert np.allclose(np.array(plain, dtype=float), np.array(bare, dtype=float))


def test_contestants_are_measured_in_processes_of_their_own() -> None:
    found = contest.contest({"one": {"kind": "duckdb", "database": "", "sql": "SELECT 1"}}, 3)["one"]
    assert 0 < found.wall_s <= found.median_s < 1
    assert found.cpu_s >= 0
    assert 10 < found.peak_mb < 1_000


def test_a_contestant_that_fails_ends_the_contest(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ContestantFailed, match="broken ended with 1"):
        contest.contest({"broken": {"kind": "duckdb", "database": "", "sql": "SELECT nothing"}}, 1)
    assert "nothing" in capfd.readouterr().err


def test_a_peer_that_fails_is_said_and_gives_no_figure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise peers.PeerFailed("stopped")

    monkeypatch.setattr(peers, "run", fail)
    assert contest.peer("opendp", repeats=1) is None
    assert "opendp gave no figure: stopped" in capsys.readouterr().err


def test_a_deadline_leaves_a_peer_what_is_left_and_never_nothing() -> None:
    assert Deadline().left_s(900.0) == 900.0
    assert 8 < Deadline.after(10.0).left_s(900.0) <= 10
    assert Deadline.after(-10.0).left_s(900.0) == 1.0


def test_every_peer_has_a_script_and_pins() -> None:
    for name in contest.PEERS:
        assert (contest.SCRIPTS / f"query_{name}.py").exists()
        assert name in peers.names()


def test_the_goal_stands_with_the_least_seconds_alone() -> None:
    figures = Figures.of([0.3, 0.1, 0.2], [0.5, 0.4, 0.6], 99.0)
    results = list(query._lines("asked", figures, {"opendp": None, "duckdb": figures}, 0.15))
    assert [result.value for result in results] == [0.1, 0.2, 0.4, 99.0]
    assert [result.goal for result in results] == [0.15, None, None, None]
    assert results[0].peers == {"opendp": None, "duckdb": 0.1}


def test_an_answer_that_is_missing_counts_as_zero() -> None:
    answers = [{"a": [1.0, 5.0], "b": [2.0, float("nan")]}, {"a": [1.0, 7.0]}]
    truth = {"a": 4.0, "b": 3.0}
    assert accuracy.distances(answers, truth, 1).tolist() == [[1.0, 3.0], [3.0, 3.0]]
