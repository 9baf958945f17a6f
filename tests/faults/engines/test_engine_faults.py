"""Files that change, break or go; processes that die or come in numbers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tacit.engines import DuckDBEngine, Source
from tacit.engines.duckdb import engine as module
from tacit.engines.duckdb import prepared
from tacit.privacy.errors import Cancelled, EngineFailed, SourceMissing
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import Unit
from tests.faults.engines.processes import EVENTS, SQL

VIEW = Table("events", EVENTS.columns)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "folder"


@pytest.fixture
def engine(folder: Path) -> Iterator[DuckDBEngine]:
    made = DuckDBEngine(folder, salt=1, threads=2)
    yield made
    made.close()


def written(path: Path, rows: int = 40) -> Source:
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT i % 5 AS u, i AS n FROM range({rows}) AS r(i)) TO '{path}' (FORMAT parquet)")
    return Source("parquet", str(path))


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.faults.engines.processes", *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def count(engine: DuckDBEngine) -> int:
    return int(engine.run("SELECT COUNT(*) AS n FROM tacit_data.events")["n"][0])


def asides(folder: Path) -> list[Path]:
    return list((folder / "prepared").glob("*.aside-*"))


@pytest.mark.parametrize("table", [EVENTS, VIEW], ids=["stored", "view"])
def test_a_file_that_is_replaced_is_read_anew(engine: DuckDBEngine, tmp_path: Path, table: Table) -> None:
    source = written(tmp_path / "e.parquet")
    engine.register(table, source, {})
    before, version = count(engine), engine.refresh("events")
    written(tmp_path / "new.parquet", 10)
    (tmp_path / "new.parquet").replace(tmp_path / "e.parquet")
    assert engine.refresh("events") != version
    assert count(engine) == 10 < before


def test_the_fingerprint_of_a_file_follows_what_it_holds_and_not_its_time(engine: DuckDBEngine, tmp_path: Path) -> None:
    source = written(tmp_path / "e.parquet")
    engine.register(EVENTS, source, {})
    version, status = engine.refresh("events"), os.stat(source.place)
    shutil.copyfile(source.place, tmp_path / "new.parquet")
    (tmp_path / "new.parquet").replace(source.place)
    assert engine.refresh("events") == version
    written(tmp_path / "e.parquet", 10)
    os.utime(source.place, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert engine.refresh("events") != version


@pytest.mark.parametrize("table", [EVENTS, VIEW], ids=["stored", "view"])
def test_a_file_that_is_gone_or_cut_off_is_named_and_comes_back(
    engine: DuckDBEngine, tmp_path: Path, table: Table
) -> None:
    source = written(tmp_path / "e.parquet")
    engine.register(table, source, {})
    whole, data = count(engine), Path(source.place).read_bytes()
    Path(source.place).write_bytes(data[: len(data) // 2])
    with pytest.raises(SourceMissing, match=r"e\.parquet"):
        engine.refresh("events")
    Path(source.place).unlink()
    with pytest.raises(SourceMissing, match=r"e\.parquet"):
        engine.refresh("events")
    Path(source.place).write_bytes(data)
    engine.refresh("events")
    assert count(engine) == whole


def test_a_table_whose_file_is_gone_does_not_hinder_the_others(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_STORED_MAX", 0)
    engine.register(VIEW, written(tmp_path / "e.parquet"), {})
    Path(tmp_path / "e.parquet").unlink()
    other = Table("other", VIEW.columns)
    engine.register(other, written(tmp_path / "o.parquet"), {})
    assert list(engine.run("SELECT COUNT(*) AS n FROM tacit_data.other")["n"]) == [40]
    with pytest.raises(EngineFailed):
        count(engine)


def test_a_file_that_never_rests_is_not_registered(
    engine: DuckDBEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, turn = written(tmp_path / "e.parquet"), iter(range(1000))
    monkeypatch.setattr(module, "file_state", lambda _: str(next(turn)))
    with pytest.raises(SourceMissing, match="being written"):
        engine.register(EVENTS, source, {})


def test_a_database_that_is_open_for_writing_elsewhere_is_said_to_be(engine: DuckDBEngine, tmp_path: Path) -> None:
    path = tmp_path / "e.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE events AS SELECT i % 5 AS u, i AS n FROM range(40) AS r(i)")
    source = Source("duckdb", str(path), "events")
    holder = started("hold", path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "open\n"
    with pytest.raises(SourceMissing, match="open for writing"):
        engine.register(EVENTS, source, {})
    holder.communicate("")
    engine.register(EVENTS, source, {})
    assert count(engine) == 15
    with duckdb.connect(str(path)) as connection:  # what is stored does not hold the file
        connection.execute("INSERT INTO events VALUES (99, 1)")
    engine.refresh("events")
    assert count(engine) == 16


def test_a_process_killed_while_it_stores_rows_leaves_nothing_that_is_used(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "e.parquet"
    written(source, 1_000_000)
    for wait_s in (0.0, 0.05):
        process = started("register", folder, source)
        until_s = time.monotonic() + 30
        while not asides(folder) and process.poll() is None and time.monotonic() < until_s:
            time.sleep(0.005)
        time.sleep(wait_s)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert list((folder / "prepared").glob("*.duckdb")) == []
    assert asides(folder)
    engine = DuckDBEngine(folder, salt=1)
    engine.register(EVENTS, Source("parquet", str(source)), {})
    assert count(engine) == 15
    assert asides(folder) == []
    engine.close()


def test_what_a_killed_process_spilled_is_swept_away(folder: Path, tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for owner in (dead.pid, os.getpid()):
        (folder / "spill" / f"{owner}-0").mkdir(parents=True)
        (folder / "spill" / f"{owner}-0" / "rows.tmp").write_text("rows of people")
    engine = DuckDBEngine(folder, salt=1)
    engine.register(EVENTS, written(tmp_path / "e.parquet"), {})
    assert [path.name for path in (folder / "spill").iterdir()] == [f"{os.getpid()}-0"]
    engine.close()


def test_processes_that_store_the_same_rows_at_once_all_answer(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "e.parquet"
    written(source, 20_000)
    processes = [started("ask", folder, source) for _ in range(3)]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["rows"] == 15
    assert len(list((folder / "prepared").iterdir())) == 1


def test_a_process_reads_on_while_another_stores_a_new_version(
    engine: DuckDBEngine, folder: Path, tmp_path: Path
) -> None:
    source = written(tmp_path / "e.parquet")
    engine.register(EVENTS, source, {})
    first = engine.run(SQL)
    written(tmp_path / "e.parquet", 10)
    process = started("ask", folder, source.place)
    assert json.loads(process.communicate(timeout=60)[0])["rows"] == 10
    assert engine.run(SQL) == first
    engine.refresh("events")
    assert count(engine) == 10


@pytest.mark.parametrize("keep", [0, 100, 5000])
def test_a_prepared_file_that_is_damaged_is_made_anew(folder: Path, tmp_path: Path, keep: int) -> None:
    source = written(tmp_path / "e.parquet")
    first = DuckDBEngine(folder, salt=1)
    first.register(EVENTS, source, {})
    first.close()
    (path,) = (folder / "prepared").glob("*.duckdb")
    path.write_bytes(path.read_bytes()[:keep])
    second = DuckDBEngine(folder, salt=1)
    second.register(EVENTS, source, {})
    assert count(second) == 15
    second.close()


def test_prepared_files_that_are_deleted_are_made_anew(engine: DuckDBEngine, folder: Path, tmp_path: Path) -> None:
    engine.register(EVENTS, written(tmp_path / "e.parquet"), {})
    shutil.rmtree(folder / "prepared")
    engine.refresh("events")
    assert count(engine) == 15
    assert len(list((folder / "prepared").iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file where the folder should be")
    engine = DuckDBEngine(tmp_path / "folder", salt=1)
    with pytest.raises(EngineFailed, match="folder"):
        engine.register(EVENTS, written(tmp_path / "e.parquet"), {})
    engine.close()


def test_a_disk_that_fails_leaves_nothing_behind(
    engine: DuckDBEngine, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> None:
        raise OSError(28, "No space left on device")

    source = written(tmp_path / "e.parquet")
    with monkeypatch.context() as patched:
        patched.setattr(prepared, "sync", fail)
        with pytest.raises(EngineFailed, match="disk"):
            engine.register(EVENTS, source, {})
    assert list((folder / "prepared").iterdir()) == []
    engine.register(EVENTS, source, {})
    assert count(engine) == 15


def test_a_preparation_can_be_cancelled_and_done_again(engine: DuckDBEngine, folder: Path, tmp_path: Path) -> None:
    source = written(tmp_path / "e.parquet", 1_000_000)
    stop = threading.Event()

    def cancel() -> None:
        while not stop.wait(0.01):
            if asides(folder):
                engine.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(Cancelled):
        engine.register(EVENTS, source, {})
    stop.set()
    thread.join()
    assert list((folder / "prepared").iterdir()) == []
    engine.register(EVENTS, source, {})
    assert count(engine) == 15


def test_tables_are_registered_while_questions_run(engine: DuckDBEngine, tmp_path: Path) -> None:
    engine.register(EVENTS, written(tmp_path / "e.parquet"), {})
    source, stop, wrong = written(tmp_path / "o.parquet"), threading.Event(), []

    def ask() -> None:
        while not stop.is_set():
            if count(engine) != 15:
                wrong.append(1)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(8):
        engine.register(Table(f"t{number}", (Column("u", Kind.INTEGER),), Unit("u")), source, {})
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert list(engine.run("SELECT COUNT(*) AS n FROM tacit_data.t7")["n"]) == [40]
