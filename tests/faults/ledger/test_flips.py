"""Single changed bits: each is noticed when the ledger is opened, used or verified, or changes nothing.

What "changes nothing" means is checked: every row of every table, read without indexes, and the definition of every
table are as before. So only bytes that nothing reads are left: free space, counters of SQLite's own.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.accounting import Cost
from tacit.ledger import Ledger
from tacit.ledger.rows import PermitRow
from tacit.privacy import events
from tacit.privacy.errors import AlreadySettled, LedgerCorrupt, TacitError

PLAN = events.Repeated(events.Gaussian(90), 10)
UNREAD = {("migrations", "name"), ("migrations", "applied_at_us")}
"""Columns that decide nothing and are written for people."""
TABLES = ("answers", "caches", "contents", "findings", "head", "journal", "migrations", "permits", "requests", "scopes")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a closed ledger that has rows of every kind, and checkpoints."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.ledger.transactions.CHECKPOINT_EVERY", 8)
        with Ledger.open(folder) as ledger:
            fill(ledger)
            assert ledger.head().checkpoint > 8
        yield folder


def fill(ledger: Ledger) -> None:
    ledger.create_budget("visits", 3.0, 1e-6)
    ledger.create_cap("visits", "ana", 1.0, 1e-7)
    ledger.create_cap("visits", "bob", 0.5, 1e-7)
    ledger.add_epoch("visits", "2024")
    ledger.create_budget("labs", 1.0)
    first = ledger.reserve("visits", events.Laplace(0.1), analyst="ana", epochs=["2024"], purpose="by month", key="k")
    ledger.commit(first, b"answer one", plan="SELECT 1", data_version="1")
    plan = ledger.reserve("visits", PLAN, analyst="ana", epochs=["2024"], refundable=True)
    ledger.refund(plan, events.Repeated(events.Gaussian(90), 4))
    ledger.commit(plan, b"answer two", plan="SELECT 2", data_version="1")
    ledger.annotate(ledger.reserve("labs", events.Laplace(0.25), key="k"), "the worker was killed")
    ledger.reserve("labs", events.Repeated(events.Laplace(0.01), 5), refundable=True)
    for granted in (True, False):
        ledger.decide(ledger.file_request("ana", "visits", Cost(0.2, 0, 0), "more"), granted, "carl", "because")
    ledger.file_request("bob", "visits", Cost(0.1, 0, 0), "more")
    for permit in (None, first):
        ledger.keep_finding("visits", {"verdict": "violates", "lower_bound": 0.25}, permit=permit, by="olga")


def use(ledger: Ledger) -> None:
    """Ask for everything once."""
    with pytest.raises(AlreadySettled):
        ledger.reserve("visits", events.Laplace(0.1), analyst="ana", epochs=["2024"], key="k")
    with pytest.raises(AlreadySettled):
        ledger.reserve("labs", events.Laplace(0.25), key="k")
    for one in ledger.reservations():
        if one.permit.is_refundable:
            ledger.refund(one.permit, one.permit.event.event)  # type: ignore[attr-defined]
        ledger.commit(one.permit, b"answer", plan=f"plan of {one.permit.id}", data_version="1")
    assert ledger.released("SELECT 1", "1") == b"answer one"
    assert ledger.released("SELECT 2", "1") == b"answer two"
    for request in ledger.requests(only_open=True):
        ledger.decide(request, True, "carl")
    for scope in ledger.scopes():
        ledger.row_of(scope)
    assert [one.document["lower_bound"] for one in ledger.findings("visits")] == [0.25, 0.25]


def contents(folder: Path) -> dict[str, Any]:
    """Read every row of every table, without indexes, and how the tables are defined."""
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        found: dict[str, Any] = {}
        for table in TABLES:
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            columns = ", ".join(name for name in names if (table, name) not in UNREAD)
            found[table] = sorted(connection.execute(f"SELECT {columns} FROM {table} NOT INDEXED"), key=repr)
        found["schema"] = connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall()
        return found


def is_noticed(folder: Path) -> bool:
    """Whether a ledger is refused when it is opened or verified, always in a coded error."""
    try:
        with Ledger.open(folder) as ledger:
            ledger.verify(full=True)
    except TacitError as error:
        assert "\n" not in error.message  # noqa: PT017 (most are)
        return True
    return False


@pytest.mark.parametrize("flips", [250, pytest.param(5000, marks=pytest.mark.soak)])
def test_a_flipped_bit_anywhere_is_noticed_or_changes_nothing(whole: Path, tmp_path: Path, flips: int) -> None:
    chance = random.Random(1)
    content, right = (whole / "ledger.sqlite").read_bytes(), contents(whole)
    place, noticed = tmp_path / "flipped", 0
    place.mkdir()
    for _ in range(flips):
        byte, bit = chance.randrange(len(content)), chance.randrange(8)
        flipped = bytearray(content)
        flipped[byte] ^= 1 << bit
        _put(place, flipped)
        if is_noticed(place):
            noticed += 1
            continue
        _put(place, flipped)
        assert contents(place) == right, f"bit {bit} of byte {byte} changed what is kept, and nothing noticed it"
        if chance.random() < 0.02:
            with Ledger.open(place) as ledger:
                use(ledger)
                ledger.verify(full=True)
    assert noticed > flips / 5


def _put(folder: Path, content: bytes) -> None:
    for side in ("wal", "shm"):
        (folder / f"ledger.sqlite-{side}").unlink(missing_ok=True)
    (folder / "ledger.sqlite").write_bytes(content)


def every_cell() -> list[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            "CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT, checksum TEXT, applied_at_us BIGINT)"
        )
        for path in sorted((Path(Ledger.open.__code__.co_filename).parent / "stores/migrations/sqlite").glob("*.sql")):
            connection.executescript(path.read_text())
        return [
            (table, row[1])
            for table in TABLES
            for row in connection.execute(f"PRAGMA table_info({table})")
            if (table, row[1]) not in UNREAD
        ]


@pytest.mark.parametrize("rows_max", [3, pytest.param(None, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("table", "column"), every_cell())
def test_a_changed_cell_of_any_table_is_noticed(
    whole: Path, tmp_path: Path, table: str, column: str, rows_max: int | None
) -> None:
    """Change each cell a little, as SQL does it, indexes included: the database itself finds nothing wrong with it."""
    with closing(sqlite3.connect(whole / "ledger.sqlite")) as connection:
        key = "rowid" if table in ("caches", "contents", "head", "journal", "migrations") else None
        keys = key or ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5])
        rows = connection.execute(f"SELECT {column}, {keys} FROM {table}").fetchall()
    for number, (value, *place) in enumerate(_some(rows, rows_max)):
        for turn, changed in enumerate(_changed(value)):
            folder = tmp_path / f"{number}-{turn}"
            folder.mkdir()
            shutil.copyfile(whole / "ledger.sqlite", folder / "ledger.sqlite")
            with closing(sqlite3.connect(folder / "ledger.sqlite", isolation_level=None)) as connection:
                connection.execute("PRAGMA foreign_keys = OFF")
                connection.execute("PRAGMA ignore_check_constraints = ON")
                where = " AND ".join(f"{name} = ?" for name in keys.split(", "))
                try:
                    connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (changed, *place))
                except sqlite3.IntegrityError:
                    continue  # a NULL or a double that the table does not take
            assert is_noticed(folder) or _is_settled(folder, table), f"{column} of {place}: {value!r} to {changed!r}"


def _some(rows: list[Any], count_max: int | None) -> list[Any]:
    """Return the first row, the last and others evenly between them, no more than asked for; those alike count once."""
    different = list({row[0]: row for row in rows}.values())
    if count_max is None or len(different) <= count_max:
        return rows if count_max is None else different
    return [different[number * (len(different) - 1) // (count_max - 1)] for number in range(count_max)]


def _changed(value: Any) -> list[Any]:
    """Return what a cell might become."""
    if isinstance(value, int):
        others: list[Any] = [value + 1, value - 1, 0, 2**62, None]
    elif isinstance(value, bytes):
        others = [value[:-1] + bytes([value[-1] ^ 1]), value[:-1], b"", None]
    elif value:
        others = [value[:-1] + chr(ord(value[-1]) ^ 1), chr(ord(value[0]) ^ 2) + value[1:], value[:-1], "", None]
    else:
        others = ["x", "", None]
    return [other for other in others if other != value]


def _is_settled(folder: Path, table: str) -> bool:
    """Whether what was changed only says from where to read the journal, and opening has put it right."""
    with Ledger.open(folder) as ledger:
        use(ledger)
        ledger.verify(full=True)
    return table in ("caches", "head")


def forge(folder: Path, permit_id: str, **changes: Any) -> None:
    """Change a permit's row as somebody would who knows how rows are sealed."""
    with closing(sqlite3.connect(folder / "ledger.sqlite", isolation_level=None)) as connection:
        columns = connection.execute("SELECT * FROM permits WHERE id = ?", (permit_id,)).fetchone()
        forged = replace(PermitRow.from_columns(*columns), **changes).columns
        names = [row[1] for row in connection.execute("PRAGMA table_info(permits)")]
        changed = ", ".join(f"{name} = ?" for name in names)
        connection.execute(f"UPDATE permits SET {changed} WHERE id = ?", (*forged, permit_id))


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "ledger"))


def refunded_plan(ledger: Ledger) -> str:
    (record,) = (record for record in ledger.history() if record.kind == "refunded")
    return str(record.contents["permit"])


def test_a_flag_that_was_set_back_gives_no_second_refund(folder: Path) -> None:
    with Ledger.open(folder) as ledger:
        plan = refunded_plan(ledger)
        with pytest.raises(AlreadySettled):
            ledger.refund(plan, events.Gaussian(90))
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        connection.execute("UPDATE permits SET is_refunded = 0, state = 'reserved' WHERE id = ?", (plan,))
        connection.commit()
    with Ledger.open(folder) as ledger:
        before = ledger.head()
        with pytest.raises(LedgerCorrupt, match="changed outside the ledger"):
            ledger.refund(plan, events.Gaussian(90))
    with Ledger.open(folder) as ledger:
        assert ledger.head() == before
        with pytest.raises(LedgerCorrupt):
            ledger.verify(full=True)


def test_a_second_refund_that_a_forged_row_gave_cannot_have_happened(folder: Path) -> None:
    with Ledger.open(folder) as ledger:
        plan = refunded_plan(ledger)
    forge(folder, plan, is_refunded=False, state="reserved", answer_sha256=None)
    with Ledger.open(folder) as ledger:
        number = ledger.head().number + 1
        ledger.refund(plan, events.Gaussian(90))
        with pytest.raises(LedgerCorrupt, match=rf"record {number} is impossible: .* before"):
            ledger.verify(full=True)
    with pytest.raises(LedgerCorrupt, match=f"record {number} is impossible"):
        Ledger.rebuild(folder, by="carl", reason="hope")
