"""`tacit demo`: an invented clinic, what an analyst gets to know of it, and a server to try it on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tacit.cli.groups import Command
from tacit.cli.output import Screen
from tacit.privacy.numbers import DEFAULT_LEVEL

if TYPE_CHECKING:
    from tacit.cli.tour.clinic import Patient
    from tacit.curator import Curator

PORT: Final = 8321


@click.command("demo", cls=Command)
@click.option("--no-serve", is_flag=True, help="End after the tour, as with --json.")
@click.option("--folder", type=click.Path(path_type=Path), help="Keep the clinic in this new folder.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=PORT,
    show_default=True,
    help="Where to serve; if it is taken, the next free one.",
)
@click.pass_obj
def command(screen: Screen, no_serve: bool, folder: Path | None, port: int) -> None:
    """Take a tour of an invented clinic, then serve it on this machine.

    The people are the same in every run; the noise comes from the operating system and never repeats.
    """
    from tacit.cli.tour import display
    from tacit.cli.tour.clinic import create_clinic, invented_patients

    patients = invented_patients()
    is_served = not (no_serve or screen.as_json)
    with _place(folder) as place:
        kept = str(place) if folder or is_served else None
        if not screen.as_json:
            _open(screen, patients)  # before the heavy libraries are loaded, so that there is something to read
        with create_clinic(place, patients) as curator:
            if screen.as_json:
                screen.show_object(_facts(curator, patients, kept, port))
                return
            _show(screen, curator, patients)
        if not is_served:
            from tacit.cli.tour import display

            display.show_snippets(screen.console, display.python(kept), display.curl(f"http://127.0.0.1:{port}", None))
            display.show_end(screen.console)
            return
        from tacit.cli.tour.demo_server import serve_clinic

        serve_clinic(screen, place, port)


def _open(screen: Screen, patients: list[Patient]) -> None:
    from tacit.cli.tour import display, scenario

    visits = sum(len(one.visits) for one in patients)
    display.show_opening(screen.console, len(patients), visits, scenario.protected(len(patients)))
    display.show_question(screen.console, scenario.SQL)


def _show(screen: Screen, curator: Curator, patients: list[Patient]) -> None:
    from tacit.cli.tour import display, scenario
    from tacit.cli.tour.scenario import differencing

    console = screen.console
    first = scenario.first_answer(curator, patients)
    display.show_answer(console, first)
    display.show_cost(console, first)
    display.show_again(console, scenario.ask_again(curator, first))
    display.show_attack(console, differencing(curator, patients))
    display.show_refusal(console, scenario.ask_too_much(curator))


def _facts(curator: Curator, patients: list[Patient], kept: str | None, port: int) -> dict[str, object]:
    from dataclasses import asdict

    from tacit.cli.tour import clinic, display, scenario
    from tacit.cli.tour.scenario import differencing

    first = scenario.first_answer(curator, patients)
    again = scenario.ask_again(curator, first)
    attack = differencing(curator, patients)
    refused = scenario.ask_too_much(curator)
    return {
        "invented": True,
        "patients": len(patients),
        "visits": sum(len(one.visits) for one in patients),
        "protected": scenario.protected(len(patients)),
        "analyst": clinic.ANALYST,
        "budget": {"epsilon": clinic.EPSILON_ANALYST, "left": refused.left},
        "level": DEFAULT_LEVEL,
        "question": asdict(first),
        "again": asdict(again),
        "attack": asdict(attack),
        "refused": asdict(refused),
        "python": display.python(kept),
        "curl": display.curl(f"http://127.0.0.1:{port}", None),
    }


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    """Give the clinic a place: the folder that was named, or one that is gone afterwards."""
    if folder is not None:
        yield folder
        return
    from tempfile import TemporaryDirectory

    with _exit_on_signals(), TemporaryDirectory(prefix="tacit-demo-", ignore_cleanup_errors=True) as made:
        yield Path(made)


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Let a signal that ends the process end it like any other way, so that the clinic is gone then, too."""
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
