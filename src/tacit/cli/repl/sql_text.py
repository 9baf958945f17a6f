"""Statement splitting and completion of SQL at the prompt.

Statements end at a semicolon outside of quotes and comments. Completions come from the catalog, which is public.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from tacit.cli.repl.session import COMMANDS

if TYPE_CHECKING:
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
