"""Requests of the REST interface, built by the client and parsed by the server.

Promise: an unknown field is refused, so that a mistyped one is never silently ignored. A request that the server would
refuse for its form is refused by the client, with the same message, before it is sent (`RequestModel.of`).

The names of the statistics that can be requested over REST.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tacit import stats
from tacit.privacy.errors import InvalidInput
from tacit.privacy.numbers import DEFAULT_LEVEL
from tacit.query.parse import TEXT_MAX

KEY_HEADER: Final = "Idempotency-Key"
KEY_MAX: Final = 180
"""Length of an idempotency key; the server prefixes it with the caller's name."""
LEVEL_MAX: Final = 0.999
"""The highest level of intervals, which need more draws the nearer it is to 1."""

Name = Annotated[str, Field(min_length=1, max_length=200)]
Positive = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
"""Bounded above, so that no absurd price, width or time enters a computation."""
Share = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Level = Annotated[float, Field(gt=0, le=LEVEL_MAX, allow_inf_nan=False)]
Contribution = Annotated[int, Field(ge=1, le=1_000_000)]
Value = Any
"""A string, number, boolean or null; a date is {"date": "2024-01-31"}, a time {"time": "2024-01-31T12:00:00"}."""
KindName = Literal["boolean", "integer", "real", "text", "date", "time"]
RoleName = Literal["owner", "curator", "analyst", "auditor"]


class RequestModel(BaseModel):
    """Base class of requests."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """Return a request with the fields that are not None, or raise InvalidInput as the server would."""
        try:
            return cls(**{name: value for name, value in fields.items() if value is not None})
        except ValidationError as error:
            refused = invalid_request(error.errors()[0])
        raise refused


def invalid_request(error: Mapping[str, Any]) -> InvalidInput:
    """Return a validation error of a request as InvalidInput, without the values that were sent."""
    where = ".".join(str(part) for part in error["loc"] if part not in ("body", "query", "path")) or "the body"
    return InvalidInput(f"{where}: {str(error['msg']).lower()}; see /openapi.json", name=where)


class LimitsRequest(RequestModel):
    """Limits on the contribution of a unit."""

    groups_per_unit: Contribution | None = None
    rows_per_group: Contribution | None = None
    rows_per_unit: Contribution | None = None


class QueryRequest(RequestModel):
    """A query in SQL, its price (exactly one of epsilon, rho and error), and how it is answered."""

    sql: Annotated[str, Field(min_length=1, max_length=TEXT_MAX)]
    epsilon: Positive | None = None
    rho: Positive | None = None
    error: Positive | None = None
    delta: Positive | None = None
    purpose: Annotated[str, Field(max_length=500)] = ""
    limits: LimitsRequest = LimitsRequest()
    keys: dict[str, list[Value]] | None = None
    other: bool = False
    level: Level = DEFAULT_LEVEL
    wait_s: Annotated[float, Field(ge=0, le=3600)] | None = None


class StatisticRequest(RequestModel):
    """A statistic by its name in `tacit.stats`, arguments by name; a column is {"table": ..., "column": ...}."""

    function: Name
    arguments: dict[str, Value]
    level: Level = DEFAULT_LEVEL
    wait_s: Annotated[float, Field(ge=0, le=3600)] | None = None


class TrainingRequest(RequestModel):
    """An estimator by its name in `tacit.learn`, trained on columns of a table; parameters are those of its own."""

    table: Name
    estimator: Name
    parameters: dict[str, Value] = {}
    features: Annotated[list[Name], Field(min_length=1, max_length=1_000)]
    target: Name | None = None
    epsilon: Positive
    delta: Positive | None = None
    purpose: Annotated[str, Field(max_length=500)] = ""
    wait_s: Annotated[float, Field(ge=0, le=3600)] | None = None


class PredictionRequest(RequestModel):
    """Rows as columns by the names of the features, and a method of the model; by default what it is made for."""

    columns: dict[str, list[Value]]
    method: Name | None = None


RunRequest = QueryRequest | StatisticRequest | TrainingRequest
"""Requests that are charged."""


class ForeignKeyRequest(RequestModel):
    """One foreign key on the path to a unit."""

    column: Name
    target_table: Name
    target_column: Name


class UnitRequest(RequestModel):
    """The column whose values are the units, and the foreign keys that lead to it."""

    column: Name
    through: Annotated[list[ForeignKeyRequest], Field(max_length=16)] = []


class ColumnRequest(RequestModel):
    """The public facts about a column: bounds, categories, or its kind only."""

    kind: KindName | None = None
    nullable: bool = True
    """Whether values may be missing; false requires the kind."""
    bounds: Annotated[list[Value], Field(min_length=2, max_length=2)] | None = None
    categories: Annotated[list[Value], Field(min_length=1, max_length=100_000)] | None = None


class TableRequest(RequestModel):
    """A table to register: its source, its unit, and the public facts about its columns."""

    name: Name
    source: Annotated[str, Field(min_length=1, max_length=2_000)]
    unit: Name | UnitRequest | None = None
    public: bool = False
    each_row: bool = False
    """Whether every row is a unit of its own."""
    columns: dict[str, ColumnRequest] = {}
    limits: LimitsRequest = LimitsRequest()
    identified_by: Annotated[list[Name], Field(max_length=64)] = []
    dataset: Annotated[str, Field(max_length=200)] = ""
    format: Literal["csv", "parquet", "duckdb"] | None = None
    replace: bool = False


class BudgetRequest(RequestModel):
    """The budget of a data set; it can be replaced until something is charged."""

    dataset: Name
    epsilon: Positive
    delta: Share = 0.0
    filter: Literal["pure", "zcdp", "renyi", "gdp"] | None = None
    order: Positive | None = None
    relation: Literal["add-remove", "replace-one"] = "add-remove"
    per_epoch: bool = False
    epsilon_min: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] | None = None
    units: Annotated[int, Field(ge=1, le=10**15)] | None = None


class AnalystRequest(RequestModel):
    """The cap of an analyst or a group on a data set."""

    name: Name
    epsilon: Positive
    delta: Share | None = None
    """By default that of the data set."""


class EpochRequest(RequestModel):
    """An epoch, with a budget of its own."""

    name: Name
    starts: Annotated[date, Field(strict=False)] | None = None
    ends: Annotated[date, Field(strict=False)] | None = None
    epsilon: Positive | None = None
    delta: Share | None = None


class MoreBudgetRequest(RequestModel):
    """A request for more budget."""

    dataset: Name
    epsilon: Positive
    delta: Share = 0.0
    reason: Annotated[str, Field(min_length=1, max_length=2_000)]


class DecisionRequest(RequestModel):
    """The decision on a request for more budget."""

    granted: bool
    note: Annotated[str, Field(max_length=2_000)] = ""


class FindingRequest(RequestModel):
    """A finding of an attack, as `Finding.to_dict` writes it; without a data set it is that of the claim's permit."""

    finding: dict[str, Any]
    dataset: Name | None = None


class LoginRequest(RequestModel):
    """A name and a password."""

    name: Name
    password: Annotated[str, Field(min_length=1, max_length=1_000)]


class PersonRequest(RequestModel):
    """A person to add; one without a password uses tokens or OpenID Connect."""

    name: Name
    password: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None


class GrantRequest(RequestModel):
    """A role: everywhere, on a data set or on a table."""

    role: RoleName
    dataset: Name | None = None
    table: Name | None = None


class TokenRequest(RequestModel):
    """A token for the caller or, by an owner, for another person; role and data set restrict it."""

    person: Name | None = None
    label: Annotated[str, Field(max_length=200)] = ""
    days: Annotated[int, Field(ge=1, le=365)] = 90
    role: RoleName | None = None
    dataset: Name | None = None


STATISTICS: Final = tuple(
    name
    for name in stats.__all__
    if inspect.isfunction(getattr(stats, name)) and name not in ("prepare", "preview", "workload")
)
"""All but `workload`, whose arguments are objects of the caller's process."""
