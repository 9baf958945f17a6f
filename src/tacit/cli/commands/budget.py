"""`tacit budget`: what may be spent on a data set and by whom, and what is left of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.catalog.place import ServerAt, at_server, hinted, in_folder, opened_client, opened_curator, said
from tacit.cli.kit import Group, Screen

if TYPE_CHECKING:
    from tacit.curator import Curator
    from tacit.ledger.requests import Request

FILTERS: Final = ("pure", "zcdp", "renyi", "gdp")
RELATIONS: Final = ("add-remove", "replace-one")

_EPSILON: Final = click.option("--epsilon", type=float, required=True, help="How much may be lost in all.")
_DELTA: Final = click.option(
    "--delta",
    type=float,
    default=0.0,
    show_default=True,
    help="The delta of (epsilon, delta)-differential privacy; Gaussian noise and selected keys need one, such as 1e-6.",
)


@click.group("budget", cls=Group)
def command() -> None:
    """Say what may be spent on a data set and by whom, and see what is left.

    A budget is a promise to the people in the data: it is set once, never raised, and paid by every answer.
    """


@command.command("set")
@in_folder
@click.argument("dataset")
@_EPSILON
@_DELTA
@click.option("--filter", type=click.Choice(FILTERS), help="How costs are added up; zcdp where delta is above 0.")
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
    help="The least epsilon that an answer costs, so that nobody buys many that are nearly free; a ten-thousandth of "
    "the budget's unless it is said.",
)
@click.option(
    "--units", type=click.IntRange(1), help="How many people the data hold, if that is public; delta is weighed by it."
)
@click.pass_obj
def set_(screen: Screen, /, folder: Path, dataset: str, relation: str, **settings: Any) -> None:
    """Give a data set its budget, once and for all.

    Tables name the data set that pays for them; without a name it is the table's own.

    \b
      tacit budget set clinic --epsilon 3 --delta 1e-7
    """
    from tacit.cli.catalog.budgets import budget_objects
    from tacit.privacy.figures import at_most
    from tacit.privacy.relations import Relation

    with opened_curator(folder) as curator:
        curator.set_budget(dataset, relation=Relation(relation), **settings)
        facts = next(row for row in budget_objects(curator.ledger, dataset) if row["kind"] == "dataset")
    sentence = f"{dataset} has a budget of ε {facts['epsilon']:g}, δ {facts['delta']:g} ({facts['filter']})"
    said(screen, f"{sentence}; an answer costs at least ε {at_most(facts['epsilon_min'], 4)}", facts)
    hinted(screen, _hints(folder, dataset))


@command.command()
@in_folder
@click.argument("name")
@click.argument("dataset")
@_EPSILON
@_DELTA
@click.pass_obj
def analyst(screen: Screen, folder: Path, name: str, dataset: str, epsilon: float, delta: float) -> None:
    """Let an analyst, or a group, spend up to a cap on a data set.

    \b
      tacit budget analyst ana clinic --epsilon 1 --delta 1e-8
    """
    from tacit.cli.catalog.budgets import budget_objects
    from tacit.ledger import Budget

    with opened_curator(folder) as curator:
        whole = curator.budget(dataset).cap
        within: dict[str, Any] = {"relation": whole.relation}
        if delta and whole.delta:
            within |= {"filter": whole.filter, "order": whole.order}
        curator.add_analyst(name, {dataset: Budget(epsilon, delta, **within)})
        rows = budget_objects(curator.ledger, dataset)
    facts = next(row for row in rows if (row["kind"], row["name"]) == ("analyst", name))
    said(screen, f"{name} may spend ε {facts['epsilon']:g}, δ {facts['delta']:g} on {dataset}", facts)


@command.command()
@in_folder
@at_server
@click.argument("dataset", required=False)
@click.pass_obj
def show(screen: Screen, folder: Path, dataset: str | None, server: ServerAt | None) -> None:
    """Show what is spent and what is left, of one data set or of all.

    ε min is what an answer costs at least, and ε left what one more may cost at most. Where costs are added up as rho,
    what is spent and what is left do not make up the whole.
    """
    from tacit.cli.catalog.budgets import show_budgets

    budgets = _budgets(folder, server, dataset)
    if screen.as_json:
        screen.show_object({"budgets": budgets})
    elif budgets:
        show_budgets(screen, budgets)
    else:
        screen.console.print("no budget was set yet")


def _budgets(folder: Path, server: ServerAt | None, dataset: str | None) -> list[dict[str, Any]]:
    """Return budgets as they are shown; a name that is not known is refused."""
    from tacit.cli.catalog.budgets import budget_objects
    from tacit.cli.questions import remote

    if server is None:
        with opened_curator(folder) as curator:
            if dataset is not None:
                curator.budget(dataset)
            return budget_objects(curator.ledger, dataset)
    with opened_client(server) as client:
        if dataset is not None:
            client.budget(dataset)
        return remote.budget_objects(client, dataset)


@command.command()
@in_folder
@at_server
@click.option("--all", "everything", is_flag=True, help="Decided ones, too.")
@click.pass_obj
def requests(screen: Screen, folder: Path, everything: bool, server: ServerAt | None) -> None:
    """List requests of analysts for more."""
    found: list[Request]
    if server is None:
        with opened_curator(folder) as curator:
            found = curator.ledger.requests(only_open=not everything)
    else:
        with opened_client(server) as client:
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
        screen.console.print("no request waits")


@command.command()
@in_folder
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
    with opened_curator(folder) as curator:
        decided = curator.ledger.decide(request, grant, by, note)
        cap = _cap(curator, decided)
    said(
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
