"""`tacit budget`: budgets of data sets and analysts, and requests for more."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.backends import open_client, open_curator, require_person
from tacit.cli.groups import Group, add_format_option
from tacit.cli.options import DEFAULT_DELTA, ServerAddress, folder_flag, folder_option, server_options
from tacit.cli.output import Screen, show_hints, show_result
from tacit.privacy.numbers import DEFAULT_LEVEL

if TYPE_CHECKING:
    from tacit.curator import Curator
    from tacit.ledger import Request

FILTERS: Final = ("pure", "zcdp", "renyi", "gdp")
RELATIONS: Final = ("add-remove", "replace-one")
REQUESTS: Final = ("request", "analyst", "data set", "requested", "reason", "state")

_EPSILON: Final = click.option("--epsilon", type=float, required=True, help="Total epsilon of the budget.")
_DELTA: Final = click.option(
    "--delta",
    type=float,
    help=f"Total delta of the budget, {DEFAULT_DELTA:g} by default. With 0 there is no Gaussian noise, and only groups "
    "from public lists can be shown.",
)


@click.group("budget", cls=Group)
def command() -> None:
    """Set and show the privacy budgets of data sets and analysts.

    A budget is a promise to the people in the data. It can be set again, with other numbers, until something is
    charged to it, and not afterwards; it cannot be removed.
    """


@command.command("set")
@folder_option
@click.argument("dataset")
@_EPSILON
@_DELTA
@click.option(
    "--filter", type=click.Choice(FILTERS), help="How costs compose; by default zcdp, and pure if delta is 0."
)
@click.option("--order", type=float, help="Order of the renyi filter, such as 16.")
@click.option(
    "--relation",
    type=click.Choice(RELATIONS),
    default="add-remove",
    show_default=True,
    help="Neighbouring data sets: one unit added or removed, or one unit replaced.",
)
@click.option("--per-epoch", is_flag=True, help="Apply the budget to each epoch of the data instead of to all time.")
@click.option(
    "--epsilon-min",
    type=float,
    help="Smallest epsilon that an answer may cost, which limits the number of answers; 1/10,000 of the budget by "
    "default.",
)
@click.option(
    "--units",
    type=click.IntRange(1),
    help="Number of people in the data, if it is public; warns if delta is too large for it.",
)
@click.pass_obj
def set_(screen: Screen, /, folder: Path, dataset: str, relation: str, delta: float | None, **settings: Any) -> None:
    """Set the budget of a data set.

    It can be set again until something is charged to it. DATASET is the name of a table, or the data set given by its
    --dataset.

    \b
      tacit budget set clinic --epsilon 3 --delta 1e-7
    """
    from tacit.cli.backends import FolderBackend
    from tacit.privacy.figures import at_most
    from tacit.privacy.units import Relation

    chosen = delta
    if delta is None:
        chosen = 0.0 if settings["filter"] == "pure" else DEFAULT_DELTA
    with open_curator(folder) as curator:
        curator.set_budget(dataset, delta=chosen, relation=Relation(relation), **settings)
        facts = FolderBackend(curator).budgets(dataset)[0]
    sentence = f"{dataset} has a budget of ε {facts['epsilon']:g}, δ {facts['delta']:g} ({facts['filter']})"
    show_result(screen, f"{sentence}; each answer costs at least ε {at_most(facts['epsilon_min'], 4)}", facts)
    hints = _hints(folder, dataset)
    if delta is None and chosen:
        hints.append(f"δ {DEFAULT_DELTA:g} is the default; until something is charged, --delta can set another")
    elif not chosen:
        command = f"tacit budget set {shlex.quote(dataset)} --epsilon {facts['epsilon']:g} --delta {DEFAULT_DELTA:g}"
        hints.append(
            "with δ 0, only groups from public lists can be shown; until something is charged, you can set another δ "
            f"with: {command}{folder_flag(folder)}"
        )
    show_hints(screen, hints)


@command.command()
@folder_option
@click.argument("name")
@click.argument("dataset")
@_EPSILON
@click.option("--delta", type=float, help="Total delta of the cap; by default that of the data set.")
@click.pass_obj
def analyst(screen: Screen, folder: Path, name: str, dataset: str, epsilon: float, delta: float | None) -> None:
    """Set the cap of an analyst: how much they may spend of the budget of a data set.

    It can be set again until something is charged to it. NAME may also stand for a group of analysts.

    \b
      tacit budget analyst ana clinic --epsilon 1 --delta 1e-8
    """
    from tacit.cli.backends import FolderBackend, known_budget

    with open_curator(folder) as curator:
        known_budget(curator, dataset)
        curator.set_cap(name, dataset, epsilon, delta)
        rows = FolderBackend(curator).budgets(dataset)
    facts = next(row for row in rows if (row["kind"], row["name"]) == ("analyst", name))
    note = f"; δ is that of {dataset}; --delta sets another" if delta is None and facts["delta"] else ""
    show_result(screen, f"{name} may spend ε {facts['epsilon']:g}, δ {facts['delta']:g} on {dataset}{note}", facts)


@command.command()
@folder_option
@server_options
@click.argument("dataset", required=False)
@add_format_option
@click.pass_obj
def show(screen: Screen, folder: Path, dataset: str | None, server: ServerAddress | None) -> None:
    """Show what is spent and what remains of budgets, and of the caps of analysts, which are limits on their share.

    ε remaining is the most that the next answer may cost, ε min the least. Under other filters than pure, ε spent and
    ε remaining may not add up to ε total, because each is the better of two composition bounds: see
    docs/explanation/ledger.md.
    """
    from tacit.cli.backends import open_backend
    from tacit.cli.catalog_rendering import composition_note, show_budgets

    with open_backend(folder, server, DEFAULT_LEVEL) as backend:
        budgets = backend.budgets(dataset)
    if not screen.has_reader and (note := composition_note(budgets)):
        click.echo(f"note: {note}", err=True)
    show_budgets(screen, budgets)


@command.command()
@folder_option
@server_options
@click.option("--all", "everything", is_flag=True, help="Include decided requests.")
@add_format_option
@click.pass_obj
def requests(screen: Screen, folder: Path, everything: bool, server: ServerAddress | None) -> None:
    """List the requests of analysts for more budget."""
    found: list[Request]
    if server is None:
        with open_curator(folder) as curator:
            found = curator.requests(only_open=not everything)
    else:
        with open_client(server) as client:
            found = client.requests(only_open=not everything)
    empty = "no requests" if everything else "no open requests"
    screen.show_list("requests", found, _request_object, REQUESTS, _request_row, empty)


@command.command()
@folder_option
@server_options
@click.argument("dataset")
@click.option("--epsilon", type=float, required=True, help="Epsilon that is needed in addition.")
@click.option("--delta", type=float, default=0.0, help="Delta that is needed in addition; 0 by default.")
@click.option("--reason", required=True, help="What it is for; kept with the request.")
@click.option("--analyst", metavar="NAME", help="For a folder: the analyst whose cap is to be raised.")
@click.pass_obj
def request(
    screen: Screen,
    folder: Path,
    dataset: str,
    epsilon: float,
    delta: float,
    reason: str,
    analyst: str | None,
    server: ServerAddress | None,
) -> None:
    """Ask for more budget on a data set, which its owner grants or declines.

    \b
      tacit budget request visits --epsilon 0.5 --reason "visits by month" --server http://127.0.0.1:8321
    """
    from tacit import Cost

    if (server is None) == (analyst is None):
        raise click.UsageError("give --server URL, whose token names the analyst; or --folder with --analyst NAME")
    if server is not None:
        with open_client(server) as client:
            filed = client.file_request(dataset, reason=reason, epsilon=epsilon, delta=delta)
    else:
        with open_curator(folder) as curator:
            filed = curator.ledger.file_request(str(analyst), dataset, Cost(epsilon, delta, math.inf), reason)
    sentence = f"filed request {filed.id} for ε {epsilon:g} on {dataset}; owners and curators decide it"
    place = ", in the folder of the server" if server else ""
    decide = f"tacit budget decide {filed.id} --grant --by NAME{'' if server else folder_flag(folder)}"
    show_result(screen, f"{sentence}{place}: {decide}", _request_object(filed))


@command.command()
@folder_option
@click.argument("dataset")
@click.pass_obj
def resume(screen: Screen, /, folder: Path, dataset: str) -> None:
    """Allow runs on a data set again after too many failed.

    After 10 failed runs nothing more is run on a data set, because a failure may tell about a single person. Look at
    the reasons first (tacit ledger show).

    \b
      tacit budget resume clinic
    """
    with open_curator(folder) as curator:
        seen = curator.resume(dataset)
    show_result(screen, f"{seen} failed runs on {dataset} are marked as seen; further runs are allowed", {"seen": seen})


@command.command()
@folder_option
@click.argument("request")
@click.option("--grant", is_flag=True, help="Raise the analyst's cap by the requested amount.")
@click.option("--decline", is_flag=True, help="Leave the cap as it is.")
@click.option("--by", required=True, metavar="NAME", help="Name of the person who decides.")
@click.option("--note", default="", help="Reason, kept with the decision.")
@click.pass_obj
def decide(screen: Screen, folder: Path, request: str, grant: bool, decline: bool, by: str, note: str) -> None:
    """Grant or decline a request for more budget.

    A grant raises the analyst's cap, but never above the budget of the data set. No one may decide their own request.
    """
    if grant == decline:
        raise click.UsageError("give either --grant or --decline")
    require_person(folder, by)
    with open_curator(folder) as curator:
        decided = curator.decide(request, grant, by, note)
        cap = _cap(curator, decided)
    show_result(
        screen, f"{decided.state}: {decided.analyst} may now spend {cap} on {decided.dataset}", _request_object(decided)
    )


def _cap(curator: Curator, request: Request) -> str:
    cap = curator.budget(request.dataset, request.analyst).cap
    return f"ε {cap.epsilon:g}, δ {cap.delta:g}"


def _request_row(one: Request) -> tuple[str, ...]:
    return one.id, one.analyst, one.dataset, f"ε {one.cost.epsilon:g}, δ {one.cost.delta:g}", one.reason, one.state


def _request_object(request: Request) -> dict[str, Any]:
    return {
        "id": request.id,
        "analyst": request.analyst,
        "dataset": request.dataset,
        "epsilon": request.cost.epsilon,
        "delta": request.cost.delta,
        "reason": request.reason,
        "filed_at": request.filed_at.isoformat(timespec="seconds"),
        "state": request.state,
        "decided_by": request.decided_by,
        "note": request.note,
    }


def _hints(folder: Path, dataset: str) -> list[str]:
    """Return a hint if no table uses the budget: its name may be mistyped."""
    from tacit.curator.catalog import Catalog
    from tacit.privacy.errors import CatalogInvalid
    from tacit.privacy.texts import did_you_mean

    try:
        tables = Catalog.open(folder).tables.values()
    except CatalogInvalid as error:
        return [error.message]
    datasets = sorted({table.dataset for table in tables if table.is_private})
    if dataset in datasets or not datasets:
        return []
    near = did_you_mean(dataset, datasets, f"tables use {', '.join(datasets)}")
    return [f"no table uses the budget {dataset} yet; {near}"]
