"""The clinic behind a server: three people who may log in, with what was invented for them, on this machine only."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tacit.cli.output import Screen
from tacit.cli.tour import display
from tacit.cli.tour.clinic import ANALYST, TABLE
from tacit.privacy.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.server.settings import Settings


PORTS_TRIED: Final = 50
TOKEN_DAYS: Final = 1


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody who may log in, with what to prove it; made up in this run."""

    name: str
    role: str
    password: str
    token: str


def serve_clinic(screen: Screen, folder: Path, port: int) -> None:
    """Make the people, say how to ask, and serve until a signal comes."""
    from tacit.server.process import serve

    settings = settings_with_free_port(folder, port)
    accounts = invented_accounts(settings)
    analyst = next(one for one in accounts if one.name == ANALYST)
    display.show_snippets(screen.console, display.python(str(folder)), display.curl(settings.url, analyst.token))
    moved = f"port {port} is taken, so it is {settings.port}" if settings.port != port else ""
    display.show_people(screen.console, settings.url, [(a.name, a.role, a.password, a.token) for a in accounts], moved)
    screen.console.file.flush()
    serve(settings)


def settings_with_free_port(folder: Path, port: int) -> Settings:
    """Return settings of a server for this machine only, at a port that is free: the wanted one, or one soon after."""
    from tacit.server.process import free_port
    from tacit.server.settings import Settings

    for tried in range(port, min(port + PORTS_TRIED, 65536)):
        try:
            return free_port(Settings(folder=folder, port=tried))
        except InvalidInput:
            continue
    return free_port(Settings(folder=folder, port=0))


def invented_accounts(settings: Settings) -> list[Account]:
    """Make an owner, the analyst and an auditor, each with a password and a token that nobody has had before."""
    from tacit.server.access import Grant, Role
    from tacit.server.process import opened_access

    wanted = {"owner": Grant(Role.OWNER), ANALYST: Grant(Role.ANALYST, TABLE), "auditor": Grant(Role.AUDITOR)}
    accounts = []
    with opened_access(settings) as access:
        for name, grant in wanted.items():
            password = secrets.token_urlsafe(12)
            access.add_person(name, password, is_demo=True)
            access.grant(name, grant)
            token = access.create_token(name, label="made by tacit demo", days=TOKEN_DAYS).text
            accounts.append(Account(name, str(grant.role), password, token))
    return accounts
