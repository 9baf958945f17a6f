"""`tacit demo`: a tour of an invented clinic, then a server for it.

The clinic on a server for this machine only, with three people and their invented passwords and tokens.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tacit.cli.groups import Command
from tacit.cli.output import Screen
from tacit.privacy.errors import InvalidInput
from tacit.privacy.numbers import DEFAULT_LEVEL

if TYPE_CHECKING:
    from tacit.cli.tour.clinic import Patient
    from tacit.curator import Curator
    from tacit.server.settings import Settings


PORTS_TRIED: Final = 50
TOKEN_DAYS: Final = 1


@dataclass(frozen=True, slots=True)
class DemoPerson:
    """A person of the demo, with the password and token of this run."""

    name: str
    role: str
    password: str
    token: str


def serve_clinic(screen: Screen, folder: Path, port: int) -> None:
    """Create the people, show how to connect, and serve until a signal arrives."""
    from tacit.cli.tour import display
    from tacit.cli.tour.clinic import ANALYST
    from tacit.server.process import serve

    settings = settings_with_free_port(folder, port)
    people = create_people(settings)
    analyst = next(one for one in people if one.name == ANALYST)
    display.show_snippets(screen.console, display.python(str(folder)), display.curl(settings.url, analyst.token))
    moved = f"port {port} is taken" if settings.port != port else ""
    display.show_people(
        screen.console, settings.url, [(one.name, one.role, one.password, one.token) for one in people], moved
    )
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


def create_people(settings: Settings) -> list[DemoPerson]:
    """Create an owner, an analyst and an auditor, each with a fresh password and token."""
    from tacit.cli.tour.clinic import ANALYST, TABLE
    from tacit.server.access import Grant, Role
    from tacit.server.process import open_access

    wanted = {"owner": Grant(Role.OWNER), ANALYST: Grant(Role.ANALYST, TABLE), "auditor": Grant(Role.AUDITOR)}
    people = []
    with open_access(settings) as access:
        for name, grant in wanted.items():
            password = secrets.token_urlsafe(12)
            access.people.add(name, password, is_demo=True)
            access.people.grant(name, grant)
            token = access.tokens.create(name, label="made by tacit demo", days=TOKEN_DAYS).text
            people.append(DemoPerson(name, str(grant.role), password, token))
    return people


PORT: Final = 8321


@click.command("demo", cls=Command)
@click.option("--no-serve", is_flag=True, help="Stop after the tour, without starting a server.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Keep the clinic in this new folder; by default it is deleted at the end.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=PORT,
    show_default=True,
    help="Port of the server; if it is taken, the next free one.",
)
@click.pass_obj
def command(screen: Screen, no_serve: bool, folder: Path | None, port: int) -> None:
    """Tour an invented clinic, then serve it on this machine.

    The patients are the same in every run; the noise is fresh in every run.
    """
    from tacit.cli.tour import display
    from tacit.cli.tour.clinic import create_clinic, invented_patients, require_new_folder

    if folder is not None:
        require_new_folder(folder)
    patients = invented_patients()
    is_served = not (no_serve or screen.as_json)
    with _clinic_folder(folder) as place:
        kept = str(place) if folder or is_served else None
        if not screen.as_json:
            _show_opening(screen, patients)  # before the slow imports
        with create_clinic(place, patients) as curator:
            if screen.as_json:
                screen.show_object(_facts(curator, patients, kept, port))
                return
            _show_steps(screen, curator, patients)
        if not is_served:
            curl = display.curl(f"http://127.0.0.1:{port}", None, kept)
            display.show_snippets(screen.console, display.python(kept), curl)
            display.show_end(screen.console, kept)
            return
        serve_clinic(screen, place, port)


def _show_opening(screen: Screen, patients: list[Patient]) -> None:
    from tacit.cli.tour import display, scenario

    visits = sum(len(one.visits) for one in patients)
    display.show_opening(screen.console, len(patients), visits, scenario.protection_text(len(patients)))
    display.show_question(screen.console, scenario.SQL)


def _show_steps(screen: Screen, curator: Curator, patients: list[Patient]) -> None:
    from tacit.cli.tour import display, scenario
    from tacit.cli.tour.scenario import differencing_attack

    console = screen.console
    first = scenario.first_answer(curator, patients)
    display.show_answer(console, first)
    display.show_cost(console, first)
    display.show_again(console, scenario.repeat_query(curator, first))
    display.show_attack(console, differencing_attack(curator, patients))
    display.show_refusal(console, scenario.exceed_budget(curator))


def _facts(curator: Curator, patients: list[Patient], kept: str | None, port: int) -> dict[str, object]:
    from dataclasses import asdict

    from tacit.cli.tour import clinic, display, scenario
    from tacit.cli.tour.scenario import differencing_attack

    first = scenario.first_answer(curator, patients)
    again = scenario.repeat_query(curator, first)
    attack = differencing_attack(curator, patients)
    refused = scenario.exceed_budget(curator)
    return {
        "invented": True,
        "patients": len(patients),
        "visits": sum(len(one.visits) for one in patients),
        "protected": scenario.protection_text(len(patients)),
        "analyst": clinic.ANALYST,
        "budget": {"epsilon": clinic.EPSILON_ANALYST, "left": refused.left},
        "level": DEFAULT_LEVEL,
        "query": asdict(first),
        "again": asdict(again),
        "attack": asdict(attack),
        "refused": asdict(refused),
        "python": display.python(kept),
        "curl": display.curl(f"http://127.0.0.1:{port}", None, kept),
    }


@contextmanager
def _clinic_folder(folder: Path | None) -> Iterator[Path]:
    """Yield the given folder, or a temporary one."""
    if folder is not None:
        yield folder
        return
    from tempfile import TemporaryDirectory

    with _exit_on_signals(), TemporaryDirectory(prefix="tacit-demo-", ignore_cleanup_errors=True) as made:
        yield Path(made)


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, so that the temporary folder is deleted."""
    import signal
    import sys

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
