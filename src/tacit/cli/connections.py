"""Open what a command works on: a folder with its catalog and ledger, its access database, or a server."""

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
"""The environment variable with the connection string of a ledger in PostgreSQL."""


def is_set_up(folder: Path) -> bool:
    """Return whether a folder has a catalog or a ledger."""
    return any((folder / name).exists() for name in (CATALOG, LEDGER))


def require_folder(folder: Path) -> None:
    """Refuse a folder that nobody has set up: a mistyped name must not become a second ledger."""
    import shlex

    from tacit.privacy import texts
    from tacit.privacy.errors import UnknownName

    texts.path("folder", folder)
    if not is_set_up(folder):
        command = f"tacit init {shlex.quote(str(folder))}"
        raise UnknownName(
            f"there is neither a catalog nor a ledger in {folder}; make them with: {command}",
            name="folder",
            value=str(folder),
        )


def open_catalog(folder: Path) -> Catalog:
    """Open the catalog of a folder that was set up."""
    from tacit.curator.catalog import Catalog

    require_folder(folder)
    return Catalog.open(folder)


@contextmanager
def open_curator(folder: Path) -> Iterator[Curator]:
    """Open a folder that was set up; warnings about settings go to standard error."""
    from tacit.curator import Curator

    require_folder(folder)
    with warnings_on_stderr(), Curator(folder) as curator:
        yield curator


@contextmanager
def warnings_on_stderr() -> Iterator[None]:
    """Write warnings about weak settings to standard error afterwards."""
    import warnings

    from tacit.curator import PrivacyWarning

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", PrivacyWarning)
        yield
    for warning in found:
        click.echo(f"tacit: warning: {warning.message}", err=True)


@contextmanager
def open_audited_curator(folder: Path) -> Iterator[tuple[Curator, Callable[[str], None]]]:
    """Open a folder that was set up, to change its catalog; where a server has served it, its audit records the change.

    Beside the curator comes what its warnings are given to. An audit that cannot be opened refuses the change.
    """
    require_folder(folder)
    said: list[str] = []

    def warn(sentence: str) -> None:
        said.append(sentence)
        click.echo(f"tacit: warning: {sentence}", err=True)

    with ExitStack() as opened:
        access = _opened_audit(folder, opened)
        curator = opened.enter_context(open_curator(folder))
        if access is not None:
            import getpass

            from tacit.server.catalog_audit import noted

            said = opened.enter_context(noted(access, curator, address=f"local account {getpass.getuser()}"))
        yield curator, warn


def _opened_audit(folder: Path, opened: ExitStack) -> Access | None:
    """Open the audit of a folder's server, or none where no server has served it."""
    is_served, has_settings = ((folder / name).exists() for name in (SERVER, SETTINGS))
    if not (is_served or has_settings):
        return None  # before anything of a server is loaded

    from tacit.server.settings import settings_of

    postgres = settings_of(folder, {}).postgres
    return opened.enter_context(opened_access(folder, postgres)) if is_served or postgres else None


@contextmanager
def open_client(server: ServerAddress) -> Iterator[Client]:
    """Make a client of a server; what is doubtful about the way to it is said on standard error."""
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
def opened_access(folder: Path, postgres: bool) -> Iterator[Access]:
    """Open the server's own database of a folder that was set up, or of the PostgreSQL that the environment names."""
    from tacit.server.access import Access
    from tacit.server.database import open_database

    if not postgres:
        require_folder(folder)
    with closing(Access(open_database(folder, _address() if postgres else None))) as access:
        yield access


def _address() -> str:
    import os

    from tacit.privacy.errors import UnknownName

    address = os.environ.get(LEDGER_ADDRESS, "")
    if not address:
        raise UnknownName(
            f"set {LEDGER_ADDRESS} to the connection string of the ledger's database", name=LEDGER_ADDRESS
        )
    return address
