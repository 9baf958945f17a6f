"""The prompt at a terminal: reads, highlights, completes, and hands every line to the session.

Enter ends a statement that ends with a semicolon and begins a new line otherwise. Ctrl-C drops what is typed or stops
what runs, Ctrl-D leaves. The history is a file in the user's own state directory with mode 0600, because queries name
properties of people; where no such file can be had, it lasts as long as the prompt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.styles import Style
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

from tacit.cli.error_messages import describe_error
from tacit.cli.options import folder_argument
from tacit.cli.output import Screen
from tacit.cli.repl.session import ExitRequested, Session, run_dot_command
from tacit.cli.repl.sql_text import SqlCompleter, is_complete, is_dot_command, split_statements
from tacit.pipeline.interrupts import Interrupted

if TYPE_CHECKING:
    from prompt_toolkit.history import History

    from tacit.cli.backends import Backend


FILE: Final = "history"


def history_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the history lies: below XDG_STATE_HOME, or where that is by custom."""
    stated = environment.get("XDG_STATE_HOME", "")
    base = Path(stated) if os.path.isabs(stated) else Path.home() / ".local" / "state"
    return base / "tacit" / FILE


def history() -> History:
    """Return the history to read from and to write to."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    try:
        path = history_path()
        create_private(path)
    except (OSError, RuntimeError):  # RuntimeError: nobody knows where the home directory is
        return InMemoryHistory()
    return FileHistory(path)


def create_private(path: Path) -> None:
    """Make the file if it is missing, and close it to everybody but its owner; a link is not followed."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(handle, 0o600)
    finally:
        os.close(handle)


MESSAGE: Final = "tacit> "
CONFIRM: Final = "Run it? [Enter = yes, n = no]: "
STYLE: Final = Style.from_dict(
    {  # the terminal's own colours, so that they are readable on what it has behind them
        "prompt": "bold ansicyan",
        "consent": "bold",
        "pygments.keyword": "bold",
        "pygments.name.builtin": "bold",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansimagenta",
        "pygments.comment": "italic",
        "bottom-toolbar": "noreverse",
    }
)


def run_repl(screen: Screen, backend: Backend, asked: Mapping[str, Any], **settings: Any) -> None:
    """Answer whoever types until they leave."""
    keyboard: PromptSession[str] = PromptSession()
    session = Session(
        backend, screen, lambda: keyboard.prompt([("class:consent", CONFIRM)], style=STYLE), dict(asked), **settings
    )
    lines: PromptSession[str] = PromptSession(
        [("class:prompt", MESSAGE)],
        style=STYLE,
        history=history(),
        include_default_pygments_style=False,
        lexer=PygmentsLexer(SqlLexer),
        completer=SqlCompleter(backend.tables),
        complete_in_thread=True,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation=lambda width, _line, _wrapped: "...".rjust(width - 1) + " ",
        bottom_toolbar=lambda: _state(session),
    )
    session.say(f"{backend.location}: end a query with ; and quit with Ctrl-D; .help lists the commands")
    if not session.price:
        session.say("set the price of a query first, for example: .epsilon 0.5")
    while True:
        try:
            text = lines.prompt()
        except KeyboardInterrupt:
            continue  # what was typed is dropped
        except EOFError:
            return
        try:
            execute(session, text)
        except ExitRequested:
            return


def execute(session: Session, text: str) -> None:
    """Do what was typed: one command, or statements one after another; the first that fails ends them."""
    parts: list[tuple[Callable[[Session, str], None], str]]
    parts = (
        [(run_dot_command, text)] if is_dot_command(text) else [(Session.ask, one) for one in split_statements(text)]
    )
    for do, part in parts:
        try:
            do(session, part)
        except (ExitRequested, BrokenPipeError):
            raise
        except Interrupted as error:
            session.say(str(error))
            return
        except (KeyboardInterrupt, EOFError):  # instead of consent
            session.say("not run; nothing was charged")
            return
        except Exception as error:
            failure = describe_error(error, folder_argument())
            message = re.sub(r"--(epsilon|rho|error|analyst)\b", r".\1", failure.message)  # as they are typed here
            click.echo(f"{failure.code} {message}", err=True)
            return


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _end_or_go_on(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("enter", filter=completion_is_selected)
    def _take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return keys


def _state(session: Session) -> str:
    who = f"analyst {session.analyst}" if session.analyst else "no analyst"
    price = f"price {session.price}" if session.price else "no price set: .epsilon 0.5"
    return f" {who} · {price}" + ("" if session.asks_confirmation else " · without confirmation")
