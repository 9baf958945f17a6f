"""Export and import: a ledger as JSON lines.

The first line says what the file is, and where the ledger lies if that is a folder; then comes one record a line as it
stands in the journal, then the released answers, and a last line that says how many of each there are: a file without
it was cut off. An import goes into an empty ledger only, verifies every line, and keeps the chain; one more record says
that it happened.

A ledger is in use in one place only. An import therefore closes the ledger that was exported, with a last record
`moved`, and only then is its own on disk: a crash between the two leaves none that admits anything, and the import can
be run again with a statement that it was interrupted.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, TextIO

from tacit.ledger.journal import Head, Record, canonical
from tacit.ledger.replay import MemoryRows, apply
from tacit.ledger.transactions import LedgerTransaction
from tacit.ledger.verification import checked_records, write_caches
from tacit.privacy import strict_json
from tacit.privacy.errors import AlreadySettled, InvalidInput, LedgerCorrupt, LedgerMoved, LedgerTooNew

FORMAT: Final = "tacit-ledger"
VERSION: Final = 1
LINE_LENGTH_MAX: Final = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Export:
    """An export that was read to its end and verified."""

    records: tuple[Record, ...]
    contents: Mapping[str, bytes]
    rows: MemoryRows
    """The tables that follow from the records."""
    folder: str | None = None
    """The folder of the ledger that was exported, if the export names one."""

    @property
    def head(self) -> Head:
        """Where the journal ends."""
        return self.records[-1].head if self.records else Head()

    @property
    def ledger(self) -> str | None:
        """The id of the ledger: the hash of its first record."""
        return self.records[0].hash if self.records else None


def export_lines(
    records: Iterable[Record], content: Callable[[str], bytes | None] | None, folder: str | None = None
) -> Iterator[str]:
    """Yield the lines of an export: the records, and the stored answers unless `content` is None."""
    yield canonical({"folder": folder, "format": FORMAT, "version": VERSION})
    count, rows = 0, MemoryRows()
    for record in records:
        count += 1
        apply(record, rows)
        yield canonical({"record": asdict(record)})
    kept = {answer.sha256 for answer in rows.answers.values()} if content is not None else set()
    for digest in sorted(kept):
        found = b"" if content is None else content(digest) or b""
        yield canonical({"answer": base64.b64encode(found).decode("ascii"), "sha256": digest})
    yield canonical({"answers": len(kept), "records": count})


def read_export(lines: Iterable[str]) -> Export:
    """Read an export and verify all of it."""
    parsed = map(_parse, lines)
    folder = _read_header(next(parsed, {}))
    records, contents = _read(parsed)
    rows = MemoryRows()
    for record in checked_records(iter(records), Head()):
        apply(record, rows)
    for answer in rows.answers.values():
        if answer.sha256 not in contents:
            raise _damaged(f"the answer {answer.sha256[:16]} is missing")
    for last in records[-1:]:
        if last.kind == "moved":
            raise LedgerMoved(f"the ledger of this export was moved to {last.contents['to']}; export it there")
    return Export(tuple(records), contents, rows, folder)


def close_source(transaction: LedgerTransaction, export: Export, to: str, lost: str | None) -> None:
    """Append the record `moved` to the ledger that was exported.

    If the record is there already, an import was interrupted, or the ledger is in use there: `lost` must say which.
    """
    head = transaction.rows.head()
    if lost is not None and any(
        last.kind == "moved" and last.previous == export.head.hash for last in transaction.rows.end()
    ):
        return
    if [first.hash for first in transaction.rows.records(1, 1)] != [export.ledger]:
        raise InvalidInput("the ledger named as the source is not the one that was exported", name="source")
    if (head.number, head.hash) != (export.head.number, export.head.hash):
        transaction.require_not_moved(
            "if an import was interrupted and the ledger is not used there, say so (--source-lost REASON, source_lost=)"
        )
        raise InvalidInput(
            f"the ledger was changed since it was exported: it ends with record {head.number}, and the export with "
            f"{export.head.number}; export it again",
            name="export",
        )
    transaction.write("moved", {"to": to})


def require_empty(head: Head) -> None:
    """Raise AlreadySettled if a ledger has records."""
    if head.number:
        raise AlreadySettled("an import goes into an empty ledger, and this one has records", name="ledger")


def import_export(transaction: LedgerTransaction, export: Export, source: Mapping[str, str | None]) -> None:
    """Write an export into an empty ledger; `source` says where it comes from."""
    require_empty(transaction.rows.head())
    for record in export.records:
        transaction.rows.append(record, is_checkpoint=record.kind == "checkpoint")
    for digest, content in export.contents.items():
        transaction.rows.put_content(digest, content)
    write_caches(transaction.rows, export.rows)
    transaction.write("imported", {"records": len(export.records), **source})


def read_all(stream: TextIO) -> Iterator[str]:
    """Yield the lines of a stream; raise for a line that passes the limit."""
    while line := stream.readline(LINE_LENGTH_MAX):
        if len(line) == LINE_LENGTH_MAX:
            raise InvalidInput(f"a line of an export has at most {LINE_LENGTH_MAX:,} characters", name="stream")
        yield line


def _read_header(header: Mapping[str, Any]) -> str | None:
    if header.get("format") != FORMAT:
        raise InvalidInput("this is not the export of a ledger; its first line should say so", name="stream")
    if header.get("version") != VERSION:
        raise LedgerTooNew(f"the export has version {header.get('version')!r}, and this tacit knows {VERSION}")
    folder = header.get("folder")
    return folder if isinstance(folder, str) else None


def _read(parsed: Iterator[dict[str, Any]]) -> tuple[list[Record], dict[str, bytes]]:
    records: list[Record] = []
    contents: dict[str, bytes] = {}
    for line in parsed:
        match line:
            case {"record": dict() as fields}:
                records.append(_record(fields, len(records) + 1))
            case {"answer": str() as text, "sha256": str() as digest}:
                contents[digest] = _content(text, digest)
            case {"answers": answers, "records": count}:
                if (answers, count) != (len(contents), len(records)) or next(parsed, None) is not None:
                    raise _damaged("it does not hold as many records as its last line says")
                return records, contents
            case _:
                raise _damaged(f"the line after record {len(records)} is neither a record nor an answer")
    raise _damaged(f"it ends after record {len(records)}, before its last line")


def _parse(line: str) -> dict[str, Any]:
    try:
        value = strict_json.loads(line)
    except InvalidInput as error:
        raise _damaged(error.message) from None
    return value if isinstance(value, dict) else {}


def _record(fields: dict[str, Any], expected: int) -> Record:
    types = {"number": int, "at_us": int, "behind_us": int, "kind": str, "body": str, "previous": str, "hash": str}
    if fields.keys() != types.keys() or any(type(fields[name]) is not kind for name, kind in types.items()):
        raise _damaged(f"record {expected} does not have the fields of a record")
    return Record(**fields)


def _content(text: str, digest: str) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except ValueError:
        content = b""
    if hashlib.sha256(content).hexdigest() != digest:
        raise _damaged(f"the answer {digest[:16]} was changed")
    return content


def _damaged(how: str) -> LedgerCorrupt:
    return LedgerCorrupt(f"the export is damaged: {how}; nothing was imported", differs="export")
