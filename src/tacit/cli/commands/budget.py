"""`tacit budget`: what may be spent on a data set and by whom, and what is left of it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.connections import open_client, open_curator
from tacit.cli.groups import Group, add_format_option
from tacit.cli.options import DEFAULT_DELTA, ServerAddress, folder_flag, folder_option, server_options
from tacit.cli.output import Screen, show_hints, show_result
from tacit.privacy.numbers import DEFAULT_LEVEL

if TYPE_CHECKING:
    from tacit.curator import Curator
    from tacit.ledger import Request

FILTERS: Final = ("pure", "zcdp", "renyi", "gdp")
RELATIONS: Final = ("add-remove", "replace-one")

_EPSILON: Final = click.option("--epsilon", type=float, required=True, help="Total epsilon of the budget.")
_DELTA: Final = click.option(
    "--delta",
    type=float,
    help=f"The delta of (epsilon, delta)-differential privacy, {DEFAULT_DELTA:g} by default; with 0, neither Gaussian "
    "noise nor groups whose keys are not public are possible.",
)


@click.group("budget", cls=Group)
def command() -> None:
    """Set and show the privacy budgets of data sets and analysts.

    A budget is a promise to the people in the data: once an answer was paid from it, it is never changed.
    """


@command.command("set")
@folder_option
@click.argument("dataset")
@_EPSILON
@_DELTA
@click.option("--filter", type=click.Choice(FILTERS), help="How charges compose; by default zcdp if delta is above 0.")
@click.option("--order", type=float, help="The order of the filter renyi, such as 16.")
@click.option(
    "--relation",
    type=click.Choice(RELATIONS),
    default="add-remove",
    show_default=True,
    help="Which data sets are neighbours: with and without a unit, or with another in its place.",
)
@click.option("--per-epoch", is_flag=True, help="The budget holds for each epoch of the data instead of for all time.")
@click.option(
    "--epsilon-min",
    type=float,
    help="Smallest epsilon that an answer costs, so that no one gets many answers for almost nothing; 1/10,000 of the "
    "budget by default.",
)
@click.option(
    "--units",
    type=click.IntRange(1),
    help="Number of people in the data, if it is public; a delta that is too large for it is warned of.",
)
@click.pass_obj
def set_(screen: Screen, /, folder: Path, dataset: str, relation: str, delta: float | None, **settings: Any) -> None:
    """Set the budget of a data set; it can be changed until something is charged to it.

    Tables name the data set that pays for them; without a name it is the table's own.

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
    show_result(screen, f"{sentence}; an answer costs at least ε {at_most(facts['epsilon_min'], 4)}", facts)
    hints = _hints(folder, dataset)
    if delta is None and chosen:
        hints.append(f"δ {DEFAULT_DELTA:g} is the default; as long as nothing is charged, --delta sets another")
    elif not chosen:
        command = f"tacit budget set {shlex.quote(dataset)} --epsilon {facts['epsilon']:g} --delta {DEFAULT_DELTA:g}"
        hints.append(
            "without a δ, groups whose keys are not public cannot be shown; as long as nothing is charged, set one "
            f"with: {command}{folder_flag(folder)}"
        )
    show_hints(screen, hints)


@command.command()
@folder_option
@click.argument("name")
@click.argument("dataset")
@_EPSILON
@click.option("--delta", type=float, help="The delta of the cap; that of the data set, and said, unless it is stated.")
@click.pass_obj
def analyst(screen: Screen, folder: Path, name: str, dataset: str, epsilon: float, delta: float | None) -> None:
    """Let an analyst, or a group, spend up to a cap on a data set.

    A cap to which nothing was charged yet is replaced by another one.

    \b
      tacit budget analyst ana clinic --epsilon 1 --delta 1e-8
    """
    from tacit import Budget
    from tacit.cli.backends import FolderBackend, known_budget

    with open_curator(folder) as curator:
        whole = known_budget(curator, dataset).cap
        within: dict[str, Any] = {"relation": whole.relation}
        chosen = whole.delta if delta is None else delta
        if chosen and whole.delta:
            within |= {"filter": whole.filter, "order": whole.order}
        curator.add_analyst(name, {dataset: Budget(epsilon, chosen, **within)})
        rows = FolderBackend(curator).budgets(dataset)
    facts = next(row for row in rows if (row["kind"], row["name"]) == ("analyst", name))
    note = f"; the δ is that of {dataset}, --delta states another" if delta is None and facts["delta"] else ""
    show_result(screen, f"{name} may spend ε {facts['epsilon']:g}, δ {facts['delta']:g} on {dataset}{note}", facts)


@command.command()
@folder_option
@server_options
@click.argument("dataset", required=False)
@add_format_option
@click.pass_obj
def show(screen: Screen, folder: Path, dataset: str | None, server: ServerAddress | None) -> None:
    """Show what is spent and what is left, of one data set or of all.

    ε min is what an answer costs at least, and ε left what one more may cost at most. Where costs are added up as rho,
    what is spent and what is left do not make up the whole.
    """
    from tacit.cli.backends import open_backend
    from tacit.cli.catalog_rendering import show_budgets

    with open_backend(folder, server, DEFAULT_LEVEL) as backend:
        budgets = backend.budgets(dataset)
    if screen.as_json:
        screen.show_object({"budgets": budgets})
    elif budgets:
        show_budgets(screen, budgets)
    else:
        screen.console.print("no budget was set yet")


@command.command()
@folder_option
@server_options
@click.option("--all", "everything", is_flag=True, help="Decided ones, too.")
@click.pass_obj
def requests(screen: Screen, folder: Path, everything: bool, server: ServerAddress | None) -> None:
    """List requests of analysts for more."""
    found: list[Request]
    if server is None:
        with open_curator(folder) as curator:
            found = curator.requests(only_open=not everything)
    else:
        with open_client(server) as client:
            found = client.requests(only_open=not everything)
    if screen.as_json:
        screen.show_object({"requests": [_request_object(one) for one in found]})
    elif found:
        columns = ("request", "analyst", "dataset", "asks for", "reason", "state")
        rows = [
            (one.id, one.analyst, one.dataset, f"ε {one.cost.epsilon:g}, δ {one.cost.delta:g}", one.reason, one.state)
            for one in found
        ]
        screen.show_table(columns, rows)
    else:
        screen.console.print("no open requests")


@command.command()
@folder_option
@click.argument("request")
@click.option("--grant", is_flag=True, help="Raise the analyst's cap by what is asked for.")
@click.option("--decline", is_flag=True, help="Leave it as it is.")
@click.option("--by", required=True, metavar="NAME", help="Who decides.")
@click.option("--note", default="", help="Why, for those who read it later.")
@click.pass_obj
def decide(screen: Screen, folder: Path, request: str, grant: bool, decline: bool, by: str, note: str) -> None:
    """Grant or decline a request; what is granted raises the analyst's cap, never above the data set's."""
    if grant == decline:
        raise click.UsageError("say what is decided: --grant or --decline")
    with open_curator(folder) as curator:
        decided = curator.decide(request, grant, by, note)
        cap = _cap(curator, decided)
    show_result(
        screen, f"{decided.state}: {decided.analyst} may now spend {cap} on {decided.dataset}", _request_object(decided)
    )


def _cap(curator: Curator, request: Request) -> str:
    cap = curator.budget(request.dataset, request.analyst).cap
    return f"ε {cap.epsilon:g}, δ {cap.delta:g}"


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
    """Say when no table is paid by the budget, for its name may be mistyped."""
    from tacit.curator.catalog import Catalog
    from tacit.privacy.errors import CatalogInvalid

    try:
        tables = Catalog.open(folder).tables.values()
    except CatalogInvalid as error:
        return [error.message]
    datasets = sorted({table.dataset for table in tables if table.is_private})
    if dataset in datasets or not datasets:
        return []
    return [f"no table is paid by {dataset} yet; tables are paid by {', '.join(datasets)}"]
