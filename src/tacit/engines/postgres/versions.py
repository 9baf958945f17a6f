"""Whether the rows of a table may have changed.

PostgreSQL keeps no number that moves with every change of a table and that a mere reader may see: its statistics come
late, sizes and file numbers stay the same under updates. What is sound is its snapshot (`pg_current_snapshot`): it says
which transactions are visible, so that under the same one every table of the server holds the same rows. So while the
snapshot stays, the version stays, at no cost; when it has moved, for whatever reason, the rows are read once and added
up: the sum of two keyed hashes of each row's text, which rows in any order give alike. A write elsewhere on the server
then costs a pass over the table, but does not lose released answers. Of tables beyond `ROWS_SUMMED_MAX` the snapshot
itself is the version: any write on the server makes it another one.

Snapshots say nothing of rows that are elsewhere: views and foreign tables are summed each time.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from tacit.engines.names import digest, quoted
from tacit.engines.postgres.sources import Found
from tacit.privacy.tables import Table

ROWS_SUMMED_MAX: Final = 20_000_000
"""Of a table with more rows than that, by the planner's estimate, the sum is not taken."""

_MOMENT: Final = "SELECT pg_current_snapshot()::text, pg_postmaster_start_time()::text"
_ESTIMATE: Final = """
SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::float8, coalesce(bool_or(c.relkind = 'f'), false)
FROM (SELECT %(oid)s::oid AS oid UNION SELECT relid FROM pg_partition_tree(%(oid)s::oid)) p JOIN pg_class c USING (oid)
"""


class Versions:
    """The sums of tables, each with the snapshot under which it was taken."""

    def __init__(self, salt: int) -> None:
        self._salt = salt
        self._known: dict[tuple[int, tuple[str, ...]], tuple[tuple[str, str], str]] = {}
        self._lock = threading.Lock()

    def of(self, connection: Any, table: Table, found: Found) -> str:
        """Return a text that stands for the rows of a table; a transaction with one snapshot has begun."""
        moment = connection.execute(_MOMENT).fetchone()
        rows, is_elsewhere = connection.execute(_ESTIMATE, {"oid": found.oid}).fetchone()
        inside = found.relkind in ("r", "p", "m") and not is_elsewhere
        if inside and rows > ROWS_SUMMED_MAX:
            return digest("snapshot", found.oid, *moment)
        names = tuple(found.columns[one.name.lower()][0].name for one in table.columns)
        key = (found.oid, names)
        with self._lock:
            known = self._known.get(key)
        if inside and known is not None and known[0] == moment:
            return known[1]
        version = digest("sum", *self._sums(connection, found, names))
        with self._lock:
            self._known[key] = (moment, version)
        return version

    def _sums(self, connection: Any, found: Found, names: tuple[str, ...]) -> tuple[object, ...]:
        row = ", ".join(f"s.{quoted(name)}" for name in names).replace("%", "%%")
        hashed = [f'hashtextextended(r COLLATE "C", %({seed})s::bigint)' for seed in ("one", "two")]
        sql = (
            f"SELECT count(*), {', '.join(f'sum({one}::numeric)::text' for one in hashed)} "
            f"FROM (SELECT ROW({row})::text AS r FROM {found.sql.replace('%', '%%')} AS s) AS t"
        )
        seeds = {name: int(digest(name, self._salt)[:15], 16) for name in ("one", "two")}
        found_sums: tuple[object, ...] = connection.execute(sql, seeds).fetchone()
        return found_sums
