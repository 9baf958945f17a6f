"""Resources of a server: tables, budgets, the ledger, people, tokens, jobs and requests for more budget.

Each is read from a response of `tacit.wire`; of a table what is public is known here, and never a row. Requests are
made here from the arguments of callers, and what is wrong with their form is refused before they are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any, Final

from tacit.accounting.conversions import Bound, Cost
from tacit.client.errors import understood
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
    """A column of a server's table, to be given to the statistics of its client."""

    table: str
    declared: Column
    facts: Bounds | Categories | None = None
    """What is stated of it for one statistic."""

    @property
    def name(self) -> str:
        """What the column is called."""
        return self.declared.name

    def stated(self, facts: Bounds | Categories) -> RemoteColumn:
        """Return the column with other bounds or categories than it was registered with, for one statistic."""
        known = fit_facts(self.name, self.declared.kind, facts)
        return RemoteColumn(self.table, replace(self.declared, facts=known), known)

    def __repr__(self) -> str:
        return f"RemoteColumn({self.table}.{self.name})"


@dataclass(frozen=True, slots=True)
class RemoteTable:
    """What is public about a table of a server; `table["age"]` is a column of it."""

    table: Table

    @property
    def name(self) -> str:
        """What the table is called."""
        return self.table.name

    @property
    def dataset(self) -> str:
        """The budget that pays for questions about it."""
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
    """Return a table of a server."""
    limits = response.limits
    with understood("the table"):
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
    """Return the request that registers a table whose rows are where the server can read them.

    Of the flags and the format, those that are stated are sent.
    """
    if not isinstance(data, str | PurePath):
        raise WrongType(
            "a server reads rows from where they are: a path or an address of its own, never a frame that is sent",
            name="data",
        )
    named = [identified_by] if isinstance(identified_by, str) else identified_by
    flags = {flag: truth_value(flag, stated.pop(flag)) or None for flag in ("public", "replace")}
    return TableRequest.stated(
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
    """Return limits for the wire: those that are stated, or None."""
    if limits is None:
        return None
    stated = {name: getattr(instance("limits", limits, Limits, "Limits"), name) for name in LIMITS}
    return LimitsRequest.stated(**stated) if any(one is not None for one in stated.values()) else None


def _unit_request(unit: str | Unit | None) -> UnitRequest | None:
    """Return a unit for the wire: a column, and the foreign keys that lead to it."""
    if unit is None or isinstance(unit, str):
        return None if unit is None else UnitRequest.stated(column=unit)
    if not isinstance(unit, Unit):
        raise WrongType("a unit is a column or a tacit.Unit", name="unit", value=unit)
    through = [
        ForeignKeyRequest.stated(column=step.column, target_table=step.target_table, target_column=step.target_column)
        for step in unit.through
    ]
    return UnitRequest.stated(column=unit.column, through=through or None)


def _facts(name: str, facts: object) -> dict[str, Any]:
    """Return what is known of a column for the wire."""
    if isinstance(facts, Column):
        inner = {} if facts.facts is None else _facts(name, facts.facts)
        return {"kind": facts.kind.value, **({} if facts.nullable else {"nullable": False}), **inner}
    if isinstance(facts, Bounds):
        return {"bounds": encode([facts.lower, facts.upper], tagged=True)}
    if isinstance(facts, Categories):
        return {"categories": encode(facts.values, tagged=True)}
    raise WrongType(f"what is known of {name} is Bounds, Categories or a Column", name=name, value=facts)


def _column_requests(columns: Mapping[str, Any], kinds: Mapping[str, Kind]) -> dict[str, ColumnRequest]:
    """Return what is stated of columns for the wire: facts, kinds, or both."""
    stated = {name: _facts(name, facts) for name, facts in columns.items()}
    for name, kind in kinds.items():
        stated.setdefault(name, {}).update(kind=Kind.of(kind).value)
    return {name: ColumnRequest.stated(**one) for name, one in stated.items()}


@dataclass(frozen=True, slots=True)
class RemoteReport:
    """What a budget has admitted so far and what that means; `str` says it in words."""

    scope: str
    spent: Cost
    remaining: Cost
    guaranteed: Cost
    events: Mapping[str, int]
    """What was admitted, in the notation of `tacit account`, equal events counted together."""
    unlisted: int
    bound: Bound | None
    meaning: str | None
    text: str

    @classmethod
    def of(cls, response: ReportResponse) -> RemoteReport:
        """Return the report that a server answered."""
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
    """A budget as it was at a moment."""

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
        """Return the budget that a server answered."""
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

    What is read is what the ledger holds at that moment, whoever was charged in between.
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
        """Whose budget this is, for people."""
        self.dataset: Final = known.dataset
        self.analyst: Final = known.analyst
        self.epoch: Final = known.epoch
        self.epsilon_min: Final = known.epsilon_min
        """The least epsilon that a release from the data set costs."""
        self.is_enforced: Final = known.is_enforced
        """Whether the cap is asked at admission; that of a data set with a budget for each epoch is not."""
        self.cap: Final = known.cap
        """How much may be lost, and by which filter it is counted."""

    def state(self) -> BudgetState:
        """Return all that is known of it now, from one moment."""
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
        """Return what the charges so far come to; never above the cap, which is what is promised."""
        return self.state().spent

    def remaining(self) -> Cost:
        """Return the greatest pure epsilon that would be admitted now, and the delta and rho that are left."""
        return self.state().remaining

    def report(self) -> RemoteReport:
        """Return what was admitted so far and what it means; the server may take seconds to find that."""
        return RemoteReport.of(self._report())

    def __repr__(self) -> str:
        return f"RemoteBudget({self.name!r}, epsilon={self.epsilon:g}, delta={self.delta:g})"


def _cap(response: BudgetResponse) -> Cap:
    try:
        return Cap.from_dict(response.cap.model_dump())
    except LedgerCorrupt:
        raise NotATacitServer("the cap of a budget is not what this version of tacit reads") from None


class RemoteLedger:
    """What the journal of a server says."""

    def __init__(self, transport: Transport) -> None:
        self._transport: Final = transport

    def records(self, first: int = 1, limit: int = RECORDS_AT_ONCE) -> list[dict[str, Any]]:
        """Return records from a number on, the oldest first."""
        found = self._transport.get_list(LedgerRecordResponse, "ledger", query={"first": first, "limit": limit})
        return [one.model_dump() for one in found]

    def history(self, first: int = 1) -> Iterator[dict[str, Any]]:
        """Yield all records from a number on, some at a time."""
        while found := self.records(first):
            yield from found
            first = found[-1]["number"] + 1

    def verify(self, *, full: bool = False) -> dict[str, Any]:
        """Check that the journal is whole and that the tables say what it says, or raise LedgerCorrupt."""
        query = {"full": _truth("full", full)}
        return self._transport.get(VerifiedResponse, "ledger", "verify", query=query).model_dump()

    def export(self, path: Path | str, *, answers: bool = False) -> Path:
        """Write the ledger as JSON lines to a new file, whole or not at all; owners may have the answers in it."""
        target = path_of("path", path)
        with new_file(target) as aside:
            with aside.open("wb") as file:
                query = {"answers": _truth("answers", answers)}
                self._transport.save("ledger", "export", query=query, write=file.write)
            if not _is_whole(aside):
                raise ServerUnreachable(f"the export from {self._transport.url} was cut off; try again")
        return target

    def reservations(self) -> list[dict[str, Any]]:
        """Return permits that were never committed, the oldest first: runs under way, and runs that died."""
        return [one.model_dump() for one in self._transport.get_list(ReservationResponse, "reservations")]


def _truth(name: str, value: bool) -> str:
    return "true" if truth_value(name, value) else "false"


def _is_whole(path: Path) -> bool:
    """Whether an export has its last line, which counts what came before."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LAST_LINE_MAX))
        last = file.read().splitlines()[-1:]
    return bool(last) and last[0].startswith(b'{"answers":') and b'"records":' in last[0]


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was made just now: its text is shown this once, and not by `repr`."""

    id: str
    text: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"NewToken(id={self.id!r}, expires_at={self.expires_at.isoformat()!r})"


class People:
    """People, grants and tokens."""

    def __init__(self, transport: Transport) -> None:
        self._transport: Final = transport

    def all(self) -> list[dict[str, Any]]:
        """Return everyone with their grants."""
        return [one.model_dump() for one in self._transport.get_list(PersonResponse, "people")]

    def add(self, name: str, password: str | None = None) -> dict[str, Any]:
        """Make somebody known; without a password they come with a token, or through OIDC."""
        body = PersonRequest.stated(name=name, password=password)
        return self._transport.post(PersonResponse, "people", body=body).model_dump()

    def remove(self, name: str) -> None:
        """Let somebody be known no longer; their tokens end at once."""
        self._transport.delete("people", name)

    def grant(self, name: str, role: str, *, dataset: str | None = None, table: str | None = None) -> None:
        """Give somebody a role: everywhere, on a data set, or on a table of one."""
        body = GrantRequest.stated(role=role, dataset=dataset, table=table)
        self._transport.ask("POST", "people", name, "grants", body=body)

    def withdraw(self, name: str, role: str, *, dataset: str | None = None, table: str | None = None) -> None:
        """Take a role back."""
        body = GrantRequest.stated(role=role, dataset=dataset, table=table)
        self._transport.delete("people", name, "grants", body=body)

    def tokens(self) -> list[dict[str, Any]]:
        """Return the tokens that may be seen, without their texts."""
        return [one.model_dump() for one in self._transport.get_list(TokenResponse, "tokens")]

    def create_token(
        self,
        person: str | None = None,
        *,
        label: str = "",
        days: int = 90,
        role: str | None = None,
        dataset: str | None = None,
    ) -> NewToken:
        """Make a token for oneself, or for another as an owner; `role` and `dataset` narrow what it can do."""
        body = TokenRequest.stated(person=person, label=label, days=days, role=role, dataset=dataset)
        made = self._transport.post(NewTokenResponse, "tokens", body=body)
        return NewToken(made.id, made.token, made.expires_at)

    def revoke_token(self, token: str) -> None:
        """End a token, by its id."""
        self._transport.delete("tokens", token)


@dataclass(frozen=True, slots=True)
class Job:
    """A question that outlasts its request."""

    id: str
    state: str
    asked_at: datetime
    elapsed_s: float
    expected_s: float
    is_running: bool
    """Whether it can still be cancelled."""

    @classmethod
    def of(cls, response: JobResponse) -> Job:
        """Return a job of a server."""
        return cls(
            *(response.id, response.state, response.asked_at),
            *(response.elapsed_s, response.expected_s, response.is_running),
        )


def request_of(response: MoreBudgetResponse) -> Request:
    """Return a request for more budget."""
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
