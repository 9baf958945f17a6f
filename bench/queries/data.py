"""Invented tables for the query benchmark: the same rows in every run, kept as Parquet in the temporary directory.

Every value is a hash of its row's number, so a table of 10^8 rows is made by DuckDB alone and needs no seed.
`events` has few units with many rows and many with few, and the same for groups; in `visits` no unit has more than
`VISIT_GROUPS` groups and `VISIT_ROWS` rows in each of them, so that bounds of that size change no answer.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

import duckdb

CACHE: Final = Path(tempfile.gettempdir()) / "tacit-bench-query"
ROWS_A_FILE: Final = 10_000_000
BYTES_A_ROW: Final = 20
"""Upper bound of the bytes of a row on disk, to check the free space."""
FORM: Final = 1
"""Version of the rows, so that an older table is not reused."""

ROWS_A_USER: Final = 10
GROUPS: Final = 100
FINE_GROUPS: Final = 100_000
LOWER: Final = 0
UPPER: Final = 100

VISIT_GROUPS: Final = 2
VISIT_ROWS: Final = 2
"""Groups of each unit of `visits`, and rows in each of them."""


def events(rows: int) -> Path:
    """Return the folder of Parquet files of a table with one user for every ten rows, made if it is missing."""
    return _kept(f"events_{rows}", rows, _events_sql(rows))


def visits(rows: int) -> Path:
    """Return the folder of Parquet files of the table on which errors are measured, made if it is missing."""
    return _kept(f"visits_{rows}", rows, _visits_sql())


def csv(rows: int) -> Path:
    """Return `events` as one CSV file, made if it is missing."""
    source, target = events(rows), CACHE / f"events_{rows}-{FORM}.csv"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as place, duckdb.connect() as connection:
            made = Path(place) / target.name
            connection.execute(f"COPY (FROM '{source}/*.parquet') TO '{made}' (HEADER)")
            made.replace(target)
    return target


def database(rows: int) -> Path:
    """Return a file of DuckDB with `events` as a table of its own, made if it is missing."""
    source, target = events(rows), CACHE / f"events_{rows}-{FORM}-{duckdb.__version__}.duckdb"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=CACHE) as place:
            made = Path(place) / target.name
            with duckdb.connect(str(made)) as connection:
                connection.execute(f"CREATE TABLE events AS FROM '{source}/*.parquet'")
            made.replace(target)
    return target


def has_room(rows: int) -> bool:
    """Whether the disk has twice the room that a table of so many rows takes."""
    if (CACHE / f"events_{rows}-{FORM}").exists():
        return True
    CACHE.mkdir(parents=True, exist_ok=True)
    return shutil.disk_usage(CACHE).free > 2 * rows * BYTES_A_ROW


def _kept(name: str, rows: int, sql: str) -> Path:
    folder = CACHE / f"{name}-{FORM}"
    if folder.exists():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as place, duckdb.connect() as connection:
        made = Path(place) / "made"
        made.mkdir()
        for number, start in enumerate(range(0, rows, ROWS_A_FILE)):
            part = f"(SELECT range AS i FROM range({start}, {min(rows, start + ROWS_A_FILE)}))"
            target = made / f"part_{number}.parquet"
            connection.execute(f"COPY ({sql.format(part=part)}) TO '{target}' (FORMAT parquet)")
        made.rename(folder)
    return folder


def _events_sql(rows: int) -> str:
    return f"""
        SELECT CAST({_ranked(1, max(1, rows // ROWS_A_USER), 0.7)} AS BIGINT) AS user_id,
               CAST({_ranked(2, GROUPS, 0.8)} AS BIGINT) AS grp,
               CAST({_ranked(3, FINE_GROUPS, 0.8)} AS BIGINT) AS grp_fine,
               round({_uniform("i", 4)} * {UPPER}, 2) AS value,
               DATE '2026-01-01' + CAST(floor({_uniform("i", 5)} * 365) AS INTEGER) AS day
        FROM {{part}}"""


def _visits_sql() -> str:
    first = _ranked(6, GROUPS, 0.8, of="i // 4")
    other = f"(1 + floor({_uniform('i // 4', 7)} * {GROUPS - 1}))"
    return f"""
        SELECT user_id, grp, round(15 + (grp * 37) % 41 + 30 * ({_uniform("i", 8)} - 0.5), 2) AS value
        FROM (SELECT i, i // 4 AS user_id,
                     CAST(CASE WHEN i % 4 < 2 THEN {first} ELSE ({first} + {other}) % {GROUPS} END AS BIGINT) AS grp
              FROM {{part}})"""


def _uniform(of: str, salt: int) -> str:
    """A number in [0, 1) with 53 bits of a hash; hash(x, salt) would not do, since it mixes two salts alike."""
    return f"((hash(({of}) * 16 + {salt}) >> 11) / 9007199254740992.0)"


def _ranked(salt: int, count: int, power: float, of: str = "i") -> str:
    """A number below `count`, of which k comes up about as often as (k + 1) ** -power."""
    top, root = (count + 1) ** (1 - power) - 1, 1 / (1 - power)
    return f"least({count - 1}, floor(pow(1 + {_uniform(of, salt)} * {top!r}, {root!r}) - 1))"
