"""What is shown of people, tokens, tables, requests, the journal and the server; `/openapi.json` is made of it."""

from __future__ import annotations

from typing import Any, Literal

from tacit.server.documents import Cost, Given


class HealthGiven(Given):
    """That the process lives."""

    status: Literal["alive"]
    version: str


class ReadyGiven(Given):
    """Whether everything that answers need can be used; what cannot has the code of its error."""

    status: Literal["ready", "unready"]
    failed: dict[str, str]


class GrantGiven(Given):
    """A role, everywhere or on a data set or on a table of one."""

    role: str
    dataset: str | None
    table: str | None


class LoginGiven(Given):
    """A browser's session that has begun."""

    name: str
    csrf: str
    expires_at: str


class ServerGiven(Given):
    """Which server this is, and what it lets callers make large."""

    version: str
    limits: dict[str, int | float]


class MeGiven(Given):
    """Who the caller is."""

    name: str
    token: str | None
    csrf: str | None
    """What a browser sends along with whatever changes something; null for tokens."""
    grants: list[GrantGiven]
    server: ServerGiven


class PersonGiven(Given):
    """Somebody who is known, or was."""

    name: str
    is_active: bool
    created_at: str
    grants: list[GrantGiven]


class TokenGiven(Given):
    """What is known of a token; its text is not."""

    id: str
    person: str
    label: str
    created_at: str
    expires_at: str
    is_revoked: bool
    last_used_at: str | None
    role: str | None
    dataset: str | None


class TokenMade(Given):
    """A new token; its text is shown here and never again."""

    id: str
    token: str
    expires_at: str


class StepGiven(Given):
    """One foreign key on the way to a unit."""

    column: str
    target_table: str
    target_column: str


class UnitGiven(Given):
    """Whom a table protects."""

    column: str
    through: list[StepGiven]


class TableColumnGiven(Given):
    """What is public about a column of a table."""

    name: str
    kind: str
    nullable: bool
    bounds: list[Any] | None
    categories: list[Any] | None


class LimitsGiven(Given):
    """How much of each unit is counted."""

    groups_per_unit: int | None
    rows_per_group: int | None
    rows_per_unit: int | None


class TableGiven(Given):
    """What is public about a table."""

    name: str
    dataset: str
    is_private: bool
    unit: UnitGiven | None
    columns: list[TableColumnGiven]
    limits: LimitsGiven
    identified_by: list[str]


class TableAdded(TableGiven):
    """A table that was registered, and what its owner should know of other budgets over the same rows."""

    warnings: list[str]


class RefreshGiven(Given):
    """The tables whose rows were found to have changed."""

    changed: list[str]


class EventGiven(Given):
    """What was admitted, and how often."""

    event: str
    count: int


class BoundGiven(Given):
    """Between what the loss of all events together lies; null where there is no end."""

    lower: float | None
    upper: float | None
    method: str


class ReportGiven(Given):
    """What was admitted to a budget, and what it means."""

    scope: str
    spent: Cost
    remaining: Cost
    guaranteed: Cost
    events: list[EventGiven]
    unlisted: int
    bound: BoundGiven | None
    meaning: str | None
    text: str


class RequestGiven(Given):
    """A request for more budget, and what became of it."""

    id: str
    dataset: str
    analyst: str
    cost: Cost
    reason: str
    filed_at: str
    state: str
    decided_by: str
    note: str


class RecordGiven(Given):
    """One record of the journal."""

    number: int
    at: str
    kind: str
    contents: dict[str, Any]
    hash: str


class VerifiedGiven(Given):
    """That the journal verifies, up to which record."""

    verified: bool
    records: int
    hash: str


class ReservationGiven(Given):
    """A permit that was never committed."""

    permit: str
    dataset: str
    issued_at: str
    cost: Cost
    note: str


class AuditGiven(Given):
    """What was refused or changed; `count` is how often within a minute."""

    number: int
    at: str
    actor: str
    action: str
    resource: str
    code: str
    address: str
    count: int


class PaidGiven(Given):
    """An answer that was paid for, without the answer."""

    permit: str
    person: str
    datasets: list[str]
    asked_at: str
    cost: Cost
    card: str
