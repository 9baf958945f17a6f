"""Bounds and keys as they are typed after a statistic, stated of the columns that it is about.

They hold for this one question and change nothing in the catalog. Any of them is private: they decide how exact an
answer is, and must be chosen without looking at the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tacit.cli.catalog.values import bounds_of, categories_of
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, NotInCatalog, TooLarge
from tacit.privacy.facts import fitted
from tacit.privacy.tables import Kind, Table
from tacit.stats.rows import EDGES_MAX

EXAMPLES: Final = {"bounds": "0:120", "keys": "A,B,C"}


LEARN: Final = "learn"


def stated(
    table: Table, columns: Sequence[str], groups: Sequence[str], bounds: Sequence[str], keys: Sequence[str]
) -> tuple[Table, list[str]]:
    """Return the table with what is said of its columns put into the place of what the catalog says.

    Beside it stand the columns whose bounds are to be learnt.
    """
    asked = [*columns, *groups]
    facts: dict[str, Bounds | Categories] = {}
    learnt: list[str] = []
    for text in bounds:
        name, value = _parted(table, "bounds", asked, columns, text)
        if value.lower() == LEARN:
            learnt.append(name)
        else:
            facts[name] = bounds_of(name, table.column(name).kind, value)
    for text in keys:
        name, value = _parted(table, "keys", asked, groups or columns, text)
        if name in facts or name in learnt:
            raise InvalidInput(f"{name} has bounds or keys, not both", name="keys", value=text)
        facts[name] = categories_of(name, table.column(name).kind, value)
    return with_facts(table, facts), learnt


def edges_of(kind: Kind, text: str) -> list[Any]:
    """Read edges with commas between them: numbers, or dates and times in ISO form."""
    if text.count(",") >= EDGES_MAX:
        raise TooLarge(f"at most {EDGES_MAX:,} edges are compared one by one; say --bins", name="edges")
    return [part.strip() for part in text.split(",")] if kind in (Kind.DATE, Kind.TIME) else numbers_of("edges", text)


def numbers_of(what: str, text: str) -> list[int | float]:
    """Read numbers with commas between them."""
    return [_number(what, part) for part in text.split(",")]


def with_facts(table: Table, facts: Mapping[str, Bounds | Categories]) -> Table:
    """Return a table of whose columns other facts are stated, by the names that the table has for them."""
    return replace(
        table,
        columns=tuple(
            replace(one, facts=fitted(one.name, one.kind, facts[one.name])) if one.name in facts else one
            for one in table.columns
        ),
    )


def _parted(table: Table, what: str, asked: Sequence[str], candidates: Sequence[str], text: str) -> tuple[str, str]:
    """Part "column=value"; without a column it is about the only candidate."""
    for name in sorted({table.column(one).name for one in asked}, key=len, reverse=True):
        if text.lower().startswith(f"{name.lower()}=") and text[len(name) + 1 :].strip():
            return name, text[len(name) + 1 :].strip()
    example = f"--{what} COLUMN={EXAMPLES[what]}"
    if "=" in text:
        name = text.partition("=")[0]
        raise NotInCatalog(
            f"{name} is not among the columns that are asked about, {', '.join(asked)}; write {example}",
            name=what,
            value=text,
        )
    if len(candidates) != 1:
        raise InvalidInput(f"say of which column {text!r} are the {what}: {example}", name=what, value=text)
    return table.column(candidates[0]).name, text


def _number(what: str, text: str) -> int | float:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    raise InvalidInput(f"{what} are numbers with commas between them, such as 0,18,65, not {text!r}", name=what)
