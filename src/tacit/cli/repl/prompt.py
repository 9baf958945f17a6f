"""The prompt at a terminal: reads, highlights and completes lines, and passes them to the session.

Enter submits a statement that ends with a semicolon and starts a new line otherwise. Ctrl-C discards the input or stops
the running query, Ctrl-D quits. The history is a file in the user's state directory with mode 0600, because queries
name properties of people; if the file cannot be created, the history is kept in memory.
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
    """Return the path of the history, below XDG_STATE_HOME or its default."""
    stated = environment.get("XDG_STATE_HOME", "")
    base = Path(stated) if os.path.isabs(stated) else Path.home() / ".local" / "state"
    return base / "tacit" / FILE


def history() -> History:
    """Return the history of the prompt: a file, or memory if it cannot be created."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    try:
        path = history_path()
        create_private(path)
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return InMemoryHistory()
    return FileHistory(path)


def create_private(path: Path) -> None:
    """Create the file if it is missing, with mode 0600; a symbolic link is not followed."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(handle, 0o600)
    finally:
        os.close(handle)


MESSAGE: Final = "tacit> "
CONFIRM: Final = "Run it? [Enter = yes, n = no]: "
STYLE: Final = Style.from_dict(
    {  # the terminal's own colours, which are readable on its background
        "prompt": "bold ansicyan",
        "confirm": "bold",
        "pygments.keyword": "bold",
        "pygments.name.builtin": "bold",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansimagenta",
        "pygments.comment": "italic",
        "bottom-toolbar": "noreverse",
    }
)


def run_repl(screen: Screen, backend: Backend, options: Mapping[str, Any], **settings: Any) -> None:
    """Read and run lines until the user quits."""
    keyboard: PromptSession[str] = PromptSession()
    session = Session(
        backend, screen, lambda: keyboard.prompt([("class:confirm", CONFIRM)], style=STYLE), dict(options), **settings
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
        bottom_toolbar=lambda: _toolbar(session),
    )
    session.say(f"{backend.location}: end a query with ; and quit with Ctrl-D; .help lists the commands")
    if not session.cost:
        session.say("set the privacy cost of a query first, for example: .epsilon 0.5")
    while True:
        try:
            text = lines.prompt()
        except KeyboardInterrupt:
            continue  # discards the input
        except EOFError:
            return
        try:
            execute(session, text)
        except ExitRequested:
            return


def execute(session: Session, text: str) -> None:
    """Run one dot command, or statements until the first that fails."""
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
        except (KeyboardInterrupt, EOFError):  # at the confirmation
            session.say("not run; nothing was charged")
            return
        except Exception as error:
            failure = describe_error(error, folder_argument())
            message = re.sub(r"--(epsilon|rho|error|analyst)\b", r".\1", failure.message)  # as dot commands
            click.echo(f"{failure.code} {message}", err=True)
            return


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _submit_or_break_line(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("enter", filter=completion_is_selected)
    def _accept_completion(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return keys


def _toolbar(session: Session) -> str:
    who = f"analyst {session.analyst}" if session.analyst else "no analyst"
    cost = f"cost {session.cost} per query" if session.cost else "no cost set: .epsilon 0.5"
    return f" {who} · {cost}" + ("" if session.asks_confirmation else " · no confirmation")
