"""Damage: what is changed behind the ledger's back is found and named, and nothing is admitted until it is settled."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import HEAD_FILE, Ledger
from tacit.privacy import events
from tacit.privacy.errors import LedgerCorrupt, LedgerUnavailable, TacitError

RECORDS = 11
COLUMNS = ("number", "at_us", "behind_us", "kind", "body", "previous", "hash")
SAMPLES_OF_BYTES = 120


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger of a few records, closed."""
    folder = tmp_path_factory.mktemp("whole")
    with Ledger.open(folder) as ledger:
        ledger.create_budget("visits", epsilon=3.0, delta=1e-6)
        ledger.create_cap("visits", "ana", epsilon=1.0)
        for number in range(3):
            permit = ledger.reserve("visits", events.Laplace(0.1), analyst="ana", key=f"key {number}")
            ledger.commit(permit, b"answer", plan=f"plan {number}", data_version="1")
        ledger.file_request("ana", "visits", events.Laplace(0.1), "more")
        assert ledger.head().number == RECORDS + 1
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "ledger"))


def edit(folder: Path, *statements: str, values: tuple[Any, ...] = ()) -> None:
    """Change a ledger behind its back."""
    connection = sqlite3.connect(folder / "ledger.sqlite", isolation_level=None)
    connection.execute("PRAGMA foreign_keys = OFF")
    for statement in statements:
        assert connection.execute(statement, values).rowcount != 0, "the edit should change something"
    connection.close()


def damage(folder: Path) -> LedgerCorrupt:
    """Open a damaged ledger and return what is said of it."""
    with pytest.raises(LedgerCorrupt) as found:
        Ledger.open(folder)
    return found.value


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("number", [1, 2, 5, 8, RECORDS, RECORDS + 1])
def test_a_changed_column_of_a_record_is_found_and_named(folder: Path, column: str, number: int) -> None:
    changed = {
        "number": "number + 100",
        "at_us": "at_us - 1",
        "behind_us": "behind_us + 1",
        "kind": "'annotated'",
        "body": "replace(body, '\"', '\" ')",
        "previous": "'0' || substr(previous, 2) || 'x'",
        "hash": "substr(hash, 2) || '0'",
    }[column]
    edit(folder, f"UPDATE journal SET {column} = {changed} WHERE number = {number}")
    found = damage(folder)
    assert found.record == number or (column == "number" and found.record in (number, number + 100))
    assert found.differs is not None
    assert str(found.record) in found.message


@pytest.mark.parametrize("seed", range(40))
def test_a_single_changed_character_of_the_journal_is_found(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    number, column = chance.randint(1, RECORDS + 1), chance.choice(("kind", "body", "previous", "hash"))
    connection = sqlite3.connect(folder / "ledger.sqlite")
    (text,) = connection.execute(f"SELECT {column} FROM journal WHERE number = ?", (number,)).fetchone()
    place = chance.randrange(len(text))
    other = chance.choice([letter for letter in '0123456789abcdefxyz{}"é' if letter != text[place]])
    connection.close()
    changed = text[:place] + other + text[place + 1 :]
    edit(folder, f"UPDATE journal SET {column} = ? WHERE number = {number}", values=(changed,))
    assert damage(folder).record == number


@pytest.mark.parametrize(
    ("statement", "record"),
    [
        ("DELETE FROM journal WHERE number = 1", 1),
        ("DELETE FROM journal WHERE number = 5", 5),
        (f"DELETE FROM journal WHERE number = {RECORDS + 1}", RECORDS + 1),
        ("DELETE FROM journal", RECORDS + 1),
        ("UPDATE journal SET number = -1 WHERE number = 4", 4),
        (
            f"INSERT INTO journal SELECT {RECORDS + 2}, at_us, 0, kind, body, hash, hash FROM journal LIMIT 1",
            RECORDS + 1,
        ),
    ],
)
def test_a_record_that_is_missing_or_added_is_named(folder: Path, statement: str, record: int) -> None:
    edit(folder, statement)
    assert damage(folder).record == record


def test_two_records_that_changed_places_are_named(folder: Path) -> None:
    edit(
        folder,
        "UPDATE journal SET number = -4 WHERE number = 4",
        "UPDATE journal SET number = 4 WHERE number = 6",
        "UPDATE journal SET number = 6 WHERE number = -4",
    )
    assert damage(folder).record == 4


def test_records_cut_off_at_the_end_together_with_every_head_contradict_the_totals(folder: Path) -> None:
    (folder / HEAD_FILE).unlink()
    edit(
        folder,
        "DELETE FROM journal WHERE number > 4",
        "UPDATE head SET (number, hash, at_us) = (SELECT number, hash, at_us FROM journal WHERE number = 4)",
    )
    assert "differ about the" in damage(folder).message


def test_a_journal_rewritten_from_its_beginning_is_found_by_a_head_that_was_noted(whole: Path, tmp_path: Path) -> None:
    with Ledger.open(whole) as ledger:
        noted = ledger.head()
    with Ledger.open(tmp_path / "forged") as forged:
        forged.create_budget("visits", epsilon=30.0)
        for _ in range(20):
            forged.reserve("visits", events.Laplace(0.1))
        with pytest.raises(LedgerCorrupt, match="was rewritten"):
            forged.verify(noted=(noted.number, noted.hash))


TOTALS = """UPDATE scopes SET totals = replace(totals, '39', '12') WHERE key LIKE '%ana%'"""


@pytest.mark.parametrize(
    ("statement", "differs"),
    [
        (TOTALS, "scope"),
        ("UPDATE scopes SET definition = replace(definition, '1.0', '9.0') WHERE key LIKE '%ana%'", "scope"),
        ("UPDATE scopes SET record = 1", "scope"),
        ("DELETE FROM scopes WHERE key LIKE '%ana%'", "scope"),
        ("UPDATE permits SET state = 'reserved'", "permit"),
        ("UPDATE permits SET key = 'other' WHERE key = 'key 1'", "permit"),
        ("DELETE FROM permits WHERE key = 'key 1'", "permit"),
        ("UPDATE requests SET state = 'granted'", "request"),
        ("DELETE FROM answers", "answer"),
        ("UPDATE contents SET bytes = x'00'", "answer"),
    ],
)
def test_an_edited_table_is_found_and_named_and_can_be_rebuilt_from_the_journal(
    folder: Path, whole: Path, statement: str, differs: str
) -> None:
    edit(folder, statement)
    assert damage(folder).differs == differs
    with Ledger.rebuild(folder, by="carl", reason="somebody edited the tables") as rebuilt, Ledger.open(whole) as right:
        rebuilt.verify(full=True)
        assert rebuilt.budget("visits").spent() == right.budget("visits").spent()
        assert rebuilt.reservations() == right.reservations() == []
        assert [record.kind for record in rebuilt.history()][-1] == "caches-rebuilt"
        kept = None if "contents" in statement else b"answer"
        assert rebuilt.released("plan 1", "1") == kept


def test_totals_edited_while_the_ledger_is_open_close_it_for_good(folder: Path) -> None:
    with Ledger.open(folder) as ledger:
        ledger.reserve("visits", events.Laplace(0.1))
        edit(folder, TOTALS)
        for _ in range(2):
            with pytest.raises(LedgerCorrupt, match="changed outside the ledger"):
                ledger.reserve("visits", events.Laplace(0.1), analyst="ana")
        with pytest.raises(LedgerCorrupt):
            ledger.budget("visits").spent()
        with pytest.raises(LedgerCorrupt):
            ledger.export(folder / "export")


def test_a_record_changed_while_the_ledger_is_open_is_found_before_the_next_is_written(folder: Path) -> None:
    with Ledger.open(folder) as ledger:
        edit(folder, f"UPDATE journal SET body = body || ' ' WHERE number = {RECORDS + 1}")
        with pytest.raises(LedgerCorrupt, match=f"record {RECORDS + 1}"):
            ledger.reserve("visits", events.Laplace(0.1))


@pytest.mark.parametrize("beyond", [1, 5])
def test_a_record_added_beyond_the_head_is_found_before_the_next_is_written(folder: Path, beyond: int) -> None:
    with Ledger.open(folder) as ledger:
        copy = f"SELECT number + {beyond}, {', '.join(COLUMNS[1:])} FROM journal WHERE number = {RECORDS + 1}"
        edit(folder, f"INSERT INTO journal {copy}")
        with pytest.raises(LedgerCorrupt, match=f"ends with {RECORDS + 1 + beyond}"):
            ledger.reserve("visits", events.Laplace(0.1))


@pytest.mark.parametrize("column", ["dataset", "definition", "totals", "record", "seal"])
def test_a_scope_that_was_read_before_is_checked_again_once_a_column_differs(folder: Path, column: str) -> None:
    with Ledger.open(folder) as ledger:
        ledger.reserve("visits", events.Laplace(0.1), analyst="ana")
        change = "record - 1" if column == "record" else f"replace({column}, substr({column}, 5, 1), 'x')"
        edit(folder, f"UPDATE scopes SET {column} = {change} WHERE key LIKE '%ana%'")
        with pytest.raises(LedgerCorrupt):
            ledger.reserve("visits", events.Laplace(0.1), analyst="ana")


def test_a_damaged_journal_is_not_mended_by_rebuilding(folder: Path) -> None:
    edit(folder, "UPDATE journal SET body = replace(body, '0.1', '0.2') WHERE number = 3")
    with pytest.raises(LedgerCorrupt, match="record 3"):
        Ledger.rebuild(folder, by="carl", reason="hope")


def test_damage_before_a_checkpoint_is_found_when_all_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.ledger.transactions.CHECKPOINT_EVERY", 5)
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        for _ in range(20):
            ledger.reserve("visits", events.Laplace(0.01))
    edit(tmp_path, "UPDATE journal SET body = replace(body, '0.01', '0.00') WHERE number = 3")
    with Ledger.open(tmp_path) as ledger:
        with pytest.raises(LedgerCorrupt, match="record 3"):
            ledger.verify(full=True)
        with pytest.raises(LedgerCorrupt, match="record 3"):
            ledger.reserve("visits", events.Laplace(0.01))


@pytest.mark.parametrize("change", ["totals", "kind"])
def test_a_forged_checkpoint_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    monkeypatch.setattr("tacit.ledger.transactions.CHECKPOINT_EVERY", 5)
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        for _ in range(6):
            ledger.reserve("visits", events.Laplace(0.01))
    if change == "totals":
        edit(tmp_path, "UPDATE journal SET body = replace(body, '5', '4') WHERE kind = 'checkpoint'")
    else:
        edit(tmp_path, "UPDATE head SET checkpoint = 3")
    with pytest.raises(LedgerCorrupt, match=r"record [36]"):
        Ledger.open(tmp_path)


def test_a_changed_byte_of_the_file_is_found_or_changes_nothing(folder: Path, tmp_path: Path) -> None:
    """Flip bits all over the file: what is then opened says the same as before, or is refused with a coded error."""
    chance = random.Random(0)
    right = folder / "ledger.sqlite"
    expected = _exported(folder, tmp_path / "right")
    content = right.read_bytes()
    found = 0
    for number in range(SAMPLES_OF_BYTES):
        place = chance.randrange(len(content))
        flipped = bytearray(content)
        flipped[place] ^= 1 << chance.randrange(8)
        other = tmp_path / f"flipped-{number}"
        other.mkdir()
        (other / "ledger.sqlite").write_bytes(flipped)
        try:
            assert _exported(other, tmp_path / f"export-{number}") == expected, f"byte {place} changed what is said"
        except (LedgerCorrupt, LedgerUnavailable):
            found += 1
    assert found > SAMPLES_OF_BYTES / 20


def _exported(folder: Path, target: Path) -> str:
    with Ledger.open(folder) as ledger:
        ledger.verify(full=True)
        ledger.export(target)
    _header, said = target.read_text().split("\n", 1)
    return said


def _cut(path: Path, size: Callable[[int], int]) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: size(len(content))])


@pytest.mark.parametrize("share", [0.0, 0.0005, 0.1, 0.3, 0.5, 0.75, 0.95])
def test_a_file_that_was_cut_off_is_refused_in_one_sentence(folder: Path, share: float) -> None:
    _cut(folder / "ledger.sqlite", lambda size: int(size * share))
    with pytest.raises(TacitError) as found:
        Ledger.open(folder).verify(full=True)
    assert isinstance(found.value, LedgerCorrupt)
    assert "\n" not in found.value.message


@pytest.mark.parametrize("content", [b"name,age\nana,31\n" * 20, b"\x00" * 4096, b"SQLite format 3\x00" + bytes(84)])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(content)
    found = damage(tmp_path)
    assert found.code == "T501"
    assert (tmp_path / "ledger.sqlite").read_bytes() == content, "what is not ours is left alone"


def test_the_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "ledger.sqlite")
    connection.execute("CREATE TABLE journal (number INTEGER)")
    connection.commit()
    connection.close()
    before = (tmp_path / "ledger.sqlite").read_bytes()
    assert "another program" in damage(tmp_path).message
    assert (tmp_path / "ledger.sqlite").read_bytes() == before
