"""What answers a query: the curator of a folder or a server, behind one protocol for commands and the prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from tacit.cli.connections import open_client, open_curator
from tacit.cli.options import ServerAddress
from tacit.cli.rendering import Answer

if TYPE_CHECKING:
    from tacit import Cost
    from tacit.client import Client
    from tacit.curator import Curator
    from tacit.ledger import LedgerBudget
    from tacit.privacy.tables import Table
    from tacit.query import Preview, RunOptions
    from tacit.query.explain import Line


class Backend(Protocol):
    """What answers queries; `asked` holds epsilon and the `tacit.query.PlanOptions`."""

    @property
    def location(self) -> str:
        """The folder, or the address of the server."""

    def tables(self) -> Sequence[Table]:
        """Return what is public about the tables."""

    def preview(self, sql: str, asked: Mapping[str, Any], analyst: str | None) -> Preview:
        """Return what a question would cost; spends nothing."""

    def explain(self, sql: str, asked: Mapping[str, Any]) -> Sequence[Line]:
        """Return pass by pass what a question would do; spends nothing."""

    def sql(self, sql: str, asked: Mapping[str, Any], analyst: str | None, **run: Unpack[RunOptions]) -> Answer:
        """Answer a question and charge it."""

    def remaining(self, datasets: Sequence[str], analyst: str | None) -> Mapping[str, Cost]:
        """Return what is left of some budgets to whoever asks."""

    def budgets(self, dataset: str | None = None) -> list[dict[str, Any]]:
        """Return the budgets of a data set, or all that may be seen: first the whole, then its parts."""

    def require_analyst(self, name: str) -> None:
        """Refuse a name that nobody has here."""

    def cancel(self, thread: int) -> None:
        """Stop the question that a thread waits for."""


class FolderBackend:
    """The curator of a folder."""

    def __init__(self, curator: Curator) -> None:
        self._curator = curator

    @property
    def location(self) -> str:
        return str(self._curator.folder)

    def tables(self) -> Sequence[Table]:
        return list(self._curator.catalog.tables.values())

    def preview(self, sql: str, asked: Mapping[str, Any], analyst: str | None) -> Preview:
        return self._curator.preview(sql, **asked, analyst=analyst)

    def explain(self, sql: str, asked: Mapping[str, Any]) -> Sequence[Line]:
        return self._curator.explain(sql, **asked)

    def sql(self, sql: str, asked: Mapping[str, Any], analyst: str | None, **run: Unpack[RunOptions]) -> Answer:
        return self._curator.sql(sql, **asked, **run, analyst=analyst)

    def remaining(self, datasets: Sequence[str], analyst: str | None) -> Mapping[str, Cost]:
        return {name: self._curator.budget(name, analyst).remaining() for name in datasets}

    def budgets(self, dataset: str | None = None) -> list[dict[str, Any]]:
        from tacit.cli.catalog_rendering import budget_object

        if dataset is not None:
            known_budget(self._curator, dataset)  # refuses one that has none
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
            names = f"known are {', '.join(known)}" if known else "tacit budget analyst adds one"
            raise UnknownName(f"no analyst is called {name}; {names}", name="analyst", value=name)

    def cancel(self, thread: int) -> None:
        self._curator.cancel(thread)


class ServerBackend:
    """A server, with intervals at one level; who asks is said by the token."""

    def __init__(self, client: Client, level: float) -> None:
        self._client, self._level = client, level
        self._left: dict[str, Cost] = {}
        """What was left of each data set when the server last spoke of it."""

    @property
    def location(self) -> str:
        return self._client.url

    def tables(self) -> Sequence[Table]:
        return [one.table for one in self._client.tables()]

    def preview(self, sql: str, asked: Mapping[str, Any], analyst: str | None) -> Preview:
        preview = self._client.preview(sql, **asked, analyst=analyst)
        self._left |= preview.remaining
        return preview

    def explain(self, sql: str, asked: Mapping[str, Any]) -> Sequence[Line]:
        return self._client.explain(sql, **asked)

    def sql(self, sql: str, asked: Mapping[str, Any], analyst: str | None, **run: Unpack[RunOptions]) -> Answer:
        release = self._client.sql(sql, **asked, **run, analyst=analyst, level=self._level)
        self._left |= release.remaining
        return release

    def remaining(self, datasets: Sequence[str], analyst: str | None) -> Mapping[str, Cost]:
        return {name: self._left[name] for name in datasets}

    def budgets(self, dataset: str | None = None) -> list[dict[str, Any]]:
        from tacit.cli.catalog_rendering import budget_object

        if dataset is not None:
            self._client.budget(dataset)  # refuses one that has none
        found = []
        for one in self._client.budgets():
            kind = "analyst" if one.analyst else "epoch" if one.epoch else "dataset"
            part, figures = one.analyst or one.epoch or "", (one.cap, one.spent, one.remaining, one.epsilon_min)
            if dataset in (None, one.dataset):
                found.append(budget_object(one.name, one.dataset, kind, part, *figures))
        return sorted(found, key=lambda one: (one["dataset"], one["kind"] != "dataset", one["name"]))

    def require_analyst(self, name: str) -> None:
        from tacit.privacy.errors import InvalidInput

        raise InvalidInput("the token says who asks a server", name="analyst", value=name)

    def cancel(self, thread: int) -> None:
        self._client.cancel(thread)


def known_budget(curator: Curator, dataset: str) -> LedgerBudget:
    """Return the budget of a data set; a misspelt name is refused with the one that is near."""
    from tacit.privacy.errors import UnknownName
    from tacit.privacy.near_names import did_you_mean

    try:
        return curator.budget(dataset)
    except UnknownName as error:
        near = did_you_mean(dataset, [one.scope.dataset for one in curator.budgets()])
        if not near:
            raise
        raise UnknownName(f"no budget was created for {dataset}; {near}", name="dataset", value=dataset) from error


@contextmanager
def open_backend(folder: Path, server: ServerAddress | None, level: float) -> Iterator[Backend]:
    """Open a folder, or connect to a server whose intervals have `level`."""
    if server is None:
        with open_curator(folder) as curator:
            yield FolderBackend(curator)
    else:
        with open_client(server) as client:
            yield ServerBackend(client, level)
