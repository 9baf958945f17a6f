"""Removing one unit from a source moves answers by no more than was charged, however the source is written.

Sources with collations, ids that doubles do not tell apart, files that a version of which has an odd row, and tables
that lead to their unit through others; each is read by a curator, before and after a unit has left.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.engines.duckdb import kinds
from tacit.privacy.tables import Kind
from tests.property.query.curated import check_removal, write_table
from tests.property.query.neighbours import Violated

BOUNDS = {"kg": tacit.Bounds(0, 10), "age": tacit.Bounds(0, 7), "sex": tacit.Categories(["F", "M"])}
TEXTS = ("F", "f", "M", "ß", "ẞ", "ss", "", " F", "F ", "é", "e\u0301", "a\0", None)
COLUMNS = "uid {0}, id BIGINT, s VARCHAR{1}, sex VARCHAR{1}, kg DOUBLE, age BIGINT"
QUESTIONS = 5
WRITTEN = (
    "SELECT s, COUNT(*) AS n FROM t GROUP BY s",
    "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex",
    "SELECT COUNT(*) AS n FROM t WHERE s = 'F' OR s LIKE 'e%'",
    "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.uid = b.uid",
    "SELECT a.sex, COUNT(*) AS n FROM t AS a WHERE a.uid IN (SELECT uid FROM t WHERE s = 'F') GROUP BY a.sex",
    "SELECT COUNT(DISTINCT uid) AS n FROM t",
    "SELECT SUM(x) AS n FROM (SELECT uid, LEAST(COUNT(DISTINCT s), 5) AS x FROM t GROUP BY uid) AS v",
)

WIDE_IDS: dict[str, tuple[str, list[Any]]] = {
    "folded case": ("VARCHAR COLLATE NOCASE", ["a", "A", "b", "B"]),
    "folded accents": ("VARCHAR COLLATE NOCASE.NOACCENT", ["e", "é", "E", "É"]),
    "zero bytes": ("VARCHAR", ["a", "a\0", "a\0\0", "a ", " a"]),
    "UBIGINT": ("UBIGINT", [2**53, 2**53 + 1, 2**63 + 1, 2**64 - 1, 2**64 - 2]),
    "HUGEINT": ("HUGEINT", [2**53, 2**53 + 1, 2**64, 2**64 + 1, -(2**63) - 1]),
    "DECIMAL": ("DECIMAL(38, 0)", [2**53, 2**53 + 1, 10**30, 10**30 + 1]),
}


def rows_of(units: Sequence[Any], seed: int, heavy: int = 9) -> list[tuple[Any, ...]]:
    """Return rows of units: many of the first, few of the others."""
    rng, rows = random.Random(seed), []
    for place, unit in enumerate(units):
        for _ in range(heavy if place == 0 else rng.randint(1, 3)):
            cells = (rng.choice(TEXTS), rng.choice(["F", "M", "f"]), rng.choice([0.5, 3.0, 99.0]), rng.randint(0, 9))
            rows.append((unit, len(rows), *cells))
    rng.shuffle(rows)
    return rows


def check_ids(folder: Path, name: str) -> None:
    """Let the first unit leave a table whose ids and texts are of the named kind."""
    kind, units = WIDE_IDS[name]
    source, columns = folder / "t.duckdb", COLUMNS.format(kind, " COLLATE NOCASE")
    rows = rows_of(units, seed=3)
    write_table(source, columns, rows)
    with tacit.Curator(folder / "clinic") as curator:
        curator.add_table("t", f"{source}#t", unit="uid", columns=BOUNDS, kinds={"uid": Kind.TEXT})

        def leave() -> None:
            write_table(source, columns, [row for row in rows if row[0] != units[0]])
            assert curator.refresh() == ["t"]

        tally = check_removal(curator, leave, range(QUESTIONS), WRITTEN)
    assert tally.pairs > len(WRITTEN), tally


@pytest.mark.parametrize("name", WIDE_IDS)
def test_units_and_texts_that_an_engine_could_take_for_one_another_stay_apart(tmp_path: Path, name: str) -> None:
    check_ids(tmp_path, name)


def test_a_collation_that_stays_on_texts_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "BINARY", "")
    with pytest.raises(Violated, match="GROUP BY s"):
        check_ids(tmp_path, "folded case")


CLEAN = "uid,id,day,s,kg,age,sex\n" + "".join(
    f"{unit},{unit * 10 + row},{13 + unit}/0{1 + row}/2024,w{row},{row}.5,{unit % 8},{'FM'[row % 2]}\n"
    for unit in range(1, 9)
    for row in range(3)
)
ODD_ROWS = {
    "a byte of latin-1": b"900,9000,14/01/2024,caf\xe9,1.5,3,F\n",
    "the month first": b"900,9000,12/25/2024,w0,1.5,3,F\n",
    "another delimiter": b"900;9000;14/01/2024;w0;1.5;3;F\n",
    "another number of fields": b"900,9000\n900,9000,14/01/2024,w0,1.5,3,F,G,H\n",
    "a zero byte": b"900,9000,14/01/2024,w\x000,1.5,3,F\n",
    "a word for a number": b"900,9000,never,w0,much,old,F\n",
    "a long text": b"900,9000,14/01/2024," + b"a" * 100_000 + b",1.5,3,F\n",
    "a quoted line end": b'900,9000,14/01/2024,"w\n1,10,14/01/2024",1.5,3,F\n',
}


@pytest.mark.parametrize("name", ODD_ROWS)
def test_an_odd_row_of_a_later_version_changes_no_other_row(tmp_path: Path, name: str) -> None:
    source, clean = tmp_path / "t.csv", CLEAN.encode()
    source.write_bytes(clean)
    head = clean[: clean.index(b"\n", len(clean) // 2) + 1]
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("t", source, unit="uid", columns=BOUNDS)
        source.write_bytes(head + ODD_ROWS[name] * 3 + clean.removeprefix(head))
        curator.refresh()

        def leave() -> None:
            source.write_bytes(clean)
            curator.refresh()

        tally = check_removal(curator, leave, range(100, 100 + QUESTIONS))
    assert tally.pairs >= 2, tally


def family(seed: int, without: int | None = None) -> dict[str, str]:
    """Return three CSV files: people, their visits, and what was measured at visits."""
    rng = random.Random(seed)
    people, visits, labs = ["uid,age,sex"], ["id,uid,kg,s"], ["visit,value,s"]
    for uid in range(6):
        lines: tuple[list[str], ...] = ([], [], [])
        lines[0].append(f"{uid},{rng.randint(0, 9)},{rng.choice('FM')}")
        for number in range(rng.choice([0, 1, 2, 8])):
            visit = uid * 100 + number
            lines[1].append(f"{visit},{uid},{rng.choice([0.5, 3, 99])},{rng.choice('abF')}")
            lines[2].extend(f"{visit},{rng.randint(0, 9)},{rng.choice('abF')}" for _ in range(rng.choice([0, 1, 6])))
        if uid != without:
            for file, some in zip((people, visits, labs), lines, strict=True):
                file += some
    return {name: "\n".join(file) + "\n" for name, file in (("people", people), ("visits", visits), ("labs", labs))}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_unit_leaves_all_tables_of_a_data_set_at_once(tmp_path: Path, seed: int) -> None:
    for name, text in family(seed).items():
        (tmp_path / f"{name}.csv").write_text(text)
    through = tacit.Unit("uid", (tacit.ForeignKey("visit", "visits", "id"),))
    with tacit.Curator(tmp_path / "clinic") as curator:
        facts = {"age": BOUNDS["age"], "sex": BOUNDS["sex"]}
        curator.add_table("people", tmp_path / "people.csv", unit="uid", columns=facts, dataset="all")
        curator.add_table("visits", tmp_path / "visits.csv", unit="uid", columns={"kg": BOUNDS["kg"]}, dataset="all")
        facts = {"value": tacit.Bounds(0, 5)}
        curator.add_table("labs", tmp_path / "labs.csv", unit=through, columns=facts, dataset="all")

        def leave() -> None:
            for name, text in family(seed, without=seed).items():
                (tmp_path / f"{name}.csv").write_text(text)
            curator.refresh()

        tally = check_removal(curator, leave, range(1_000 * seed, 1_000 * seed + 3 * QUESTIONS))
    assert tally.pairs >= QUESTIONS, tally


def test_two_units_that_leave_at_once_are_noticed(tmp_path: Path) -> None:
    source, columns = tmp_path / "t.duckdb", COLUMNS.format("BIGINT", "")
    rows = rows_of(range(4), 5)
    write_table(source, columns, rows)
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("t", f"{source}#t", unit="uid", columns=BOUNDS)

        def leave() -> None:
            write_table(source, columns, [row for row in rows if row[0] > 1])
            curator.refresh()

        with pytest.raises(Violated, match=r"moves|was spent"):
            check_removal(curator, leave, range(QUESTIONS))
