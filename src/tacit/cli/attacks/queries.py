"""Folders and servers that attacks query: targets, what their queries would spend, and confirmation beforehand."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

import click

from tacit.cli.attacks.files import read_records, truths
from tacit.cli.attacks.targets import TargetKind, TargetOption
from tacit.cli.options import SHARE, ServerAddress, confirm_sentence, cost_sentence
from tacit.cli.output import Screen
from tacit.privacy.errors import BudgetExceeded, InvalidInput, NotPermitted, TooLarge, UnknownName
from tacit.privacy.figures import at_most, left_over

if TYPE_CHECKING:
    from tacit.attack import QueryInterface
    from tacit.privacy.tables import Kind, Table

ROUNDING: Final = 1 + 1e-9
FINDINGS_MAX: Final = 1_000
"""How many findings the ledger keeps of one data set (`tacit.ledger.kept_findings`)."""
KEEPERS: Final = ("owner", "curator", "auditor")
"""The roles that may keep findings over a server."""
_WHOLE: Final = re.compile("-?[0-9]+")


@contextmanager
def open_source(folder: Path, server: ServerAddress | None) -> Iterator[Any]:
    """Yield the curator of the folder, or the client of the server."""
    from tacit.cli.backends import open_client, open_curator

    if server is not None:
        with open_client(server) as client:
            yield client
    else:
        with open_curator(folder) as curator:
            yield curator


class Place:
    """The folder or the server of a command, opened when it is first needed and closed with the stack."""

    def __init__(self, stack: ExitStack, folder: Path, server: ServerAddress | None) -> None:
        self._stack, self.folder, self.server = stack, folder, server

    @cached_property
    def source(self) -> Any:
        """The curator or the client."""
        return self._stack.enter_context(open_source(self.folder, self.server))

    @property
    def address(self) -> str:
        """The URL of the server, or the absolute path of the folder."""
        return str(self.folder.resolve()) if self.server is None else self.server.url

    def table(self, name: str) -> Table:
        """Return the public facts about a table."""
        if self.server is None:
            return cast("Table", self.source.catalog.schema.table(name))
        return cast("Table", self.source.table(name).table)

    def data_version(self, name: str) -> str:
        """Return the catalog's entry of a table and, for a folder, the version of its rows."""
        table = self.table(name)
        rows = self.source.engines.versions().get(table.name.lower(), "") if self.server is None else ""
        return f"{table!r} {rows}"

    def permit(self, permit: str) -> Any:
        """Return a permit of the ledger of the folder."""
        if self.server is not None:
            raise click.UsageError("--permit needs the folder with the ledger; over a server state --epsilon")
        return self.source.ledger.permit(permit)


@dataclass(frozen=True, slots=True)
class KeepSettings:
    """Where a finding is kept: the data set, and the person who keeps it."""

    dataset: str | None
    by: str | None
    digests: frozenset[str]
    """The runs of which a finding is kept already (`Finding.target_digest`)."""

    @classmethod
    def of(cls, place: Place, dataset: str | None, by: str | None, *, permit: str | None, table: str | None) -> Self:
        """Return the settings; raise for those with which nothing could be kept, before anything is run."""
        from tacit.privacy import texts

        source = place.source
        if place.server is None:
            if by is None:
                raise click.UsageError("--keep needs --by NAME, the person who keeps the finding")
            _require_person(place, texts.name("by", by))
        if permit is not None and dataset is not None and (paid := str(place.permit(permit).dataset)) != dataset:
            raise click.UsageError(f"the permit was charged to {paid}, not to {dataset}; leave out --dataset")
        if dataset is None and permit is None:
            if table is None:
                raise click.UsageError("--keep needs --dataset NAME or --permit ID, what the finding is about")
            dataset = place.table(table).dataset
        about = str(place.permit(str(permit)).dataset) if dataset is None else dataset
        source.budget(about).remaining()  # raises for an unknown data set
        if place.server is not None:
            _require_grant(source, about)
        digests = [str(one.document.get("target_digest", "")) for one in source.findings(about)]
        if len(digests) >= FINDINGS_MAX:
            raise TooLarge(f"{about} has {FINDINGS_MAX:,} findings, the maximum; leave out --keep", name="keep")
        return cls(dataset, by, frozenset(digests))

    def keep(self, place: Place, finding: Any) -> str:
        """Keep a finding in the ledger and return its id."""
        options = {} if place.server is not None else {"by": self.by}
        return str(place.source.keep_finding(finding, self.dataset, **options).id)


def _require_person(place: Place, name: str) -> None:
    """Raise UnknownName for a person who is not in the access database of the folder, if it has one."""
    from tacit.cli.backends import SERVER, open_access
    from tacit.privacy.texts import did_you_mean

    if not (place.folder / SERVER).exists():
        return
    with open_access(place.folder, postgres=False) as access:
        known = [one.name for one in access.people.all()]
    if name not in known:
        hint = did_you_mean(name, known, "tacit access lists them")
        raise UnknownName(f"--by: {name} is no person of this folder; {hint}", name="by", value=name)


def _require_grant(client: Any, dataset: str) -> None:
    """Raise NotPermitted unless the caller of a server may keep findings of a data set."""
    grants = client.me()["grants"]
    if not any(one["role"] in KEEPERS and one["dataset"] in (None, dataset) and one["table"] is None for one in grants):
        raise NotPermitted(
            f"--keep needs the role {', '.join(KEEPERS[:-1])} or {KEEPERS[-1]} on {dataset}; nothing was charged"
        )


class Spent:
    """What is charged to the budgets of some targets from now on."""

    def __init__(self, place: Place, spendings: Iterable[Spending]) -> None:
        self._place = place
        self._scopes = sorted({(one.dataset, one.analyst) for one in spendings}, key=str)
        self._before = [self._left(*one) for one in self._scopes]

    def _left(self, dataset: str, analyst: str | None) -> float:
        return float(self._place.source.budget(dataset, analyst).remaining().epsilon)

    def words(self) -> str:
        """Return what was spent, in words; nothing if no budget could be charged."""
        parts = []
        for scope, before in zip(self._scopes, self._before, strict=True):
            parts.append(f"spent epsilon {at_most(max(0.0, before - self._left(*scope)))} of {scope[0]}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Spending:
    """What the attacks on a query target spend in all, if none of their findings is known."""

    dataset: str
    analyst: str | None
    epsilon: float


@dataclass(frozen=True, slots=True)
class QueryTarget:
    """An interface to a folder or a server, and what attacks on it spend."""

    interface: QueryInterface
    spending: Spending


def query_target(settings: Mapping[str, Any], epsilon: float | None, place: Place) -> QueryTarget:
    """Return an interface to the folder or the server; nothing is asked yet."""
    from tacit.attack import QueryInterface

    if epsilon is None:
        raise click.UsageError("give --epsilon (in a file: claim = {epsilon = 1.0}): what the queries spend in all")
    table, analyst = place.table(settings["table"]), settings["analyst"]
    unit = _unit(table, settings["unit"])
    budget = place.source.budget(table.dataset, analyst)
    people = read_records(settings["truth"])
    if not {"id", "secret"} <= people.columns.keys():
        raise InvalidInput(
            f"--truth: {settings['truth']} needs the columns id and secret; it has {', '.join(people.columns)}",
            name="truth",
        )
    ids = [_id(one, table.column(unit).kind) for one in people["id"].tolist()]
    _check_ids(place, table, unit, ids, settings["truth"])
    made = QueryInterface(
        place.source,
        ids=ids,
        truth=truths(people["secret"].tolist()),
        table=settings["table"],
        unit=unit,
        secret=settings["secret"],
        analyst=analyst,
        epsilon=epsilon,
        epsilon_min=budget.epsilon_min,
    )
    return QueryTarget(made, Spending(table.dataset, analyst, epsilon))


def _unit(table: Table, stated: str | None) -> str:
    """Return the column with the ids of people, which is the unit of the catalog."""
    if table.unit is None:
        raise InvalidInput(f"{table.name} is public: no person is protected there", name="table")
    if not table.unit.is_direct:
        raise InvalidInput(
            f"the people of {table.name} are identified in another table; attack that table", name="table"
        )
    if stated is not None and stated.lower() != table.unit.column.lower():
        raise InvalidInput(f"--unit: the people of {table.name} are in the column {table.unit.column}", name="unit")
    return table.unit.column


def _check_ids(place: Place, table: Table, unit: str, ids: list[Any], file: Path) -> None:
    """Raise InvalidInput if none of the ids is in a table of the folder; a server does not tell."""
    if place.server is not None:
        click.echo(f"whether the ids of {file} are in {table.name} cannot be checked over a server", err=True)
        return
    found = place.source.engines.count_units(table, unit, ids)
    sentence = f"{found} of {len(ids)} ids of {file} are in {table.name}.{unit}"
    if not found:
        raise InvalidInput(f"{sentence}; nothing was charged", name="truth")
    if found < len(ids):
        click.echo(sentence, err=True)


def _id(cell: Any, kind: Kind) -> Any:
    """Return the id of a person in the kind of the unit's column."""
    from tacit.privacy.tables import Kind

    if kind is Kind.INTEGER and not _WHOLE.fullmatch(str(cell)):
        raise InvalidInput(f"the id {cell!r} is no integer, as the column with the ids is", name="truth")
    if kind is Kind.INTEGER:
        return int(cell)
    return cell if kind is Kind.REAL and isinstance(cell, int | float) else str(cell)


def confirm_spending(screen: Screen, place: Place, spendings: Iterable[Spending], *, is_confirmed: bool) -> None:
    """Ask once for confirmation of all that attacks spend; raise BudgetExceeded if it does not fit.

    The budget of a data set pays for all analysts, that of an analyst for its own queries. Servers show an analyst its
    own budget alone, so there only the budgets that targets name are checked.
    """
    wanted: dict[tuple[str, str | None], float] = defaultdict(float)
    spent = list(spendings)
    for one in spent:
        wanted[one.dataset, one.analyst] += one.epsilon
        if one.analyst is not None and place.server is None:
            wanted[one.dataset, None] += one.epsilon
    sentences = []
    for (dataset, analyst), epsilon in wanted.items():
        left = place.source.budget(dataset, analyst).remaining()
        if epsilon > left.epsilon * ROUNDING:
            whose = dataset if analyst is None else f"{dataset} for {analyst}"
            option = "--epsilon" if len(spent) == 1 else "in all epsilon"
            fits = f"; {option} {left_over(left.epsilon)} would fit" if left.epsilon > 0 else ""
            raise BudgetExceeded(
                f"the attack would spend epsilon {epsilon:g}, and {left_over(left.epsilon)} remains of {whose}{fits}",
                remaining=left,
                scope=whose,
            )
        if epsilon > SHARE * left.epsilon:
            sentences.append(cost_sentence(epsilon, left, dataset, analyst))
    if sentences and not is_confirmed:
        confirm_sentence(screen, "; ".join(sentences))


QUERY: Final = TargetKind(
    "query",
    (
        TargetOption("table", "text", "The table that is queried.", True),
        TargetOption("secret", "text", "The secret of a person, a condition of SQL: \"diagnosis = 'flu'\".", True),
        TargetOption("unit", "text", "Column with the ids of people; by default, and at most, the unit of the table."),
        TargetOption("truth", "file", "A CSV file with the columns id and secret (0 or 1), for scoring alone.", True),
        TargetOption("analyst", "text", "The analyst whose budget is charged as well."),
    ),
    None,
    ("epsilon", "delta"),
)
"""A folder or a server; its targets are made by `query_target`, which also needs the place and an epsilon."""
