"""`tacit access`: who may use the server of a folder, and what for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.catalog.place import folder_words, hinted, said
from tacit.cli.kit import Group, Screen
from tacit.cli.people.place import asked_password, on_people, opened_access, password_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.server.access import Access, Grant

ROLES: Final = ("owner", "curator", "analyst", "auditor")
RECORDS_SHOWN: Final = 50
RECORDS_MAX: Final = 1000
SHOWN_ONCE: Final = "this is the only time that the token is shown; keep it where only its user can read it"


@click.group("access", cls=Group)
def command() -> None:
    """Say who may use the server of a folder, and what for.

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
@on_people
@click.pass_obj
def list_people(screen: Screen, folder: Path, postgres: bool) -> None:
    """List everybody with what they may do; those who were removed, too."""
    from tacit.cli.people.views import show_people

    with opened_access(folder, postgres) as access:
        show_people(screen, access.people())


@people.command()
@on_people
@click.argument("name")
@password_options(is_optional=True)
@click.pass_obj
def add(screen: Screen, folder: Path, postgres: bool, name: str, password_file: Path | None, no_password: bool) -> None:
    """Make somebody known, without any role yet; the password is asked for."""
    from tacit.cli.people.views import person_object

    with opened_access(folder, postgres) as access:
        access.add_person(name, asked_password(password_file, is_wanted=not no_password))
        facts, hints = person_object(access.person(name)), _hints(access, name, folder)
    said(screen, f"{name} is known now, and may do nothing yet", facts)
    hinted(screen, hints)


@people.command()
@on_people
@click.argument("name")
@password_options(is_optional=False)
@click.pass_obj
def password(screen: Screen, folder: Path, postgres: bool, name: str, password_file: Path | None) -> None:
    """Give somebody a new password; whoever is logged in under the old one is logged out."""
    with opened_access(folder, postgres) as access:
        access.set_password(name, asked_password(password_file) or "")
    said(screen, f"{name} has a new password, and is logged out everywhere", {"name": name})


@people.command()
@on_people
@click.argument("name")
@click.pass_obj
def remove(screen: Screen, folder: Path, postgres: bool, name: str) -> None:
    """Take every right from somebody, at once and for good; tokens and logins end."""
    with opened_access(folder, postgres) as access:
        access.remove_person(name)
    said(screen, f"{name} has no rights any more, and the name is not given to another", {"name": name})


def _on_grant(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments that make up a grant."""
    for option in (
        click.option("--table", help="Only one table of the data set."),
        click.option("--dataset", help="Only one data set; everything if it is left out."),
        click.option("--role", type=click.Choice(ROLES), required=True, help="What somebody is to the data."),
        click.argument("name"),
        on_people,
    ):
        function = option(function)
    return function


@command.command()
@_on_grant
@click.pass_obj
def grant(screen: Screen, /, folder: Path, postgres: bool, name: str, **settings: Any) -> None:
    """Give somebody a role.

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
    said(screen, f"{name} is {given}", facts)


@command.command()
@_on_grant
@click.pass_obj
def withdraw(screen: Screen, /, folder: Path, postgres: bool, name: str, **settings: Any) -> None:
    """Take a role back, exactly as it was granted; the last owner stays one."""
    taken = _grant(**settings)
    with opened_access(folder, postgres) as access:
        access.withdraw(name, taken)
        facts = _facts(access, name)
    said(screen, f"{name} is no longer {taken}", facts)


@token.command()
@on_people
@click.argument("name")
@click.option("--label", default="", help="What it is for, such as a machine's name.")
@click.option("--days", type=click.IntRange(1, 365), default=90, show_default=True, help="How long it lasts.")
@click.option("--role", type=click.Choice(ROLES), help="Narrow it to what this role may do.")
@click.option("--dataset", help="Narrow it to one data set.")
@click.pass_obj
def create(screen: Screen, /, folder: Path, postgres: bool, name: str, **settings: Any) -> None:
    """Make a token that stands for somebody; it may do no more than they may."""
    from tacit.cli.people.views import moment

    with opened_access(folder, postgres) as access:
        made = access.create_token(name, **settings)
    if screen.as_json:
        screen.show_object({"id": made.id, "token": made.text, "expires_at": moment(made.expires_at)})
        return
    screen.console.print(made.text, soft_wrap=True)
    hinted(
        screen,
        [
            f"{SHOWN_ONCE}; it ends on {made.expires_at:%Y-%m-%d}, or with: "
            f"tacit access token revoke {made.id}{folder_words(folder)}"
        ],
    )


@token.command("list")
@on_people
@click.argument("name", required=False)
@click.pass_obj
def list_tokens(screen: Screen, folder: Path, postgres: bool, name: str | None) -> None:
    """List the tokens of somebody or of everybody, newest first, without their secrets."""
    from datetime import UTC, datetime

    from tacit.cli.people.views import show_tokens

    with opened_access(folder, postgres) as access:
        if name is not None:
            access.person(name)  # refuses a name that nobody has
        show_tokens(screen, access.tokens(name), datetime.now(UTC))


@token.command()
@on_people
@click.argument("id")
@click.pass_obj
def revoke(screen: Screen, folder: Path, postgres: bool, id: str) -> None:
    """End a token at once; ID is its second part, as the list shows it."""
    with opened_access(folder, postgres) as access:
        access.revoke_token(id)
    said(screen, f"the token {id} is worth nothing any more", {"id": id, "is_revoked": True})


@command.command()
@on_people
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
    """Show what was refused and what was changed, and by whom; nobody stands for this command line."""
    from tacit.cli.people.views import show_audit

    with opened_access(folder, postgres) as access:
        begin = max(1, access.audit_last - records + 1) if first is None else first
        show_audit(screen, access.audit(begin, records))


def _grant(role: str, dataset: str | None, table: str | None) -> Grant:
    from tacit.server.access import Grant, Role

    return Grant(Role(role), dataset, table)


def _facts(access: Access, name: str) -> dict[str, Any]:
    from tacit.cli.people.views import person_object

    return person_object(access.person(name))


def _hints(access: Access, name: str, folder: Path) -> list[str]:
    """Say what comes next for somebody who was just added."""
    has_owner = any(one.role == "owner" for person in access.people() for one in person.grants)
    role = "analyst --dataset NAME" if has_owner else "owner"
    return [f"give a role with: tacit access grant {name} --role {role}{folder_words(folder)}"]
