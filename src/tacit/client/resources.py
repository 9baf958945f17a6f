"""Resources of a server: tables, budgets, the ledger, people, tokens, jobs and requests for more budget.

Each is built from a response of `tacit.wire`. A table holds its public facts and no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any, Final

from tacit.accounting.conversions import Bound, Cost
from tacit.client.errors import require_readable
from tacit.client.transport import Transport
from tacit.ledger.administration import Request
from tacit.ledger.caps import Cap
from tacit.privacy import texts
from tacit.privacy.arguments import column_mapping, instance, instances
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import LedgerCorrupt, NotATacitServer, ServerUnreachable, WrongType
from tacit.privacy.numbers import truth_value
from tacit.privacy.tables import Column, Kind, Limits, Table, fit_facts
from tacit.privacy.texts import path as path_of
from tacit.privacy.units import ForeignKey, Unit
from tacit.storage.files import new_file
from tacit.wire.requests import (
    ColumnRequest,
    ForeignKeyRequest,
    GrantRequest,
    LimitsRequest,
    PersonRequest,
    TableRequest,
    TokenRequest,
    UnitRequest,
)
from tacit.wire.responses import (
    BudgetResponse,
    JobResponse,
    LedgerRecordResponse,
    MoreBudgetResponse,
    NewTokenResponse,
    PersonResponse,
    ReportResponse,
    ReservationResponse,
    TableColumnResponse,
    TableResponse,
    TokenResponse,
    UnitResponse,
    VerifiedResponse,
    number_of,
)
from tacit.wire.values import MOMENTS, decode_cell, encode

LIMITS: Final = ("rows_per_unit", "groups_per_unit", "rows_per_group")
RECORDS_AT_ONCE: Final = 100
LAST_LINE_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class RemoteColumn:
    """A column of a table, as an argument of `client.stats`."""

    table: str
    declared: Column
    facts: Bounds | Categories | None = None
    """Bounds or categories for one statistic."""

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.declared.name

    def stated(self, facts: Bounds | Categories) -> RemoteColumn:
        """Return the column with other bounds or categories than the registered ones, for one statistic."""
        known = fit_facts(self.name, self.declared.kind, facts)
        return RemoteColumn(self.table, replace(self.declared, facts=known), known)

    def __repr__(self) -> str:
        return f"RemoteColumn({self.table}.{self.name})"


@dataclass(frozen=True, slots=True)
class RemoteTable:
    """The public facts about a table; `table["age"]` is a column."""

    table: Table

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.table.name

    @property
    def dataset(self) -> str:
        """The data set whose budget is charged."""
        return self.table.dataset

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, with their kinds and facts."""
        return self.table.columns

    def __getitem__(self, name: str) -> RemoteColumn:
        return RemoteColumn(self.table.name, self.table.column(name))

    def __repr__(self) -> str:
        return f"RemoteTable({self.name!r})"


def table_of(response: TableResponse) -> RemoteTable:
    """Return the table of a response."""
    limits = response.limits
    with require_readable("the table"):
        return RemoteTable(
            Table(
                response.name,
                tuple(map(_column, response.columns)),
                None if response.unit is None else _unit(response.unit),
                Limits(**{name: one for name in LIMITS if (one := getattr(limits, name)) is not None}),
                tuple(response.identified_by),
                response.dataset,
            )
        )


def _column(response: TableColumnResponse) -> Column:
    kind = response.kind
    facts: Bounds | Categories | None = None
    if response.bounds is not None:
        lower, upper = (decode_cell(one, kind if kind in MOMENTS else None) for one in response.bounds)
        facts = Bounds(lower, upper)
    elif response.categories is not None:
        facts = Categories(decode_cell(one, None if kind is Kind.REAL else kind) for one in response.categories)
    return Column(response.name, kind, facts, response.nullable)


def _unit(response: UnitResponse) -> Unit:
    steps = (ForeignKey(step.column, step.target_table, step.target_column) for step in response.through)
    return Unit(response.column, tuple(steps))


def table_request(
    name: str,
    data: object,
    *,
    unit: str | Unit | None,
    columns: Mapping[str, Bounds | Categories | Column] | None,
    kinds: Mapping[str, Kind] | None,
    limits: Limits | None,
    identified_by: str | Iterable[str],
    dataset: str,
    **stated: Any,
) -> TableRequest:
    """Return the request that registers a table whose rows the server can read."""
    if not isinstance(data, str | PurePath):
        raise WrongType(
            "a server reads rows from a path or address of its own; frames are not sent",
            name="data",
        )
    named = [identified_by] if isinstance(identified_by, str) else identified_by
    flags = {flag: truth_value(flag, stated.pop(flag)) or None for flag in ("public", "each_row", "replace")}
    return TableRequest.of(
        name=texts.name("name", name),
        source=str(data),
        unit=_unit_request(unit),
        columns=_column_requests(column_mapping("columns", columns), column_mapping("kinds", kinds)) or None,
        limits=limits_request(limits),
        identified_by=list(instances("identified_by", named, str, "a list of names of columns")) or None,
        dataset=instance("dataset", dataset, str, "a text") or None,
        **flags,
        **stated,
    )


def limits_request(limits: Limits | None) -> LimitsRequest | None:
    """Return the request of limits, or None if none is stated."""
    if limits is None:
        return None
    stated = {name: getattr(instance("limits", limits, Limits, "Limits"), name) for name in LIMITS}
    return LimitsRequest.of(**stated) if any(one is not None for one in stated.values()) else None


def _unit_request(unit: str | Unit | None) -> UnitRequest | None:
    """Return the request of a unit."""
    if unit is None or isinstance(unit, str):
        return None if unit is None else UnitRequest.of(column=unit)
    if not isinstance(unit, Unit):
        raise WrongType("a unit is a column or a tacit.Unit", name="unit", value=unit)
    through = [
        ForeignKeyRequest.of(column=step.column, target_table=step.target_table, target_column=step.target_column)
        for step in unit.through
    ]
    return UnitRequest.of(column=unit.column, through=through or None)


def _facts(name: str, facts: object) -> dict[str, Any]:
    """Return the fields of a column request for bounds, categories or a Column."""
    if isinstance(facts, Column):
        inner = {} if facts.facts is None else _facts(name, facts.facts)
        return {"kind": facts.kind.value, **({} if facts.nullable else {"nullable": False}), **inner}
    if isinstance(facts, Bounds):
        return {"bounds": encode([facts.lower, facts.upper], tagged=True)}
    if isinstance(facts, Categories):
        return {"categories": encode(facts.values, tagged=True)}
    raise WrongType(f"the facts about {name} must be Bounds, Categories or a Column", name=name, value=facts)


def _column_requests(columns: Mapping[str, Any], kinds: Mapping[str, Kind]) -> dict[str, ColumnRequest]:
    """Return the requests of columns with stated facts, kinds, or both."""
    stated = {name: _facts(name, facts) for name, facts in columns.items()}
    for name, kind in kinds.items():
        stated.setdefault(name, {}).update(kind=Kind.of(kind).value)
    return {name: ColumnRequest.of(**one) for name, one in stated.items()}


@dataclass(frozen=True, slots=True)
class RemoteReport:
    """The events that a budget has admitted and what they mean; `str` gives it in words."""

    scope: str
    spent: Cost
    remaining: Cost
    guaranteed: Cost
    events: Mapping[str, int]
    """The number of each event, in the notation of `tacit account`."""
    unlisted: int
    bound: Bound | None
    meaning: str | None
    text: str

    @classmethod
    def of(cls, response: ReportResponse) -> RemoteReport:
        """Return the report of a response."""
        bound = response.bound
        return cls(
            response.scope,
            response.spent.cost,
            response.remaining.cost,
            response.guaranteed.cost,
            {one.event: one.count for one in response.events},
            response.unlisted,
            None if bound is None else Bound(number_of(bound.lower), number_of(bound.upper), bound.method),
            response.meaning,
            response.text,
        )

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class BudgetState:
    """The state of a budget at one moment."""

    name: str
    dataset: str
    analyst: str | None
    epoch: str | None
    cap: Cap
    spent: Cost
    remaining: Cost
    epsilon_min: float
    is_enforced: bool

    @classmethod
    def of(cls, response: BudgetResponse) -> BudgetState:
        """Return the state of a response."""
        return cls(
            response.scope,
            response.dataset,
            response.analyst,
            response.epoch,
            _cap(response),
            response.spent.cost,
            response.remaining.cost,
            response.epsilon_min,
            response.is_enforced,
        )


class RemoteBudget:
    """The budget of a data set, of an analyst on it, or of one of its epochs, in the ledger of a server.

    `spent`, `remaining` and `report` read the present state from the server.
    """

    def __init__(
        self,
        read: Callable[[], BudgetResponse],
        report: Callable[[], ReportResponse],
        first: BudgetState | None = None,
    ) -> None:
        self._read, self._report = read, report
        known = self.state() if first is None else first
        self.name: Final = known.name
        """The scope of the budget in words."""
        self.dataset: Final = known.dataset
        self.analyst: Final = known.analyst
        self.epoch: Final = known.epoch
        self.epsilon_min: Final = known.epsilon_min
        """The least epsilon of a release."""
        self.is_enforced: Final = known.is_enforced
        """Whether the cap is enforced; that of a data set with budgets of epochs is not."""
        self.cap: Final = known.cap
        """The cap and its filter."""

    def state(self) -> BudgetState:
        """Return the present state of the budget, read at one moment."""
        return BudgetState.of(self._read())

    @property
    def epsilon(self) -> float:
        """The cap's epsilon."""
        return self.cap.epsilon

    @property
    def delta(self) -> float:
        """The cap's delta."""
        return self.cap.delta

    def spent(self) -> Cost:
        """Return the total of the charges so far, at most the cap."""
        return self.state().spent

    def remaining(self) -> Cost:
        """Return the greatest pure epsilon, up to the cap's, that is admitted, and the delta and rho left."""
        return self.state().remaining

    def report(self) -> RemoteReport:
        """Return the admitted events and what they mean; may take seconds."""
        return RemoteReport.of(self._report())

    def __repr__(self) -> str:
        return f"RemoteBudget({self.name!r}, epsilon={self.epsilon:g}, delta={self.delta:g})"


def _cap(response: BudgetResponse) -> Cap:
    try:
        return Cap.from_dict(response.cap.model_dump())
    except LedgerCorrupt:
        raise NotATacitServer("the cap of a budget cannot be read by this version of tacit") from None


class RemoteLedger:
    """The ledger of a server, for owners and auditors."""

    def __init__(self, transport: Transport) -> None:
        self._transport: Final = transport

    def records(self, first: int = 1, limit: int = RECORDS_AT_ONCE) -> list[dict[str, Any]]:
        """Return records from number `first` on, oldest first."""
        found = self._transport.get_list(LedgerRecordResponse, "ledger", query={"first": first, "limit": limit})
        return [one.model_dump() for one in found]

    def history(self, first: int = 1) -> Iterator[dict[str, Any]]:
        """Yield all records from number `first` on, requested in pages."""
        while found := self.records(first):
            yield from found
            first = found[-1]["number"] + 1

    def verify(self, *, full: bool = False) -> dict[str, Any]:
        """Verify the journal and its totals, or raise LedgerCorrupt."""
        query = {"full": _query_flag("full", full)}
        return self._transport.get(VerifiedResponse, "ledger", "verify", query=query).model_dump()

    def export(self, path: Path | str, *, answers: bool = False) -> Path:
        """Write the ledger as JSON lines to a new file, atomically; owners may include the answers."""
        target = path_of("path", path)
        with new_file(target) as aside:
            with aside.open("wb") as file:
                query = {"answers": _query_flag("answers", answers)}
                self._transport.save("ledger", "export", query=query, write=file.write)
            if not _is_complete(aside):
                raise ServerUnreachable(f"the export from {self._transport.url} is incomplete; try again")
        return target

    def reservations(self) -> list[dict[str, Any]]:
        """Return permits that were not committed, oldest first: of active runs, and of runs that died."""
        return [one.model_dump() for one in self._transport.get_list(ReservationResponse, "reservations")]


def _query_flag(name: str, value: bool) -> str:
    return "true" if truth_value(name, value) else "false"


def _is_complete(path: Path) -> bool:
    """Return whether an export has its last line, which holds the number of records."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LAST_LINE_MAX))
        last = file.read().splitlines()[-1:]
    return bool(last) and last[0].startswith(b'{"answers":') and b'"records":' in last[0]


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """A new token with its text, which cannot be read again later and is not shown by `repr`."""

    id: str
    text: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"CreatedToken(id={self.id!r}, expires_at={self.expires_at.isoformat()!r})"


class RemotePeople:
    """The people of a server, with their grants and tokens."""

    def __init__(self, transport: Transport) -> None:
        self._transport: Final = transport

    def all(self) -> list[dict[str, Any]]:
        """Return all people with their grants."""
        return [one.model_dump() for one in self._transport.get_list(PersonResponse, "people")]

    def add(self, name: str, password: str | None = None) -> dict[str, Any]:
        """Add a person; one without a password uses tokens or OpenID Connect."""
        body = PersonRequest.of(name=name, password=password)
        return self._transport.post(PersonResponse, "people", body=body).model_dump()

    def remove(self, name: str) -> None:
        """Remove a person with all grants, tokens and sessions."""
        self._transport.delete("people", name)

    def grant(self, name: str, role: str, *, dataset: str | None = None, table: str | None = None) -> None:
        """Grant a role: everywhere, on a data set or on a table."""
        body = GrantRequest.of(role=role, dataset=dataset, table=table)
        self._transport.ask("POST", "people", name, "grants", body=body)

    def withdraw(self, name: str, role: str, *, dataset: str | None = None, table: str | None = None) -> None:
        """Withdraw a grant."""
        body = GrantRequest.of(role=role, dataset=dataset, table=table)
        self._transport.delete("people", name, "grants", body=body)

    def tokens(self) -> list[dict[str, Any]]:
        """Return the visible tokens, without their texts."""
        return [one.model_dump() for one in self._transport.get_list(TokenResponse, "tokens")]

    def create_token(
        self,
        person: str | None = None,
        *,
        label: str = "",
        days: int = 90,
        role: str | None = None,
        dataset: str | None = None,
    ) -> CreatedToken:
        """Create a token for oneself or, as an owner, for another person; `role` and `dataset` restrict it."""
        body = TokenRequest.of(person=person, label=label, days=days, role=role, dataset=dataset)
        made = self._transport.post(NewTokenResponse, "tokens", body=body)
        return CreatedToken(made.id, made.token, made.expires_at)

    def revoke_token(self, token: str) -> None:
        """Revoke a token by its id."""
        self._transport.delete("tokens", token)


@dataclass(frozen=True, slots=True)
class RemoteJob:
    """A run at a server that outlasts its request."""

    id: str
    state: str
    asked_at: datetime
    elapsed_s: float
    expected_s: float
    is_running: bool
    """Whether the job can still be cancelled."""

    @classmethod
    def of(cls, response: JobResponse) -> RemoteJob:
        """Return the job of a response."""
        return cls(
            *(response.id, response.state, response.asked_at),
            *(response.elapsed_s, response.expected_s, response.is_running),
        )


def request_of(response: MoreBudgetResponse) -> Request:
    """Return the request for more budget of a response."""
    return Request(
        response.id,
        response.dataset,
        response.analyst,
        response.cost.cost,
        response.reason,
        response.filed_at,
        response.state,
        response.decided_by,
        response.note,
    )
