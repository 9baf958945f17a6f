"""`tacit ledger`: look at a ledger, verify it, take copies of it, and go on from one."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.groups import Group
from tacit.cli.output import Screen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.ledger import Ledger, PostgresStore, Scope

RECORDS_SHOWN: Final = 10
_HEAD: Final = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


@click.group("ledger", cls=Group)
def command() -> None:
    """Show, verify, export, back up and restore a ledger.

    A ledger lies in a folder, by default this one, or with --postgres in the database that the environment variable
    TACIT_LEDGER_POSTGRES names.
    """


def _on_ledger(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments that say where the ledger lies."""

    @click.option("--postgres", is_flag=True, help="The ledger is in PostgreSQL (TACIT_LEDGER_POSTGRES).")
    @click.option("--folder", default=".", type=click.Path(path_type=Path), help="The folder with the ledger.")
    @wraps(function)
    def wrapped(*arguments: Any, **settings: Any) -> None:
        function(*arguments, **settings)

    return wrapped


@contextmanager
def _opened(folder: Path, postgres: bool, *, create: bool = False) -> Iterator[Ledger]:
    from tacit.ledger import Ledger

    where, anchor = _place(folder, postgres)
    with Ledger.open(where, create=create, anchor=anchor) as ledger:
        yield ledger


def _place(folder: Path, postgres: bool) -> tuple[Path | PostgresStore, Path | None]:
    """Return where the ledger lies, and for a database the head that a curator's folder has noted of it."""
    from tacit.ledger import HEAD_FILE, PostgresStore

    if not postgres:
        return folder, None
    noted = folder / HEAD_FILE
    return PostgresStore.from_environment(), noted if noted.exists() else None


@command.command()
@_on_ledger
@click.option("--full", is_flag=True, help="Read the journal from its first record, not from the last checkpoint.")
@click.option("--noted", metavar="NUMBER:HASH", help="A head that was noted earlier and must still be there.")
@click.pass_obj
def verify(screen: Screen, folder: Path, postgres: bool, full: bool, noted: str | None) -> None:
    """Check that the journal is whole and that the tables say what it says."""
    with _opened(folder, postgres) as ledger:
        verified = ledger.verify(full=full, noted=None if noted is None else _noted(noted))
    first, head = verified.first, verified.head
    _show_result(
        screen,
        f"records {first} to {head.number} are whole; the head is {head.number}:{head.hash}",
        {"first": first, "last": head.number, "hash": head.hash, "whole": True},
    )


@command.command()
@_on_ledger
@click.option("--records", default=RECORDS_SHOWN, type=click.IntRange(0, 1000), help="How many records to show.")
@click.pass_obj
def show(screen: Screen, folder: Path, postgres: bool, records: int) -> None:
    """Show every budget with what is left, open reservations and requests, and the last records."""
    with _opened(folder, postgres) as ledger:
        facts = _facts(ledger, records)
    if screen.as_json:
        screen.show_object(facts)
        return
    _show_budgets(screen, facts["budgets"])
    for title, rows in (("reservations", facts["reservations"]), ("requests", facts["requests"])):
        if rows:
            screen.console.print(f"open {title}")
            screen.show_table(tuple(rows[0]), [tuple(str(value) for value in row.values()) for row in rows])
    if facts["records"]:
        screen.console.print("last records")
        columns = ("number", "at", "kind", "what")
        screen.show_table(columns, [tuple(str(row[column]) for column in columns) for row in facts["records"]])


@command.command()
@_on_ledger
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def export(screen: Screen, folder: Path, postgres: bool, file: Path | None) -> None:
    """Write the ledger as JSON lines to FILE, which must be new, or to standard output."""
    with _opened(folder, postgres) as ledger:
        ledger.export(sys.stdout if file is None else file)
        records = ledger.head().number
    if file is not None:
        _show_result(screen, f"wrote {records} records to {file}", {"file": str(file), "records": records})


@command.command("import")
@_on_ledger
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--source", type=click.Path(path_type=Path), help="The folder of the ledger that was exported.")
@click.option("--source-postgres", is_flag=True, help="The ledger that was exported lies in TACIT_LEDGER_POSTGRES.")
@click.option("--source-lost", metavar="REASON", help="Why the ledger that was exported is used no more.")
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
    """Fill an empty ledger with an export; the folder is made if it is missing.

    The ledger that was exported is closed for changes: it goes on here. It is found by itself if it lies in a folder of
    this machine; otherwise say where it is, or why it is gone.
    """
    from tacit.ledger import PostgresStore

    moved = PostgresStore.from_environment() if source_postgres else source
    with _opened(folder, postgres, create=True) as ledger:
        ledger.import_(file, source=moved, source_lost=source_lost)
        records = ledger.head().number
    _show_result(screen, f"imported {records - 1} records", {"records": records - 1})


@command.command()
@_on_ledger
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def backup(screen: Screen, folder: Path, postgres: bool, file: Path) -> None:
    """Write a copy of the store to FILE, which must be new, while others go on; it can be opened as a ledger."""
    with _opened(folder, postgres) as ledger:
        ledger.backup(file)
    _show_result(screen, f"wrote a copy to {file}", {"file": str(file)})


@command.command()
@_on_ledger
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--by", required=True, metavar="NAME", help="Who restores it; kept in the journal.")
@click.option("--reason", required=True, help="Why; kept in the journal.")
@click.option(
    "--lost-records",
    default=0,
    type=click.IntRange(0),
    help="How many records that were noted are not in the backup: what they charged is forgotten for good.",
)
@click.pass_obj
def restore(
    screen: Screen, folder: Path, postgres: bool, file: Path | None, by: str, reason: str, lost_records: int
) -> None:
    """Go on from the backup FILE; what lies in its place is moved aside.

    Refused if the backup ends before the head that was noted in the folder, unless --lost-records says by how many
    records. With --postgres the database was put back by its own tools, and no FILE is named.
    """
    from tacit.ledger import HEAD_FILE, Ledger

    where, anchor = _place(folder, postgres)
    is_noted = (folder / HEAD_FILE).exists()
    with Ledger.restore(where, file, by=by, reason=reason, lost_records=lost_records, anchor=anchor) as ledger:
        head = ledger.head().number
    lost = f"{lost_records} records are lost" if is_noted else "make sure that it goes on nowhere else"
    _show_result(screen, f"the ledger goes on from record {head}; {lost}", {"last": head, "lost": lost_records})


def _show_result(screen: Screen, sentence: str, facts: dict[str, Any]) -> None:
    if screen.as_json:
        screen.show_object(facts)
    else:
        screen.console.print(sentence, soft_wrap=True)


def _noted(text: str) -> tuple[int, str]:
    found = _HEAD.fullmatch(text)
    if found is None:
        raise click.BadParameter(
            "a noted head is written NUMBER:HASH, as verify shows it, with all 64 digits of the hash",
            param_hint="--noted",
        )
    return int(found[1]), found[2]


def _facts(ledger: Ledger, records: int) -> dict[str, Any]:
    from datetime import UTC, datetime

    last = ledger.head().number
    return {
        "budgets": [_budget_facts(ledger, scope) for scope in ledger.scopes()],
        "reservations": [
            {
                "permit": one.permit.id,
                "dataset": one.permit.dataset,
                "event": one.permit.event.kind,
                "since": one.permit.issued_at.isoformat(timespec="seconds"),
                "purpose": one.permit.purpose,
                "note": one.note,
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
                "what": _what(one),
            }
            for one in (ledger.history(max(1, last - records + 1)) if records else ())
        ],
    }


def _budget_facts(ledger: Ledger, scope: Scope) -> dict[str, Any]:
    budget = ledger.budget(
        scope.dataset,
        analyst=scope.name if scope.kind == "analyst" else None,
        epoch=scope.name if scope.kind == "epoch" else None,
    )
    spent, remaining = budget.spent(), budget.remaining()
    return {
        "scope": str(scope),
        "filter": budget.cap.filter,
        "epsilon": budget.cap.epsilon,
        "delta": budget.cap.delta,
        "epsilon_spent": spent.epsilon,
        "epsilon_left": remaining.epsilon,
    }


def _show_budgets(screen: Screen, budgets: list[dict[str, Any]]) -> None:
    if not budgets:
        screen.console.print("no budget was set yet")
        return
    rows = [
        (
            row["scope"],
            f"ε {row['epsilon']:g}, δ {row['delta']:g}",
            row["filter"],
            f"{row['epsilon_spent']:.4g}",
            f"{row['epsilon_left']:.4g}",
        )
        for row in budgets
    ]
    screen.show_table(("budget", "cap", "filter", "ε spent", "ε left"), rows)


def _what(record: Any) -> str:
    """Name what a record is about, without anything that was answered."""
    body = record.contents
    return str(body.get("scope") or body.get("dataset") or body.get("permit") or body.get("request") or "")
