"""The curator of one folder: whose data, which budgets, which analysts, which questions.

Promise: everything that is charged goes through the one ledger of the folder, and everything that is released through
the one road (`road`). What a budget promises is said when it is set, and a delta that promises too little is said
loudly.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from tacit.ledger import HEAD_FILE, Budget, Ledger, LedgerBudget, Store
from tacit.privacy.bounds import Bounds, Categories, Category
from tacit.privacy.errors import EmptyInput, NotAllowed, WrongType
from tacit.privacy.numbers import truth_value
from tacit.privacy.relations import Relation
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit

if TYPE_CHECKING:
    from tacit.curator.catalog import Catalog
    from tacit.curator.places import Home
    from tacit.curator.plans import Plans
    from tacit.curator.road import Asked, Road
    from tacit.curator.statistics import CuratedTable
    from tacit.engines.protocol import Engine, Progress, Source
    from tacit.query import Preview, Release
    from tacit.query.explain import Line


class PrivacyWarning(UserWarning):
    """A setting is allowed, and promises less than people will expect of it."""


class Curator:
    """A folder with its catalog, its ledger and its released answers; the ledger may lie in a database (`store`)."""

    def __init__(self, folder: Path | str, *, store: Store | None = None) -> None:
        """Open the folder, and make it if it is missing."""
        self.folder: Final = Path(folder)
        if store is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
        self.ledger: Final = Ledger.open(store or self.folder, anchor=self.folder / HEAD_FILE)
        self._lock = threading.RLock()
        self._catalog: Catalog | None = None
        self._engines: dict[Home, Engine] = {}
        self._shown: dict[str, tuple[Table, Source]] = {}
        self._plans: Plans | None = None

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
    ) -> Table:
        """Register a table: a CSV, Parquet or DuckDB file (or glob of files), or a pandas, polars or Arrow frame.

        Or one that stays in its database: "postgresql://host/db#schema.table", "sc://host:15002#catalog.db.table".

        It is private with a `unit` (a column, or a Unit with the foreign keys that lead to it) or it is `public`.
        What is known of its columns is stated here and never read off the data.
        """
        from tacit.curator.catalog import Catalog
        from tacit.curator.places import home_of
        from tacit.curator.sources import source_of
        from tacit.curator.stating import table_of
        from tacit.engines.frames import frame_source, is_frame

        may_replace = truth_value("replace", replace)
        with self._lock:
            catalog = self.catalog
            if is_frame(data):
                source = frame_source(data, self.folder, name)
            else:
                source = source_of(data, folder=self.folder, format=format)
            table = table_of(
                name,
                self._opened(home_of(source)).describe(source),
                unit=unit,
                public=public,
                columns=columns,
                limits=limits,
                identified_by=identified_by,
                dataset=dataset,
                kinds=kinds,
            )
            before = dict(catalog.tables), catalog.text
            catalog.add(table, source, replace=may_replace)
            try:
                self._ready((name,))
            except BaseException:
                if name.lower() in before[0]:
                    Catalog.rewrite(self.folder, before[1], catalog.text)
                else:
                    catalog.remove(name)
                raise
            return table

    def remove_table(self, name: str) -> None:
        """Take a table out of the catalog; its file, its budget and what was released stay."""
        from tacit.curator.places import home_of

        with self._lock:
            self.catalog.remove(name)
            shown = self._shown.pop(name.lower(), None)
            if shown is not None and (engine := self._engines.get(home_of(shown[1]))) is not None:
                engine.forget(name)

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
        units: int | None = None,
    ) -> LedgerBudget:
        """Give a data set its budget, once and for all.

        `units` is how many units the data hold, if that is public; delta is then held against it.
        """
        for sentence in Budget(epsilon, delta, filter=filter, order=order, relation=relation).warnings(units):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)
        return self.ledger.create_budget(
            dataset, epsilon, delta, filter=filter, order=order, relation=relation, per_epoch=per_epoch
        )

    def add_analyst(self, name: str, budgets: Mapping[str, Budget]) -> None:
        """Let an analyst, or a group, spend up to a cap on each of some data sets."""
        if not budgets:
            raise EmptyInput("an analyst is added with a budget on at least one data set", name="budgets")
        for dataset, budget in budgets.items():
            if not isinstance(budget, Budget):
                raise WrongType(f"what {name} may spend on {dataset} is a Budget", name="budgets", value=budget)
        self.ledger.create_caps(name, {dataset: budget.cap for dataset, budget in budgets.items()})

    def budget(self, dataset: str, analyst: str | None = None, *, epoch: str | None = None) -> LedgerBudget:
        """Return the budget of a data set, of an analyst on it, or of one of its epochs."""
        return self.ledger.budget(dataset, analyst=analyst, epoch=epoch)

    def sql(
        self,
        sql: str,
        epsilon: object = None,
        *,
        rho: object = None,
        error: object = None,
        delta: object = None,
        analyst: str | None = None,
        purpose: str = "",
        limits: Limits | None = None,
        keys: Mapping[str, Sequence[Category]] | None = None,
        other: bool = False,
        key: str | None = None,
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> Release:
        """Answer a question privately, or raise and charge nothing.

        `epsilon` is what the whole answer costs; or `rho`, or `error` (the wanted half-width of the interval of its
        first count or sum). `limits` says how much of each unit is counted, `keys` which groups are public; with
        `other` the groups whose keys cannot be shown are added up in one more row. The same `key` (any text) with the
        same question on the same data is charged once, so a question whose answer was lost can be asked again.
        """
        asked = _asked(sql, epsilon, rho, error, delta, limits, keys, other, analyst, purpose, key)
        return self.road().release(asked, timeout_s=timeout_s, progress=progress)

    def table(self, name: str) -> CuratedTable:
        """Return a private table for statistics: `tacit.stats.mean(curator.table("visits")["age"], epsilon=0.1)`."""
        from tacit.curator.salt import salt_of
        from tacit.curator.statistics import CuratedTable

        return CuratedTable(self.catalog.schema.table(name), self.ledger, self._ready, salt_of(self.folder))

    def preview(
        self,
        sql: str,
        epsilon: object = None,
        *,
        rho: object = None,
        error: object = None,
        delta: object = None,
        analyst: str | None = None,
        limits: Limits | None = None,
        keys: Mapping[str, Sequence[Category]] | None = None,
        other: bool = False,
    ) -> Preview:
        """Return what `sql` would charge, exactly, and how wide its intervals would be; spends nothing."""
        return self.road().preview(_asked(sql, epsilon, rho, error, delta, limits, keys, other, analyst))

    def explain(
        self,
        sql: str,
        epsilon: object = None,
        *,
        rho: object = None,
        error: object = None,
        delta: object = None,
        limits: Limits | None = None,
        keys: Mapping[str, Sequence[Category]] | None = None,
        other: bool = False,
    ) -> list[Line]:
        """Return, pass by pass, what `sql` would do: bounds, sensitivities, noise, and the SQL that the engine runs."""
        from tacit.query.explain import explain

        plan = self.road().plan(_asked(sql, epsilon, rho, error, delta, limits, keys, other))
        return explain(plan, self._ready(plan.tables).write)

    def road(self, among: Collection[str] | None = None) -> Road:
        """Return the road of releases; with `among`, for somebody to whom there are only these tables."""
        from tacit.curator.plans import Plans
        from tacit.curator.road import Road
        from tacit.curator.salt import salt_of

        schema = self.catalog.schema
        visible = None if among is None else Schema(schema.table(name) for name in among)
        if self._plans is None:
            self._plans = Plans()
        return Road(schema, self.ledger, self._ready, salt_of(self.folder), self._plans, visible)

    def cancel(self, thread: int | None = None) -> None:
        """Stop the question that a thread runs, or all, from another thread; what was charged stays charged."""
        for engine in list(self._engines.values()):
            engine.cancel(thread)

    def close(self) -> None:
        """Let go of the folder."""
        with self._lock:
            engines, self._engines = self._engines, {}
            self._shown.clear()
        with ExitStack() as closing:  # one that fails keeps none of the others open
            closing.callback(self.ledger.close)
            for engine in engines.values():
                closing.callback(engine.close)

    def _opened(self, home: Home) -> Engine:
        """Return an engine, opening it if it is not."""
        from tacit.curator.places import opened
        from tacit.curator.salt import salt_of

        with self._lock:
            if home not in self._engines:
                self._engines[home] = opened(home, self.folder, salt_of(self.folder))
            return self._engines[home]

    def _ready(self, names: Sequence[str]) -> Engine:
        """Return the engine with the named tables in it, and those through which they lead to their units."""
        from tacit.curator.places import home_of, in_words

        with self._lock:
            catalog = self.catalog
            wanted = {name.lower() for name in names}
            for table in reversed(catalog.ordered()):
                if table.name.lower() in wanted and table.unit is not None:
                    wanted |= {step.target_table.lower() for step in table.unit.through}
            tables = [table for table in catalog.ordered() if table.name.lower() in wanted]
            homes = {home_of(catalog.source(table.name)): table.name for table in tables}
            if len(homes) > 1:
                places = " and ".join(f"{name} in {in_words(home)}" for home, name in homes.items())
                raise NotAllowed(
                    f"the tables of one question lie in one engine, and here are {places}",
                    accepted="register copies of the smaller tables where the others are",
                )
            engine = self._opened(next(iter(homes)))
            for table in tables:
                stated = table, catalog.source(table.name)
                if self._shown.get(table.name.lower()) != stated:
                    engine.register(*stated, catalog.tables)
                    self._shown[table.name.lower()] = stated
            return engine

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Curator({str(self.folder)!r})"


def _asked(
    sql: str,
    epsilon: Any,
    rho: Any,
    error: Any,
    delta: Any,
    limits: Limits | None,
    keys: Mapping[str, Sequence[Category]] | None,
    other: bool,
    analyst: str | None = None,
    purpose: str = "",
    key: str | None = None,
) -> Asked:
    from tacit.curator.road import Asked
    from tacit.query import Settings, Target

    settings = Settings(limits or Limits(), keys, other)
    return Asked(sql, Target(epsilon, rho, error, delta), settings, analyst, purpose, key)
