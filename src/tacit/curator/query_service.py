"""Private SQL over the tables of a catalog: plans and their cache, previews and releases, all through the pipeline.

A plan depends on nothing but the query, the catalog and what budgets allow, so it is cached: a repeated or previewed
query is not planned again. No data are in a plan, so entries are evicted only to bound memory.

Promise: nothing that depends on data happens before the ledger has charged the plan's event (`pipeline`); what a
preview says is what is charged; a question whose answer was released before on the same version of the data is
answered with it, at no cost. Versions move by the owner's refreshes alone, so neither previews nor questions look at
rows for that.
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
from tacit.curator.catalog_reader import linked
from tacit.curator.engine_registry import EngineRegistry
from tacit.ledger import Ledger, LedgerBudget, Scope
from tacit.ledger.accounts import SumAccount
from tacit.ledger.refusals import way_to_delta
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.pipeline import ZERO_COST, STALE_PLAN
from tacit.privacy.errors import CatalogChanged, NotAllowed
from tacit.privacy.tables import Schema, Table
from tacit.query import (
    Plan,
    PlanSettings,
    Preview,
    QueryRelease,
    QuerySpec,
    Question,
    Release,
    Target,
    Tariff,
    ask,
    plan_of,
)
from tacit.query.parse import named_tables

PLANS_MAX: Final = 256
PLAN_BYTES_MAX: Final = 64 * 2**20
"""How much memory all of them take, by the estimate of `_bytes`."""
NODE_BYTES: Final = 1_000
"""What a plan holds for each node of its statements: 670 to 2,000 bytes, measured over long CASE expressions, lists of
values and many aggregates."""
CHARACTER_BYTES: Final = 10
"""What a plan holds for each character of its text and its keys, which are there as text and as values."""

Key = tuple[str, Target, str]


@dataclass(frozen=True, slots=True)
class Made:
    """A plan, and what it was made for."""

    schema: Schema
    tariff: Tariff
    plan: Plan


class Plans:
    """The plans that were used last; threads may share them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: LRUCache[Key, tuple[Made, int]] = LRUCache(PLAN_BYTES_MAX, getsizeof=itemgetter(1))

    def known(self, key: Key | None, schema: Schema) -> Made | None:
        """Return the plan of a question under the catalog as it is."""
        with self._lock:
            made, _ = (key and self._made.get(key)) or (None, 0)
        return made if made is not None and made.schema is schema else None

    def keep(self, key: Key | None, made: Made) -> Plan:
        """Remember a plan, unless it is larger than the room for all of them, and return it."""
        if key is not None:
            size = _bytes(key, made.plan)
            with self._lock, suppress(ValueError):  # too large
                self._made[key] = made, size
        return made.plan


def _bytes(key: Key, plan: Plan) -> int:
    """Return about how much memory a plan takes, from the size of its statements, text and keys.

    It counts as a share of 1 / PLANS_MAX at least, so that there are never more than PLANS_MAX.
    """
    nodes = sum(1 for statement in (*plan.learning, *plan.statements) for _ in statement.tree.walk())
    return max(PLAN_BYTES_MAX // PLANS_MAX, NODE_BYTES * nodes + CHARACTER_BYTES * (len(key[0]) + len(key[2])))


def key_of(sql: str, target: Target, settings: PlanSettings) -> Key | None:
    """Return what identifies a question as it was written; None where its text does not tell it from others."""
    keys = settings.keys
    if keys is not None and not (type(keys) is dict and all(type(one) in (list, tuple) for one in keys.values())):
        return None  # an array, for one, is written with dots in its middle
    return sql, target, repr((settings.limits, keys, settings.other))


@dataclass(frozen=True, slots=True)
class QueryService:
    """Answers questions in SQL; `schema` is what its plans are made for and run against."""

    schema: Schema
    ledger: Ledger
    engines: EngineRegistry
    salt: int
    plans: Plans = field(default_factory=Plans)
    among: Schema | None = None
    """The tables that whoever asks may ask about, if not all; no others exist for that caller."""

    def plan(self, spec: QuerySpec) -> Plan:
        """Return the priced plan of a question, without touching data."""
        key = key_of(spec.sql, spec.target, spec.settings)
        made = self.plans.known(key, self.schema)
        if made is not None and not self._sees(made.plan.question):
            made = None  # it was made for somebody else: the refusal is that of a table that does not exist
        if made is None:
            for name in named_tables(spec.sql) if self.among is not None else ():
                self._resolved_among.table(name)
        question = made.plan.question if made is not None else ask(spec.sql, self._resolved_among)
        tariff = self._tariff(question)
        if made is not None and made.tariff == tariff:
            return made.plan
        plan = plan_of(question, self.schema, spec.target, tariff, spec.settings)
        return self.plans.keep(key, Made(self.schema, tariff, plan))

    def preview(self, spec: QuerySpec, plan: Plan | None = None) -> Preview:
        """Return exactly what asking would be charged now, and whether that is left; looks at no row."""
        bound = self.bind(spec, plan)
        return Preview.of(bound.plan, pipeline.preview(bound, self._payer(spec, bound.plan)), bound.engine.write)

    def bind(self, spec: QuerySpec, plan: Plan | None = None) -> QueryRelease:
        """Return the release plan of a question: its plan, bound to the tables in the versions of this moment.

        Raise CatalogChanged for a plan that was made for other records of its tables: its noise is for their bounds.
        """
        plan = plan or self.plan(spec)
        tables = plan.question.records
        if any(self.schema.tables.get(table.name.lower()) != table for table in tables):
            raise CatalogChanged(STALE_PLAN)
        bound = self.engines.bind(tables)
        return QueryRelease(plan, spec.sql, bound.engine, self.salt, bound, tables)

    def find_released(self, spec: QuerySpec, bound: QueryRelease) -> Callable[[], Release] | None:
        """Return what reads the answer that was released before, None if there is none; nothing is charged or run."""
        read = pipeline.find_released(bound, self._payer(spec, bound.plan))
        return None if read is None else lambda: Release(bound.plan, read(), ZERO_COST, ())

    def release(self, spec: QuerySpec, plan: Plan | None = None, *, source: Source = SYSTEM) -> Release:
        """Answer a question, or raise and charge nothing; `plan` is its plan if it was made before.

        `source` is for simulations.
        """
        options = replace(spec.release_options, source=source)
        bound = self.bind(spec, plan)
        found = pipeline.release(bound, self._payer(spec, bound.plan), options)
        return Release(bound.plan, found.answer, found.cost, () if found.permit is None else (found.permit,))

    def _payer(self, spec: QuerySpec, plan: Plan) -> LedgerBudget:
        return self.ledger.account(self._dataset(plan.question), spec.analyst)

    def _sees(self, question: Question) -> bool:
        """Return whether whoever asks may ask about all tables of a question."""
        return self.among is None or all(table.name.lower() in self.among.tables for table in question.records)

    @property
    def _resolved_among(self) -> Schema:
        """The schema that a question is resolved in: names find only the tables that whoever asks may ask about."""
        return self.schema if self.among is None else _Named(self.schema, self.among)

    def _dataset(self, question: Question) -> str:
        """Return the data set that a question is about; tables of several are not asked about together.

        A unit is removed from all tables of a data set at once, and the noise is for that. If it could leave one of
        two joined tables alone, an outer join, NOT IN or UNION ALL would move its rows from one group to another.
        """
        first, *others = sorted(question.datasets)
        if others:
            private = sorted(table.name for table in question.records if table.is_private)
            shown = " and ".join(f"{name} (data set {self.schema.table(name).dataset})" for name in private)
            raise NotAllowed(
                f"a question is about the tables of one data set, and here are {shown}",
                accepted=f"put them into one: {' && '.join(self._moves(private, first))}",
            )
        return first

    def _moves(self, private: Iterable[str], dataset: str) -> list[str]:
        """Return the commands that move tables into a data set; each moves all that are linked to the named one."""
        commands: dict[str, str] = {}
        for name in private:
            table = self.schema.table(name)
            if table.dataset != dataset:
                family = linked(table, self.schema.tables)[0].name
                commands.setdefault(family, f"tacit table edit {quote(table.name)} --dataset {quote(dataset)}")
        return list(commands.values())

    def _tariff(self, question: Question) -> Tariff:
        """Return what the budget of a question allows."""
        row = self.ledger.row_of(Scope(self._dataset(question)))
        return Tariff(
            row.cap.relation, SumAccount.of(row.cap).slice, "" if row.cap.delta else f"; or {way_to_delta(row)}"
        )


class _Named(Schema):
    """All tables of a schema, of which only some are found by their names.

    The others still say which columns identify rows, so that plans are the same for everybody.
    """

    def __init__(self, schema: Schema, among: Schema) -> None:
        super().__init__(schema.tables.values())
        self._among = among

    def table(self, name: str) -> Table:
        """Return a table that may be asked about."""
        return self._among.table(name)
