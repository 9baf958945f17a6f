"""Responses of the REST interface, built by the server and parsed by the client.

A client ignores unknown fields, so that it can talk to a newer server; missing fields and other types are errors.
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

Timestamp = Annotated[datetime, PlainSerializer(datetime.isoformat, return_type=str)]


class ResponseModel(BaseModel):
    """Base class of responses."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ErrorBody(ResponseModel):
    """A TacitError: its stable code, class, message and attributes."""

    code: str
    name: str = ""
    message: str
    details: dict[str, Any] = {}


class ErrorResponse(ResponseModel):
    """The response to a request that failed."""

    error: ErrorBody


class CostResponse(ResponseModel):
    """A cost; infinite and unknown parts are null."""

    epsilon: float | None
    delta: float | None
    rho: float | None

    @classmethod
    def of(cls, cost: Cost) -> CostResponse:
        """Return the response of a cost."""
        numbers = {"epsilon": cost.epsilon, "delta": cost.delta, "rho": cost.rho}
        return cls(**{name: one if math.isfinite(one) else None for name, one in numbers.items()})

    @property
    def cost(self) -> Cost:
        """The cost, with null as infinity."""
        return Cost(number_of(self.epsilon), number_of(self.delta), number_of(self.rho))


def number_of(value: float | None) -> float:
    """Return a privacy parameter, with null as infinity."""
    return math.inf if value is None else value


def costs_of(costs: Mapping[str, CostResponse]) -> dict[str, Cost]:
    """Return the costs of several data sets."""
    return {name: one.cost for name, one in costs.items()}


def cost_responses(costs: Mapping[str, Cost]) -> dict[str, CostResponse]:
    """Return the responses of the costs of several data sets."""
    return {name: CostResponse.of(one) for name, one in costs.items()}


class ColumnResponse(ResponseModel):
    """A column of an answer."""

    name: str
    kind: Kind


class ReleaseResponse(ResponseModel):
    """An answer of SQL with its intervals, its cost and the remaining budgets."""

    columns: list[ColumnResponse]
    rows: list[dict[str, Any]]
    intervals: list[dict[str, Any]]
    level: float
    cost: CostResponse
    remaining: dict[str, CostResponse]
    analyst: str | None = None
    """Whose cap `remaining` takes into account; null if only the budget of the data set is charged."""
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
    """The price of a query or statistic, the widths of its intervals, and its plan."""

    cost: CostResponse
    widths: dict[str, float | None]
    is_released: bool
    lines: list[PlanLine]
    remaining: dict[str, CostResponse]
    leaves: dict[str, CostResponse]
    """What would be left of each budget afterwards."""
    analyst: str | None = None
    """Whose cap `remaining` takes into account; null if only the budget of the data set is charged."""
    fits: bool
    """Whether the remaining budget suffices; if not, `refusal` says what would fit."""
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
    analyst: str | None = None
    """Whose cap `remaining` takes into account; null if only the budget of the data set is charged."""
    permit: str | None
    warnings: list[str] = []
    coverage: list[str] = []
    """Sentences on the rows that are left out."""
    card: str
    simulated: bool


class ModelResponse(ResponseModel):
    """A trained model; `document` is the fitted estimator, where one model is asked for."""

    id: str
    estimator: str
    dataset: str
    table: str
    features: list[ColumnResponse]
    target: str | None
    analyst: str | None
    """The analyst who was charged; null for those who manage the budget."""
    permit: str | None
    trained_at: Timestamp
    cost: CostResponse
    """What its training was charged: nothing if the same had been released before."""
    price: CostResponse
    """What the release costs a budget that it is new to."""
    card: str
    document: dict[str, Any] | None = None


class TrainingResponse(ResponseModel):
    """The model of a training, and what it was charged now: nothing if the same was released before."""

    model: ModelResponse
    cost: CostResponse
    remaining: dict[str, CostResponse]
    analyst: str | None = None
    """Whose cap `remaining` takes into account; null if only the budget of the data set is charged."""
    permit: str | None
    warnings: list[str] = []


class PredictionResponse(ResponseModel):
    """What a method of a model says of rows, in their order."""

    method: str
    values: list[Any]
    names: list[str]
    """The names of the columns, where `values` has a list for each row."""


class CapResponse(ResponseModel):
    """The cap of a budget and its filter."""

    epsilon: float
    delta: float
    filter: str
    order: float | None
    relation: str


class BudgetResponse(ResponseModel):
    """The present state of a budget."""

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
    """A run that outlasts its request."""

    id: str
    state: Literal["running", "done", "failed", "cancelled", "lost"]
    asked_at: Timestamp
    elapsed_s: float
    expected_s: float
    release: dict[str, Any] | None
    error: ErrorBody | None

    @property
    def is_running(self) -> bool:
        """Whether the job can still be cancelled."""
        return self.state == "running"


class AcceptedResponse(ResponseModel):
    """The id of the job that will hold the answer."""

    job: str


class HealthResponse(ResponseModel):
    """The liveness of the process."""

    status: Literal["alive"]
    version: str


class ReadyResponse(ResponseModel):
    """The readiness of the server, with the error codes of components that fail."""

    status: Literal["ready", "unready"]
    failed: dict[str, str]


class GrantResponse(ResponseModel):
    """A role, everywhere or on a data set or on a table of one."""

    role: str
    dataset: str | None
    table: str | None


class LoginResponse(ResponseModel):
    """A new browser session."""

    name: str
    csrf: str
    expires_at: Timestamp


class ServerResponse(ResponseModel):
    """The version and the limits of the server."""

    version: str
    limits: dict[str, int | float]


class MeResponse(ResponseModel):
    """The caller and the server."""

    name: str
    token: str | None
    csrf: str | None
    """The CSRF token of a browser session; null for tokens."""
    grants: list[GrantResponse]
    server: ServerResponse


class PersonResponse(ResponseModel):
    """A person, who may have been removed."""

    name: str
    is_active: bool
    created_at: Timestamp
    grants: list[GrantResponse]


class TokenResponse(ResponseModel):
    """A token without its text."""

    id: str
    person: str
    label: str
    created_at: Timestamp
    expires_at: Timestamp
    is_revoked: bool
    last_used_at: Timestamp | None
    role: str | None
    dataset: str | None


class NewTokenResponse(ResponseModel):
    """A new token with its text, which cannot be read again later."""

    id: str
    token: str
    expires_at: Timestamp


class ForeignKeyResponse(ResponseModel):
    """One foreign key on the path to a unit."""

    column: str
    target_table: str
    target_column: str


class UnitResponse(ResponseModel):
    """The unit of a table."""

    column: str
    through: list[ForeignKeyResponse]


class TableColumnResponse(ResponseModel):
    """The public facts about a column."""

    name: str
    kind: Kind
    nullable: bool
    bounds: list[Any] | None
    categories: list[Any] | None


class LimitsResponse(ResponseModel):
    """Limits on the contribution of a unit."""

    groups_per_unit: int | None
    rows_per_group: int | None
    rows_per_unit: int | None


class TableResponse(ResponseModel):
    """The public facts about a table."""

    name: str
    dataset: str
    is_private: bool
    unit: UnitResponse | None
    columns: list[TableColumnResponse]
    limits: LimitsResponse
    identified_by: list[str]


class NewTableResponse(TableResponse):
    """A table that was registered, with warnings about other budgets over the same rows."""

    warnings: list[str]


class RefreshResponse(ResponseModel):
    """The tables whose rows have changed."""

    changed: list[str]


class EventResponse(ResponseModel):
    """An event in the notation of `tacit account`, and how often it was admitted."""

    event: str
    count: int


class BoundResponse(ResponseModel):
    """Certified bounds on the loss of all events together; null if unbounded."""

    lower: float | None
    upper: float | None
    method: str


class ReportResponse(ResponseModel):
    """The events admitted to a budget, and what they mean."""

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
    """A request for more budget and its state."""

    id: str
    dataset: str
    analyst: str
    cost: CostResponse
    reason: str
    filed_at: Timestamp
    state: RequestState
    decided_by: str
    note: str


class FindingResponse(ResponseModel):
    """A finding that was kept, with the number of its record in the journal."""

    id: str
    record: int
    dataset: str
    permit: str | None
    by: str
    at: Timestamp
    document: dict[str, Any]


class LedgerRecordResponse(ResponseModel):
    """A record of the journal."""

    number: int
    at: Timestamp
    kind: str
    contents: dict[str, Any]
    hash: str


class VerifiedResponse(ResponseModel):
    """A successful verification of the journal, up to its last record."""

    verified: bool
    records: int
    hash: str


class ReservationResponse(ResponseModel):
    """A permit that was not committed."""

    permit: str
    dataset: str
    issued_at: Timestamp
    cost: CostResponse
    note: str


class AuditResponse(ResponseModel):
    """An audit record of a refusal or a change; `count` equal ones within a minute."""

    number: int
    at: Timestamp
    actor: str
    action: str
    resource: str
    code: str
    address: str
    count: int


class PaidResponse(ResponseModel):
    """A stored answer without its rows."""

    permit: str
    person: str
    datasets: list[str]
    asked_at: Timestamp
    cost: CostResponse
    card: str
