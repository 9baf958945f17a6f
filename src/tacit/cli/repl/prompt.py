"""The prompt at a terminal: reads, highlights and completes lines, and passes them to the session.

Enter submits a statement that ends with a semicolon and starts a new line otherwise. Ctrl-C discards the input or stops
the running query, Ctrl-D quits. The history is a file in the user's state directory with mode 0600, because queries
name properties of people; if the file cannot be created, the history is kept in memory.

Statement splitting and completion of SQL at the prompt.

Statements end at a semicolon outside of quotes and comments. Completions come from the catalog, which is public.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.styles import Style
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

from tacit.cli.app import describe_error
from tacit.cli.options import folder_argument
from tacit.cli.output import Screen
from tacit.cli.repl.session import COMMANDS, ExitRequested, Session, run_dot_command, with_dot_commands
from tacit.pipeline.interrupts import Interrupted, latest_charge

if TYPE_CHECKING:
    from prompt_toolkit.history import History

    from tacit.cli.backends import Backend
    from tacit.privacy.tables import Table


def is_dot_command(text: str) -> bool:
    """Return whether the input is a dot command."""
    return text.lstrip().startswith(".")


def is_complete(text: str) -> bool:
    """Return whether Enter submits the input: a dot command, blank input, or statements that end with a semicolon."""
    return is_dot_command(text) or not text.strip() or any(map(_is_end, (_tokens(text) or [])[-1:]))


def is_quoted(text: str) -> bool:
    """Return whether the text ends inside quotes or a comment."""
    tokens = _tokens(f"{text};")
    return not tokens or tokens[-1].start != len(text)


def split_statements(text: str) -> list[str]:
    """Return the statements of a text without their semicolons; the last semicolon is optional.

    Text with an open quote or comment is one statement, which the parser refuses.
    """
    tokens = _tokens(text)
    if tokens is None:
        return [text.strip()]
    found, start, is_empty = [], 0, True
    for token in tokens:
        if not _is_end(token):
            is_empty = False
            continue
        if not is_empty:
            found.append(text[start : token.start].strip())
        start, is_empty = token.end + 1, True
    return found if is_empty else [*found, text[start:].strip()]


def _tokens(text: str) -> list[Any] | None:
    """Return the tokens of a text, or None if a quote or comment is not closed."""
    from sqlglot import tokenize
    from sqlglot.errors import TokenError

    try:
        return list(tokenize(text, read="duckdb"))
    except TokenError:
        return None


def _is_end(token: Any) -> bool:
    return bool(token.token_type.name == "SEMICOLON")


KEYWORDS: Final = (
    "SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "AS", "AND", "OR", "NOT", "IN", "BETWEEN",
    "IS NULL", "LIKE", "CASE", "WHEN", "THEN", "ELSE", "END", "JOIN", "LEFT JOIN", "ON", "WITH", "DISTINCT", "DESC",
    "FILTER", "OVER", "PARTITION BY", "ROLLUP", "CUBE", "UNION ALL", "EXISTS", "TRUE", "FALSE", "NULL",
)  # fmt: skip
FUNCTIONS: Final = (
    "COUNT", "SUM", "AVG", "MEDIAN", "QUANTILE", "MIN", "MAX", "MODE", "STDDEV", "VAR_POP", "VAR_SAMP", "CORR", "ROUND",
    "FLOOR", "CEIL", "ABS", "LEAST", "GREATEST", "COALESCE", "CAST", "DATE_TRUNC", "EXTRACT", "YEAR", "MONTH", "DAY",
    "LOWER", "UPPER", "SUBSTRING", "LENGTH", "ROW_NUMBER", "RANK", "LAG", "LEAD",
)  # fmt: skip
_NAME: Final = r'(?:"[^"]*"|\w+)'
_NAMED: Final = re.compile(rf"\b(?:FROM|JOIN)\s+({_NAME})(?:\s+(?:AS\s+)?({_NAME}))?", re.IGNORECASE)
_AFTER_TABLE: Final = re.compile(rf'\b(?:FROM|JOIN)\s+(?:{_NAME}[\w\s]*,\s*)*"?\w*$', re.IGNORECASE)
_OF_TABLE: Final = re.compile(rf'({_NAME})\.("?\w*)$')
_WORD: Final = re.compile(r'"?\w*$')


class SqlCompleter(Completer):
    """Completes dot commands, tables, columns and keywords; `tables` is called each time, as the catalog may change."""

    def __init__(self, tables: Callable[[], Sequence[Table]]) -> None:
        self._tables = tables

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield the completions at the cursor."""
        text = document.text_before_cursor
        if not is_dot_command(text):
            yield from self._complete_sql(text, document.text, complete_event)
            return
        command, space, rest = text.lstrip().partition(" ")
        if not space:
            yield from _matching(command, COMMANDS, ((name, one.description) for name, one in COMMANDS.items()))
        elif command == ".describe":
            yield from _matching(rest, (identifier(one.name) for one in self._tables()))
        elif command == ".confirm":
            yield from _matching(rest, ("on", "off"))
        elif command in (".preview", ".explain"):
            yield from self._complete_sql(rest, document.text, complete_event)

    def _complete_sql(self, text: str, whole: str, event: CompleteEvent) -> Iterator[Completion]:
        if is_quoted(text) and not _WORD.search(text)[0].startswith('"'):  # type: ignore[index]
            return
        tables = {one.name.lower(): one for one in self._tables()}
        if found := _OF_TABLE.search(text):
            table = tables.get(_table_name(found[1], whole))
            yield from _matching(found[2], (identifier(one.name) for one in table.columns) if table else ())
            return
        word = _WORD.search(text)[0]  # type: ignore[index]
        if _AFTER_TABLE.search(text):
            yield from _matching(word, (identifier(one.name) for one in tables.values()))
            return
        if not word and not event.completion_requested:
            return  # no menu after every space
        named = [tables[name] for name in map(_plain, (one[1] for one in _NAMED.finditer(whole))) if name in tables]
        columns = {identifier(one.name): None for table in named or tables.values() for one in table.columns}
        yield from _matching(word, columns)
        yield from _matching(word, (*KEYWORDS, *FUNCTIONS))


def identifier(name: str) -> str:
    """Return a name as an SQL identifier, quoted where necessary."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else '"' + name.replace('"', '""') + '"'


def _matching(typed: str, words: Iterable[str], descriptions: Iterable[tuple[str, str]] = ()) -> Iterator[Completion]:
    meanings, start = dict(descriptions), typed.strip('"').lower()
    for word in words:
        if word.strip('"').lower().startswith(start) and word != typed and word.isprintable():
            yield Completion(word, -len(typed), display_meta=meanings.get(word, ""))


def _table_name(name: str, whole: str) -> str:
    """Return the table of a name before a dot, which may be an alias."""
    aliases = {_plain(found[2]): _plain(found[1]) for found in _NAMED.finditer(whole) if found[2]}
    return aliases.get(_plain(name), _plain(name))


def _plain(name: str) -> str:
    return name.strip('"').lower()


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
CONFIRM: Final = "Run it? [y/N]: "
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
        before = latest_charge()
        try:
            do(session, part)
        except (ExitRequested, BrokenPipeError):
            raise
        except Interrupted as error:
            session.say(str(error))
            return
        except (KeyboardInterrupt, EOFError):  # EOFError: at the confirmation
            is_charged = latest_charge() is not before
            session.say("stopped; what was charged stays charged" if is_charged else "not run; nothing was charged")
            return
        except Exception as error:
            failure = describe_error(error, folder_argument())
            session.screen.say(f"{failure.code} {with_dot_commands(failure.message)}", err=True)
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
