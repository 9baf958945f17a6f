"""What every engine promises, in DuckDB's SQL, which each writes in its own."""

from __future__ import annotations

import threading
import time
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.engines import ROWS, UNIT, SparkEngine
from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import Cancelled, EngineFailed, InvalidInput, NameTaken, NotInCatalog, TimedOut
from tacit.privacy.tables import TEXT_LENGTH_MAX, Column, Kind, Limits, Table
from tacit.privacy.units import ForeignKey, Unit
from tests.conformance.engines.conftest import Place

ENDLESS = "SELECT SUM(a.n * b.n + c.n) AS s FROM " + ", ".join(f"tacit_data.long AS {one}" for one in "abc")


def long(place: Place) -> int:
    """Show a table whose product with itself takes long, and return its length.

    Spark works on a task that was cancelled to its end, so that the next question waits for it: there it takes seconds.
    """
    length = 1_800 if isinstance(place.engine, SparkEngine) else 6_000
    place.show("long", {"n": "BIGINT"}, [[number] for number in range(length)])
    return length


def one_row(place: Place, sql: str) -> tuple[Any, ...]:
    (row,) = place.rows(sql)
    return row


def test_values_come_back_as_they_were(place: Place) -> None:
    row = [7, 1.5, "naïve — 数据", True, date(2024, 2, 29), datetime(2024, 2, 29, 12, 30, 15, 250)]
    types = {"i": "BIGINT", "r": "DOUBLE", "s": "VARCHAR", "b": "BOOLEAN", "d": "DATE", "t": "TIMESTAMP"}
    table = place.show("everything", types, [row, row])
    assert [column.kind for column in table.columns] == [
        *(Kind.INTEGER, Kind.REAL, Kind.TEXT, Kind.BOOLEAN, Kind.DATE, Kind.TIME)
    ]
    assert place.rows("SELECT i, r, s, b, d, t FROM tacit_data.everything") == [tuple(row)] * 2


def test_a_missing_value_is_none_in_a_list(place: Place) -> None:
    place.show("gaps", {"id": "BIGINT", "n": "BIGINT", "s": "VARCHAR"}, [[1, None, "x"], [2, 5, None]])
    found = place.run("SELECT n, s FROM tacit_data.gaps ORDER BY id")
    assert found == {"n": [None, 5], "s": ["x", None]}


def test_numbers_without_gaps_are_arrays(place: Place) -> None:
    place.show("full", {"n": "BIGINT", "r": "DOUBLE"}, [[1, 0.5], [2, 1.5]])
    found = place.run("SELECT SUM(n) AS n, SUM(r) AS r, COUNT(*) AS c FROM tacit_data.full")
    assert [one.dtype for one in found.values() if isinstance(one, np.ndarray)] == [np.int64, np.float64, np.int64]


def test_not_a_number_and_the_infinities(place: Place) -> None:
    place.show("odd", {"r": "DOUBLE"}, [[float("nan")], [float("inf")], [float("-inf")], [1.0]], kinds={"r": Kind.REAL})
    found = {value for (value,) in place.rows("SELECT r FROM tacit_data.odd")}
    assert found == {None, 1.0, float("inf"), float("-inf")}


def test_values_beyond_their_bounds_are_moved_to_them(place: Place) -> None:
    source = place.put("ages", {"id": "BIGINT", "age": "DOUBLE"}, [[1, -5.0], [2, 300.0], [3, 40.0], [4, float("nan")]])
    table = Table("ages", (Column("id", Kind.INTEGER), Column("age", Kind.REAL, Bounds(0, 120))), Unit("id"))
    place.engine.register(table, source, {})
    assert place.rows("SELECT id, age FROM tacit_data.ages") == [(1, 0.0), (2, 120.0), (3, 40.0), (4, None)]


def test_what_cannot_be_cast_is_missing_and_the_row_stays(place: Place) -> None:
    words = {"n": Kind.INTEGER, "d": Kind.DATE, "b": Kind.BOOLEAN, "r": Kind.REAL, "t": Kind.TIME}
    types = {"id": "BIGINT", **dict.fromkeys(words, "VARCHAR")}
    rows = [[1, "12", "2024-01-31", "true", "0.25", "2024-01-31 10:00:00"], [2, *["no such value"] * 5]]
    place.show("texts", types, rows, kinds=words)
    assert place.rows("SELECT id, n, d, b, r, t FROM tacit_data.texts") == [
        (1, 12, date(2024, 1, 31), True, 0.25, datetime(2024, 1, 31, 10)),
        (2, None, None, None, None, None),
    ]


def test_a_number_too_large_for_its_kind_is_missing(place: Place) -> None:
    kinds = {"n": Kind.INTEGER}
    place.show("large", {"id": "BIGINT", "n": "HUGEINT"}, [[1, 2**70], [2, -(2**63)]], kinds=kinds)
    assert place.rows("SELECT id, n FROM tacit_data.large") == [(1, None), (2, -(2**63))]


def test_sums_beyond_64_bits_stay_whole(place: Place) -> None:
    place.show("big", {"n": "BIGINT"}, [[2**63 - 1]] * 3)
    (total,) = one_row(place, "SELECT SUM(n) AS s FROM tacit_data.big")
    assert total == 3 * (2**63 - 1)
    assert type(total) is int


def test_decimals_are_reals(place: Place) -> None:
    table = place.show("prices", {"p": "DECIMAL(10, 2)"}, [[1.25], [2.5]])
    assert table.columns[0].kind is Kind.REAL
    assert place.rows("SELECT p FROM tacit_data.prices") == [(1.25,), (2.5,)]


def test_a_long_text_is_cut_and_no_other_row_changes(place: Place) -> None:
    texts = ["é" * TEXT_LENGTH_MAX, "é" * (TEXT_LENGTH_MAX + 1), "x" * 1_000_000, "short", "", None]
    rows = [[number, text] for number, text in enumerate(texts, start=1)]
    place.show("long", {"id": "BIGINT", "s": "VARCHAR"}, rows, unit="id", kinds={"s": Kind.TEXT})
    found = dict(place.rows("SELECT id, s FROM tacit_data.long"))
    cut = [None if text is None else text[:TEXT_LENGTH_MAX] for text in texts]
    assert [found[number] or None for number, _ in rows] == [text or None for text in cut]


def test_long_texts_that_begin_alike_are_not_one_unit(place: Place) -> None:
    start = "x" * TEXT_LENGTH_MAX
    rows = [["ann", 1], [start + "a", 2], [start + "b", 3], [start, 4], [start[1:], 5]]
    place.show("long", {"who": "VARCHAR", "n": "BIGINT"}, rows, unit="who", kinds={"who": Kind.TEXT})
    assert place.rows("SELECT n FROM tacit_data.long") == [(1,), (5,)]


def test_a_long_key_leads_to_no_row(place: Place) -> None:
    start = "x" * TEXT_LENGTH_MAX
    columns = (Column("k", Kind.TEXT), Column("n", Kind.INTEGER))
    types = {"k": "VARCHAR", "n": "BIGINT"}
    parent = Table("p", columns, Unit("n"))
    place.engine.register(parent, place.put("p", types, [[start + "a", 1], [start[1:], 2], ["short", 3]]), {})
    child = Table("c", columns, Unit("n", (ForeignKey("k", "p", "k"),)))
    rows = [[start, 4], [start + "a", 5], [start + "b", 6], [start[1:], 7], ["short", 8]]
    place.engine.register(child, place.put("c", types, rows), {"p": parent})
    assert place.rows(f"SELECT n, {UNIT} FROM tacit_data.c") == [(7, 2), (8, 3)]


def test_an_empty_table_has_no_rows(place: Place) -> None:
    source = place.put("nobody", {"id": "BIGINT", "n": "BIGINT"}, [])
    table = Table("nobody", (Column("id", Kind.INTEGER), Column("n", Kind.INTEGER)), Unit("id"))
    place.engine.register(table, source, {})
    assert place.rows("SELECT n, COUNT(*) AS c FROM tacit_data.nobody GROUP BY n") == []
    assert one_row(place, "SELECT COUNT(*) AS c FROM tacit_data.nobody") == (0,)


KEYS = ["  ", "'; DROP", 'a"b', "a\\b", "line\nbreak", "🦊", "a,b;c\td", "%s $salt", "é", "e\u0301", "A", "a", "NULL"]


def test_keys_of_any_text_are_told_apart(place: Place) -> None:
    rows = [[key, number] for number, key in enumerate(KEYS + KEYS)]
    place.show("keyed", {"k": "VARCHAR", "n": "BIGINT"}, rows, kinds={"k": Kind.TEXT})
    found = dict(place.rows("SELECT k, SUM(n) AS n FROM tacit_data.keyed GROUP BY k"))
    assert found == {key: 2 * number + len(KEYS) for number, key in enumerate(KEYS)}


def test_names_of_any_text_can_be_registered(place: Place) -> None:
    name, column = "Order by 1; --", 'the "unit", please'
    put = place.put("odd_names", {"u": "BIGINT", "n": "BIGINT"}, [[1, 2]])
    table = Table(name, (Column("U", Kind.INTEGER), Column("n", Kind.INTEGER)), Unit("u"))
    place.engine.register(table, put, {})
    assert place.rows(f'SELECT "u", "N", {UNIT} FROM tacit_data."{name}"') == [(1, 2, 1)]
    with pytest.raises(EngineFailed):
        place.engine.register(Table(name, (Column(column, Kind.TEXT),)), put, {})


def test_rows_without_a_unit_are_left_out(place: Place) -> None:
    place.show("visits", {"who": "VARCHAR", "n": "BIGINT"}, [["a", 1], [None, 2], ["b", 3], ["a", 4]], unit="who")
    assert place.rows(f"SELECT {UNIT}, who, n FROM tacit_data.visits") == [("a", "a", 1), ("a", "a", 4), ("b", "b", 3)]


def test_the_rows_of_a_unit_are_counted_or_said_to_be_unknown(place: Place) -> None:
    place.show("visits", {"who": "VARCHAR", "n": "BIGINT"}, [["a", 1], ["b", 3], ["a", 4]], unit="who")
    found = place.rows(f"SELECT {UNIT}, {ROWS} FROM tacit_data.visits")
    assert found in ([("a", 2), ("a", 2), ("b", 1)], [("a", None), ("a", None), ("b", None)])


def test_a_public_table_has_no_unit(place: Place) -> None:
    place.show("wards", {"ward": "VARCHAR"}, [["north"], ["south"]])
    with pytest.raises(EngineFailed):
        place.run(f"SELECT {UNIT} FROM tacit_data.wards")


def test_at_most_so_many_rows_of_a_unit_stay_whatever_their_order(place: Place) -> None:
    rows = [[unit, number] for unit in range(20) for number in range(unit)]
    types, limit = {"u": "BIGINT", "n": "BIGINT"}, 5
    place.show("few", types, rows, unit="u", rows_per_unit=limit)
    counts = dict(place.rows(f"SELECT {UNIT}, COUNT(*) AS c FROM tacit_data.few GROUP BY {UNIT}"))
    assert counts == {unit: min(unit, limit) for unit in range(1, 20)}
    counted = dict(place.rows(f"SELECT {UNIT}, MAX({ROWS}) AS r FROM tacit_data.few GROUP BY {UNIT}"))
    assert counted in (counts, dict.fromkeys(counts))
    kept = place.rows("SELECT u, n FROM tacit_data.few")
    assert set(kept) <= {tuple(row) for row in rows}
    place.show("again", types, rows[::-1], unit="u", rows_per_unit=limit)
    assert place.rows("SELECT u, n FROM tacit_data.again") == kept


def test_which_rows_stay_is_decided_for_each_unit_alone(place: Place) -> None:
    rows = [[unit, number] for unit in range(6) for number in range(9)]
    types = {"u": "BIGINT", "n": "BIGINT"}
    place.show("all", types, rows, unit="u", rows_per_unit=4)
    place.show("but_one", types, [row for row in rows if row[0] != 3], unit="u", rows_per_unit=4)
    with_all = place.rows('SELECT u, n FROM tacit_data."all"')
    assert place.rows("SELECT u, n FROM tacit_data.but_one") == [row for row in with_all if row[0] != 3]


def clinic(place: Place, patients: list[list[Any]]) -> tuple[Table, Table]:
    """Patients, and visits that lead to them."""
    two = {"id": "BIGINT", "who": "VARCHAR"}
    parent = Table("patients", (Column("id", Kind.INTEGER), Column("who", Kind.TEXT)), Unit("who"))
    place.engine.register(parent, place.put("patients", two, patients), {})
    through = Unit("who", (ForeignKey("patient", "patients", "id"),))
    child = Table("visits", (Column("patient", Kind.INTEGER), Column("n", Kind.INTEGER)), through)
    return parent, child


VISITS = ({"patient": "BIGINT", "n": "BIGINT"}, [[1, 10], [2, 20], [1, 30], [9, 40], [None, 50]])


def test_a_foreign_key_leads_to_the_unit(place: Place) -> None:
    parent, child = clinic(place, [[1, "ann"], [2, "bob"], [3, "cyd"], [4, None]])
    place.engine.register(child, place.put("visits", *VISITS), {"patients": parent})
    assert place.rows(f"SELECT {UNIT}, n FROM tacit_data.visits") == [("ann", 10), ("ann", 30), ("bob", 20)]


def test_a_limit_on_the_rows_of_the_parent_does_not_lose_the_units_of_its_children(place: Place) -> None:
    parent, child = clinic(place, [[number, "ann"] for number in range(1, 9)])
    limited = Table(parent.name, parent.columns, parent.unit, Limits(rows_per_unit=1))
    place.engine.register(
        limited, place.put("patients", {"id": "BIGINT", "who": "VARCHAR"}, [[1, "ann"], [2, "ann"]]), {}
    )
    place.engine.register(child, place.put("visits", *VISITS), {"patients": limited})
    assert place.rows(f"SELECT {UNIT}, n FROM tacit_data.visits") == [("ann", 10), ("ann", 20), ("ann", 30)]


def test_a_foreign_key_that_leads_to_several_rows_is_refused(place: Place) -> None:
    parent, child = clinic(place, [[1, "ann"], [1, "bob"]])
    with pytest.raises(InvalidInput, match=r"patients\.id is not unique"):
        place.engine.register(child, place.put("visits", *VISITS), {"patients": parent})


def test_a_foreign_key_to_a_table_that_is_not_there_is_refused(place: Place) -> None:
    child = Table("visits", (Column("patient", Kind.INTEGER),), Unit("who", (ForeignKey("patient", "nobody", "id"),)))
    with pytest.raises(NotInCatalog, match="nobody"):
        place.engine.register(child, place.put("visits", *VISITS), {})


@pytest.mark.parametrize("name", [UNIT, ROWS, "_UNIT"])
def test_the_names_that_the_engine_needs_are_refused(place: Place, name: str) -> None:
    source = place.put("taken", {name: "BIGINT"}, [[1]])
    with pytest.raises(NameTaken):
        place.engine.register(Table("taken", (Column(name, Kind.INTEGER),)), source, {})


def test_a_public_table_with_a_key_that_is_shared_is_refused(place: Place) -> None:
    source = place.put("wards", {"ward": "VARCHAR"}, [["north"], ["north"]])
    with pytest.raises(InvalidInput, match="identify"):
        place.engine.register(Table("wards", (Column("ward", Kind.TEXT),), identified_by=("ward",)), source, {})


def test_a_parameter_is_given_by_name(place: Place) -> None:
    place.show("full", {"n": "BIGINT"}, [[1], [2]])
    assert place.rows("SELECT n FROM tacit_data.full WHERE n > $least", least=1) == [(2,)]


def test_a_question_that_takes_too_long_is_stopped_and_the_next_one_answered(place: Place) -> None:
    length = long(place)
    started_s = time.monotonic()
    with pytest.raises(EngineFailed):
        place.run(ENDLESS, timeout_s=0.2)
    assert time.monotonic() - started_s < 5
    assert one_row(place, "SELECT COUNT(*) AS c FROM tacit_data.long") == (length,)


def test_a_question_can_be_cancelled_from_another_thread(place: Place) -> None:
    length = long(place)
    ended = threading.Event()

    def cancel() -> None:
        while not ended.wait(0.2):  # again and again: the first time the question may not have begun
            place.engine.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    try:
        with pytest.raises(Cancelled):
            place.run(ENDLESS, timeout_s=60)
    finally:
        ended.set()
        canceller.join()
    assert one_row(place, "SELECT COUNT(*) AS c FROM tacit_data.long") == (length,)


def test_the_question_of_one_thread_is_cancelled_and_that_of_another_runs_on(place: Place) -> None:
    long(place)
    ended = threading.Event()
    raised: list[type[BaseException]] = []

    def other() -> None:
        try:
            place.run(ENDLESS, timeout_s=3)
        except EngineFailed as error:
            raised.append(type(error))

    asker = threading.get_ident()

    def cancel() -> None:
        while not ended.wait(0.2):
            place.engine.cancel(asker)

    threads = [threading.Thread(target=work) for work in (other, cancel)]
    for thread in threads:
        thread.start()
    try:
        with pytest.raises(Cancelled):
            place.run(ENDLESS, timeout_s=60)
    finally:
        threads[0].join()
        ended.set()
        threads[1].join()
    assert raised in ([EngineFailed], [TimedOut])


def test_cancelling_nothing_does_nothing(place: Place) -> None:
    place.engine.cancel()
    place.show("full", {"n": "BIGINT"}, [[1]])
    assert place.rows("SELECT n FROM tacit_data.full") == [(1,)]


def test_progress_is_told_between_0_and_1(place: Place) -> None:
    long(place)
    shares: list[float] = []
    with pytest.raises(EngineFailed):
        place.run(ENDLESS, timeout_s=0.6, progress=shares.append)
    assert all(0 <= share <= 1 for share in shares)


def test_an_error_says_nothing_of_the_data(place: Place) -> None:
    place.show("secret", {"s": "VARCHAR"}, [["swordfish"]], kinds={"s": Kind.TEXT})
    with pytest.raises(EngineFailed) as caught:
        place.engine.run("SELECT CAST(s AS INTEGER) AS n FROM tacit_data.secret")
    assert "swordfish" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_several_questions_run_at_once(place: Place) -> None:
    place.show("full", {"n": "BIGINT"}, [[number] for number in range(100)])
    found: list[tuple[Any, ...]] = []

    def ask() -> None:
        found.extend(one_row(place, "SELECT SUM(n) AS s FROM tacit_data.full") for _ in range(5))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(4950,)] * 20


def test_a_table_that_is_forgotten_is_gone(place: Place) -> None:
    place.show("full", {"n": "BIGINT"}, [[1]])
    place.engine.forget("full")
    with pytest.raises(NotInCatalog):
        place.engine.refresh("full")
    with pytest.raises(EngineFailed):
        place.run("SELECT n FROM tacit_data.full")
    place.engine.forget("full")


def test_the_fingerprint_stays_while_nothing_changes_and_changes_with_the_rows(place: Place) -> None:
    place.show("full", {"n": "BIGINT"}, [[1]])
    first = place.engine.refresh("full")
    assert place.engine.refresh("FULL") == first
    place.put("full", {"n": "BIGINT"}, [[1], [2]])
    assert place.engine.refresh("full") != first
    assert place.rows("SELECT n FROM tacit_data.full") == [(1,), (2,)]


def test_a_child_that_is_refreshed_leads_through_its_parent_as_that_is_shown(place: Place) -> None:
    parent, child = clinic(place, [[1, "ann"], [2, "bob"]])
    place.engine.register(child, place.put("visits", *VISITS), {"patients": parent})
    place.put("patients", {"id": "BIGINT", "who": "VARCHAR"}, [[1, "eve"], [2, "bob"]])
    for name in ("patients", "visits"):
        place.engine.refresh(name)
    assert place.rows(f"SELECT {UNIT}, n FROM tacit_data.visits") == [("bob", 20), ("eve", 10), ("eve", 30)]


def test_rows_that_are_refused_later_do_not_refuse_a_table_with_a_fingerprint(place: Place) -> None:
    """A duplicate id that a new person brings is found when the owner refreshes, never by a question."""
    parent, child = clinic(place, [[1, "ann"], [2, "bob"]])
    visits = place.put("visits", *VISITS)
    place.engine.register(child, visits, {"patients": parent})
    first, seen = place.engine.refresh("patients"), place.engine.refresh("visits")
    patients = place.put("patients", {"id": "BIGINT", "who": "VARCHAR"}, [[1, "ann"], [2, "bob"], [2, "eve"]])
    place.engine.register(parent, patients, {})
    place.engine.refresh("patients")
    with pytest.raises(InvalidInput, match="not unique"):
        place.engine.refresh("visits")
    place.engine.register(parent, patients, {}, first)
    place.engine.register(child, visits, {"patients": parent}, seen)
    assert place.rows(f"SELECT n FROM tacit_data.visits WHERE {UNIT} = 'ann'") == [(10,), (30,)]


def test_registering_again_changes_nothing(place: Place) -> None:
    table = place.show("full", {"n": "BIGINT"}, [[1]])
    first = place.engine.refresh("full")
    place.engine.register(table, place.put("other", {"n": "BIGINT"}, [[2]]), {})
    assert place.engine.refresh("full") != first
    assert place.rows("SELECT n FROM tacit_data.full") == [(2,)]


def test_nothing_can_be_written_and_no_other_file_be_read(place: Place, tmp_path: Path) -> None:
    place.show("full", {"n": "BIGINT"}, [[1]])
    (tmp_path / "other.csv").write_text("a\n1\n")
    for sql in (
        f"SELECT * FROM '{tmp_path / 'other.csv'}'",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        "DROP VIEW tacit_data.full",
        "CREATE TABLE tacit_data.mine (n INTEGER)",
    ):
        with pytest.raises(EngineFailed):
            place.engine.run(sql)
    assert not (tmp_path / "out.csv").exists()
    assert place.rows("SELECT n FROM tacit_data.full") == [(1,)]
