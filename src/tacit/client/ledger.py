"""The ledger of a server, for those who may look into it: records, whether they hold together, and a copy of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tacit.client.failures import understood
from tacit.client.wire import Wire
from tacit.ledger.stores.sqlite_file import new_file
from tacit.privacy.errors import ServerUnreachable
from tacit.privacy.numbers import truth_value
from tacit.privacy.texts import path as path_of

RECORDS_AT_ONCE: Final = 100
LAST_LINE_MAX: Final = 4096


class RemoteLedger:
    """What the journal of a server says."""

    def __init__(self, wire: Wire) -> None:
        self._wire: Final = wire

    def records(self, first: int = 1, limit: int = RECORDS_AT_ONCE) -> list[dict[str, Any]]:
        """Return records from a number on, the oldest first."""
        document = self._wire.get("ledger", query={"first": first, "limit": limit})
        with understood("the list of records"):
            return [dict(one) for one in document]

    def history(self, first: int = 1) -> Iterator[dict[str, Any]]:
        """Yield all records from a number on, some at a time."""
        while found := self.records(first):
            yield from found
            with understood("the record"):
                first = int(found[-1]["number"]) + 1

    def verify(self, *, full: bool = False) -> dict[str, Any]:
        """Check that the journal is whole and that the tables say what it says, or raise LedgerCorrupt."""
        return dict(self._wire.get("ledger", "verify", query={"full": _truth("full", full)}))

    def export(self, path: Path | str, *, answers: bool = False) -> Path:
        """Write the ledger as JSON lines to a new file, whole or not at all; owners may have the answers in it."""
        target = path_of("path", path)
        with new_file(target) as aside:
            with aside.open("wb") as file:
                self._wire.save("ledger", "export", query={"answers": _truth("answers", answers)}, write=file.write)
            if not _is_whole(aside):
                raise ServerUnreachable(f"the export from {self._wire.url} was cut off; try again")
        return target

    def reservations(self) -> list[dict[str, Any]]:
        """Return permits that were never committed, the oldest first: runs under way, and runs that died."""
        document = self._wire.get("reservations")
        with understood("the list of reservations"):
            return [dict(one) for one in document]


def _truth(name: str, value: bool) -> str:
    return "true" if truth_value(name, value) else "false"


def _is_whole(path: Path) -> bool:
    """Whether an export has its last line, which counts what came before."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LAST_LINE_MAX))
        last = file.read().splitlines()[-1:]
    return bool(last) and last[0].startswith(b'{"answers":') and b'"records":' in last[0]
