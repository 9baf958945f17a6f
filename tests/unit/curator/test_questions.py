"""Questions through the curator: charged before the data are touched, answered, kept, and given again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit
from tacit.mechanisms.mechanism import Interval
from tacit.privacy.errors import (
    BudgetExceeded,
    Cancelled,
    EngineFailed,
    InvalidInput,
    KeyReused,
    NameTaken,
    NotAllowed,
    NotInCatalog,
    NotPermitted,
    QueryRefused,
    SourceMissing,
    TimedOut,
    UnknownName,
    WrongType,
)
from tacit.privacy.tables import Column, Kind
from tacit.query.release import rows_html

pytestmark = pytest.mark.filterwarnings("ignore::tacit.curator.PrivacyWarning")  # some want answers without noise
QUESTION = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY sex"


def frame(patients: int = 500, visits: int = 3) -> pd.DataFrame:
    rows = [
        {
            "patient": p,
            "age": 20 + p % 60,
            "sex": "FM"[p % 2],
            "day": date(2024, 1 + v, 1 + p % 28),
            "cost": p % 100 / 2,
        }
        for p in range(patients)
        for v in range(visits)
    ]
    return pd.DataFrame(rows)


COLUMNS: dict[str, Any] = {
    "age": tacit.Bounds(0, 120),
    "sex": tacit.Categories(["F", "M"]),
    "cost": tacit.Bounds(0, 50),
    "day": tacit.Bounds(date(2024, 1, 1), date(2024, 12, 31)),
}


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    with tacit.Curator(tmp_path / "clinic") as made:
        made.add_table("visits", frame(), unit="patient", columns=COLUMNS)
        made.set_budget("visits", epsilon=3.0, delta=1e-7)
        yield made


def test_an_answer_has_rows_intervals_cost_card_and_permit(curator: tacit.Curator) -> None:
    release = curator.sql(QUESTION, epsilon=2.0)
    assert [row["sex"] for row in release.rows] == ["F", "M"]
    for row, spans in zip(release.rows, release.intervals(0.999999), strict=True):
        assert spans["n"].low <= 750 <= spans["n"].high
        assert spans["age"].low <= row["age"] <= spans["age"].high
    assert release.cost.epsilon == pytest.approx(2.0)
    assert release.permit is not None
    assert "visits" in release.card
    assert not release.simulated


def test_a_question_may_go_over_several_lines_and_is_noted_on_one(curator: tacit.Curator) -> None:
    release = curator.sql("SELECT COUNT(*) AS n  -- all of them\n\tFROM visits\r\n", epsilon=1)
    assert len(release.rows) == 1
    assert release.permit is not None
    assert release.permit.purpose == "SELECT COUNT(*) AS n -- all of them FROM visits"


def test_a_preview_is_exactly_the_later_charge_and_spends_nothing(curator: tacit.Curator) -> None:
    preview = curator.preview(QUESTION, epsilon=0.7)
    assert curator.budget("visits").spent().epsilon == 0
    release = curator.sql(QUESTION, epsilon=0.7)
    assert release.cost == preview
    assert curator.budget("visits").spent().epsilon == pytest.approx(0.7)
    again = curator.preview(QUESTION, epsilon=0.7)
    assert again.is_released
    assert again.epsilon == 0


def test_the_same_question_in_other_words_gets_the_same_answer_at_no_cost(curator: tacit.Curator) -> None:
    one = curator.sql("SELECT COUNT(*) FROM visits WHERE NOT age < 40", epsilon=0.5)
    other = curator.sql("select count(1) as grown from visits v where 40 <= v.age", epsilon=0.5)
    assert list(one.rows[0].values()) == list(other.rows[0].values())
    assert other.cost.epsilon == 0
    assert other.permit is None
    assert "nothing" in other.card
    assert curator.budget("visits").spent().epsilon == pytest.approx(0.5)


def test_released_answers_outlive_the_process(tmp_path: Path) -> None:
    with tacit.Curator(tmp_path) as first:
        first.add_table("visits", frame(), unit="patient", columns=COLUMNS)
        first.set_budget("visits", epsilon=1.0, delta=1e-7)
        rows = first.sql(QUESTION, epsilon=0.5).rows
    with tacit.Curator(tmp_path) as second:
        again = second.sql(QUESTION, epsilon=0.5)
        assert again.rows == rows
        assert again.cost.epsilon == 0
        assert again.intervals(0.95)[0]["n"].low < rows[0]["n"]


def test_changed_data_are_a_new_question(curator: tacit.Curator) -> None:
    curator.sql(QUESTION, epsilon=0.5)
    curator.add_table("visits", frame(patients=600), unit="patient", columns=COLUMNS, replace=True)
    assert curator.sql(QUESTION, epsilon=0.5).cost.epsilon == pytest.approx(0.5)


def test_a_question_over_budget_is_refused_before_the_data_are_touched(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def untouchable(*_arguments: Any, **_settings: Any) -> None:
        pytest.fail("the data were touched")

    engine = curator.engines.engine(("duckdb", ""))
    monkeypatch.setattr(engine, "run", untouchable)
    with pytest.raises(BudgetExceeded):
        curator.sql(QUESTION, epsilon=3.5)
    assert curator.budget("visits").spent().epsilon == 0


def test_the_charge_is_on_disk_before_the_engine_runs(curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, seen = curator.engines.engine(("duckdb", "")), []
    real = engine.run

    def watched(*arguments: Any, **settings: Any) -> Any:
        seen.append(curator.budget("visits").spent().epsilon)
        return real(*arguments, **settings)

    monkeypatch.setattr(engine, "run", watched)
    curator.sql(QUESTION, epsilon=0.5)
    assert seen == [pytest.approx(0.5)]


def test_a_run_that_fails_stays_charged_and_the_ledger_says_why(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_arguments: Any, **_settings: Any) -> None:
        raise EngineFailed("the engine is gone")

    monkeypatch.setattr(curator.engines.engine(("duckdb", "")), "run", failing)
    with pytest.raises(EngineFailed):
        curator.sql(QUESTION, epsilon=0.5)
    assert curator.budget("visits").spent().epsilon == pytest.approx(0.5)
    (open_one,) = curator.ledger.reservations()
    assert "T610" in open_one.note


SLOW = "SELECT COUNT(*) FROM t a JOIN t b USING (u) JOIN t c USING (u) WHERE a.x + b.x * c.x > 17"


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[tacit.Curator]:
    with tacit.Curator(tmp_path) as made:
        rows = pd.DataFrame({"u": [i % 300 for i in range(30_000)], "x": [i % 6000 for i in range(30_000)]})
        made.add_table("t", rows, unit="u", columns={"x": tacit.Bounds(0, 6000)})
        made.set_budget("t", epsilon=1.0)
        yield made


def test_a_time_limit_ends_a_question_and_the_next_one_is_answered(crowded: tacit.Curator) -> None:
    with pytest.raises(TimedOut):
        crowded.sql(SLOW, epsilon=0.1, timeout_s=0.3)
    assert crowded.sql("SELECT COUNT(*) FROM t", epsilon=0.1, timeout_s=60).rows


def test_a_question_can_be_cancelled_from_another_thread(crowded: tacit.Curator) -> None:
    ended = threading.Event()

    def cancel() -> None:
        while not ended.wait(0.3):  # again and again: the first time the question may not have begun
            crowded.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    try:
        lost = r"epsilon 0\.1 stays charged, and repeating the query is charged again"
        with pytest.raises(Cancelled, match=lost):
            crowded.sql(SLOW, epsilon=0.1, timeout_s=60)
    finally:
        ended.set()
        canceller.join()
    assert crowded.sql("SELECT COUNT(*) FROM t", epsilon=0.1).rows


def test_an_analyst_pays_from_her_own_budget_too(curator: tacit.Curator) -> None:
    curator.add_analyst("ana", budgets={"visits": tacit.Budget(epsilon=1.0, delta=1e-8)})
    curator.sql(QUESTION, epsilon=0.8, analyst="ana")
    assert curator.budget("visits", "ana").remaining().epsilon == pytest.approx(0.2)
    with pytest.raises(BudgetExceeded):
        curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.5, analyst="ana")
    for sql in ("SELECT COUNT(*) FROM visits", QUESTION):  # the second one was released before
        with pytest.raises(NotPermitted):
            curator.sql(sql, epsilon=0.8, analyst="nobody")


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_frames_of_every_library_are_taken(tmp_path: Path, make: Any) -> None:
    with tacit.Curator(tmp_path) as curator:
        curator.add_table("visits", make(frame()), unit="patient", columns=COLUMNS)
        curator.set_budget("visits", epsilon=100.0)
        release = curator.sql(QUESTION, epsilon=50.0)
        assert abs(release.rows[0]["n"] - 750) < 30
        assert release.to_pandas().shape == (2, 3)
        assert release.to_polars().shape == (2, 3)
        assert release.to_arrow().num_rows == 2
        assert "<table>" in release._repr_html_()


def test_files_are_taken_where_they_lie(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "visits.csv", index=False)
    frame().to_parquet(tmp_path / "a.parquet")
    with tacit.Curator(tmp_path / "clinic") as curator:
        for name, source in (("text", tmp_path / "visits.csv"), ("packed", tmp_path / "*.parquet")):
            curator.add_table(name, str(source), unit="patient", columns=COLUMNS)
            curator.set_budget(name, epsilon=100.0)
            rows = curator.sql(f"SELECT COUNT(*) AS n FROM {name}", epsilon=50.0).rows
            assert abs(rows[0]["n"] - 1500) < 10


def test_tables_lead_to_their_unit_by_foreign_keys_and_join_on_it(tmp_path: Path) -> None:
    visits = frame(patients=300, visits=1).reset_index(names="id")
    labs = pd.DataFrame({"visit": [i for i in range(300) for _ in range(2)], "value": [5.0] * 600})
    with tacit.Curator(tmp_path) as curator:
        curator.add_table("visits", visits, unit="patient", columns=COLUMNS)
        key = tacit.ForeignKey("visit", "visits", "id")
        curator.add_table(
            "labs", labs, unit=tacit.Unit("patient", (key,)), columns={"value": tacit.Bounds(0, 10)}, dataset="visits"
        )
        curator.set_budget("visits", epsilon=1000.0)
        sql = "SELECT sex, COUNT(*) AS n, AVG(value) AS v FROM labs JOIN visits ON labs.visit = visits.id GROUP BY sex"
        rows = curator.sql(sql, epsilon=500.0).rows
        assert [abs(row["n"] - 300) < 5 for row in rows] == [True, True]
        assert rows[0]["v"] == pytest.approx(5.0, abs=0.1)


def test_bad_tables_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    with tacit.Curator(tmp_path) as curator:
        with pytest.raises(InvalidInput):
            curator.add_table("visits", frame())  # neither a unit nor public
        with pytest.raises(NotInCatalog):
            curator.add_table("visits", frame(), unit="nobody")
        with pytest.raises(SourceMissing):
            curator.add_table("visits", tmp_path / "no.parquet", unit="patient")
        public = pd.DataFrame({"city": ["a", "a"], "region": ["x", "y"]})
        with pytest.raises(InvalidInput):
            curator.add_table("cities", public, public=True, identified_by="city")
        assert not curator.catalog.tables
        curator.add_table("visits", frame(), unit="patient", columns=COLUMNS)
        with pytest.raises(NameTaken):
            curator.add_table("visits", frame(), unit="patient")
        with pytest.raises(UnknownName):
            curator.sql(QUESTION, epsilon=1)  # no budget yet


def test_refusals_cost_nothing(curator: tacit.Curator) -> None:
    for sql in ("SELECT * FROM visits", "SELECT patient, COUNT(*) FROM visits GROUP BY patient", "DROP TABLE visits"):
        with pytest.raises((QueryRefused, InvalidInput)):
            curator.sql(sql, epsilon=1)
    assert curator.budget("visits").spent().epsilon == 0


def test_values_are_clamped_to_what_was_declared(tmp_path: Path) -> None:
    rows = pd.DataFrame({"u": [1, 2, 3, 4], "x": [1e300, float("nan"), float("inf"), -5.0], "y": [1.0, None, 2.0, 3.0]})
    columns = {"x": tacit.Bounds(0, 10), "y": tacit.privacy.Column("y", tacit.privacy.Kind.REAL, nullable=False)}
    with tacit.Curator(tmp_path) as curator:
        curator.add_table("t", rows, unit="u", columns=columns)
        curator.set_budget("t", epsilon=1e6)
        row = curator.sql("SELECT SUM(x) AS s, COUNT(x) AS n, COUNT(*) AS m FROM t", epsilon=9e5).rows[0]
        assert (round(row["s"]), row["n"], row["m"]) == (20, 3, 3)


def test_a_salt_is_made_once_and_kept_to_its_owner(tmp_path: Path) -> None:
    from tacit.curator.salt import salt_of

    first = salt_of(tmp_path)
    assert salt_of(tmp_path) == first
    assert (tmp_path / "salt").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["salt"]
    assert 0 <= first < 2**62


def test_groups_that_cannot_be_shown_are_one_row_if_that_is_asked(tmp_path: Path) -> None:
    rows = pd.DataFrame({"u": range(1200), "city": ["big"] * 1000 + [f"hamlet {i}" for i in range(200)]})
    with tacit.Curator(tmp_path) as curator:
        curator.add_table("people", rows, unit="u")
        curator.set_budget("people", epsilon=100.0, delta=1e-6)
        sql = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
        answer = {row["city"]: row["n"] for row in curator.sql(sql, epsilon=8.0, other=True).rows}
        assert set(answer) == {"big", "other"}
        assert abs(answer["other"] - 200) < 40
        assert [row["city"] for row in curator.sql(sql, epsilon=8.0).rows] == ["big"]
        with pytest.raises(QueryRefused):
            curator.sql("SELECT city, COUNT(DISTINCT u) FROM people GROUP BY city", epsilon=1.0, other=True)


def test_what_the_engine_cannot_say_is_refused_at_no_charge(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(tree: object) -> str:
        raise NotAllowed("this engine cannot say that")

    monkeypatch.setattr(curator.engines.engine(("duckdb", "")), "write", refusing)
    with pytest.raises(NotAllowed):
        curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.1)
    assert curator.budget("visits").spent().epsilon == 0


@pytest.mark.parametrize("word", ["no", 1, None])
def test_a_flag_is_true_or_false_and_nothing_that_is_taken_for_it(curator: tacit.Curator, word: Any) -> None:
    """To Python the text "no" is true: a table that is not public would be."""
    before = curator.catalog.text
    for attempt in (
        lambda: curator.add_table("more", frame(), public=word),
        lambda: curator.add_table("visits", frame(), unit="patient", columns=COLUMNS, replace=word),
        lambda: curator.preview("SELECT COUNT(*) FROM visits", epsilon=0.5, other=word),
        lambda: curator.set_budget("labs", 1.0, per_epoch=word),
        lambda: Column("age", Kind.INTEGER, nullable=word),
    ):
        with pytest.raises(WrongType, match="must be true or false"):
            attempt()
    assert curator.catalog.text == before


def test_a_key_is_charged_once_though_the_first_run_died(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(curator.engines.engine(("duckdb", "")), "run", die)
        with pytest.raises(KeyboardInterrupt):
            curator.sql(QUESTION, epsilon=0.5, key="one")
    release = curator.sql(QUESTION, epsilon=0.5, key="one")
    assert release.cost.epsilon == pytest.approx(0.5)
    assert curator.budget("visits").spent().epsilon == pytest.approx(0.5)
    assert curator.sql(QUESTION, epsilon=0.5, key="one").rows == release.rows


def test_a_key_stands_for_one_question(curator: tacit.Curator) -> None:
    curator.sql(QUESTION, epsilon=0.5, key="one")
    with pytest.raises(KeyReused):
        curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.25, key="one")
    assert curator.budget("visits").spent().epsilon == pytest.approx(0.5)


def test_of_two_runs_for_one_key_one_answer_leaves(curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two answers with noise of their own for one charge would be a charge too few."""
    together = threading.Barrier(2)
    engine = curator.engines.engine(("duckdb", ""))
    run = engine.run

    def waiting(*arguments: Any, **settings: Any) -> Any:
        together.wait(timeout=30)
        return run(*arguments, **settings)

    monkeypatch.setattr(engine, "run", waiting)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(curator.sql(QUESTION, epsilon=0.5, key="one").rows))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert found[0] == found[1]
    assert curator.budget("visits").spent().epsilon == pytest.approx(0.5)


def test_the_same_answer_has_the_same_intervals(curator: tacit.Curator) -> None:
    one, other = curator.sql(QUESTION, epsilon=0.5), curator.sql(QUESTION, epsilon=0.5)
    assert one.intervals(0.9) == one.intervals(0.9) == other.intervals(0.9)


def test_a_missing_value_is_shown_in_a_notebook_with_its_interval() -> None:
    shown = rows_html(["a", "b"], [{"a": None, "b": None}], [{"a": Interval(0.0, 9.0), "b": None}], "A card.")
    assert "<td>None (0 to 9)</td><td>None</td>" in shown
