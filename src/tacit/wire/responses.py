"""Responses of the REST interface, built by the server and read by the client; `/openapi.json` is made of them.

A client leaves out fields that it does not know, so that it understands a newer server; what is missing or of another
kind is an error. Costs and moments are the classes of the library on both sides; their JSON is written here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, PlainSerializer

from tacit.accounting.conversions import Cost
from tacit.ledger.rows import RequestState
from tacit.privacy.tables import Kind

Moment = Annotated[datetime, PlainSerializer(datetime.isoformat, return_type=str)]


class ResponseModel(BaseModel):
    """What callers get."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ErrorBody(ResponseModel):
    """What went wrong: a stable code, a sentence, and what the error carries."""

    code: str
    name: str = ""
    message: str
    details: dict[str, Any] = {}


class ErrorResponse(ResponseModel):
    """The answer to whatever is not done."""

    error: ErrorBody


class CostResponse(ResponseModel):
    """What was or would be charged; what is infinite or not known is null."""

    epsilon: float | None
    delta: float | None
    rho: float | None

    @classmethod
    def of(cls, cost: Cost) -> CostResponse:
        """Return a cost for the wire."""
        numbers = {"epsilon": cost.epsilon, "delta": cost.delta, "rho": cost.rho}
        return cls(**{name: one if math.isfinite(one) else None for name, one in numbers.items()})

    @property
    def cost(self) -> Cost:
        """The cost; what is null is infinite."""
        return Cost(number_of(self.epsilon), number_of(self.delta), number_of(self.rho))


def number_of(value: float | None) -> float:
    """Return a number of privacy; what is null is infinite."""
    return math.inf if value is None else value


def costs_of(costs: Mapping[str, CostResponse]) -> dict[str, Cost]:
    """Return the costs of several data sets."""
    return {name: one.cost for name, one in costs.items()}


def cost_responses(costs: Mapping[str, Cost]) -> dict[str, CostResponse]:
    """Return the costs of several data sets for the wire."""
    return {name: CostResponse.of(one) for name, one in costs.items()}


class ColumnResponse(ResponseModel):
    """A column of an answer."""

    name: str
    kind: Kind


class ReleaseResponse(ResponseModel):
    """An answer with its intervals, what it cost and what is left."""

    columns: list[ColumnResponse]
    rows: list[dict[str, Any]]
    intervals: list[dict[str, Any]]
    level: float
    cost: CostResponse
    remaining: dict[str, CostResponse]
    permit: str | None
    permits: list[str]
    datasets: list[str]
    counted: str
    warnings: list[str] = []
    card: str
    simulated: bool


class PlanLine(ResponseModel):
    """One fact about a plan."""

    label: str
    text: str


class PreviewResponse(ResponseModel):
    """What a question would cost, how wide its intervals would be, and how it would be answered."""

    cost: CostResponse
    widths: dict[str, float | None]
    is_released: bool
    lines: list[PlanLine]
    remaining: dict[str, CostResponse]
    fits: bool
    """Whether what is left pays for it; if not, `refusal` says what would fit."""
    refusal: str
    more_like_this: int | None


class StatisticResponse(ResponseModel):
    """The answer of a statistic."""

    label: str
    value: Any
    keys: list[list[Any]] | None
    key_names: list[str]
    interval: list[Any] | None
    level: float
    facts: dict[str, Any]
    picture: str
    cost: CostResponse
    remaining: dict[str, CostResponse]
    permit: str | None
    warnings: list[str] = []
    coverage: list[str] = []
    """Which rows are in no cell or group."""
    card: str
    simulated: bool


class CapResponse(ResponseModel):
    """How much may be lost, and how it is counted."""

    epsilon: float
    delta: float
    filter: str
    order: float | None
    relation: str


class BudgetResponse(ResponseModel):
    """A budget as it is now."""

    scope: str
    dataset: str
    analyst: str | None
    epoch: str | None
    cap: CapResponse
    spent: CostResponse
    remaining: CostResponse
    epsilon_min: float
    is_enforced: bool
    warnings: list[str] = []


class JobResponse(ResponseModel):
    """A question that outlasts its request."""

    id: str
    state: Literal["running", "done", "failed", "cancelled", "lost"]
    asked_at: Moment
    elapsed_s: float
    expected_s: float
    release: dict[str, Any] | None
    error: ErrorBody | None

    @property
    def is_running(self) -> bool:
        """Whether it can still be cancelled."""
        return self.state == "running"


class AcceptedResponse(ResponseModel):
    """Where to look for the answer."""

    job: str


class HealthResponse(ResponseModel):
    """That the process lives."""

    status: Literal["alive"]
    version: str


class ReadyResponse(ResponseModel):
    """Whether everything that answers need can be used; what cannot has the code of its error."""

    status: Literal["ready", "unready"]
    failed: dict[str, str]


class GrantResponse(ResponseModel):
    """A role, everywhere or on a data set or on a table of one."""

    role: str
    dataset: str | None
    table: str | None


class LoginResponse(ResponseModel):
    """A browser's session that has begun."""

    name: str
    csrf: str
    expires_at: Moment


class ServerResponse(ResponseModel):
    """Which server this is, and what it lets callers make large."""

    version: str
    limits: dict[str, int | float]


class MeResponse(ResponseModel):
    """Who the caller is."""

    name: str
    token: str | None
    csrf: str | None
    """What a browser sends along with whatever changes something; null for tokens."""
    grants: list[GrantResponse]
    server: ServerResponse


class PersonResponse(ResponseModel):
    """Somebody who is known, or was."""

    name: str
    is_active: bool
    created_at: Moment
    grants: list[GrantResponse]


class TokenResponse(ResponseModel):
    """What is known of a token; its text is not."""

    id: str
    person: str
    label: str
    created_at: Moment
    expires_at: Moment
    is_revoked: bool
    last_used_at: Moment | None
    role: str | None
    dataset: str | None


class NewTokenResponse(ResponseModel):
    """A new token; its text is shown here and never again."""

    id: str
    token: str
    expires_at: Moment


class ForeignKeyResponse(ResponseModel):
    """One foreign key on the way to a unit."""

    column: str
    target_table: str
    target_column: str


class UnitResponse(ResponseModel):
    """Whom a table protects."""

    column: str
    through: list[ForeignKeyResponse]


class TableColumnResponse(ResponseModel):
    """What is public about a column of a table."""

    name: str
    kind: Kind
    nullable: bool
    bounds: list[Any] | None
    categories: list[Any] | None


class LimitsResponse(ResponseModel):
    """How much of each unit is counted."""

    groups_per_unit: int | None
    rows_per_group: int | None
    rows_per_unit: int | None


class TableResponse(ResponseModel):
    """What is public about a table."""

    name: str
    dataset: str
    is_private: bool
    unit: UnitResponse | None
    columns: list[TableColumnResponse]
    limits: LimitsResponse
    identified_by: list[str]


class NewTableResponse(TableResponse):
    """A table that was registered, and what its owner should know of other budgets over the same rows."""

    warnings: list[str]


class RefreshResponse(ResponseModel):
    """The tables whose rows were found to have changed."""

    changed: list[str]


class EventResponse(ResponseModel):
    """What was admitted, and how often."""

    event: str
    count: int


class BoundResponse(ResponseModel):
    """Between what the loss of all events together lies; null where there is no end."""

    lower: float | None
    upper: float | None
    method: str


class ReportResponse(ResponseModel):
    """What was admitted to a budget, and what it means."""

    scope: str
    spent: CostResponse
    remaining: CostResponse
    guaranteed: CostResponse
    events: list[EventResponse]
    unlisted: int
    bound: BoundResponse | None
    meaning: str | None
    text: str


class MoreBudgetResponse(ResponseModel):
    """A request for more budget, and what became of it."""

    id: str
    dataset: str
    analyst: str
    cost: CostResponse
    reason: str
    filed_at: Moment
    state: RequestState
    decided_by: str
    note: str


class LedgerRecordResponse(ResponseModel):
    """One record of the journal."""

    number: int
    at: Moment
    kind: str
    contents: dict[str, Any]
    hash: str


class VerifiedResponse(ResponseModel):
    """That the journal verifies, up to which record."""

    verified: bool
    records: int
    hash: str


class ReservationResponse(ResponseModel):
    """A permit that was never committed."""

    permit: str
    dataset: str
    issued_at: Moment
    cost: CostResponse
    note: str


class AuditResponse(ResponseModel):
    """What was refused or changed; `count` is how often within a minute."""

    number: int
    at: Moment
    actor: str
    action: str
    resource: str
    code: str
    address: str
    count: int


class PaidResponse(ResponseModel):
    """An answer that was paid for, without the answer."""

    permit: str
    person: str
    datasets: list[str]
    asked_at: Moment
    cost: CostResponse
    card: str
