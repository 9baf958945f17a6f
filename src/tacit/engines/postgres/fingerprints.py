"""Whether the rows of a table may have changed.

PostgreSQL keeps no number that moves with every change of a table and that a mere reader may see: its statistics come
late, sizes and file numbers stay the same under updates. What is sound is its snapshot (`pg_current_snapshot`): it says
which transactions are visible, so that under the same one every table of the server holds the same rows; only TRUNCATE
and its like take effect at once, and these give the table another file. So while the snapshot and the files stay, the
fingerprint stays, at no cost; when they have moved, for whatever reason, the rows are read once and added up: the sum
of two keyed hashes of each row's text, as far as it is shown, which rows in any order give alike. A write elsewhere on
the server then costs a pass over the table, but does not lose released answers. Of tables beyond `ROWS_SUMMED_MAX` the
snapshot itself is the fingerprint: any write on the server makes it another one.

Snapshots say nothing of rows that are elsewhere, nor do they name all transactions on a standby server: views, foreign
tables and the tables of a standby are summed each time.
"""

from __future__ import annotations

import threading
from typing import Any, Final, TypeAlias

from tacit.engines.names import digest, quoted
from tacit.engines.postgres.kinds import bounded
from tacit.engines.postgres.sources import Found
from tacit.privacy.tables import Table

ROWS_SUMMED_MAX: Final = 20_000_000
"""Of a table with more rows than that, by the planner's estimate, the sum is not taken."""

_MOMENT: Final = """
WITH RECURSIVE parts AS (SELECT %(oid)s::oid AS oid
    UNION SELECT i.inhrelid FROM pg_inherits i JOIN parts p ON i.inhparent = p.oid)
SELECT pg_current_snapshot()::text, pg_postmaster_start_time()::text,
       string_agg(coalesce(pg_relation_filenode(c.oid)::text, ''), ',' ORDER BY c.oid),
       sum(greatest(c.reltuples, 0))::float8, bool_and(c.relkind IN ('r', 'p', 'm')) AND NOT pg_is_in_recovery()
FROM parts p JOIN pg_class c ON c.oid = p.oid
"""

_Moment: TypeAlias = tuple[str, str, str]
"""The snapshot, when the server was started, and the files of the table."""


class Fingerprints:
    """The sums of tables, each with the snapshot under which it was taken."""

    def __init__(self, salt: int) -> None:
        self._salt = salt
        self._known: dict[tuple[int, tuple[str, ...]], tuple[_Moment, str]] = {}
        self._lock = threading.Lock()

    def of(self, connection: Any, table: Table, found: Found) -> str:
        """Return a text that stands for the rows of a table; a transaction with one snapshot has begun."""
        *moment_, rows, is_here = connection.execute(_MOMENT, {"oid": found.oid}).fetchone()
        moment: _Moment = tuple(moment_)
        if is_here and rows > ROWS_SUMMED_MAX:
            return digest("snapshot", found.oid, *moment)
        columns = [there for one in table.columns if (there := found.column(one.name)) is not None]
        values = tuple(bounded(f"s.{quoted(shown.name)}", type_name) for shown, type_name in columns)
        key = (found.oid, values)
        with self._lock:
            known = self._known.get(key)
        if is_here and known is not None and known[0] == moment:
            return known[1]
        fingerprint = digest("sum", *self._sums(connection, found, values))
        with self._lock:
            self._known[key] = (moment, fingerprint)
        return fingerprint

    def _sums(self, connection: Any, found: Found, values: tuple[str, ...]) -> tuple[object, ...]:
        row = ", ".join(values).replace("%", "%%")
        hashed = [f'hashtextextended(r COLLATE "C", %({seed})s::bigint)' for seed in ("one", "two")]
        sql = (
            f"SELECT count(*), {', '.join(f'sum({one}::numeric)::text' for one in hashed)} "
            f"FROM (SELECT ROW({row})::text AS r FROM {found.sql.replace('%', '%%')} AS s) AS t"
        )
        seeds = {name: int(digest(name, self._salt)[:15], 16) for name in ("one", "two")}
        found_sums: tuple[object, ...] = connection.execute(sql, seeds).fetchone()
        return found_sums
