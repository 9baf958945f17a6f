"""The plan of a workload: its parts with their strategies and noise, and the estimates from what they release.

The budget is divided over the parts for the least sum of their errors: with errors L of the parts for unit noise, a
part gets epsilon in proportion to L^(1/3) under Laplace noise, rho in proportion to L^(1/2) under Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from tacit.ledger.answer_storage import json_bytes
from tacit.measuring.allocation import Allocation, NoiseFamily
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.privacy.errors import InvalidInput, TooLarge
from tacit.privacy.events import Event, composed
from tacit.stats.rows import Cut, Rows
from tacit.stats.statistic import Noisy, StatisticPlan
from tacit.stats.workloads.counts import CountTable
from tacit.stats.workloads.estimation import ColumnEstimates, ProductEstimates, TableEstimates
from tacit.stats.workloads.interactions import cells
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
from tacit.stats.workloads.strategies import best_strategy, best_tree
from tacit.stats.workloads.strategy_matrices import AllPrefixes, AllRanges, Family, Groups

COLUMN_CELLS_MAX: Final = 2**17
PRODUCT_CELLS_MAX: Final = 1024
TABLE_CELLS_MAX: Final = 2**20
ALL_CELLS_MAX: Final = 2**22
"""The greatest number of cells: of one column, of each column of a product, of one table, of all tables together."""


@dataclass(frozen=True)
class WorkloadPlan(StatisticPlan):
    """All parts of a workload, under one charge."""

    parts: tuple[Part, ...]
    columns: tuple[str, ...]
    """Only rows with a value in all of these are counted."""

    @property
    def event(self) -> Event:
        return composed([event for part in self.parts for event in part.events])

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
        """The names of the tables in `WorkloadEstimates.shown`, and the cells along each of their axes."""
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

    def measure(self, rows: Rows, source: RandomSource = SYSTEM) -> Noisy:
        return tuple(one for part in self.parts for one in part.measure(rows, self.columns, source))

    def value(self, noisy: Noisy) -> Any:
        return np.concatenate([table.values.ravel() for _, table in WorkloadEstimates(self, noisy).shown])

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        return WorkloadEstimates(self, noisy).interval(level)


class WorkloadEstimates:
    """The estimates from the released sums of a plan."""

    def __init__(self, plan: WorkloadPlan, noisy: Noisy) -> None:
        self.columns: Final[dict[str, ColumnEstimates]] = {}
        self.products: Final[dict[frozenset[str], ProductEstimates]] = {}
        self.tables: Final[list[TableEstimates]] = []
        at = 0
        for part in plan.parts:
            released = noisy[at : at + part.arrays]
            at += part.arrays
            if isinstance(part, ColumnPart):
                self.columns[part.name] = ColumnEstimates(part, released)
            elif isinstance(part, Crossed):
                self.products[frozenset(part.names)] = ProductEstimates(part, released)
            elif isinstance(part, Tables):
                self.tables.append(TableEstimates(part, released))

    @cached_property
    def shown(self) -> list[tuple[str, CountTable]]:
        """All tables of the answer, by name."""
        found: list[tuple[str, CountTable]] = []
        for name, column in self.columns.items():
            if not column.part.levels:
                found.append((f"up to each {name}", column.prefixes()))
            found += [(level.name, column.table(level)) for level in column.part.levels]
        found += [(", ".join(one.part.names), one.table()) for one in self.products.values()]
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
        """Return the intervals of all counts of the answer."""
        spans = [table.interval(level) for _, table in self.shown]
        return Interval(*(np.concatenate([np.ravel(span[end]) for span in spans]) for end in (0, 1)))


def plan_workload(workloads: Sequence[Workload], cuts: dict[str, Cut], allocation: Allocation) -> WorkloadPlan:
    """Choose the law of noise and the strategies of least expected error, and divide the budget over the parts."""
    drafts = [*_column_drafts(workloads, cuts), *_table_drafts(workloads, cuts)]
    drafts += [_product_draft(one, cuts) for one in workloads if isinstance(one, Product)]
    power = {"Laplace": 1 / 3, "Gaussian": 1 / 2}

    def error(law: NoiseFamily) -> float:
        return float(math.fsum(draft.error(law) ** power[law] for draft in drafts) ** (1 / power[law]))

    spent = allocation.least_error(error)
    allocated = spent.divided(*(draft.error(spent.law) ** power[spent.law] for draft in drafts))
    parts = tuple(draft.make(one) for draft, one in zip(drafts, allocated, strict=True))
    names = list(dict.fromkeys(name for workload in workloads for name in workload.columns))
    return WorkloadPlan(_label(workloads), parts, tuple(dict.fromkeys(cuts[name].column for name in names)))


@dataclass(frozen=True)
class PartDraft:
    """A part without noise: its error under each law, and how it is made from an allocation."""

    error: Callable[[NoiseFamily], float]
    make: Callable[[Allocation], Part]


def _column_drafts(workloads: Sequence[Workload], cuts: dict[str, Cut]) -> list[PartDraft]:
    """Return a draft for each column with cells, ranges, prefixes or a hierarchy."""
    found = []
    one_column = [one for one in workloads if isinstance(one, OneColumn)]
    for name in dict.fromkeys(one.column for one in one_column):
        cut = cuts[name]
        if cut.cells > COLUMN_CELLS_MAX:
            raise TooLarge(
                f"{name} has {cut.cells:,} cells, and at most {COLUMN_CELLS_MAX:,} are counted", name="domain"
            )
        asked = [one for one in one_column if one.column == name]
        families = tuple(dict.fromkeys(family for one in asked for family in query_families(one, cut)))
        levels: dict[str, Level] = {}
        for one in asked:
            if isinstance(one, Hierarchy):
                levels |= {level.name: level for level in levels_of(cut, one)}
            elif not isinstance(one, Prefixes):
                levels.setdefault(name, Level(name, labels_of(cut), tuple(range(cut.cells))))
        found.append(_column_draft(name, cut, tuple(levels.values()), families))
    return found


def _column_draft(name: str, cut: Cut, levels: tuple[Level, ...], families: tuple[Family, ...]) -> PartDraft:
    return PartDraft(
        lambda law: best_strategy(families, law).error, lambda part: ColumnPart.of(name, cut, levels, families, part)
    )


def _table_drafts(workloads: Sequence[Workload], cuts: dict[str, Cut]) -> list[PartDraft]:
    """Return one draft for all tables together, if there are any."""
    marginals = [one for one in workloads if isinstance(one, Marginals)]
    if not marginals:
        return []
    names = tuple(dict.fromkeys(name for one in marginals for name in one.names))
    chosen = tuple(cuts[name] for name in names)
    sets = tuple(
        dict.fromkeys(tuple(sorted(names.index(name) for name in columns)) for one in marginals for columns in one.sets)
    )
    sizes = tuple(cut.cells for cut in chosen)
    counts = [cells(sizes, one) for one in sets]
    if max(counts) > TABLE_CELLS_MAX or sum(counts) > ALL_CELLS_MAX:
        raise TooLarge(
            f"a table has at most {TABLE_CELLS_MAX:,} cells, all tables together {ALL_CELLS_MAX:,}", name="domain"
        )
    return [
        PartDraft(
            lambda law: Tables.shares(chosen, sets, law).error,
            lambda part: Tables.of(names, chosen, sets, part),
        )
    ]


def _product_draft(asked: Product, cuts: dict[str, Cut]) -> PartDraft:
    one, other = cuts[asked.one.column], cuts[asked.other.column]
    if max(one.cells, other.cells) > PRODUCT_CELLS_MAX:
        raise TooLarge(f"a product has at most {PRODUCT_CELLS_MAX} cells of each column", name="domain")
    families = query_families(asked.one, one), query_families(asked.other, other)
    names = asked.one.column, asked.other.column

    def error(law: NoiseFamily) -> float:
        return best_tree(families[0], law).error * best_tree(families[1], law).error

    return PartDraft(error, lambda part: Crossed.of(names, (one, other), families, part))


def query_families(asked: OneColumn, cut: Cut) -> tuple[Family, ...]:
    """Return the families of queries of a workload over one column."""
    match asked:
        case Ranges():
            return (AllRanges(cut.cells),)
        case Prefixes():
            return (AllPrefixes(cut.cells),)
        case Cells():
            return (Groups(cut.cells, tuple(range(cut.cells))),)
        case Hierarchy():
            return tuple(Groups(cut.cells, level.groups) for level in levels_of(cut, asked))
    raise InvalidInput("a workload over one column is Cells, Ranges, Prefixes or Hierarchy", name="workload")


def flatten(workloads: Sequence[Workload]) -> list[Workload]:
    """Return the distinct workloads, those of unions one by one."""
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
