"""What goes over the wire, in both directions; `/openapi.json` is made of it.

Requests are strict: a field that is not known is refused, so that a mistyped one is never silently ignored.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tacit.query.parse import TEXT_MAX

Name = Annotated[str, Field(min_length=1, max_length=200)]
Positive = Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)]
"""What is above any price, width or time that makes sense is refused here, before anything is computed with it."""
Share = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Level = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Contribution = Annotated[int, Field(ge=1, le=1_000_000)]
Wire = Any
"""A text, number, truth value or null; a date is {"date": "2024-01-31"}, a time {"time": "2024-01-31T12:00:00"}."""


class Asked(BaseModel):
    """What callers send."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Given(BaseModel):
    """What callers get."""

    model_config = ConfigDict(extra="forbid")


class LimitsAsked(Asked):
    """How much of each unit is counted."""

    groups_per_unit: Contribution | None = None
    rows_per_group: Contribution | None = None
    rows_per_unit: Contribution | None = None


class QuestionAsked(Asked):
    """A question in SQL, what it may cost (exactly one of epsilon, rho and error), and how it is answered."""

    sql: Annotated[str, Field(min_length=1, max_length=TEXT_MAX)]
    epsilon: Positive | None = None
    rho: Positive | None = None
    error: Positive | None = None
    delta: Positive | None = None
    purpose: Annotated[str, Field(max_length=500)] = ""
    limits: LimitsAsked = LimitsAsked()
    keys: dict[str, list[Wire]] | None = None
    other: bool = False
    level: Level = 0.95
    wait_s: Annotated[float, Field(ge=0, le=3600)] | None = None


class StatisticAsked(Asked):
    """A statistic by its name in `tacit.stats`, arguments by name; a column is {"table": ..., "column": ...}."""

    function: Name
    arguments: dict[str, Wire]
    level: Level = 0.95
    wait_s: Annotated[float, Field(ge=0, le=3600)] | None = None


class StepAsked(Asked):
    """One foreign key on the way to a unit."""

    column: Name
    target_table: Name
    target_column: Name


class UnitAsked(Asked):
    """The column whose values are protected, and the foreign keys that lead to it."""

    column: Name
    through: Annotated[list[StepAsked], Field(max_length=16)] = []


class ColumnAsked(Asked):
    """What is public about a column: bounds, categories, or its kind alone."""

    kind: Literal["boolean", "integer", "real", "text", "date", "time"] | None = None
    bounds: Annotated[list[Wire], Field(min_length=2, max_length=2)] | None = None
    categories: Annotated[list[Wire], Field(min_length=1, max_length=100_000)] | None = None


class TableAsked(Asked):
    """A table to register: where its rows are, whom it protects, and what is public about its columns."""

    name: Name
    source: Annotated[str, Field(min_length=1, max_length=2_000)]
    unit: Name | UnitAsked | None = None
    public: bool = False
    columns: dict[str, ColumnAsked] = {}
    limits: LimitsAsked = LimitsAsked()
    identified_by: Annotated[list[Name], Field(max_length=64)] = []
    dataset: Annotated[str, Field(max_length=200)] = ""
    format: Literal["csv", "parquet", "duckdb"] | None = None
    replace: bool = False


class BudgetAsked(Asked):
    """A budget for a data set, once and for all."""

    dataset: Name
    epsilon: Positive
    delta: Share = 0.0
    filter: Literal["pure", "zcdp", "renyi", "gdp"] | None = None
    order: Positive | None = None
    relation: Literal["add-remove", "replace-one"] = "add-remove"
    per_epoch: bool = False
    epsilon_min: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] | None = None
    units: Annotated[int, Field(ge=1, le=10**15)] | None = None


class AnalystAsked(Asked):
    """What an analyst, or a group, may spend within the budget of a data set."""

    name: Name
    epsilon: Positive
    delta: Share = 0.0


class EpochAsked(Asked):
    """A stretch of time with a budget of its own."""

    name: Name
    starts: Annotated[date, Field(strict=False)] | None = None
    ends: Annotated[date, Field(strict=False)] | None = None
    epsilon: Positive | None = None
    delta: Share | None = None


class RequestAsked(Asked):
    """A request for more budget."""

    dataset: Name
    epsilon: Positive
    delta: Share = 0.0
    reason: Annotated[str, Field(min_length=1, max_length=2_000)]


class DecisionAsked(Asked):
    """What is decided about a request."""

    granted: bool
    note: Annotated[str, Field(max_length=2_000)] = ""


class LoginAsked(Asked):
    """A name and a password."""

    name: Name
    password: Annotated[str, Field(min_length=1, max_length=1_000)]


class PersonAsked(Asked):
    """Somebody to be known by name; without a password she comes with a token, or through OIDC."""

    name: Name
    password: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None


class GrantAsked(Asked):
    """A role, everywhere or on a data set or on a table of one."""

    role: Literal["owner", "curator", "analyst", "auditor"]
    dataset: Name | None = None
    table: Name | None = None


class TokenAsked(Asked):
    """A token for oneself, or for another person if one is an owner; role and data set narrow what it can do."""

    person: Name | None = None
    label: Annotated[str, Field(max_length=200)] = ""
    days: Annotated[int, Field(ge=1, le=365)] = 90
    role: Literal["owner", "curator", "analyst", "auditor"] | None = None
    dataset: Name | None = None


class ErrorBody(Given):
    """What went wrong: a stable code, a sentence, and what the error carries."""

    code: str
    name: str
    message: str
    details: dict[str, Any]


class ErrorGiven(Given):
    """The answer to whatever is not done."""

    error: ErrorBody


class Cost(Given):
    """What was or would be charged; rho is null where none is known."""

    epsilon: float | None
    delta: float | None
    rho: float | None


class ColumnGiven(Given):
    """A column of an answer."""

    name: str
    kind: Literal["boolean", "integer", "real", "text", "date", "time"]


class ReleaseGiven(Given):
    """An answer with its intervals, what it cost and what is left."""

    columns: list[ColumnGiven]
    rows: list[dict[str, Any]]
    intervals: list[dict[str, Any]]
    level: float
    cost: Cost
    remaining: dict[str, Cost]
    permit: str | None
    permits: list[str]
    datasets: list[str]
    counted: str
    warnings: list[str] = []
    card: str
    simulated: bool


class LineGiven(Given):
    """One fact about a plan."""

    label: str
    text: str


class PreviewGiven(Given):
    """What a question would cost, how wide its intervals would be, and how it would be answered."""

    cost: Cost
    widths: dict[str, float | None]
    is_released: bool
    lines: list[LineGiven]
    remaining: dict[str, Cost]
    more_like_this: int | None


class AnswerGiven(Given):
    """The answer of a statistic."""

    label: str
    value: Any
    keys: list[list[Any]] | None
    key_names: list[str]
    interval: list[Any] | None
    level: float
    facts: dict[str, Any]
    picture: str
    cost: Cost
    remaining: dict[str, Cost]
    permit: str | None
    warnings: list[str] = []
    card: str
    simulated: bool


class CapGiven(Given):
    """How much may be lost, and how it is counted."""

    epsilon: float
    delta: float
    filter: str
    order: float | None
    relation: str


class BudgetGiven(Given):
    """A budget as it is now."""

    scope: str
    dataset: str
    analyst: str | None
    epoch: str | None
    cap: CapGiven
    spent: Cost
    remaining: Cost
    epsilon_min: float
    is_enforced: bool
    warnings: list[str] = []


class JobGiven(Given):
    """A question that outlasts its request."""

    id: str
    state: Literal["running", "done", "failed", "cancelled", "lost"]
    asked_at: str
    elapsed_s: float
    expected_s: float
    release: dict[str, Any] | None
    error: ErrorBody | None


class Accepted(Given):
    """Where to look for the answer."""

    job: str
