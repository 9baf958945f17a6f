"""`tacit access`: who may use the server of a folder, and what for."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.connections import opened_access
from tacit.cli.groups import Group
from tacit.cli.options import access_options, folder_argument, folder_flag, password_options, read_password
from tacit.cli.output import Screen, show_hints, show_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.server.access import Access, AuditRecord, Grant, Person, Token


ROLES: Final = ("owner", "curator", "analyst", "auditor")
RECORDS_SHOWN: Final = 50
RECORDS_MAX: Final = 1000
SHOWN_ONCE: Final = "this is the only time that the token is shown; keep it where only its user can read it"


@click.group("access", cls=Group)
def command() -> None:
    """Manage who may use the server of a folder, and their roles.

    People prove who they are with a password or a token; roles say what they may do, everywhere or on one data set.

    \b
      tacit access people add ana
      tacit access grant ana --role analyst --dataset clinic
      tacit access token create ana --days 30
    """


@command.group(cls=Group)
def people() -> None:
    """Add people, remove them, and see who there is."""


@command.group(cls=Group)
def token() -> None:
    """Make tokens for programs, revoke them, and see which there are."""


@people.command("list")
@access_options
@click.pass_obj
def list_people(screen: Screen, folder: Path, postgres: bool) -> None:
    """List all people with their roles, also those who were removed."""

    with opened_access(folder, postgres) as access:
        show_people(screen, access.people())


@people.command()
@access_options
@click.argument("name")
@password_options(is_optional=True)
@click.pass_obj
def add(screen: Screen, folder: Path, postgres: bool, name: str, password_file: Path | None, no_password: bool) -> None:
    """Add a person, without a role yet; asks for a password."""

    with opened_access(folder, postgres) as access:
        access.add_person(name, read_password(password_file, is_wanted=not no_password))
        facts, hints = person_object(access.person(name)), _hints(access, name, folder)
    show_result(screen, f"added {name}, who has no role yet", facts)
    show_hints(screen, hints)


@people.command()
@access_options
@click.argument("name")
@password_options(is_optional=False)
@click.pass_obj
def password(screen: Screen, folder: Path, postgres: bool, name: str, password_file: Path | None) -> None:
    """Set a new password for a person, who is logged out everywhere."""
    with opened_access(folder, postgres) as access:
        access.set_password(name, read_password(password_file) or "")
    show_result(screen, f"{name} has a new password, and is logged out everywhere", {"name": name})


@people.command()
@access_options
@click.argument("name")
@click.pass_obj
def remove(screen: Screen, folder: Path, postgres: bool, name: str) -> None:
    """Remove a person for good; their tokens and logins end at once."""
    with opened_access(folder, postgres) as access:
        access.remove_person(name)
    show_result(screen, f"removed {name}; the name cannot be used again", {"name": name})


def _on_grant(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments that make up a grant."""
    for option in (
        click.option("--table", help="Only one table of the data set."),
        click.option("--dataset", help="Only one data set; everything if it is left out."),
        click.option("--role", type=click.Choice(ROLES), required=True, help="The role."),
        click.argument("name"),
        access_options,
    ):
        function = option(function)
    return function


@command.command()
@_on_grant
@click.pass_obj
def grant(screen: Screen, /, folder: Path, postgres: bool, name: str, **settings: Any) -> None:
    """Give a person a role.

    \b
      owner     everything, people included; never on a part
      curator   the catalog, budgets, and requests of others
      analyst   questions, within a budget
      auditor   the ledger and the audit, never an answer
    """
    given = _grant(**settings)
    with opened_access(folder, postgres) as access:
        access.grant(name, given)
        facts = _facts(access, name)
    show_result(screen, f"{name} is {given}", facts)


@command.command()
@_on_grant
@click.pass_obj
def withdraw(screen: Screen, /, folder: Path, postgres: bool, name: str, **settings: Any) -> None:
    """Take a role from a person, exactly as it was granted; the last owner keeps theirs."""
    taken = _grant(**settings)
    with opened_access(folder, postgres) as access:
        access.withdraw(name, taken)
        facts = _facts(access, name)
    show_result(screen, f"{name} is no longer {taken}", facts)


@token.command()
@access_options
@click.argument("name")
@click.option("--label", default="", help="What it is for, such as a machine's name.")
@click.option("--days", type=click.IntRange(1, 365), default=90, show_default=True, help="How long it lasts.")
@click.option("--role", type=click.Choice(ROLES), help="Narrow it to what this role may do.")
@click.option("--dataset", help="Narrow it to one data set.")
@click.pass_obj
def create(screen: Screen, /, folder: Path, postgres: bool, name: str, **settings: Any) -> None:
    """Create a token for a person; it has no more rights than they have."""

    with opened_access(folder, postgres) as access:
        made = access.create_token(name, **settings)
    if screen.as_json:
        screen.show_object({"id": made.id, "token": made.text, "expires_at": moment(made.expires_at)})
        return
    screen.console.print(made.text, soft_wrap=True)
    show_hints(
        screen,
        [
            f"{SHOWN_ONCE}; it ends on {made.expires_at:%Y-%m-%d}, or with: "
            f"tacit access token revoke {made.id}{folder_flag(folder)}"
        ],
    )


@token.command("list")
@access_options
@click.argument("name", required=False)
@click.pass_obj
def list_tokens(screen: Screen, folder: Path, postgres: bool, name: str | None) -> None:
    """List the tokens of one person or of all, newest first, without their secrets."""
    from datetime import UTC, datetime

    with opened_access(folder, postgres) as access:
        if name is not None:
            access.person(name)  # refuses a name that nobody has
        show_tokens(screen, access.tokens(name), datetime.now(UTC))


@token.command()
@access_options
@click.argument("id")
@click.pass_obj
def revoke(screen: Screen, folder: Path, postgres: bool, id: str) -> None:
    """End a token at once; ID is its second part, as the list shows it."""
    with opened_access(folder, postgres) as access:
        access.revoke_token(id)
    show_result(screen, f"revoked the token {id}", {"id": id, "is_revoked": True})


@command.command()
@access_options
@click.option(
    "--records",
    type=click.IntRange(1, RECORDS_MAX),
    default=RECORDS_SHOWN,
    show_default=True,
    help="How many records to show.",
)
@click.option("--first", type=click.IntRange(1), help="The number of the first; the newest if it is left out.")
@click.pass_obj
def audit(screen: Screen, folder: Path, postgres: bool, records: int, first: int | None) -> None:
    """Show what was refused and changed, and by whom; changes at this command line have no name."""

    with opened_access(folder, postgres) as access:
        begin = max(1, access.audit_last - records + 1) if first is None else first
        show_audit(screen, access.audit(begin, records))


def _grant(role: str, dataset: str | None, table: str | None) -> Grant:
    from tacit.server.access import Grant, Role

    return Grant(Role(role), dataset, table)


def _facts(access: Access, name: str) -> dict[str, Any]:

    return person_object(access.person(name))


def _hints(access: Access, name: str, folder: Path) -> list[str]:
    """Say what comes next for somebody who was just added."""
    has_owner = any(one.role == "owner" for person in access.people() for one in person.grants)
    role = "analyst --dataset NAME" if has_owner else "owner"
    return [f"give a role with: tacit access grant {name} --role {role}{folder_flag(folder)}"]


PEOPLE: Final = ("name", "may", "since")
TOKENS: Final = ("token", "of", "label", "narrowed to", "expires", "last used", "state")
AUDIT: Final = ("number", "at", "who", "what", "on", "outcome", "times", "from")


def grant_object(grant: Grant) -> dict[str, Any]:
    """A grant for programs."""
    return {"role": str(grant.role), "dataset": grant.dataset, "table": grant.table}


def person_object(person: Person) -> dict[str, Any]:
    """A person for programs."""
    return {
        "name": person.name,
        "is_active": person.is_active,
        "created_at": moment(person.created_at),
        "grants": [grant_object(one) for one in person.grants],
    }


def token_object(token: Token) -> dict[str, Any]:
    """What is known of a token, for programs."""
    return {
        "id": token.id,
        "person": token.person,
        "label": token.label,
        "role": None if token.role is None else str(token.role),
        "dataset": token.dataset,
        "created_at": moment(token.created_at),
        "expires_at": moment(token.expires_at),
        "last_used_at": None if token.last_used_at is None else moment(token.last_used_at),
        "is_revoked": token.is_revoked,
    }


def record_object(record: AuditRecord) -> dict[str, Any]:
    """A record of the audit for programs."""
    return {
        "number": record.number,
        "at": moment(record.at),
        "actor": record.actor,
        "action": record.action,
        "dataset": record.resource.dataset,
        "table": record.resource.table,
        "person": record.resource.person,
        "code": record.code,
        "address": record.address,
        "count": record.count,
    }


def show_people(screen: Screen, people: list[Person]) -> None:
    """Show people as a table, or say that there is nobody."""
    if screen.as_json:
        screen.show_object({"people": [person_object(one) for one in people]})
    elif people:
        screen.show_table(PEOPLE, [(one.name, _rights(one), moment(one.created_at)) for one in people])
    else:
        words = "" if (folder := folder_argument()) is None else folder_flag(Path(folder))
        screen.console.print(f"no one was added yet; add the first person with: tacit access people add NAME{words}")


def show_tokens(screen: Screen, tokens: list[Token], now: datetime) -> None:
    """Show tokens as a table, without their secrets, which nobody knows any more."""
    if screen.as_json:
        screen.show_object({"tokens": [token_object(one) for one in tokens]})
    elif tokens:
        screen.show_table(TOKENS, [_token_row(one, now) for one in tokens])
    else:
        screen.console.print("there are no tokens")


def show_audit(screen: Screen, records: list[AuditRecord]) -> None:
    """Show records of the audit as a table."""
    if screen.as_json:
        screen.show_object({"records": [record_object(one) for one in records]})
    elif records:
        screen.show_table(AUDIT, [_record_row(one) for one in records])
    else:
        screen.console.print("nothing was refused or changed yet")


def moment(at: datetime) -> str:
    """A time to the second."""
    return at.isoformat(timespec="seconds")


def _rights(person: Person) -> str:
    if not person.is_active:
        return "removed"
    return ", ".join(map(str, person.grants)) or "nothing yet"


def _token_row(token: Token, now: datetime) -> tuple[str, ...]:
    state = "revoked" if token.is_revoked else "expired" if token.expires_at <= now else "valid"
    narrowed = " on ".join(part for part in (token.role, token.dataset) if part) or "-"
    used = "never" if token.last_used_at is None else moment(token.last_used_at)
    return token.id, token.person, token.label, narrowed, moment(token.expires_at), used, state


def _record_row(record: AuditRecord) -> tuple[str, ...]:
    return (
        str(record.number),
        moment(record.at),
        record.actor or "-",
        record.action,
        str(record.resource),
        record.code,
        str(record.count),
        record.address or "-",
    )
