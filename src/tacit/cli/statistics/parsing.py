"""Parsers of the options --bounds, --keys, --bins, --edges, --levels and --range of statistics.

Bounds and keys apply to one statistic and do not change the catalog. They are public, and must be chosen without
looking at the data.

    --bins age=12            equal parts of the bounds, from --bounds or the catalog
    --bins age=0:120:12      equal parts of the given bounds
    --bins day=month         days, months or years between the bounds of dates
    --edges age=0,18,65,120  bins between edges
    --keys ward=a,b,c        listed values

Without any of them, the cells are the categories of the catalog, or a default number of equal parts of the bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from tacit.cli.catalog_rendering import missing_category
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
    """Return the bounds and categories given for columns, and the columns whose bounds are to be learnt."""
    known = [*columns, *groups]
    facts: dict[str, Bounds | Categories] = {}
    learned: list[str] = []
    for text in bounds:
        name, value = _split_column(table, "bounds", known, columns, text)
        if value.lower() == LEARN:
            learned.append(name)
        else:
            facts[name] = bounds_of(name, table.column(name).kind, value)
    for text in keys:
        name, value = _split_column(table, "keys", known, groups or columns, text)
        if name in facts or name in learned:
            raise InvalidInput(f"give either --bounds or --keys for {name}, not both", name="keys", value=text)
        facts[name] = listed = categories_of(name, table.column(name).kind, value)
        if unknown := list(filter(None, (missing_category(table.column(name), one) for one in listed.values))):
            raise InvalidInput(f"{unknown[0]}; list some of them with --keys, or leave it out", name="keys", value=text)
    return facts, learned


def edges_of(kind: Kind, text: str) -> list[Any]:
    """Parse comma-separated edges: numbers, or ISO dates and times."""
    if text.count(",") >= EDGES_MAX:
        raise TooLarge(f"at most {EDGES_MAX:,} edges are supported; use --bins", name="edges")
    return [part.strip() for part in text.split(",")] if kind in (Kind.DATE, Kind.TIME) else numbers_of("edges", text)


def numbers_of(what: str, text: str) -> list[int | float]:
    """Parse comma-separated numbers."""
    return [_number(what, part) for part in text.split(",")]


def _split_column(
    table: Table, what: str, known: Sequence[str], candidates: Sequence[str], text: str
) -> tuple[str, str]:
    """Split "column=value"; without a column the value belongs to the only candidate."""
    for name in sorted({table.column(one).name for one in known}, key=len, reverse=True):
        if text.lower().startswith(f"{name.lower()}=") and text[len(name) + 1 :].strip():
            return name, text[len(name) + 1 :].strip()
    example = f"--{what} COLUMN={EXAMPLES[what]}"
    if "=" in text:
        name = text.partition("=")[0]
        raise NotInCatalog(
            f"{name} is not a column of this statistic, which has {', '.join(known)}; write {example}",
            name=what,
            value=text,
        )
    if len(candidates) != 1:
        raise InvalidInput(f"several columns could have the {what} {text!r}; write {example}", name=what, value=text)
    return table.column(candidates[0]).name, text


def _number(what: str, text: str) -> int | float:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    raise InvalidInput(f"{what} must be comma-separated numbers, such as 0,18,65, not {text!r}", name=what)


PARTS: Final[Mapping[str, Literal["day", "month", "year"]]] = {"day": "day", "month": "month", "year": "year"}
LONGER: Final = "longer periods (--bins month or --bins year), or narrower bounds"


def domain_of(
    columns: Sequence[TableColumn], bins: Sequence[str], edges: Sequence[str], most: int, *, by_period: bool = False
) -> dict[str, Any]:
    """Return the cells of each column; `most` is the number of cells of a column with bounds only.

    With `by_period`, cells must be days, months or years: equal parts could lie in two periods.
    """
    stated = {name: ("edges", text) for name, text in _by_column(columns, edges, "edges")}
    for name, text in _by_column(columns, bins, "bins"):
        if name in stated:
            raise InvalidInput(f"give either --bins or --edges for {name}, not both", name="bins", value=text)
        if by_period and text.rpartition(":")[2] not in PARTS:
            raise InvalidInput(f"the levels of {name} are periods, so its bins must be day, month or year", name="bins")
        stated[name] = ("bins", text)
    return {one.declared.name: _cells(one.declared, *stated.get(one.declared.name, ("", "")), most) for one in columns}


def levels_of(texts: Sequence[str]) -> list[str | dict[str, str]]:
    """Parse the levels of a hierarchy: periods, comma-separated "child=parent" pairs, or @FILE with such pairs."""
    found: list[str | dict[str, str]] = []
    for text in texts:
        if "=" in text or text.startswith("@"):
            found.append(_mapping(text))
        else:
            found += [part.strip() for part in text.split(",")]
    for one in found:
        if isinstance(one, str) and one not in PERIODS:
            raise InvalidInput(
                f"a level must be {', '.join(PERIODS)}, or groups of values such as a=north,b=north, not {one!r}",
                name="level",
                value=one,
            )
    return found


def ranges_of(column: TableColumn, cells: Any, texts: Sequence[str]) -> list[tuple[Any, Any]]:
    """Parse ranges; raise, before anything is charged, if one begins or ends inside a cell."""
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


def prefixes_of(column: TableColumn, cells: Any, texts: Sequence[str]) -> list[tuple[Any, Any]]:
    """Parse the ends of ranges that begin with the first cell."""
    cut = cut_of(column.declared, cells)
    start = cut.values[0] if cut.values else cut.edges[0]
    first = start.isoformat() if isinstance(start, date) else start
    return ranges_of(column, cells, [f"{first}:{text}" for text in texts])


def cut_of(declared: Declared, cells: Any) -> Cut:
    """Return the partition of a column into cells."""
    facts = cells if isinstance(cells, Categories) else declared.facts
    if cells is not None and not isinstance(cells, Categories):
        return Cut(declared.name, edges=tuple(cells))
    if isinstance(facts, Categories):
        return Cut(declared.name, values=facts.values)
    return Cut(declared.name, values=(False, True))


def _cells(declared: Declared, what: str, text: str, most: int) -> Any:
    """Return the edges of a column's cells, or None if its values are listed."""
    name, kind = declared.name, declared.kind
    if what == "edges":
        return list(checked_edges(name, kind, edges_of(kind, text)))
    if what == "" and (isinstance(declared.facts, Categories) or kind is Kind.BOOLEAN):
        return None
    low, _, count = text.rpartition(":")
    bounds = fit_facts(name, kind, bounds_of(name, kind, low)) if low else declared.facts
    if not isinstance(bounds, Bounds):
        if kind in (Kind.TEXT, Kind.BOOLEAN):
            accepted = f"give --keys {name}=A,B,C, chosen without looking at the data"
            raise NotBounded(
                f"the values of {name} are not public, and showing one could reveal a person", accepted=accepted
            )
        raise NotBounded(
            f"{name} has no bounds", accepted=f"give --bins {name}=0:120:12, chosen without looking at the data"
        )
    if count in PARTS:
        if kind not in (Kind.DATE, Kind.TIME):
            raise WrongKind(f"{name} is {kind}; only dates have {count}s")
        first, last = (_day(end) for end in ends_of(name, kind, bounds))
        days = date_edges(first, last + timedelta(days=1), PARTS[count])
        if len(days) > DATES_MAX + 1:
            raise TooWide(
                f"{name} has {len(days) - 1:,} {count}s; at most {DATES_MAX:,} are supported", accepted=LONGER
            )
        return [edge_of(name, kind, day) for day in days]
    return list(Partition.of(name, kind, bounds, _count(name, count) if count else most, even=bool(count)).edges)


def _day(end: float | date) -> date:
    assert isinstance(end, date)
    return end.date() if isinstance(end, datetime) else end


def _count(name: str, text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= 1_000_000:
        raise InvalidInput(
            f"the bins of {name} must be a number such as 12, with bounds such as 0:120:12, or day, month or year, not "
            f"{text!r}",
            name="bins",
            value=text,
        )
    return int(text)


def _by_column(columns: Sequence[TableColumn], texts: Sequence[str], what: str) -> list[tuple[str, str]]:
    """Split "column=value"; without a column the value belongs to the only one."""
    names = {one.declared.name.lower(): one.declared.name for one in columns}
    found = []
    for text in texts:
        if "=" not in text and len(names) == 1:
            found.append((next(iter(names.values())), text))
            continue
        name, value = pair_of(text, f"{columns[0].declared.name}={'12' if what == 'bins' else '0,18,65,120'}")
        if name.lower() not in names:
            listed = ", ".join(names.values())
            raise NotInCatalog(f"{name} is not a column of this statistic, which has {listed}", name=what, value=text)
        found.append((names[name.lower()], value))
    return found


def _listed(cut: Cut, text: str) -> Any:
    """Return the listed value with this text."""
    return next((one for one in cut.values if str(one) == text), text)


def _mapping(text: str) -> dict[str, str]:
    if text.startswith("@"):
        try:
            lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            raise InvalidInput(
                f"{text[1:]} cannot be read as UTF-8 text with lines child,parent", name="level"
            ) from None
        return dict(pair_of(line.replace(",", "=", 1), "a,north") for line in lines if line.strip())
    return dict(pair_of(part, "a=north") for part in text.split(","))
