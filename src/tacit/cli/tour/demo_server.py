"""The clinic on a server for this machine only, with three people and their invented passwords and tokens."""

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
class DemoAccount:
    """A person of the demo, with the password and token of this run."""

    name: str
    role: str
    password: str
    token: str


def serve_clinic(screen: Screen, folder: Path, port: int) -> None:
    """Create the people, show how to connect, and serve until a signal arrives."""
    from tacit.server.process import serve

    settings = settings_with_free_port(folder, port)
    accounts = create_accounts(settings)
    analyst = next(one for one in accounts if one.name == ANALYST)
    display.show_snippets(screen.console, display.python(str(folder)), display.curl(settings.url, analyst.token))
    moved = f"port {port} is taken" if settings.port != port else ""
    display.show_people(screen.console, settings.url, [(a.name, a.role, a.password, a.token) for a in accounts], moved)
    screen.console.file.flush()
    serve(settings)


def settings_with_free_port(folder: Path, port: int) -> Settings:
    """Return the settings of a server for this machine only, on the given port or the next free one."""
    from tacit.server.process import free_port
    from tacit.server.settings import Settings

    for tried in range(port, min(port + PORTS_TRIED, 65536)):
        try:
            return free_port(Settings(folder=folder, port=tried))
        except InvalidInput:
            continue
    return free_port(Settings(folder=folder, port=0))


def create_accounts(settings: Settings) -> list[DemoAccount]:
    """Create an owner, an analyst and an auditor, each with a fresh password and token."""
    from tacit.server.access import Grant, Role
    from tacit.server.process import open_access

    wanted = {"owner": Grant(Role.OWNER), ANALYST: Grant(Role.ANALYST, TABLE), "auditor": Grant(Role.AUDITOR)}
    accounts = []
    with open_access(settings) as access:
        for name, grant in wanted.items():
            password = secrets.token_urlsafe(12)
            access.people.add(name, password, is_demo=True)
            access.people.grant(name, grant)
            token = access.tokens.create(name, label="made by tacit demo", days=TOKEN_DAYS).text
            accounts.append(DemoAccount(name, str(grant.role), password, token))
    return accounts
