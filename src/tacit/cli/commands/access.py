"""`tacit access`: people, roles, tokens and the audit log of a folder's server."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.backends import open_access, open_curator
from tacit.cli.groups import Group, add_format_option
from tacit.cli.options import access_options, folder_flag, password_options, read_password
from tacit.cli.output import Screen, show_hints, show_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.server.access import Access, AuditRecord, Grant, Person, Token


ROLES: Final = ("owner", "curator", "analyst", "auditor")
RECORDS_SHOWN: Final = 50
RECORDS_MAX: Final = 1000
SHOWN_ONCE: Final = "the token is shown only once; store it where only its user can read it"


@click.group("access", cls=Group)
def command() -> None:
    """Manage the people, roles and tokens of a server.

    People log in with a password or a token. A role applies to everything, to one data set, or to one table.

    \b
      tacit access people add ana
      tacit access grant ana --role analyst --dataset clinic
      tacit access token create ana --days 30
    """


@command.group(cls=Group)
def people() -> None:
    """Add, remove and list people."""


@command.group(cls=Group)
def token() -> None:
    """Create, revoke and list tokens for programs."""


@people.command("list")
@access_options
@add_format_option
@click.pass_obj
def list_people(screen: Screen, folder: Path, postgres: bool) -> None:
    """List all people with their roles, including removed ones."""
    with open_access(folder, postgres) as access:
        people = access.people.all()
    empty = f"no people yet; add the first one with: tacit access people add NAME{folder_flag(folder)}"
    screen.show_list("people", people, person_object, PEOPLE, _person_row, empty)


@people.command()
@access_options
@click.argument("name")
@password_options(is_optional=True)
@click.pass_obj
def add(screen: Screen, folder: Path, postgres: bool, name: str, password_file: Path | None, no_password: bool) -> None:
    """Add a person without a role; prompts for a password."""
    with open_access(folder, postgres) as access:
        access.people.add(name, read_password(password_file, is_wanted=not no_password))
        facts, hints = person_object(access.people.one(name)), _hints(access, name, folder)
    show_result(screen, f"added {name} without a role", facts)
    show_hints(screen, hints)


@people.command()
@access_options
@click.argument("name")
@password_options(is_optional=False)
@click.pass_obj
def password(screen: Screen, folder: Path, postgres: bool, name: str, password_file: Path | None) -> None:
    """Set a new password and log the person out everywhere."""
    with open_access(folder, postgres) as access:
        access.people.set_password(name, read_password(password_file) or "")
    show_result(screen, f"set a new password for {name}, who is logged out everywhere", {"name": name})


@people.command()
@access_options
@click.argument("name")
@click.pass_obj
def remove(screen: Screen, folder: Path, postgres: bool, name: str) -> None:
    """Remove a person for good, with their tokens and logins."""
    with open_access(folder, postgres) as access:
        access.people.remove(name)
    show_result(screen, f"removed {name}; the name cannot be used again", {"name": name})


def _grant_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments of a grant to a command."""
    for option in (
        click.option("--table", help="The table of the data set to which the role applies; all tables by default."),
        click.option("--dataset", help="The data set to which the role applies; everything by default."),
        click.option("--role", type=click.Choice(ROLES), required=True, help="The role."),
        click.argument("name"),
        access_options,
    ):
        function = option(function)
    return function


@command.command()
@_grant_options
@click.pass_obj
def grant(screen: Screen, /, folder: Path, postgres: bool, name: str, **settings: Any) -> None:
    """Give a person a role.

    \b
      owner     may do everything; cannot be limited to a data set
      curator   manages tables and budgets, decides requests for budget
      analyst   runs queries within a budget
      auditor   reads the ledger and the audit log, but no answers

    An analyst of a data set also needs a budget on it; at a terminal the command asks for its epsilon.
    """
    given = _grant(**settings)
    with open_access(folder, postgres) as access:
        access.people.grant(name, given)
        facts = person_object(access.people.one(name))
    dataset = given.dataset
    if dataset is None or postgres or given.role != "analyst" or not _is_uncapped(folder, name, dataset):
        show_result(screen, f"{name} is {given}", facts)  # with --postgres the ledger may be there, too
        return
    command = f"tacit budget analyst {shlex.quote(name)} {shlex.quote(dataset)} --epsilon 1{folder_flag(folder)}"
    hints = [f"{name} has no budget on {dataset} yet: {command}"]
    show_result(screen, f"{name} is {given}", {**facts, "hints": hints})
    if not (screen.has_reader and sys.stdin.isatty() and _ask_cap(folder, name, dataset)):
        show_hints(screen, hints)


@command.command()
@_grant_options
@click.pass_obj
def withdraw(screen: Screen, /, folder: Path, postgres: bool, name: str, **settings: Any) -> None:
    """Take a role away from a person.

    Give the same options as for the grant. The role of the last owner cannot be taken away.
    """
    taken = _grant(**settings)
    with open_access(folder, postgres) as access:
        access.people.withdraw(name, taken)
        facts = person_object(access.people.one(name))
    show_result(screen, f"{name} is no longer {taken}", facts)


@token.command()
@access_options
@click.argument("name")
@click.option("--label", default="", help="Description, such as the name of a machine.")
@click.option("--days", type=click.IntRange(1, 365), default=90, show_default=True, help="Lifetime in days.")
@click.option("--role", type=click.Choice(ROLES), help="Restrict the token to this role.")
@click.option("--dataset", help="Restrict the token to one data set.")
@click.pass_obj
def create(screen: Screen, /, folder: Path, postgres: bool, name: str, **settings: Any) -> None:
    """Create a token with at most the rights of a person."""
    with open_access(folder, postgres) as access:
        made = access.tokens.create(name, **settings)
    if screen.as_json:
        screen.show_object({"id": made.id, "token": made.text, "expires_at": timestamp(made.expires_at)})
        return
    screen.console.print(made.text, soft_wrap=True)
    show_hints(
        screen,
        [
            f"{SHOWN_ONCE}; it expires on {made.expires_at:%Y-%m-%d}; end it earlier with: "
            f"tacit access token revoke {made.id}{folder_flag(folder)}"
        ],
    )


@token.command("list")
@access_options
@click.argument("name", required=False)
@add_format_option
@click.pass_obj
def list_tokens(screen: Screen, folder: Path, postgres: bool, name: str | None) -> None:
    """List tokens without their secrets, newest first."""
    with open_access(folder, postgres) as access:
        if name is not None:
            access.people.one(name)  # raises for an unknown name
        tokens = access.tokens.all(name)
    row = partial(_token_row, now=datetime.now(UTC))
    screen.show_list("tokens", tokens, token_object, TOKENS, row, "no tokens")


@token.command()
@access_options
@click.argument("id")
@click.pass_obj
def revoke(screen: Screen, folder: Path, postgres: bool, id: str) -> None:
    """Revoke a token at once.

    ID is the second part of the token, as tacit access token list shows it.
    """
    with open_access(folder, postgres) as access:
        access.tokens.revoke(id)
    show_result(screen, f"revoked the token {id}", {"id": id, "is_revoked": True})


@command.command()
@access_options
@click.option(
    "--records",
    type=click.IntRange(1, RECORDS_MAX),
    default=RECORDS_SHOWN,
    show_default=True,
    help="Number of records to show.",
)
@click.option(
    "--first", type=click.IntRange(1), help="Number of the first record; by default the newest records are shown."
)
@add_format_option
@click.pass_obj
def audit(screen: Screen, folder: Path, postgres: bool, records: int, first: int | None) -> None:
    """Show the audit log: refused requests and changes.

    Changes made with this command line have no person.
    """
    with open_access(folder, postgres) as access:
        begin = max(1, access.audit.last() - records + 1) if first is None else first
        found = access.audit.records(begin, records)
    screen.show_list("records", found, record_object, AUDIT, _record_row, "the audit log is empty")


def _grant(role: str, dataset: str | None, table: str | None) -> Grant:
    from tacit.server.access import Grant, Role

    return Grant(Role(role), dataset, table)


def _is_uncapped(folder: Path, name: str, dataset: str) -> bool:
    """Return whether a data set has a budget and the analyst has none on it."""
    with open_curator(folder) as curator:
        scopes = [one.scope for one in curator.budgets(dataset)]
    return bool(scopes) and not any((one.kind, one.name) == ("analyst", name) for one in scopes)


def _ask_cap(folder: Path, name: str, dataset: str) -> bool:
    """Ask for the epsilon of an analyst and set it; return False if it was skipped."""
    from tacit.privacy.errors import TacitError

    def set_cap(text: str) -> float | None:
        if not text.strip():
            return None
        try:
            epsilon = float(text)
            with open_curator(folder) as curator:
                curator.set_cap(name, dataset, epsilon)
        except ValueError:
            raise click.UsageError("write a number such as 1") from None
        except TacitError as error:
            raise click.UsageError(error.message) from None
        return epsilon

    question = f"epsilon that {name} may spend on {dataset} (Enter skips)"
    epsilon = click.prompt(question, default="", show_default=False, value_proc=set_cap)
    if epsilon is not None:
        click.echo(f"{name} may spend ε {epsilon:g} on {dataset}")
    return epsilon is not None


def _hints(access: Access, name: str, folder: Path) -> list[str]:
    """Return the next command for a person who was just added."""
    has_owner = any(one.role == "owner" for person in access.people.all() for one in person.grants)
    role = "analyst --dataset NAME" if has_owner else "owner"
    return [f"give {name} a role with: tacit access grant {name} --role {role}{folder_flag(folder)}"]


PEOPLE: Final = ("name", "roles", "since")
TOKENS: Final = ("id", "person", "label", "restricted to", "expires", "last used", "state")
AUDIT: Final = ("number", "time", "person", "action", "on", "result", "count", "address")


def grant_object(grant: Grant) -> dict[str, Any]:
    """Return a grant as a JSON object."""
    return {"role": str(grant.role), "dataset": grant.dataset, "table": grant.table}


def person_object(person: Person) -> dict[str, Any]:
    """Return a person as a JSON object."""
    return {
        "name": person.name,
        "is_active": person.is_active,
        "created_at": timestamp(person.created_at),
        "grants": [grant_object(one) for one in person.grants],
    }


def token_object(token: Token) -> dict[str, Any]:
    """Return a token without its secret as a JSON object."""
    return {
        "id": token.id,
        "person": token.person,
        "label": token.label,
        "role": None if token.role is None else str(token.role),
        "dataset": token.dataset,
        "created_at": timestamp(token.created_at),
        "expires_at": timestamp(token.expires_at),
        "last_used_at": None if token.last_used_at is None else timestamp(token.last_used_at),
        "is_revoked": token.is_revoked,
    }


def record_object(record: AuditRecord) -> dict[str, Any]:
    """Return a record of the audit log as a JSON object."""
    return {
        "number": record.number,
        "at": timestamp(record.at),
        "actor": record.actor,
        "action": record.action,
        "dataset": record.resource.dataset,
        "table": record.resource.table,
        "person": record.resource.person,
        "code": record.code,
        "address": record.address,
        "count": record.count,
    }


def timestamp(at: datetime) -> str:
    """Return a time in ISO format, to the second."""
    return at.isoformat(timespec="seconds")


def _person_row(person: Person) -> tuple[str, ...]:
    roles = ", ".join(map(str, person.grants)) or "none"
    return person.name, roles if person.is_active else "removed", timestamp(person.created_at)


def _token_row(token: Token, now: datetime) -> tuple[str, ...]:
    state = "revoked" if token.is_revoked else "expired" if token.expires_at <= now else "valid"
    restricted = " on ".join(part for part in (token.role, token.dataset) if part) or "-"
    used = "never" if token.last_used_at is None else timestamp(token.last_used_at)
    return token.id, token.person, token.label, restricted, timestamp(token.expires_at), used, state


def _record_row(record: AuditRecord) -> tuple[str, ...]:
    return (
        str(record.number),
        timestamp(record.at),
        record.actor or "-",
        record.action,
        str(record.resource),
        record.code,
        str(record.count),
        record.address or "-",
    )
