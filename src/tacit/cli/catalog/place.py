"""Where a command works: in a folder, or at a server that serves one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from tacit.cli.kit import Screen

if TYPE_CHECKING:
    from tacit.client import Client
    from tacit.curator import Curator
    from tacit.curator.catalog import Catalog
    from tacit.server.access import Access

CATALOG: Final = "catalog.toml"
LEDGER: Final = "ledger.sqlite"
SERVER: Final = "server.sqlite"
SETTINGS: Final = "server.toml"

in_folder = click.option(
    "--folder", default=".", type=click.Path(path_type=Path), help="Where the catalog and the ledger lie."
)


@dataclass(frozen=True, slots=True)
class ServerAt:
    """A server, and where the token for it is: in a file, or in TACIT_TOKEN."""

    url: str
    token_file: Path | None


def at_server(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command that has a folder the options of a server; it gets `server`, None where the folder is meant."""

    @click.option(
        "--server", metavar="URL", envvar="TACIT_SERVER", show_envvar=True, help="Ask a server instead of a folder."
    )
    @click.option(
        "--token-file", type=click.Path(path_type=Path), help="Where the token for it lies, if not in TACIT_TOKEN."
    )
    @wraps(function)
    def wrapped(*arguments: Any, server: str | None, token_file: Path | None, **settings: Any) -> None:
        context = click.get_current_context()
        if server is not None and context.get_parameter_source("folder") is ParameterSource.COMMANDLINE:
            if context.get_parameter_source("server") is ParameterSource.COMMANDLINE:
                raise click.UsageError("the data are in one place: give --server or --folder")
            server = None  # what is typed is stronger than the environment
        if server is None and token_file is not None:
            raise click.UsageError("--token-file is for a server; name it with --server")
        function(*arguments, server=None if server is None else ServerAt(server, token_file), **settings)

    return wrapped


def require_folder(folder: Path) -> None:
    """Refuse a folder that nobody has set up: a mistyped name must not become a second ledger."""
    from tacit.privacy import texts
    from tacit.privacy.errors import UnknownName

    texts.path("folder", folder)
    if not any((folder / name).exists() for name in (CATALOG, LEDGER)):
        raise UnknownName(
            f"there is neither a catalog nor a ledger in {folder}; make them with: tacit init {folder}",
            name="folder",
            value=str(folder),
        )


def opened_catalog(folder: Path) -> Catalog:
    """Open the catalog of a folder that was set up."""
    from tacit.curator.catalog import Catalog

    require_folder(folder)
    return Catalog.open(folder)


@contextmanager
def opened_curator(folder: Path) -> Iterator[Curator]:
    """Open a folder that was set up; what is doubtful about a setting is said on standard error."""
    import warnings

    from tacit.curator import Curator, PrivacyWarning

    require_folder(folder)
    with warnings.catch_warnings(record=True) as found, Curator(folder) as curator:
        warnings.simplefilter("always", PrivacyWarning)
        yield curator
    for warning in found:
        click.echo(f"tacit: warning: {warning.message}", err=True)


@contextmanager
def audited_curator(folder: Path) -> Iterator[tuple[Curator, Callable[[str], None]]]:
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
        curator = opened.enter_context(opened_curator(folder))
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
    from tacit.cli.people.place import opened_access
    from tacit.server.settings import settings_of

    postgres = settings_of(folder, {}).postgres
    return opened.enter_context(opened_access(folder, postgres)) if is_served or postgres else None


@contextmanager
def opened_client(server: ServerAt) -> Iterator[Client]:
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


def said(screen: Screen, sentence: str, facts: dict[str, Any]) -> None:
    """Answer with a sentence, or with an object for programs."""
    if screen.as_json:
        screen.show_object(facts)
    else:
        screen.console.print(sentence, soft_wrap=True)


def hinted(screen: Screen, hints: list[str]) -> None:
    """Say what the user may want to know besides, on standard error; programs find it in the object."""
    if not screen.as_json:
        for hint in hints:
            click.echo(f"hint: {hint}", err=True)


def folder_words(folder: Path) -> str:
    """Return the option that names the folder in a command to type next, or nothing for the current one."""
    import shlex

    return "" if str(folder) == "." else f" --folder {shlex.quote(str(folder))}"
