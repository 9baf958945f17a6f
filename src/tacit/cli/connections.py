"""Open the folder (catalog, ledger), the access database or the server that a command works on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from tacit.cli.options import ServerAddress
    from tacit.client import Client
    from tacit.curator import Curator
    from tacit.curator.catalog import Catalog
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
    """Collect privacy warnings and write them to standard error at the end."""
    import warnings

    from tacit.curator import PrivacyWarning

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", PrivacyWarning)
        yield
    for warning in found:
        click.echo(f"tacit: warning: {warning.message}", err=True)


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

            said = opened.enter_context(record_changes(access, curator, address=f"local account {getpass.getuser()}"))
        yield curator, warn


def require_person(folder: Path, name: str) -> None:
    """Raise UnknownName if the folder's server has people and none of them has this name."""
    from tacit.privacy.errors import UnknownName
    from tacit.privacy.near_names import did_you_mean

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
