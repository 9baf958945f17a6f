"""A workload with its strategies and noises: what is charged, measured, and computed from what was released."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from tacit.ledger.answer_storage import json_bytes
from tacit.measuring.allocation import Allocation, Law
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.privacy.errors import InvalidInput, TooLarge
from tacit.privacy.events import Event
from tacit.stats.rows import Cut, Rows
from tacit.stats.statistic import Noisy, StatisticPlan, compose
from tacit.stats.workloads.counts import CountTable
from tacit.stats.workloads.estimation import CrossedAnswer, LineAnswer, TablesAnswer
from tacit.stats.workloads.families import AllPrefixes, AllRanges, Family, Groups
from tacit.stats.workloads.margins import cells
from tacit.stats.workloads.parts import ColumnPart, Crossed, Part, Tables
from tacit.stats.workloads.query_sets import (
    Cells,
    Hierarchy,
    Level,
    Marginals,
    OneColumn,
    Prefixes,
    Product,
    Ranges,
    Union,
    Workload,
    labels_of,
    levels_of,
)
from tacit.stats.workloads.strategies import best, best_tree

LINE_MAX: Final = 2**17
CROSSED_MAX: Final = 1024
TABLE_MAX: Final = 2**20
CELLS_MAX: Final = 2**22
"""How many cells are counted at most: of one column, of each of two crossed ones, of one table, of all tables."""


@dataclass(frozen=True)
class WorkloadPlan(StatisticPlan):
    """All parts of a workload, under one price."""

    parts: tuple[Part, ...]
    columns: tuple[str, ...]
    """A row is counted where it has a value in all of these."""

    @property
    def event(self) -> Event:
        return compose([event for part in self.parts for event in part.events])

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(part.line for part in self.parts)

    @property
    def error(self) -> float:
        """The expected mean squared error of a query before it is rounded, each part and family weighing the same."""
        return float(np.mean([getattr(part, "error", 0.0) for part in self.parts]))

    @property
    def key_names(self) -> tuple[str, ...]:
        return ("table", "cell")

    @property
    def numbers(self) -> int:
        return sum(math.prod(map(len, labels)) for _, labels in self._shown)

    @property
    def keys_bytes(self) -> int:
        total = 0
        for title, labels in self._shown:
            count = math.prod(map(len, labels))
            texts = sum(count // len(one) * json_bytes(list(map(str, one))) for one in labels)
            total += texts + count * json_bytes([title])
        return total

    @property
    def _shown(self) -> Iterator[tuple[str, tuple[tuple[Any, ...], ...]]]:
        """What the tables are called that an answer shows, and the cells along each side (`Estimates.shown`)."""
        for part in self.parts:
            if isinstance(part, ColumnPart):
                if not part.levels:
                    yield f"up to each {part.name}", (labels_of(part.cut),)
                yield from ((level.name, (level.labels,)) for level in part.levels)
            elif isinstance(part, Crossed):
                yield ", ".join(part.names), (labels_of(part.cuts[0]), labels_of(part.cuts[1]))
            elif isinstance(part, Tables):
                for chosen in part.sets:
                    title = ", ".join(part.names[one] for one in chosen) or "total"
                    yield title, tuple(labels_of(part.cuts[one]) for one in chosen)

    def measure(self, rows: Rows, source: Source = SYSTEM) -> Noisy:
        return tuple(one for part in self.parts for one in part.measure(rows, self.columns, source))

    def value(self, noisy: Noisy) -> Any:
        return np.concatenate([table.values.ravel() for _, table in Estimates(self, noisy).shown])

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        return Estimates(self, noisy).interval(level)


class Estimates:
    """What is computed from the released sums of a plan."""

    def __init__(self, plan: WorkloadPlan, noisy: Noisy) -> None:
        self.lines: Final[dict[str, LineAnswer]] = {}
        self.crossed: Final[dict[frozenset[str], CrossedAnswer]] = {}
        self.tables: Final[list[TablesAnswer]] = []
        at = 0
        for part in plan.parts:
            released = noisy[at : at + part.arrays]
            at += part.arrays
            if isinstance(part, ColumnPart):
                self.lines[part.name] = LineAnswer(part, released)
            elif isinstance(part, Crossed):
                self.crossed[frozenset(part.names)] = CrossedAnswer(part, released)
            elif isinstance(part, Tables):
                self.tables.append(TablesAnswer(part, released))

    @cached_property
    def shown(self) -> list[tuple[str, CountTable]]:
        """All tables that an answer shows, by name."""
        found: list[tuple[str, CountTable]] = []
        for name, line in self.lines.items():
            if not line.part.levels:
                found.append((f"up to each {name}", line.prefixes()))
            found += [(level.name, line.table(level)) for level in line.part.levels]
        found += [(", ".join(one.part.names), one.table()) for one in self.crossed.values()]
        for tables in self.tables:
            for chosen in tables.part.sets:
                names = [tables.names[column] for column in chosen]
                found.append((", ".join(names) or "total", tables.table(*names)))
        return found

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """The table and the cell of each number."""
        return [
            (title, key[0] if len(key) == 1 else ", ".join(map(str, key)))
            for title, table in self.shown
            for key in table.keys
        ]

    def interval(self, level: float) -> Interval:
        """Return the intervals of all numbers that are shown."""
        spans = [table.interval(level) for _, table in self.shown]
        return Interval(*(np.concatenate([np.ravel(span[end]) for span in spans]) for end in (0, 1)))


def planned(workloads: Sequence[Workload], cuts: dict[str, Cut], allocation: Allocation) -> WorkloadPlan:
    """Choose the law of noise and the strategies of least expected error, and share the price among the parts.

    With errors L of the parts for unit noise, a part gets epsilon in proportion to L^(1/3) under Laplace noise, rho to
    L^(1/2) under Gaussian noise: this makes their sum least.
    """
    drafts = [*_lines(workloads, cuts), *_others(workloads, cuts)]
    power = {"Laplace": 1 / 3, "Gaussian": 1 / 2}

    def error(law: Law) -> float:
        return float(math.fsum(draft.error(law) ** power[law] for draft in drafts) ** (1 / power[law]))

    spent = allocation.least_error(error)
    allocated = spent.divided(*(draft.error(spent.law) ** power[spent.law] for draft in drafts))
    parts = tuple(draft.make(one) for draft, one in zip(drafts, allocated, strict=True))
    names = list(dict.fromkeys(name for workload in workloads for name in workload.columns))
    return WorkloadPlan(_label(workloads), parts, tuple(dict.fromkeys(cuts[name].column for name in names)))


@dataclass(frozen=True)
class Draft:
    """A part that has no noise yet."""

    error: Callable[[Law], float]
    make: Callable[[Allocation], Part]


def _lines(workloads: Sequence[Workload], cuts: dict[str, Cut]) -> list[Draft]:
    """Return a draft for each column of which cells, ranges, prefixes or levels are asked."""
    found = []
    one_column = [one for one in workloads if isinstance(one, OneColumn)]
    for name in dict.fromkeys(one.column for one in one_column):
        cut = cuts[name]
        if cut.cells > LINE_MAX:
            raise TooLarge(f"{name} has {cut.cells:,} cells, and at most {LINE_MAX:,} are counted", name="domain")
        asked = [one for one in one_column if one.column == name]
        families = tuple(dict.fromkeys(family for one in asked for family in families_of(one, cut)))
        levels: dict[str, Level] = {}
        for one in asked:
            if isinstance(one, Hierarchy):
                levels |= {level.name: level for level in levels_of(cut, one)}
            elif not isinstance(one, Prefixes):
                levels.setdefault(name, Level(name, labels_of(cut), tuple(range(cut.cells))))
        found.append(_line(name, cut, tuple(levels.values()), families))
    return found


def _line(name: str, cut: Cut, levels: tuple[Level, ...], families: tuple[Family, ...]) -> Draft:
    return Draft(lambda law: best(families, law).error, lambda part: ColumnPart.of(name, cut, levels, families, part))


def _others(workloads: Sequence[Workload], cuts: dict[str, Cut]) -> list[Draft]:
    """Return a draft for all tables together, and one for each product."""
    found = []
    marginals = [one for one in workloads if isinstance(one, Marginals)]
    if marginals:
        names = tuple(dict.fromkeys(name for one in marginals for name in one.names))
        chosen = tuple(cuts[name] for name in names)
        sets = tuple(
            dict.fromkeys(
                tuple(sorted(names.index(name) for name in columns)) for one in marginals for columns in one.sets
            )
        )
        sizes = tuple(cut.cells for cut in chosen)
        if max(cells(sizes, one) for one in sets) > TABLE_MAX or sum(cells(sizes, one) for one in sets) > CELLS_MAX:
            raise TooLarge(f"a table has at most {TABLE_MAX:,} cells, all of them {CELLS_MAX:,}", name="domain")
        found.append(
            Draft(
                lambda law: Tables.shares(chosen, sets, law).error,
                lambda part: Tables.of(names, chosen, sets, part),
            )
        )
    found += [_product(one, cuts) for one in workloads if isinstance(one, Product)]
    return found


def _product(asked: Product, cuts: dict[str, Cut]) -> Draft:
    one, other = cuts[asked.one.column], cuts[asked.other.column]
    if max(one.cells, other.cells) > CROSSED_MAX:
        raise TooLarge(f"at most {CROSSED_MAX} cells of each column are crossed", name="domain")
    families = families_of(asked.one, one), families_of(asked.other, other)
    names = asked.one.column, asked.other.column

    def error(law: Law) -> float:
        return best_tree(families[0], law).error * best_tree(families[1], law).error

    return Draft(error, lambda part: Crossed.of(names, (one, other), families, part))


def families_of(asked: OneColumn, cut: Cut) -> tuple[Family, ...]:
    """Return the queries that are asked over the cells of a column."""
    match asked:
        case Ranges():
            return (AllRanges(cut.cells),)
        case Prefixes():
            return (AllPrefixes(cut.cells),)
        case Cells():
            return (Groups(cut.cells, tuple(range(cut.cells))),)
        case Hierarchy():
            return tuple(Groups(cut.cells, level.groups) for level in levels_of(cut, asked))
    raise InvalidInput("a workload over one column is of cells, ranges, prefixes or a hierarchy", name="workload")


def flattened(workloads: Sequence[Workload]) -> list[Workload]:
    """Return workloads with unions taken apart, each once."""
    parts = [part for one in workloads for part in (one.parts if isinstance(one, Union) else (one,))]
    return list(dict.fromkeys(parts))


def _label(workloads: Sequence[Workload]) -> str:
    words = []
    for one in workloads:
        match one:
            case Marginals():
                tables, columns = len(one.sets), len(one.names)
                words.append(f"{tables} table{'s' * (tables > 1)} by {columns} column{'s' * (columns > 1)}")
            case Product():
                words.append(f"{_word(one.one)} of {one.one.column} by {_word(one.other)} of {one.other.column}")
            case OneColumn():
                words.append(f"{_word(one)} of {one.column}")
    return ", and the ".join(words)


def _word(one: OneColumn) -> str:
    return {Ranges: "ranges", Prefixes: "prefixes", Cells: "cells", Hierarchy: "hierarchy"}[type(one)]
