"""Private SQL over the tables of a catalog: plans and their cache, previews, releases.

A plan depends only on the query, the catalog and the caps of budgets, and holds no data, so plans are cached and
evicted only to bound memory.

Promise: nothing that depends on data happens before the ledger has charged the plan's event (`pipeline`); a preview
states exactly the charge; a query that was answered on the same data version is answered again at no cost. Data
versions change only by refreshes of the owner, so neither previews nor queries read rows to find them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from shlex import quote
from typing import Final

from cachetools import LRUCache

from tacit import pipeline
from tacit.curator.engine_registry import EngineRegistry
from tacit.curator.table_links import linked_tables
from tacit.ledger import Ledger, LedgerBudget, Scope
from tacit.ledger.refusals import way_to_delta
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.pipeline import STALE_PLAN, ZERO_COST
from tacit.privacy.errors import CatalogChanged, NotAllowed
from tacit.privacy.tables import Schema, Table
from tacit.query import (
    BudgetTerms,
    Plan,
    PlanSettings,
    Preview,
    QueryRelease,
    QuerySpec,
    Question,
    Release,
    Target,
    ask,
    plan_of,
)
from tacit.query.parse import named_tables

PLANS_MAX: Final = 256
PLAN_BYTES_MAX: Final = 64 * 2**20
"""Memory of all cached plans, by the estimate of `_plan_bytes`."""
NODE_BYTES: Final = 1_000
"""Memory of a plan for each node of its statements: 670 to 2,000 bytes, measured over long CASE expressions, lists of
values and many aggregates."""
CHARACTER_BYTES: Final = 10
"""Memory of a plan for each character of its text and keys, which it holds as text and as values."""

Key = tuple[str, Target, str]


@dataclass(frozen=True, slots=True)
class CachedPlan:
    """A plan, and the schema and terms that it was made for."""

    schema: Schema
    terms: BudgetTerms
    plan: Plan


class PlanCache:
    """The most recently used plans; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: LRUCache[Key, tuple[CachedPlan, int]] = LRUCache(PLAN_BYTES_MAX, getsizeof=itemgetter(1))

    def get(self, key: Key | None, schema: Schema) -> CachedPlan | None:
        """Return the cached plan of a query for this schema, or None."""
        with self._lock:
            made, _ = (key and self._made.get(key)) or (None, 0)
        return made if made is not None and made.schema is schema else None

    def put(self, key: Key | None, made: CachedPlan) -> Plan:
        """Cache a plan, unless it is larger than the whole cache, and return it."""
        if key is not None:
            size = _plan_bytes(key, made.plan)
            with self._lock, suppress(ValueError):  # too large
                self._made[key] = made, size
        return made.plan


def _plan_bytes(key: Key, plan: Plan) -> int:
    """Return an estimate of the memory of a plan, from the size of its statements, text and keys.

    It is at least 1 / PLANS_MAX of the cache, so that there are never more than PLANS_MAX plans.
    """
    nodes = sum(1 for statement in (*plan.learning, *plan.statements) for _ in statement.tree.walk())
    return max(PLAN_BYTES_MAX // PLANS_MAX, NODE_BYTES * nodes + CHARACTER_BYTES * (len(key[0]) + len(key[2])))


def cache_key(sql: str, target: Target, settings: PlanSettings) -> Key | None:
    """Return the cache key of a query as written; None if the text of its arguments does not identify them."""
    keys = settings.keys
    if keys is not None and not (type(keys) is dict and all(type(one) in (list, tuple) for one in keys.values())):
        return None  # the text of an array, for example, is abbreviated
    return sql, target, repr((settings.limits, keys, settings.other))


@dataclass(frozen=True, slots=True)
class QueryService:
    """Answers queries in SQL; its plans are made for and run against `schema`."""

    schema: Schema
    ledger: Ledger
    engines: EngineRegistry
    salt: int
    plans: PlanCache = field(default_factory=PlanCache)
    visible: Schema | None = None
    """The tables that exist for the caller; None for all."""

    def plan(self, spec: QuerySpec) -> Plan:
        """Return the priced plan of a query, without reading data."""
        key = cache_key(spec.sql, spec.target, spec.settings)
        made = self.plans.get(key, self.schema)
        if made is not None and not self._sees(made.plan.question):
            made = None  # cached for another caller: refuse its tables as absent
        if made is None:
            for name in named_tables(spec.sql) if self.visible is not None else ():
                self._resolution_schema.table(name)
        question = made.plan.question if made is not None else ask(spec.sql, self._resolution_schema)
        terms = self._terms(question)
        if made is not None and made.terms == terms:
            return made.plan
        plan = plan_of(question, self.schema, spec.target, terms, spec.settings)
        return self.plans.put(key, CachedPlan(self.schema, terms, plan))

    def preview(self, spec: QuerySpec, plan: Plan | None = None) -> Preview:
        """Return the exact charge of a query and whether it fits the budget; reads no row."""
        bound = self.bind(spec, plan)
        return Preview.of(bound.plan, pipeline.preview(bound, self._payer(spec, bound.plan)), bound.engine.write)

    def bind(self, spec: QuerySpec, plan: Plan | None = None) -> QueryRelease:
        """Return the release plan of a query: its plan, bound to the present versions of its tables.

        Raise CatalogChanged for a plan that was made for other records of its tables, whose bounds decide its noise.
        """
        plan = plan or self.plan(spec)
        tables = plan.question.records
        if any(self.schema.tables.get(table.name.lower()) != table for table in tables):
            raise CatalogChanged(STALE_PLAN)
        bound = self.engines.bind(tables)
        return QueryRelease(plan, spec.sql, bound.engine, self.salt, bound, tables)

    def find_released(self, spec: QuerySpec, bound: QueryRelease) -> Callable[[], Release] | None:
        """Return a function that reads the answer if it was released before, else None; charges and runs nothing."""
        read = pipeline.find_released(bound, self._payer(spec, bound.plan))
        return None if read is None else lambda: Release(bound.plan, read(), ZERO_COST, ())

    def release(self, spec: QuerySpec, plan: Plan | None = None, *, source: RandomSource = SYSTEM) -> Release:
        """Answer a query, or raise and charge nothing; `plan` is its plan if it was made before.

        `source` replaces the randomness of the noise in simulations.
        """
        options = replace(spec.release_options, source=source)
        bound = self.bind(spec, plan)
        found = pipeline.release(bound, self._payer(spec, bound.plan), options)
        return Release(bound.plan, found.answer, found.cost, () if found.permit is None else (found.permit,))

    def _payer(self, spec: QuerySpec, plan: Plan) -> LedgerBudget:
        return self.ledger.payer(self._dataset(plan.question), spec.analyst)

    def _sees(self, question: Question) -> bool:
        """Return whether all tables of a query are visible."""
        return self.visible is None or all(table.name.lower() in self.visible.tables for table in question.records)

    @property
    def _resolution_schema(self) -> Schema:
        """The schema in which names of a query are resolved: only visible tables are found."""
        return self.schema if self.visible is None else _VisibleSchema(self.schema, self.visible)

    def _dataset(self, question: Question) -> str:
        """Return the data set of a query, or raise NotAllowed for tables of several.

        The noise covers the removal of a unit from all tables of a data set at once. If a unit could be removed from
        only one of two joined tables, an outer join, NOT IN or UNION ALL would move its rows between groups.
        """
        first, *others = sorted(question.datasets)
        if others:
            private = sorted(table.name for table in question.records if table.is_private)
            shown = " and ".join(f"{name} (data set {self.schema.table(name).dataset})" for name in private)
            raise NotAllowed(
                f"a query may use tables of one data set only, and here are {shown}",
                accepted=f"move them into one: {' && '.join(self._move_commands(private, first))}",
            )
        return first

    def _move_commands(self, private: Iterable[str], dataset: str) -> list[str]:
        """Return the commands that move tables into a data set, one for each group of linked tables."""
        commands: dict[str, str] = {}
        for name in private:
            table = self.schema.table(name)
            if table.dataset != dataset:
                group = linked_tables(table, self.schema.tables)[0].name
                commands.setdefault(group, f"tacit table edit {quote(table.name)} --dataset {quote(dataset)}")
        return list(commands.values())

    def _terms(self, question: Question) -> BudgetTerms:
        """Return the relation and delta that the budget of a query allows."""
        row = self.ledger.row_of(Scope(self._dataset(question)))
        return BudgetTerms.of(row.cap, "" if row.cap.delta else f"; or {way_to_delta(row)}")


class _VisibleSchema(Schema):
    """A schema in which only the visible tables are found by name.

    The others still provide the columns that identify rows, so that plans are the same for all callers.
    """

    def __init__(self, schema: Schema, visible: Schema) -> None:
        super().__init__(schema.tables.values())
        self._visible = visible

    def table(self, name: str) -> Table:
        """Return a visible table."""
        return self._visible.table(name)
