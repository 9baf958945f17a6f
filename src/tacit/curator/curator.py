"""`Curator`, the entry point to a folder: registers tables, sets budgets, answers queries.

Promise: every charge goes through the ledger of the folder, and every release through the one pipeline
(`tacit.pipeline`). A budget whose delta promises too little is warned of when it is set.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from tacit.curator.locked_file import make_private_folder, open_folder_warning
from tacit.ledger import HEAD_FILE, Budget, Ledger, LedgerBudget, Permit, Request, Store
from tacit.ledger.budget import check_analyst_budgets
from tacit.privacy import texts
from tacit.privacy.arguments import instance, instances, require_warn
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import CatalogChanged, InvalidInput, TacitError
from tacit.privacy.numbers import truth_value
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Relation, Unit

if TYPE_CHECKING:
    from tacit.attack import Finding
    from tacit.curator.catalog import Catalog
    from tacit.curator.curated_findings import CuratedFinding
    from tacit.curator.curated_tables import CuratedTable
    from tacit.curator.engine_registry import EngineRegistry
    from tacit.curator.models import ModelStore, PreparedTraining, TrainingOptions
    from tacit.curator.query_service import PlanCache, QueryService
    from tacit.engines.protocol import Source
    from tacit.learn.estimators.base import PrivateEstimator
    from tacit.query import PlanOptions, Preview, QueryOptions, Release
    from tacit.query.explain import Line


_WARNED: Final[set[str]] = set()
"""Folders that others can open and that were warned of."""


class PrivacyWarning(UserWarning):
    """A setting is allowed but promises less privacy than expected."""


class Curator:
    """A folder with its catalog, ledger and released answers; `store` is the database of a ledger that is elsewhere."""

    def __init__(self, folder: Path | str, *, store: Store | None = None) -> None:
        """Open the folder, and create it if it is missing."""
        self.folder: Final = texts.path("folder", folder)
        if store is not None:
            make_private_folder(self.folder)
        self.ledger: Final = Ledger.open(self.folder if store is None else store, anchor=self.folder / HEAD_FILE)
        self._lock = threading.RLock()
        self._catalog: Catalog | None = None
        self._registry: EngineRegistry | None = None
        self._plans: PlanCache | None = None
        path = os.path.abspath(self.folder)
        if path not in _WARNED and (sentence := open_folder_warning(self.folder)):
            _WARNED.add(path)
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)

    @property
    def catalog(self) -> Catalog:
        """The public facts about the tables, as the catalog's file is now."""
        from tacit.curator.catalog import Catalog

        with self._lock:
            if self._catalog is None:
                self._catalog = Catalog.open(self.folder)
            else:
                self._catalog.reload()
            return self._catalog

    @property
    def engines(self) -> EngineRegistry:
        """The engines of the tables."""
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
        each_row: bool = False,
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

        Exactly one of these states who is protected: `unit` (a column, or a Unit with the foreign keys to it),
        `each_row` (every row is a unit of its own; the rows of a file or frame are copied into the folder with a column
        that numbers them), or `public`. Facts about columns are stated here and never derived from the data. `warn` is
        called instead of warnings.warn, for rows that another data set has, or had, too.
        """
        from tacit.curator.registration import numbered_copy, table_of

        may_replace = truth_value("replace", replace)
        texts.name("the name of a table", name)
        require_warn(warn)
        with self._lock, self._source_of(name, data, format) as source:
            table = table_of(
                name,
                self.engines.describe(source),
                unit=unit,
                public=public,
                each_row=each_row,
                columns=columns,
                limits=limits,
                identified_by=identified_by,
                dataset=dataset,
                kinds=kinds,
            )
            if not each_row:
                return self.register(table, source, replace=may_replace, warn=warn)
            with numbered_copy(self.folder, table, source) as copy:
                return self.register(table, copy, replace=may_replace, warn=warn, copied_from=source)

    @contextmanager
    def _source_of(self, name: str, data: Any, format: str | None) -> Iterator[Source]:
        """Yield the source of a table's data, a new file for a frame; then remove files that no table uses any more."""
        from tacit.curator.table_sources import source_of
        from tacit.engines.frames import frame_source, is_frame, is_same_frame, remove_unused

        known = self.catalog.source(name) if name.lower() in self.catalog.tables else None
        places = [known.place] if known is not None else []
        try:
            if not is_frame(data):
                yield self.engines.with_csv_formats(source_of(data, folder=self.folder, format=format))
                return
            source = frame_source(data, self.folder, name)
            places.append(source.place)
            if known is not None and is_same_frame(known, source, self.folder):
                source = known  # unchanged rows keep their version
            yield source
        finally:
            with suppress(TacitError):  # an unreadable catalog does not tell which files are unused
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
        copied_from: Source | None = None,
    ) -> Table:
        """Add a table to the catalog and read its rows; if they are refused, the catalog is restored.

        `with_linked` moves the tables that foreign keys link to it along if its data set changes. `warn` is as for
        `add_table`. `copied_from` is the source that a numbered copy was made of, to notice other budgets over it.
        """
        from tacit.engines.protocol import Source

        instance("table", table, Table, "a Table")
        instance("source", source, Source, "a Source")
        if copied_from is not None:
            instance("copied_from", copied_from, Source, "a Source")
        require_warn(warn)
        options = {"replace": truth_value("replace", replace), "with_linked": truth_value("with_linked", with_linked)}
        with self._lock:
            before, text = dict(self.catalog.tables), self.catalog.text
            source = self.engines.with_csv_formats(source)
            try:
                self.catalog.add(table, source, **options)
                self.engines.refresh((table.name,))
                self._state_public_rows((table.name,))
                self.record_sources((table.name,), before, warn=warn, copied_from=copied_from)
            except BaseException:
                self._restore(before.get(table.name.lower()), table.name, text)
                raise
            return self.catalog.schema.table(table.name)

    def _restore(self, known: Table | None, name: str, text: str) -> None:
        """Restore the catalog entry of a table whose replacement was refused."""
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
            except CatalogChanged:  # its rows were read by the other entry, so their version is gone
                self.engines.refresh((name,))

    def record_sources(
        self,
        names: Iterable[str],
        before: Mapping[str, Table],
        *,
        warn: Callable[[str], None] | None = None,
        copied_from: Source | None = None,
    ) -> None:
        """Add the files of tables to the source history, and warn of budgets that cover the same rows."""
        from tacit.curator.source_history import record_sources

        require_warn(warn)
        with self._lock:
            for sentence in record_sources(self.catalog, self.ledger, self.folder, names, before, copied_from):
                if warn is None:
                    warnings.warn(sentence, PrivacyWarning, stacklevel=4)
                else:
                    warn(sentence)

    def _state_csv_formats(self, names: Iterable[str]) -> None:
        """Add detected CSV formats to the catalog, so that later versions of the files are read in the same way."""
        with self._lock:
            catalog = self.catalog
            for table in [catalog.schema.table(name) for name in names]:
                source = catalog.source(table.name)
                if source != (formed := self.engines.with_csv_formats(source)):
                    catalog.add(table, formed, replace=True)

    def _state_public_rows(self, names: Iterable[str]) -> None:
        """Write the row counts of public tables to the catalog; joins with them multiply the rows of a unit."""
        with self._lock:
            catalog = self.catalog
            for table in [catalog.schema.table(name) for name in names]:
                if not table.is_private and (rows := self.engines.count_rows(table)) != table.rows:
                    catalog.add(dataclasses.replace(table, rows=rows), catalog.source(table.name), replace=True)

    def remove_table(self, name: str) -> None:
        """Remove a table from the catalog; its file, its budget and its releases stay."""
        from tacit.curator.source_history import SourceHistory

        with self._lock:
            table, source = self.catalog.schema.table(name), self.catalog.source(name)
            SourceHistory(self.folder).add(table, source)  # the folder may have no history yet
            self.catalog.remove(name)
            self.engines.forget(name)

    def refresh(self, *names: str) -> list[str]:
        """Read the rows of the named tables, or of all, again; return the tables whose rows have changed.

        Queries see the rows of the last refresh. Tables that foreign keys to the unit link with the named ones are
        refreshed as well. If rows are refused, nothing changes.
        """
        from tacit.curator.source_history import SourceHistory, require_unshared

        catalog = self.catalog
        named = {catalog.schema.table(name).name for name in names} if names else {*catalog.tables}
        require_unshared(catalog, SourceHistory(self.folder).all(), named)
        self._state_csv_formats(named)
        changed = self.engines.refresh(named)
        self._state_public_rows(changed)
        self._record_refreshed(changed)
        return changed

    def _record_refreshed(self, names: Iterable[str]) -> None:
        """Add the present files of tables to the source history, with warnings for tables that are new in it."""
        from tacit.curator.source_history import SourceHistory

        history, catalog = SourceHistory(self.folder), self.catalog
        tables = [catalog.schema.table(name) for name in names]
        for table in tables:
            if history.has(table):
                history.add(table, catalog.source(table.name))
            else:
                self.record_sources((table.name,), {})

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
        """Set the budget of a data set; it can be replaced until something is charged.

        `epsilon_min` is the least epsilon of a release, by default a ten-thousandth of the budget's. `units` is the
        number of units in the data, if that is public; a delta that is too large for it is warned of.
        """
        if per_epoch is True:
            self._require_no_tables(dataset)
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
        """Set the caps of an analyst or a group on data sets."""
        stated = check_analyst_budgets(name, budgets)
        self.ledger.create_caps(name, {dataset: budget.cap for dataset, budget in stated.items()})

    def set_cap(self, analyst: str, dataset: str, epsilon: object, delta: object = None) -> LedgerBudget:
        """Set how much an analyst or a group may spend on a data set, under the data set's filter.

        Delta is that of the data set unless it is stated.
        """
        whole = self.ledger.budget(dataset).cap
        return self.ledger.create_cap(dataset, analyst, epsilon, whole.delta if delta is None else delta)

    def add_epoch(self, dataset: str, name: str, **settings: Any) -> LedgerBudget:
        """Add an epoch to a data set without tables (`Ledger.add_epoch`)."""
        self._require_no_tables(dataset)
        return self.ledger.add_epoch(dataset, name, **settings)

    def _require_no_tables(self, dataset: str) -> None:
        """Raise InvalidInput for a data set of tables: queries about them cannot be charged to epochs."""
        name = texts.name("dataset", dataset)
        if any(table.dataset == name for table in self.catalog.tables.values()):
            raise InvalidInput(
                f"{dataset} has tables, and queries about tables cannot be charged to epochs; use a data set without "
                "tables, and charge its releases with budget(dataset, epoch=...).charge",
                name="dataset",
            )

    def budget(self, dataset: str, analyst: str | None = None, *, epoch: str | None = None) -> LedgerBudget:
        """Return the budget of a data set, of an analyst on it, or of one of its epochs."""
        return self.ledger.budget(dataset, analyst=analyst, epoch=epoch)

    def budgets(self, dataset: str | None = None) -> list[LedgerBudget]:
        """Return all budgets, or those of one data set: that of the data set, then those of its analysts and epochs."""
        scopes = self.ledger.scopes(dataset)
        scopes.sort(key=lambda scope: (scope.dataset, scope.kind != "dataset", scope.name))
        return [LedgerBudget(self.ledger, scope) for scope in scopes]

    def resume(self, dataset: str) -> int:
        """Allow runs on a data set again after too many failed (Suspended); return how many failures are now seen."""
        from tacit.pipeline import allow_runs

        return allow_runs(self.ledger, self.ledger.budget(dataset).dataset)

    def requests(self, *, only_open: bool = False) -> list[Request]:
        """Return requests of analysts for more budget, oldest first."""
        return self.ledger.requests(only_open=only_open)

    def decide(self, request: str, granted: bool, by: str, note: str = "") -> Request:
        """Grant or decline a request; granting raises the analyst's cap, at most to that of the data set."""
        return self.ledger.decide(request, granted, by, note)

    def keep_finding(self, finding: Finding, dataset: str | None = None, *, by: str) -> CuratedFinding:
        """Keep a finding of `tacit.attack`, without people, about the permit of its claim, or about a data set.

        It charges nothing. The data set is that of the permit unless it is stated.
        """
        from tacit.curator.curated_findings import keep

        return keep(self.ledger, finding, dataset, by)

    def findings(self, dataset: str | None = None, permit: Permit | str | None = None) -> list[CuratedFinding]:
        """Return the findings that were kept, oldest first: of a data set or all, for a permit or all."""
        from tacit.curator.curated_findings import CuratedFinding

        return [CuratedFinding.of(one) for one in self.ledger.findings(dataset, permit)]

    def sql(self, sql: str, epsilon: object = None, **options: Unpack[QueryOptions]) -> Release:
        """Answer a query privately, or raise and charge nothing.

        `epsilon` is the cost of the whole answer; or `rho`, or `error`, the wanted half-width of the interval of its
        first count or sum. The other arguments are those of `tacit.query.QueryOptions`: `delta`, `limits`, `keys`,
        `other`, `analyst`, `purpose`, `key`, `timeout_s` and `progress`.
        """
        from tacit.query import QuerySpec

        return self.queries().release(QuerySpec.of(sql, epsilon, options))

    def table(self, name: str) -> CuratedTable:
        """Return a private table for statistics: `tacit.stats.mean(curator.table("visits")["age"], epsilon=0.1)`."""
        from tacit.curator.curated_tables import CuratedTable
        from tacit.curator.salt import salt_of

        return CuratedTable(self.catalog.schema.table(name), self.ledger, self.engines, salt_of(self.folder))

    def train(
        self,
        table: str,
        estimator: PrivateEstimator,
        features: Sequence[str],
        target: str | None = None,
        epsilon: object = None,
        **options: Unpack[TrainingOptions],
    ) -> PrivateEstimator:
        """Train a copy of an estimator of `tacit.learn` on columns of a table, and return it fitted; or charge nothing.

        `epsilon` and `delta` are what the training costs, unless the estimator states them. The model is kept in
        `models`, under the `model_id` of what is returned; the same training of the same rows costs nothing again.
        """
        return self.prepare_training(table, estimator, features, target, epsilon, **options).release()[0]

    def prepare_training(
        self,
        table: str,
        estimator: PrivateEstimator,
        features: Sequence[str],
        target: str | None = None,
        epsilon: object = None,
        **options: Unpack[TrainingOptions],
    ) -> PreparedTraining:
        """Plan what `train` does: `preview()` is what it costs, `release()` charges it. Nothing is charged here."""
        from tacit.curator.models import PreparedTraining

        return PreparedTraining.of(self.models, self.table(table), estimator, features, target, epsilon, options)

    @cached_property
    def models(self) -> ModelStore:
        """The models that were trained on tables."""
        from tacit.curator.models import ModelStore

        return ModelStore(self.folder)

    def preview(
        self, sql: str, epsilon: object = None, *, analyst: str | None = None, **options: Unpack[PlanOptions]
    ) -> Preview:
        """Return the exact charge of `sql` and the widths of its intervals; spends nothing.

        It takes the arguments of `sql` that decide the price (`tacit.query.PlanOptions`), and `analyst`.
        """
        from tacit.query import QuerySpec

        return self.queries().preview(QuerySpec.of_plan(sql, epsilon, options, analyst))

    def explain(self, sql: str, epsilon: object = None, **options: Unpack[PlanOptions]) -> list[Line]:
        """Return the plan of `sql`, pass by pass: bounds, sensitivities, noise, and the SQL that the engine runs.

        It takes the arguments of `sql` that decide the price (`tacit.query.PlanOptions`).
        """
        from tacit.query import QuerySpec
        from tacit.query.explain import explain

        bound = self.queries().bind(QuerySpec.of_plan(sql, epsilon, options))
        return explain(bound.plan, bound.engine.write)

    def queries(self, visible: Collection[str] | None = None) -> QueryService:
        """Return the query service, for a caller to whom only the `visible` tables exist; None for all."""
        from tacit.curator.query_service import PlanCache, QueryService
        from tacit.curator.salt import salt_of

        schema = self.catalog.schema
        seen = None
        if visible is not None:
            seen = Schema(map(schema.table, instances("visible", visible, str, "a list of names of tables")))
        if self._plans is None:
            self._plans = PlanCache()
        return QueryService(schema, self.ledger, self.engines, salt_of(self.folder), self._plans, seen)

    def cancel(self, thread: int | None = None) -> None:
        """Cancel the query that a thread runs, or all, from another thread; what was charged stays charged."""
        if self._registry is not None:
            self._registry.cancel(thread)

    def close(self) -> None:
        """Close the ledger and the engines."""
        with ExitStack() as closing:
            closing.callback(self.ledger.close)
            if self._registry is not None:
                closing.callback(self._registry.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Curator({str(self.folder)!r})"
