"""Query backends: the curator of a folder or a server, behind one protocol for commands and the prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from tacit.cli.connections import open_client, open_curator
from tacit.cli.options import ServerAddress
from tacit.cli.rendering import QueryAnswer

if TYPE_CHECKING:
    from tacit import Cost
    from tacit.client import Client
    from tacit.curator import Curator
    from tacit.ledger import LedgerBudget
    from tacit.privacy.tables import Table
    from tacit.query import Preview, RunOptions
    from tacit.query.explain import Line


class Backend(Protocol):
    """Answers queries; `options` holds epsilon and the `tacit.query.PlanOptions`."""

    @property
    def location(self) -> str:
        """The folder, or the URL of the server."""

    def tables(self) -> Sequence[Table]:
        """Return the tables with their public facts."""

    def preview(self, sql: str, options: Mapping[str, Any], analyst: str | None) -> Preview:
        """Return what a query would cost; nothing is charged."""

    def explain(self, sql: str, options: Mapping[str, Any]) -> Sequence[Line]:
        """Return step by step how a query would be answered; nothing is charged."""

    def sql(self, sql: str, options: Mapping[str, Any], analyst: str | None, **run: Unpack[RunOptions]) -> QueryAnswer:
        """Charge a query and answer it."""

    def remaining(self, datasets: Sequence[str], analyst: str | None) -> Mapping[str, Cost]:
        """Return the remaining budget of some data sets, or of the analyst on them."""

    def budgets(self, dataset: str | None = None) -> list[dict[str, Any]]:
        """Return the budgets of one or of all visible data sets: each data set's own first, then its parts."""

    def require_analyst(self, name: str) -> None:
        """Raise UnknownName unless an analyst has this name."""

    def cancel(self, thread: int) -> None:
        """Cancel the query that a thread is running."""


class FolderBackend:
    """The curator of a folder."""

    def __init__(self, curator: Curator) -> None:
        self._curator = curator

    @property
    def location(self) -> str:
        return str(self._curator.folder)

    def tables(self) -> Sequence[Table]:
        return list(self._curator.catalog.tables.values())

    def preview(self, sql: str, options: Mapping[str, Any], analyst: str | None) -> Preview:
        return self._curator.preview(sql, **options, analyst=analyst)

    def explain(self, sql: str, options: Mapping[str, Any]) -> Sequence[Line]:
        return self._curator.explain(sql, **options)

    def sql(self, sql: str, options: Mapping[str, Any], analyst: str | None, **run: Unpack[RunOptions]) -> QueryAnswer:
        return self._curator.sql(sql, **options, **run, analyst=analyst)

    def remaining(self, datasets: Sequence[str], analyst: str | None) -> Mapping[str, Cost]:
        return {name: self._curator.budget(name, analyst).remaining() for name in datasets}

    def budgets(self, dataset: str | None = None) -> list[dict[str, Any]]:
        from tacit.cli.catalog_rendering import budget_object

        if dataset is not None:
            known_budget(self._curator, dataset)  # raises if it has no budget
        return [
            budget_object(
                *(one.name, one.scope.dataset, one.scope.kind, one.scope.name),
                *(one.cap, one.spent(), one.remaining(), one.epsilon_min),
            )
            for one in self._curator.budgets(dataset)
        ]

    def require_analyst(self, name: str) -> None:
        from tacit.privacy.errors import UnknownName

        known = sorted({one["name"] for one in self.budgets() if one["kind"] == "analyst"})
        if name not in known:
            names = f"the analysts are {', '.join(known)}" if known else "add one with: tacit budget analyst"
            raise UnknownName(f"no analyst is named {name}; {names}", name="analyst", value=name)

    def cancel(self, thread: int) -> None:
        self._curator.cancel(thread)


class ServerBackend:
    """A server, with intervals at one level; the token identifies the analyst."""

    def __init__(self, client: Client, level: float) -> None:
        self._client, self._level = client, level
        self._left: dict[str, Cost] = {}
        """The remaining budget of each data set in the last response."""

    @property
    def location(self) -> str:
        return self._client.url

    def tables(self) -> Sequence[Table]:
        return [one.table for one in self._client.tables()]

    def preview(self, sql: str, options: Mapping[str, Any], analyst: str | None) -> Preview:
        preview = self._client.preview(sql, **options, analyst=analyst)
        self._left |= preview.remaining
        return preview

    def explain(self, sql: str, options: Mapping[str, Any]) -> Sequence[Line]:
        return self._client.explain(sql, **options)

    def sql(self, sql: str, options: Mapping[str, Any], analyst: str | None, **run: Unpack[RunOptions]) -> QueryAnswer:
        release = self._client.sql(sql, **options, **run, analyst=analyst, level=self._level)
        self._left |= release.remaining
        return release

    def remaining(self, datasets: Sequence[str], analyst: str | None) -> Mapping[str, Cost]:
        return {name: self._left[name] for name in datasets}

    def budgets(self, dataset: str | None = None) -> list[dict[str, Any]]:
        from tacit.cli.catalog_rendering import budget_object

        if dataset is not None:
            self._client.budget(dataset)  # raises if it has no budget
        found = []
        for one in self._client.budgets():
            kind = "analyst" if one.analyst else "epoch" if one.epoch else "dataset"
            part, figures = one.analyst or one.epoch or "", (one.cap, one.spent, one.remaining, one.epsilon_min)
            if dataset in (None, one.dataset):
                found.append(budget_object(one.name, one.dataset, kind, part, *figures))
        return sorted(found, key=lambda one: (one["dataset"], one["kind"] != "dataset", one["name"]))

    def require_analyst(self, name: str) -> None:
        from tacit.privacy.errors import InvalidInput

        raise InvalidInput(
            "a server identifies the analyst by the token; leave the analyst out", name="analyst", value=name
        )

    def cancel(self, thread: int) -> None:
        self._client.cancel(thread)


def known_budget(curator: Curator, dataset: str) -> LedgerBudget:
    """Return the budget of a data set; raise UnknownName with the nearest name for a misspelt one."""
    from tacit.privacy.errors import UnknownName
    from tacit.privacy.near_names import did_you_mean

    try:
        return curator.budget(dataset)
    except UnknownName as error:
        near = did_you_mean(dataset, [one.scope.dataset for one in curator.budgets()])
        if not near:
            raise
        raise UnknownName(f"{dataset} has no budget; {near}", name="dataset", value=dataset) from error


@contextmanager
def open_backend(folder: Path, server: ServerAddress | None, level: float) -> Iterator[Backend]:
    """Open a folder, or connect to a server whose intervals have `level`."""
    if server is None:
        with open_curator(folder) as curator:
            yield FolderBackend(curator)
    else:
        with open_client(server) as client:
            yield ServerBackend(client, level)
