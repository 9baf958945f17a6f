"""The arguments of a question, defined once for `Curator.sql`, `Client.sql`, previews, cursors and the server.

`PlanOptions` decide what is planned and what it costs, `RunOptions` how it is run; `QueryOptions` are both, with the
analyst. `QuerySpec` holds them checked. Promise: an argument that does not exist is refused by name before anything is
planned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, Self, TypedDict, cast

from tacit.engines.protocol import Progress
from tacit.pipeline import ReleaseOptions
from tacit.privacy.bounds import Category
from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Limits
from tacit.query.allocation import Target
from tacit.query.parse import Text
from tacit.query.plan import PlanSettings


class PlanOptions(TypedDict, total=False):
    """The arguments beside SQL and epsilon that decide the plan of a question and its price; None is the default."""

    rho: object
    """In place of epsilon: what the whole answer costs, as zero-concentrated differential privacy."""
    error: object
    """In place of epsilon: the wanted half-width of the 95 % interval of the first count or sum."""
    delta: object
    """The delta for the selection of groups whose keys are not public, if not the usual share of the budget's."""
    limits: Limits | None
    """How much of each unit is counted."""
    keys: Mapping[str, Sequence[Category]] | None
    """Which groups are public: the values of each key column."""
    other: bool
    """Whether the groups whose keys cannot be shown are added up in one more row."""


class RunOptions(TypedDict, total=False):
    """How a question is run, whatever it asks."""

    purpose: str
    """What the ledger records as the purpose; the query itself if it is empty."""
    key: str | None
    """The same key with the same question on the same data is charged once, however often it is asked."""
    timeout_s: float | None
    """How many seconds the question may run; with a server, how long its answer is waited for."""
    progress: Progress | None
    """Called with the share of the work that is done."""


class QueryOptions(PlanOptions, RunOptions, total=False):
    """All arguments of a question beside its SQL and epsilon."""

    analyst: str | None
    """The analyst whose own cap is charged, too; a server takes it from the token."""


OPTIONS: Final = ("epsilon", *QueryOptions.__annotations__)
"""All names, in the order in which they are documented."""
PLAN_OPTIONS: Final = ("epsilon", *PlanOptions.__annotations__)


def check_options(given: Mapping[str, object], known: Sequence[str] = OPTIONS) -> None:
    """Raise InvalidInput for the first argument that a question does not have."""
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            instead = f"is {near[0]}= meant?" if near else f"it has {', '.join(known)}"
            raise InvalidInput(f"unknown argument {name!r}; {instead}", name=name)


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """A question with its arguments: SQL, price, limits and keys, analyst, and the order to run it."""

    sql: str
    target: Target
    settings: PlanSettings
    analyst: str | None = None
    release_options: ReleaseOptions = field(default_factory=ReleaseOptions)
    """Purpose, idempotency key, time limit and progress of the run."""

    def __post_init__(self) -> None:
        Text(self.sql)

    @classmethod
    def of(cls, sql: str, epsilon: object, options: QueryOptions) -> Self:
        """Return a question from the arguments of a caller; those that are left out have their defaults."""
        check_options(options)
        target = Target(epsilon, options.get("rho"), options.get("error"), options.get("delta"))  # type: ignore[arg-type]
        limits = options.get("limits")
        settings = PlanSettings(
            Limits() if limits is None else limits, options.get("keys"), options.get("other", False)
        )
        release_options = ReleaseOptions(
            options.get("purpose", ""), options.get("key"), options.get("timeout_s"), options.get("progress")
        )
        return cls(sql, target, settings, options.get("analyst"), release_options)

    @classmethod
    def of_plan(cls, sql: str, epsilon: object, options: PlanOptions, analyst: str | None = None) -> Self:
        """Return a question that is planned and not run; arguments of a run are refused as unknown."""
        check_options(options, PLAN_OPTIONS)
        return cls.of(sql, epsilon, cast("QueryOptions", {**options, "analyst": analyst}))
