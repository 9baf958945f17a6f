"""Bounds, keys and bins as they are typed after a statistic.

Bounds and keys hold for this one question and change nothing in the catalog. They decide how exact an answer is, and
must be chosen without looking at the data.

    --bins age=12            equal parts of the bounds, which are stated by --bounds or in the catalog
    --bins age=0:120:12      the same with bounds of their own
    --bins day=month         days, months or years between the bounds of dates
    --edges age=0,18,65,120  bins between edges
    --keys ward=a,b,c        listed values

Without any of them a column has the values that the catalog lists, or a default number of equal parts of its bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from tacit.cli.value_parsing import bounds_of, categories_of, pair_of
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, NotBounded, NotInCatalog, TooLarge, TooWide, WrongKind
from tacit.privacy.tables import Column as Declared
from tacit.privacy.tables import Kind, Table, fit_facts
from tacit.stats.cells import DATES_MAX, Partition, edge_of, ends_of
from tacit.stats.cells import edges_of as checked_edges
from tacit.stats.rows import EDGES_MAX, Cut
from tacit.stats.workloads import date_edges
from tacit.stats.workloads.query_sets import PERIODS, cells_between

if TYPE_CHECKING:
    from tacit.stats import TableColumn


EXAMPLES: Final = {"bounds": "0:120", "keys": "A,B,C"}
LEARN: Final = "learn"


def stated_facts(
    table: Table, columns: Sequence[str], groups: Sequence[str], bounds: Sequence[str], keys: Sequence[str]
) -> tuple[dict[str, Bounds | Categories], list[str]]:
    """Return the bounds and categories that are stated of columns, and the columns whose bounds are to be learnt."""
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
    return facts, learnt


def edges_of(kind: Kind, text: str) -> list[Any]:
    """Read edges with commas between them: numbers, or dates and times in ISO form."""
    if text.count(",") >= EDGES_MAX:
        raise TooLarge(f"at most {EDGES_MAX:,} edges are compared one by one; say --bins", name="edges")
    return [part.strip() for part in text.split(",")] if kind in (Kind.DATE, Kind.TIME) else numbers_of("edges", text)


def numbers_of(what: str, text: str) -> list[int | float]:
    """Read numbers with commas between them."""
    return [_number(what, part) for part in text.split(",")]


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


PARTS: Final[Mapping[str, Literal["day", "month", "year"]]] = {"day": "day", "month": "month", "year": "year"}
LONGER: Final = "count by longer periods, --bins month or --bins year, or within narrower bounds"


def domain_of(
    columns: Sequence[TableColumn], bins: Sequence[str], edges: Sequence[str], most: int, *, by_period: bool = False
) -> dict[str, Any]:
    """Return the cells of each column; `most` is how many a column has of which only bounds are known.

    Where cells are grouped `by_period`, they are days, months or years: equal parts would lie in two periods at once.
    """
    stated = {name: ("edges", text) for name, text in _by_column(columns, edges, "edges")}
    for name, text in _by_column(columns, bins, "bins"):
        if name in stated:
            raise InvalidInput(f"{name} has bins or edges, not both", name="bins", value=text)
        if by_period and text.rpartition(":")[2] not in PARTS:
            raise InvalidInput(f"the bins of {name} are grouped by period: they are day, month or year", name="bins")
        stated[name] = ("bins", text)
    return {one.declared.name: _cells(one.declared, *stated.get(one.declared.name, ("", "")), most) for one in columns}


def levels_of(texts: Sequence[str]) -> list[str | dict[str, str]]:
    """Read the levels of a hierarchy: periods, or "child=parent" with commas between them, or a file of such pairs."""
    found: list[str | dict[str, str]] = []
    for text in texts:
        if "=" in text or text.startswith("@"):
            found.append(_mapping(text))
        else:
            found += [part.strip() for part in text.split(",")]
    for one in found:
        if isinstance(one, str) and one not in PERIODS:
            raise InvalidInput(
                f"a level is {', '.join(PERIODS)}, or groups of values: a=north,b=north,c=south, not {one!r}",
                name="level",
                value=one,
            )
    return found


def picked(column: TableColumn, cells: Any, texts: Sequence[str]) -> list[tuple[Any, Any]]:
    """Read ranges of cells, and refuse those that begin or end within one: before anything is charged."""
    declared = column.declared
    cut = cut_of(declared, cells)
    found = []
    for text in texts:
        if cut.values:
            low, _, high = text.partition(":")
            pair = tuple(_listed(cut, part.strip()) for part in (low, high))
        else:
            bounds = bounds_of(declared.name, declared.kind, text)
            pair = tuple(edge_of(declared.name, declared.kind, end) for end in (bounds.lower, bounds.upper))
        cells_between(cut, *pair)
        found.append((pair[0], pair[1]))
    return found


def below(column: TableColumn, cells: Any, texts: Sequence[str]) -> list[tuple[Any, Any]]:
    """Read the ends of ranges that begin with the first cell."""
    cut = cut_of(column.declared, cells)
    start = cut.values[0] if cut.values else cut.edges[0]
    shown = start.isoformat() if isinstance(start, date) else start
    return picked(column, cells, [f"{shown}:{text}" for text in texts])


def cut_of(declared: Declared, cells: Any) -> Cut:
    """Return cells as a partition of a column."""
    facts = cells if isinstance(cells, Categories) else declared.facts
    if cells is not None and not isinstance(cells, Categories):
        return Cut(declared.name, edges=tuple(cells))
    if isinstance(facts, Categories):
        return Cut(declared.name, values=facts.values)
    return Cut(declared.name, values=(False, True))


def _cells(declared: Declared, what: str, text: str, most: int) -> Any:
    """Return the edges of a column's cells, or None for those whose values are listed."""
    name, kind = declared.name, declared.kind
    if what == "edges":
        return list(checked_edges(name, kind, edges_of(kind, text)))
    if what == "" and (isinstance(declared.facts, Categories) or kind is Kind.BOOLEAN):
        return None
    low, _, count = text.rpartition(":")
    bounds = fit_facts(name, kind, bounds_of(name, kind, low)) if low else declared.facts
    if not isinstance(bounds, Bounds):
        if kind in (Kind.TEXT, Kind.BOOLEAN):
            accepted = f"--keys {name}=A,B,C, listed without looking at the data"
            raise NotBounded(
                f"the values of {name} are not public, and showing one could give a person away", accepted=accepted
            )
        raise NotBounded(f"nothing public limits {name}", accepted=f"--bins {name}=0:120:12, chosen without looking")
    if count in PARTS:
        if kind not in (Kind.DATE, Kind.TIME):
            raise WrongKind(f"{name} holds {kind} values, and only dates have {count}s")
        first, last = (_day(end) for end in ends_of(name, kind, bounds))
        days = date_edges(first, last + timedelta(days=1), PARTS[count])
        if len(days) > DATES_MAX + 1:
            raise TooWide(
                f"{name} has {len(days) - 1:,} {count}s, and at most {DATES_MAX:,} are counted", accepted=LONGER
            )
        return [edge_of(name, kind, day) for day in days]
    return list(Partition.of(name, kind, bounds, _count(name, count) if count else most, even=bool(count)).edges)


def _day(end: float | date) -> date:
    assert isinstance(end, date)
    return end.date() if isinstance(end, datetime) else end


def _count(name: str, text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= 1_000_000:
        raise InvalidInput(
            f"the bins of {name} are a number of them, 12, with bounds, 0:120:12, or day, month or year, not {text!r}",
            name="bins",
            value=text,
        )
    return int(text)


def _by_column(columns: Sequence[TableColumn], texts: Sequence[str], what: str) -> list[tuple[str, str]]:
    """Part "column=value"; without a column it is about the only one."""
    names = {one.declared.name.lower(): one.declared.name for one in columns}
    found = []
    for text in texts:
        if "=" not in text and len(names) == 1:
            found.append((next(iter(names.values())), text))
            continue
        name, value = pair_of(text, f"{columns[0].declared.name}={'12' if what == 'bins' else '0,18,65,120'}")
        if name.lower() not in names:
            listed = ", ".join(names.values())
            raise NotInCatalog(f"{name} is not among the columns that are asked about, {listed}", name=what, value=text)
        found.append((names[name.lower()], value))
    return found


def _listed(cut: Cut, text: str) -> Any:
    """Return the listed value that is written so."""
    return next((one for one in cut.values if str(one) == text), text)


def _mapping(text: str) -> dict[str, str]:
    if text.startswith("@"):
        try:
            lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            raise InvalidInput(f"{text[1:]} cannot be read as a text of child,parent lines", name="level") from None
        return dict(pair_of(line.replace(",", "=", 1), "a,north") for line in lines if line.strip())
    return dict(pair_of(part, "a=north") for part in text.split(","))
