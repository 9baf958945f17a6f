"""Query backends: the curator of a folder or a server, behind one protocol for commands and the prompt.

Open the folder (catalog, ledger), the access database or the server that a command works on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Unpack

import click

from tacit.cli.options import ServerAddress

if TYPE_CHECKING:
    from tacit import Cost
    from tacit.cli.options import ServerAddress
    from tacit.client import Client
    from tacit.curator import Curator
    from tacit.curator.catalog import Catalog
    from tacit.ledger import LedgerBudget
    from tacit.privacy.tables import Table
    from tacit.query import Preview, RunOptions
    from tacit.query.explain import Line
    from tacit.query.release import ReleasedRows
    from tacit.server.access import Access


CATALOG: Final = "catalog.toml"
LEDGER: Final = "ledger.sqlite"
SERVER: Final = "server.sqlite"
SETTINGS: Final = "server.toml"
LEDGER_ADDRESS: Final = "TACIT_LEDGER_POSTGRES"
"""Environment variable with the connection string of a ledger in PostgreSQL."""


def is_set_up(folder: Path) -> bool:
    """Return whether a folder has a catalog or a ledger."""
    return any((folder / name).exists() for name in (CATALOG, LEDGER))


def require_folder(folder: Path) -> None:
    """Raise UnknownName unless `tacit init` has set the folder up: a mistyped name must not create a second ledger."""
    import shlex

    from tacit.privacy import texts
    from tacit.privacy.errors import UnknownName

    texts.path("folder", folder)
    if not is_set_up(folder):
        command = f"tacit init {shlex.quote(str(folder))}"
        raise UnknownName(
            f"no catalog or ledger in {folder}; create them with: {command}",
            name="folder",
            value=str(folder),
        )


def open_catalog(folder: Path) -> Catalog:
    """Open the catalog of a folder."""
    from tacit.curator.catalog import Catalog

    require_folder(folder)
    return Catalog.open(folder)


@contextmanager
def open_curator(folder: Path) -> Iterator[Curator]:
    """Open the curator of a folder; privacy warnings go to standard error."""
    from tacit.curator import Curator

    require_folder(folder)
    with warnings_on_stderr(), Curator(folder) as curator:
        yield curator


@contextmanager
def warnings_on_stderr() -> Iterator[None]:
    """Collect warnings and write each once to standard error at the end."""
    import warnings

    from tacit.curator import PrivacyWarning
    from tacit.privacy import CountedDeltaWarning

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default", UserWarning)
        for kind in (PrivacyWarning, CountedDeltaWarning):
            warnings.simplefilter("always", kind)
        yield
    for sentence in dict.fromkeys(str(warning.message) for warning in found):  # a preview and its release say the same
        click.echo(f"tacit: warning: {sentence}", err=True)


@contextmanager
def open_audited_curator(folder: Path) -> Iterator[tuple[Curator, Callable[[str], None]]]:
    """Open the curator of a folder to change its catalog, and a function that takes warnings.

    If a server has served the folder, its audit log records the change; the change is refused if that cannot be opened.
    """
    require_folder(folder)
    said: list[str] = []

    def warn(sentence: str) -> None:
        said.append(sentence)
        click.echo(f"tacit: warning: {sentence}", err=True)

    with ExitStack() as opened:
        access = _open_audit(folder, opened)
        curator = opened.enter_context(open_curator(folder))
        if access is not None:
            import getpass

            from tacit.server.catalog_audit import record_changes

            said = opened.enter_context(record_changes(access, curator, address=f"local user {getpass.getuser()}"))
        yield curator, warn


def require_person(folder: Path, name: str) -> None:
    """Raise UnknownName if the folder's server has people and none of them has this name."""
    from tacit.privacy.errors import UnknownName
    from tacit.privacy.texts import did_you_mean

    with ExitStack() as opened:
        access = _open_audit(folder, opened)
        names = [] if access is None else [one.name for one in access.people.all() if one.is_active]
    if names and name not in names:
        instead = did_you_mean(name, names, f"people are {', '.join(names)}")
        raise UnknownName(f"no person is called {name}; {instead}", name="by", value=name)


def _open_audit(folder: Path, opened: ExitStack) -> Access | None:
    """Open the access database of a folder's server; None if no server has served the folder."""
    is_served, has_settings = ((folder / name).exists() for name in (SERVER, SETTINGS))
    if not (is_served or has_settings):
        return None  # before the server is imported

    from tacit.server.settings import settings_of

    postgres = settings_of(folder, {}).postgres
    return opened.enter_context(open_access(folder, postgres)) if is_served or postgres else None


@contextmanager
def open_client(server: ServerAddress) -> Iterator[Client]:
    """Connect to a server; warnings about an insecure connection go to standard error."""
    import warnings

    from tacit.client import Client, InsecureWarning

    token = None if server.token_file is None else f"file:{server.token_file}"
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", InsecureWarning)
        client = Client(server.url, token)
    for warning in found:
        click.echo(f"tacit: warning: {warning.message}", err=True)
    with client:
        yield client


@contextmanager
def open_access(folder: Path, postgres: bool) -> Iterator[Access]:
    """Open the access database of a folder, or of the PostgreSQL in TACIT_LEDGER_POSTGRES."""
    from tacit.server.access import Access
    from tacit.server.database import open_database

    if not postgres:
        require_folder(folder)
    with closing(Access(open_database(folder, _postgres_address() if postgres else None))) as access:
        yield access


def _postgres_address() -> str:
    import os

    from tacit.privacy.errors import UnknownName

    address = os.environ.get(LEDGER_ADDRESS, "")
    if not address:
        raise UnknownName(
            f"set the environment variable {LEDGER_ADDRESS} to the connection string of the ledger", name=LEDGER_ADDRESS
        )
    return address


class Backend(Protocol):
    """Answers queries; `options` holds epsilon and the `tacit.query.PlanOptions`."""

    @property
    def location(self) -> str:
        """The folder in words, or the URL of the server."""

    def tables(self) -> Sequence[Table]:
        """Return the tables with their public facts."""

    def preview(self, sql: str, options: Mapping[str, Any], analyst: str | None) -> Preview:
        """Return what a query would cost; nothing is charged."""

    def explain(self, sql: str, options: Mapping[str, Any]) -> Sequence[Line]:
        """Return step by step how a query would be answered; nothing is charged."""

    def sql(self, sql: str, options: Mapping[str, Any], analyst: str | None, **run: Unpack[RunOptions]) -> ReleasedRows:
        """Charge a query and answer it."""

    def remaining(self, datasets: Sequence[str], analyst: str | None) -> Mapping[str, Cost]:
        """Return the remaining budget of some data sets, or of the analyst on them."""

    def payer(self, analyst: str | None) -> str | None:
        """Return whose cap the last answer was charged to: the analyst that was given, or that of the token."""

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
        return f"folder {self._curator.folder}"

    def tables(self) -> Sequence[Table]:
        return list(self._curator.catalog.tables.values())

    def preview(self, sql: str, options: Mapping[str, Any], analyst: str | None) -> Preview:
        return self._curator.preview(sql, **options, analyst=analyst)

    def explain(self, sql: str, options: Mapping[str, Any]) -> Sequence[Line]:
        return self._curator.explain(sql, **options)

    def sql(self, sql: str, options: Mapping[str, Any], analyst: str | None, **run: Unpack[RunOptions]) -> ReleasedRows:
        return self._curator.sql(sql, **options, **run, analyst=analyst)

    def remaining(self, datasets: Sequence[str], analyst: str | None) -> Mapping[str, Cost]:
        return {name: self._curator.budget(name, analyst).remaining() for name in datasets}

    def payer(self, analyst: str | None) -> str | None:
        return analyst

    def budgets(self, dataset: str | None = None) -> list[dict[str, Any]]:
        from tacit.cli.catalog_rendering import ledger_budget_object

        if dataset is not None:
            known_budget(self._curator, dataset)  # raises if it has no budget
        return [ledger_budget_object(one) for one in self._curator.budgets(dataset)]

    def require_analyst(self, name: str) -> None:
        from tacit.privacy.errors import UnknownName

        known = sorted({one["name"] for one in self.budgets() if one["kind"] == "analyst"})
        if name not in known:
            names = (
                f"the analysts are {', '.join(known)}"
                if known
                else "add one with: tacit budget analyst NAME DATASET --epsilon 1"
            )
            raise UnknownName(f"no analyst is named {name}; {names}", name="analyst", value=name)

    def cancel(self, thread: int) -> None:
        self._curator.cancel(thread)


class ServerBackend:
    """A server, with intervals at one level; the token identifies the analyst."""

    def __init__(self, client: Client, level: float) -> None:
        self._client, self._level = client, level
        self._left: dict[str, Cost] = {}
        """The remaining budget of each data set in the last response."""
        self._payer: str | None = None

    @property
    def location(self) -> str:
        return self._client.url

    def tables(self) -> Sequence[Table]:
        return [one.table for one in self._client.tables()]

    def preview(self, sql: str, options: Mapping[str, Any], analyst: str | None) -> Preview:
        return self._client.preview(sql, **options, analyst=analyst)

    def explain(self, sql: str, options: Mapping[str, Any]) -> Sequence[Line]:
        return self._client.explain(sql, **options)

    def sql(self, sql: str, options: Mapping[str, Any], analyst: str | None, **run: Unpack[RunOptions]) -> ReleasedRows:
        release = self._client.sql(sql, **options, **run, analyst=analyst, level=self._level)
        self._left, self._payer = release.remaining, release.analyst
        return release

    def remaining(self, datasets: Sequence[str], analyst: str | None) -> Mapping[str, Cost]:
        return {name: self._left[name] for name in datasets}

    def payer(self, analyst: str | None) -> str | None:
        return self._payer

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
    from tacit.privacy.texts import did_you_mean

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
