"""The curator of one folder: whose data, which budgets, which analysts, which questions.

Promise: everything that is charged goes through the one ledger of the folder, and everything that is released through
the one pipeline (`tacit.pipeline`). What a budget promises is said when it is set, and a delta that promises too little
is warned of.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from tacit.curator.catalog_file import make_private, warning_if_open
from tacit.ledger import HEAD_FILE, Budget, Ledger, LedgerBudget, Request, Store
from tacit.privacy import texts
from tacit.privacy.arguments import instance, instances, mapping, require_warn
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import CatalogChanged, EmptyInput, InvalidInput, TacitError, WrongType
from tacit.privacy.numbers import truth_value
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Relation, Unit

if TYPE_CHECKING:
    from tacit.curator.catalog import Catalog
    from tacit.curator.curated_tables import CuratedTable
    from tacit.curator.engine_registry import EngineRegistry
    from tacit.curator.query_service import Plans, QueryService
    from tacit.engines.protocol import Source
    from tacit.query import PlanOptions, Preview, QueryOptions, Release
    from tacit.query.explain import Line


_SEEN: Final[set[str]] = set()
"""Folders that were found open to others, each of which is warned of once."""


class PrivacyWarning(UserWarning):
    """A setting is allowed, and promises less than people will expect of it."""


class Curator:
    """A folder with its catalog, its ledger and its released answers; the ledger may lie in a database (`store`)."""

    def __init__(self, folder: Path | str, *, store: Store | None = None) -> None:
        """Open the folder, and make it if it is missing."""
        self.folder: Final = texts.path("folder", folder)
        if store is not None:
            make_private(self.folder)
        self.ledger: Final = Ledger.open(self.folder if store is None else store, anchor=self.folder / HEAD_FILE)
        self._lock = threading.RLock()
        self._catalog: Catalog | None = None
        self._registry: EngineRegistry | None = None
        self._plans: Plans | None = None
        place = os.path.abspath(self.folder)
        if place not in _SEEN and (sentence := warning_if_open(self.folder)):
            _SEEN.add(place)
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)

    @property
    def catalog(self) -> Catalog:
        """What is public about the tables, as the catalog's file says it now."""
        from tacit.curator.catalog import Catalog

        with self._lock:
            if self._catalog is None:
                self._catalog = Catalog.open(self.folder)
            else:
                self._catalog.reload()
            return self._catalog

    @property
    def engines(self) -> EngineRegistry:
        """The engines that hold the tables."""
        from tacit.curator.engine_registry import EngineRegistry

        with self._lock:
            if self._registry is None:
                self._registry = EngineRegistry(self.folder, lambda: self.catalog, self._lock)
            return self._registry

    def add_table(
        self,
        name: str,
        data: Any,
        *,
        unit: str | Unit | None = None,
        public: bool = False,
        columns: Mapping[str, Bounds | Categories | Column] | None = None,
        limits: Limits | None = None,
        identified_by: str | Iterable[str] = (),
        dataset: str = "",
        kinds: Mapping[str, Kind] | None = None,
        format: str | None = None,
        replace: bool = False,
        warn: Callable[[str], None] | None = None,
    ) -> Table:
        """Register a table: a CSV, Parquet or DuckDB file (or glob of files), or a pandas, polars or Arrow frame.

        Or one that stays in its database: "postgresql://host/db#schema.table", "sc://host:15002#catalog.db.table".

        It is private with a `unit` (a column, or a Unit with the foreign keys that lead to it) or it is `public`.
        What is known of its columns is stated here and never read off the data. `warn` is given what would be warned of
        otherwise: rows that another data set has, or had, too.
        """
        from tacit.curator.registration import table_of
        from tacit.curator.table_sources import source_of
        from tacit.engines.frames import frame_source, is_frame, is_same_frame, remove_unused

        may_replace = truth_value("replace", replace)
        texts.name("the name of a table", name)
        require_warn(warn)
        with self._lock:
            known = self.catalog.source(name) if name.lower() in self.catalog.tables else None
            places = [known.place] if known is not None else []
            try:
                if is_frame(data):
                    source = frame_source(data, self.folder, name)
                    places.append(source.place)
                    if known is not None and is_same_frame(known, source, self.folder):
                        source = known  # rows that have not changed keep their version
                else:
                    source = self.engines.with_csv_formats(source_of(data, folder=self.folder, format=format))
                table = table_of(
                    name,
                    self.engines.describe(source),
                    unit=unit,
                    public=public,
                    columns=columns,
                    limits=limits,
                    identified_by=identified_by,
                    dataset=dataset,
                    kinds=kinds,
                )
                return self.register(table, source, replace=may_replace, warn=warn)
            finally:
                with suppress(TacitError):  # of a catalog that cannot be read, nothing is known to be unused
                    used = [self.catalog.source(one).place for one in self.catalog.tables]
                    remove_unused(self.folder, name, places, used)

    def register(
        self,
        table: Table,
        source: Source,
        *,
        replace: bool = False,
        with_linked: bool = False,
        warn: Callable[[str], None] | None = None,
    ) -> Table:
        """Put a table into the catalog and look at its rows; if they are refused, the catalog is as it was.

        `with_linked` moves the tables that foreign keys link to it into its data set, if that is another one now.
        `warn` is as for `add_table`.
        """
        from tacit.engines.protocol import Source

        instance("table", table, Table, "a Table")
        instance("source", source, Source, "a Source")
        require_warn(warn)
        options = {"replace": truth_value("replace", replace), "with_linked": truth_value("with_linked", with_linked)}
        with self._lock:
            before, text = dict(self.catalog.tables), self.catalog.text
            source = self.engines.with_csv_formats(source)
            try:
                self.catalog.add(table, source, **options)
                self.engines.refresh((table.name,))
                self._count_public((table.name,))
                self.note_sources((table.name,), before, warn=warn)
            except BaseException:
                self._restore(before.get(table.name.lower()), table.name, text)
                raise
            return self.catalog.schema.table(table.name)

    def _restore(self, known: Table | None, name: str, text: str) -> None:
        """Make the catalog say of a table what it said before it was to be replaced by one that was refused."""
        from tacit.curator.catalog import Catalog

        catalog = self.catalog
        if catalog.text == text:
            return
        if known is None:
            catalog.remove(name)
            return
        Catalog.rewrite(self.folder, text, catalog.text)
        with suppress(TacitError):
            try:
                self.engines.bind((known,))
            except CatalogChanged:  # its rows were looked at as those of the other, so they have no version now
                self.engines.refresh((name,))

    def note_sources(
        self, names: Iterable[str], before: Mapping[str, Table], *, warn: Callable[[str], None] | None = None
    ) -> None:
        """Keep which files tables have now, and warn of budgets that do not know of one another.

        This is about the named tables, and all that are in another data set than `before`.
        """
        from tacit.curator.source_history import SourceHistory, sentences, shared_budgets

        keys = {name.lower() for name in instances("names", names, str, "a list of names of tables")}
        for one in mapping("before", before, "the tables by their names").values():
            instance("before", one, Table, "the tables by their names")
        require_warn(warn)
        with self._lock:
            catalog, history = self.catalog, SourceHistory(self.folder)
            keys |= {key for key, one in catalog.tables.items() if before.get(key, one).dataset != one.dataset}
            tables = [table for key, table in catalog.tables.items() if key in keys]
            known = history.all()
            found = [one for table in tables for one in shared_budgets(catalog, known, table, before)]
            for table in tables:
                history.add(table, catalog.source(table.name), [one.dataset for one in found if one.table == table])
            for sentence in sentences(self.ledger, found):
                if warn is None:
                    warnings.warn(sentence, PrivacyWarning, stacklevel=4)
                else:
                    warn(sentence)

    def _keep_forms(self, names: Iterable[str]) -> None:
        """State how CSV files are written where the catalog does not say it, so that all later versions are read so."""
        with self._lock:
            catalog = self.catalog
            for table in [catalog.schema.table(name) for name in names]:
                source = catalog.source(table.name)
                if source != (formed := self.engines.with_csv_formats(source)):
                    catalog.add(table, formed, replace=True)

    def _count_public(self, names: Iterable[str]) -> None:
        """State how many rows public tables have: joins with them multiply the rows of a unit by so many."""
        with self._lock:
            catalog = self.catalog
            for table in [catalog.schema.table(name) for name in names]:
                if not table.is_private and (rows := self.engines.rows(table)) != table.rows:
                    catalog.add(dataclasses.replace(table, rows=rows), catalog.source(table.name), replace=True)

    def remove_table(self, name: str) -> None:
        """Take a table out of the catalog; its file, its budget and what was released stay."""
        from tacit.curator.source_history import SourceHistory

        with self._lock:
            table, source = self.catalog.schema.table(name), self.catalog.source(name)
            SourceHistory(self.folder).add(table, source)  # of a folder that had no history yet
            self.catalog.remove(name)
            self.engines.forget(name)

    def refresh(self, *names: str) -> list[str]:
        """Look at the rows of tables again, or of all, and return the tables whose rows have changed.

        Questions are about the rows of the last refresh; the tables that the named ones lead to, and those that lead
        to their units through them, are looked at as well. Where rows are refused, nothing changes.
        """
        catalog = self.catalog
        named = {catalog.schema.table(name).name for name in names} if names else {*catalog.tables}
        self._require_own_rows(named)
        self._keep_forms(named)
        changed = self.engines.refresh(named)
        self._count_public(changed)
        self._note_refreshed(changed)
        return changed

    def _require_own_rows(self, names: Iterable[str]) -> None:
        """Refuse rows that have become those of another data set, by another link or name, since their registration."""
        from tacit.curator.source_history import SourceHistory, newly_shared

        catalog, known = self.catalog, SourceHistory(self.folder).all()
        for table in [catalog.schema.table(name) for name in names]:
            if others := newly_shared(catalog, known, table):
                raise InvalidInput(
                    f"the rows of {table.name} are now those of {others[0]} too; if that is meant, register it anew",
                    name="table",
                    value=table.name,
                )

    def _note_refreshed(self, names: Iterable[str]) -> None:
        """Keep which files tables have now; of those that were stated by hand, this is the first that is known."""
        from tacit.curator.source_history import SourceHistory

        history, catalog = SourceHistory(self.folder), self.catalog
        tables = [catalog.schema.table(name) for name in names]
        for table in tables:
            if history.has(table):
                history.add(table, catalog.source(table.name))
            else:
                self.note_sources((table.name,), {})

    def set_budget(
        self,
        dataset: str,
        epsilon: object,
        delta: object = 0.0,
        *,
        filter: str | None = None,
        order: object = None,
        relation: Relation = Relation.ADD_REMOVE,
        per_epoch: bool = False,
        epsilon_min: object = None,
        units: int | None = None,
    ) -> LedgerBudget:
        """Give a data set its budget, or another one as long as nothing is charged to it.

        `epsilon_min` is the least epsilon that a release costs, a ten-thousandth of the budget's unless it is said.
        `units` is how many units the data hold, if that is public; delta is then held against it.
        """
        for sentence in Budget(epsilon, delta, filter=filter, order=order, relation=relation).warnings(units):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)
        return self.ledger.create_budget(
            *(dataset, epsilon, delta),
            filter=filter,
            order=order,
            relation=relation,
            per_epoch=per_epoch,
            epsilon_min=epsilon_min,
        )

    def add_analyst(self, name: str, budgets: Mapping[str, Budget]) -> None:
        """Let an analyst, or a group, spend up to a cap on each of some data sets."""
        if not mapping("budgets", budgets, "a Budget for each data set"):
            raise EmptyInput("an analyst is added with a budget on at least one data set", name="budgets")
        for dataset, budget in budgets.items():
            if not isinstance(budget, Budget):
                raise WrongType(f"what {name} may spend on {dataset} is a Budget", name="budgets", value=budget)
        self.ledger.create_caps(name, {dataset: budget.cap for dataset, budget in budgets.items()})

    def budget(self, dataset: str, analyst: str | None = None, *, epoch: str | None = None) -> LedgerBudget:
        """Return the budget of a data set, of an analyst on it, or of one of its epochs."""
        return self.ledger.budget(dataset, analyst=analyst, epoch=epoch)

    def budgets(self, dataset: str | None = None) -> list[LedgerBudget]:
        """Return every budget, or those of one data set: first the whole, then those of its analysts and epochs."""
        scopes = self.ledger.scopes(dataset)
        scopes.sort(key=lambda scope: (scope.dataset, scope.kind != "dataset", scope.name))
        return [LedgerBudget(self.ledger, scope) for scope in scopes]

    def requests(self, *, only_open: bool = False) -> list[Request]:
        """Return requests of analysts for more budget, the oldest first."""
        return self.ledger.requests(only_open=only_open)

    def decide(self, request: str, granted: bool, by: str, note: str = "") -> Request:
        """Grant or decline a request; granting raises the analyst's cap, never above the data set's."""
        return self.ledger.decide(request, granted, by, note)

    def sql(self, sql: str, epsilon: object = None, **options: Unpack[QueryOptions]) -> Release:
        """Answer a question privately, or raise and charge nothing.

        `epsilon` is what the whole answer costs; or `rho`, or `error` (the wanted half-width of the interval of its
        first count or sum). The other arguments are those of `tacit.query.QueryOptions`: `delta`, `limits`, `keys`,
        `other`, `analyst`, `purpose`, `key`, `timeout_s` and `progress`.
        """
        from tacit.query import QuerySpec

        return self.queries().release(QuerySpec.of(sql, epsilon, options))

    def table(self, name: str) -> CuratedTable:
        """Return a private table for statistics: `tacit.stats.mean(curator.table("visits")["age"], epsilon=0.1)`."""
        from tacit.curator.curated_tables import CuratedTable
        from tacit.curator.salt import salt_of

        return CuratedTable(self.catalog.schema.table(name), self.ledger, self.engines, salt_of(self.folder))

    def preview(
        self, sql: str, epsilon: object = None, *, analyst: str | None = None, **options: Unpack[PlanOptions]
    ) -> Preview:
        """Return what `sql` would charge, exactly, and how wide its intervals would be; spends nothing.

        It takes the arguments of `sql` that decide the price (`tacit.query.PlanOptions`), and `analyst`.
        """
        from tacit.query import QuerySpec

        return self.queries().preview(QuerySpec.of_plan(sql, epsilon, options, analyst))

    def explain(self, sql: str, epsilon: object = None, **options: Unpack[PlanOptions]) -> list[Line]:
        """Return, pass by pass, what `sql` would do: bounds, sensitivities, noise, and the SQL that the engine runs.

        It takes the arguments of `sql` that decide the price (`tacit.query.PlanOptions`).
        """
        from tacit.query import QuerySpec
        from tacit.query.explain import explain

        bound = self.queries().bind(QuerySpec.of_plan(sql, epsilon, options))
        return explain(bound.plan, bound.engine.write)

    def queries(self, among: Collection[str] | None = None) -> QueryService:
        """Return what answers SQL; with `among`, for a caller who sees only these tables."""
        from tacit.curator.query_service import Plans, QueryService
        from tacit.curator.salt import salt_of

        schema = self.catalog.schema
        visible = None
        if among is not None:
            visible = Schema(map(schema.table, instances("among", among, str, "a list of names of tables")))
        if self._plans is None:
            self._plans = Plans()
        return QueryService(schema, self.ledger, self.engines, salt_of(self.folder), self._plans, visible)

    def cancel(self, thread: int | None = None) -> None:
        """Stop the question that a thread runs, or all, from another thread; what was charged stays charged."""
        if self._registry is not None:
            self._registry.cancel(thread)

    def close(self) -> None:
        """Let go of the folder."""
        with ExitStack() as closing:
            closing.callback(self.ledger.close)
            if self._registry is not None:
                closing.callback(self._registry.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Curator({str(self.folder)!r})"
