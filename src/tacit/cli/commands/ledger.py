"""`tacit ledger`: show, verify, export, import, back up and restore a ledger."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.groups import Group, add_format_option
from tacit.cli.output import Screen, show_result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.ledger import Ledger, PostgresStore, Scope

RECORDS_SHOWN: Final = 10
LISTS: Final = {"reservations": "open reservations", "requests": "open requests", "records": "last records"}
_HEAD: Final = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


@click.group("ledger", cls=Group)
def command() -> None:
    """Show, verify, export, back up, restore and rebuild a ledger.

    The ledger is in a folder, by default the current one, or with --postgres in the database given by the environment
    variable TACIT_LEDGER_POSTGRES.
    """


def _ledger_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that locate the ledger to a command."""
    folder = click.option("--folder", default=".", type=click.Path(path_type=Path), help="The folder with the ledger.")
    postgres = click.option("--postgres", is_flag=True, help="The ledger is in PostgreSQL (TACIT_LEDGER_POSTGRES).")
    return postgres(folder(function))


@contextmanager
def _open_ledger(folder: Path, postgres: bool, *, create: bool = False) -> Iterator[Ledger]:
    from tacit.ledger import Ledger

    where, anchor = _location(folder, postgres)
    with Ledger.open(where, create=create, anchor=anchor) as ledger:
        yield ledger


def _location(folder: Path, postgres: bool) -> tuple[Path | PostgresStore, Path | None]:
    """Return the folder or database of the ledger, and for a database the head file of the curator's folder."""
    from tacit.ledger import HEAD_FILE, PostgresStore

    if not postgres:
        return folder, None
    noted = folder / HEAD_FILE
    return PostgresStore.from_environment(), noted if noted.exists() else None


@command.command()
@_ledger_options
@click.option("--full", is_flag=True, help="Verify from the first record instead of the last checkpoint.")
@click.option("--noted", metavar="NUMBER:HASH", help="A head shown by an earlier verify, which must be in the journal.")
@click.pass_obj
def verify(screen: Screen, folder: Path, postgres: bool, full: bool, noted: str | None) -> None:
    """Verify the journal and its totals.

    Checks the hash chain of the journal, and that the tables of budgets and permits agree with it.
    """
    with _open_ledger(folder, postgres) as ledger:
        verified = ledger.verify(full=full, noted=None if noted is None else _noted(noted))
    first, head = verified.first, verified.head
    show_result(
        screen,
        f"records {first} to {head.number} are valid; the head is {head.number}:{head.hash}",
        {"first": first, "last": head.number, "hash": head.hash, "whole": True},
    )


@command.command()
@_ledger_options
@click.option("--records", default=RECORDS_SHOWN, type=click.IntRange(0, 1000), help="Number of records to show.")
@add_format_option
@click.pass_obj
def show(screen: Screen, folder: Path, postgres: bool, records: int) -> None:
    """Show budgets, open reservations and requests, and records.

    Records of charges ("reserved") have their analyst, if any, their epsilon and their purpose. As CSV, an empty line
    separates the lists, and each has its own header.
    """
    from tacit.cli.catalog_rendering import show_budgets

    with _open_ledger(folder, postgres) as ledger:
        facts = _facts(ledger, records)
    if screen.as_json:
        screen.show_object(facts)
        return
    show_budgets(screen, facts["budgets"])
    for name, title in LISTS.items():
        rows = [tuple(map(_cell, row.values())) for row in facts[name]]
        if rows:
            click.echo("" if screen.format == "csv" else f"\n{title}\n")
            screen.show_records(tuple(facts[name][0]), rows)


@command.command()
@_ledger_options
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def export(screen: Screen, folder: Path, postgres: bool, file: Path | None) -> None:
    """Export the ledger as JSON lines.

    Writes to FILE, which must not exist, or to standard output.
    """
    with _open_ledger(folder, postgres) as ledger:
        ledger.export(sys.stdout if file is None else file)
        records = ledger.head().number
    if file is not None:
        show_result(screen, f"wrote {records} records to {file}", {"file": str(file), "records": records})


@command.command("import")
@_ledger_options
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--source", type=click.Path(path_type=Path), help="Folder of the exported ledger.")
@click.option("--source-postgres", is_flag=True, help="The exported ledger is in TACIT_LEDGER_POSTGRES.")
@click.option("--source-lost", metavar="REASON", help="Why the exported ledger cannot be found or used any more.")
@click.pass_obj
def import_(
    screen: Screen,
    folder: Path,
    postgres: bool,
    file: Path,
    source: Path | None,
    source_postgres: bool,
    source_lost: str | None,
) -> None:
    """Import an exported ledger into an empty one.

    The folder is created if it is missing. The exported ledger is closed, so that no budget is spent twice. It is found
    automatically if it is in a folder of this machine; otherwise give its location, or the reason why it is gone.
    """
    from tacit.ledger import PostgresStore

    moved = PostgresStore.from_environment() if source_postgres else source
    with _open_ledger(folder, postgres, create=True) as ledger:
        ledger.import_(file, source=moved, source_lost=source_lost)
        records = ledger.head().number
    show_result(screen, f"imported {records - 1} records", {"records": records - 1})


@command.command()
@_ledger_options
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def backup(screen: Screen, folder: Path, postgres: bool, file: Path) -> None:
    """Back up the ledger to FILE while it is in use.

    FILE must not exist. The copy can be opened as a ledger.
    """
    with _open_ledger(folder, postgres) as ledger:
        ledger.backup(file)
    show_result(screen, f"wrote a copy to {file}", {"file": str(file)})


@command.command()
@_ledger_options
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--by", required=True, metavar="NAME", help="Name of the person who restores it; kept in the journal.")
@click.option("--reason", required=True, help="Reason; kept in the journal.")
@click.option(
    "--lost-records",
    default=0,
    type=click.IntRange(0),
    help="Number of records that the backup lacks; their charges are lost for good.",
)
@click.pass_obj
def restore(
    screen: Screen, folder: Path, postgres: bool, file: Path | None, by: str, reason: str, lost_records: int
) -> None:
    """Restore the ledger from the backup FILE.

    The current ledger is moved aside. If the backup ends before the last known record of the folder, --lost-records
    must say by how many records. With --postgres, restore the database with its own tools first and give no FILE.
    """
    from tacit.ledger import HEAD_FILE, Ledger

    where, anchor = _location(folder, postgres)
    is_noted = (folder / HEAD_FILE).exists()
    with Ledger.restore(where, file, by=by, reason=reason, lost_records=lost_records, anchor=anchor) as ledger:
        head = ledger.head().number
    lost = f"{lost_records} records are lost" if is_noted else "make sure that no other copy is in use"
    show_result(screen, f"restored the ledger up to record {head}; {lost}", {"last": head, "lost": lost_records})


@command.command()
@_ledger_options
@click.option("--by", required=True, metavar="NAME", help="Name of the person who rebuilds it; kept in the journal.")
@click.option("--reason", required=True, help="Reason; kept in the journal.")
@click.pass_obj
def rebuild(screen: Screen, folder: Path, postgres: bool, by: str, reason: str) -> None:
    """Rebuild the tables of the ledger from its journal.

    For tables that were changed outside the ledger, as `verify` reports. A damaged journal is refused: restore a backup
    instead. Stored answers that were changed are dropped; asked again, they are charged again.
    """
    from tacit.ledger import Ledger

    where, anchor = _location(folder, postgres)
    with Ledger.rebuild(where, by=by, reason=reason, anchor=anchor) as ledger:
        head = ledger.head().number
        dropped = sum(len(record.contents["dropped_answers"]) for record in ledger.history(head))
    show_result(
        screen,
        f"rebuilt the tables from the journal up to record {head}; {dropped} stored answers were dropped",
        {"last": head, "dropped_answers": dropped},
    )


def _noted(text: str) -> tuple[int, str]:
    found = _HEAD.fullmatch(text)
    if found is None:
        raise click.BadParameter(
            "write the head as NUMBER:HASH, as verify shows it, with all 64 digits of the hash",
            param_hint="--noted",
        )
    return int(found[1]), found[2]


def _facts(ledger: Ledger, records: int) -> dict[str, Any]:
    from datetime import UTC, datetime

    from tacit.cli.catalog_rendering import ledger_budget_object
    from tacit.ledger import LedgerBudget
    from tacit.pipeline.notes import in_words

    last = ledger.head().number
    return {
        "budgets": [ledger_budget_object(LedgerBudget(ledger, scope)) for scope in sorted(ledger.scopes(), key=_order)],
        "reservations": [
            {
                "permit": one.permit.id,
                "dataset": one.permit.dataset,
                "event": one.permit.event.kind,
                "since": one.permit.issued_at.isoformat(timespec="seconds"),
                "purpose": one.permit.purpose,
                "note": in_words(one.note),
            }
            for one in ledger.reservations()
        ],
        "requests": [
            {"id": one.id, "analyst": one.analyst, "dataset": one.dataset, "reason": one.reason}
            for one in ledger.requests(only_open=True)
        ],
        "records": [
            {
                "number": one.number,
                "at": datetime.fromtimestamp(one.at_us / 1e6, UTC).isoformat(timespec="seconds"),
                "kind": one.kind,
                "subject": _subject(one),
                **_charge(one),
            }
            for one in (ledger.history(max(1, last - records + 1)) if records else ())
        ],
    }


def _order(scope: Scope) -> tuple[str, bool, str]:
    """Return a key that sorts the scope of a data set before those of its analysts and epochs."""
    return scope.dataset, scope.kind != "dataset", scope.name


def _charge(record: Any) -> dict[str, Any]:
    """Return the analyst, with groups, the epsilon and the purpose of a record that charges; nulls for others."""
    body = record.contents
    if record.kind != "reserved":
        return dict.fromkeys(("analyst", "epsilon", "purpose"))
    named = ", ".join(body["analysts"]) or None
    return {"analyst": named, "epsilon": body["cost"]["epsilon"], "purpose": body["purpose"]}


def _cell(value: Any) -> str:
    from tacit.cli.catalog_rendering import printable
    from tacit.privacy.figures import at_most

    return "" if value is None else at_most(value) if isinstance(value, float) else printable(str(value))


def _subject(record: Any) -> str:
    """Return the scope, data set, permit or request of a record."""
    from tacit.ledger import Scope

    body = record.contents
    if "scope" in body:
        return str(Scope.from_key(body["scope"]))
    return str(body.get("dataset") or body.get("permit") or body.get("request") or "")
