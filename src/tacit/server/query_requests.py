"""Requests for SQL, statistics and trainings as planned queries: visible tables, payer, idempotency key."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias, TypeVar

from fastapi import Header, Response

from tacit.accounting.conversions import Cost
from tacit.curator.query_service import QueryService, cache_key
from tacit.pipeline import Work
from tacit.privacy.errors import NotInCatalog, TacitError
from tacit.privacy.tables import Limits
from tacit.query import Plan, Preview, QuerySpec, Release
from tacit.query.parse import named_tables
from tacit.server.access import Action
from tacit.server.context import Caller, table_resource
from tacit.server.error_responses import AsciiJSONResponse
from tacit.server.releases import release_response, require_rows
from tacit.stats.releases import PreparedStatistic
from tacit.wire.requests import KEY_HEADER, KEY_MAX, LimitsRequest, QueryRequest, RunRequest
from tacit.wire.responses import (
    AcceptedResponse,
    CostResponse,
    PlanLine,
    PreviewResponse,
    ReleaseResponse,
    cost_responses,
)
from tacit.wire.values import decode

Key = Annotated[
    str | None,
    Header(
        alias=KEY_HEADER,
        min_length=1,
        max_length=KEY_MAX,
        pattern=r"^[ -~]+$",
        description="The same key with the same query or statistic on the same data is charged once.",
    ),
]


def request_key(caller: Caller, request: RunRequest) -> Hashable:
    """Return a key that is equal for the same request of one person on the same versions of the data."""
    versions = tuple(sorted(caller.server.curator.engines.versions().items()))
    body = json.dumps(request.model_dump(exclude={"wait_s"}), default=repr)
    return caller.name, type(request).__name__, body, versions


def wait_s(caller: Caller, request: RunRequest) -> float:
    """Return how long a request waits for its answer before it becomes a job: as asked, within the limit."""
    most = caller.server.settings.limits.wait_s
    return most if request.wait_s is None else min(request.wait_s, most)


def respond_with_job(job: str) -> Response:
    """Return the response to a request that has become a job."""
    return AsciiJSONResponse(AcceptedResponse(job=job).model_dump(), 202, {"Location": f"/v1/jobs/{job}"})


Request = TypeVar("Request", bound=RunRequest)
Planned: TypeAlias = tuple[Callable[[], Any], float, Iterable[str]]
"""The function that runs a planned request, its time class and its data sets."""


async def run_or_respond_with_job(
    caller: Caller, request: Request, key: str | None, plan: Callable[[Caller, Request, str | None], Planned]
) -> Response:
    """Plan a request and run it; return its response, or the job that it has become."""
    (run, class_s, datasets), same = await caller.run_planning(
        lambda: (plan(caller, request, key), request_key(caller, request))
    )
    found = await caller.server.jobs.run(caller.name, datasets, run, class_s, wait_s(caller, request), same)
    if isinstance(found, str):
        return respond_with_job(found)
    caller.server.metrics.released.labels("yes" if found.permit else "no").inc()
    return AsciiJSONResponse(found.model_dump())


def ledger_key(caller: Caller, key: str | None) -> str | None:
    """Return the idempotency key for the ledger, prefixed since different callers may use the same text."""
    return None if key is None else f"{caller.name}/{key}"


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A planned query of a caller; no data were read."""

    caller: Caller
    service: QueryService
    spec: QuerySpec
    plan: Plan

    @classmethod
    def of(cls, caller: Caller, request: QueryRequest, action: Action, key: str | None = None) -> PlannedQuery:
        """Plan a query over the tables that the caller sees, or record the refusal and raise."""
        caller.require(Action.SERVER_READ)
        visible = {table.name for table in caller.tables(Action.CATALOG_READ)}
        service = caller.server.curator.queries(visible=visible)
        spec = QuerySpec.of(
            request.sql,
            request.epsilon,
            {
                **request.model_dump(include={"rho", "error", "delta", "other", "purpose"}),  # type: ignore[typeddict-item]
                "limits": limits_of(request.limits),
                "keys": None if request.keys is None else {name: decode(one) for name, one in request.keys.items()},
                "key": ledger_key(caller, key),
                "timeout_s": caller.server.settings.limits.question_s,
            },
        )
        try:
            plan = service.plan(spec)
        except NotInCatalog:
            _record_invisible(caller, request.sql, visible, action)
            raise
        for name in plan.tables:
            caller.require(action, table_resource(service.schema.table(name)))
        require_rows(plan, caller.server.settings.limits.rows)
        return cls(caller, service, replace(spec, analyst=caller.payer(plan.datasets)), plan)

    def preview(self) -> Preview:
        """Return the price of the query."""
        return self.service.preview(self.spec, self.plan)

    def find_released(self, level: float) -> ReleaseResponse | None:
        """Return the answer if it was released before, from the cache of responses if possible."""
        bound = self.service.bind(self.spec, self.plan)
        release = self.service.find_released(self.spec, bound)
        if release is None:
            return None
        server = self.caller.server
        key = (cache_key(self.spec.sql, self.spec.target, self.spec.settings), bound.data.version, level)
        answer = server.release_cache.get(key)
        if answer is None:
            answer = release_response(release(), level, {}, server.settings.limits.rows)
            server.release_cache.put(key, answer)
        return answer.model_copy(update={"remaining": cost_responses(self.remaining()), "analyst": self.spec.analyst})

    def release(self) -> Release:
        """Run the query and return its answer."""
        return self.service.release(self.spec, self.plan)

    @property
    def work(self) -> Work:
        """The predicted work of the engine."""
        return self.service.bind(self.spec, self.plan).work

    def remaining(self) -> dict[str, Cost]:
        """Return what is left of each budget that is charged."""
        return remaining(self.caller, self.plan.datasets)


def remaining(caller: Caller, datasets: Iterable[str]) -> dict[str, Cost]:
    """Return what the caller can still spend on data sets."""
    names = tuple(datasets)
    analyst = caller.payer(names)
    return {name: caller.server.curator.budget(name, analyst).remaining() for name in names}


def limits_of(request: LimitsRequest) -> Limits:
    """Return the limits on contributions of a request."""
    return Limits(**request.model_dump())


def more_like_this(cost: Cost, left: Mapping[str, Cost]) -> int | None:
    """Return how many more queries of this cost fit, by plain sums of epsilon; None for cost 0."""
    if not cost.epsilon:
        return None
    return int(min((one.epsilon / cost.epsilon for one in left.values()), default=0.0))


def statistic_preview(prepared: PreparedStatistic) -> PreviewResponse:
    """Return the response to a preview of a statistic or a training."""
    found = prepared.preview()
    return PreviewResponse(
        cost=CostResponse.of(found),
        widths={},
        is_released=found.is_released,
        lines=[PlanLine(label="plan", text=line) for line in found.lines],
        remaining=cost_responses(found.remaining),
        leaves=cost_responses(found.leaves),
        analyst=found.analyst,
        fits=found.fits,
        refusal=found.refusal,
        more_like_this=more_like_this(found, found.remaining),
    )


def _record_invisible(caller: Caller, sql: str, visible: set[str], action: Action) -> None:
    """Record the tables of a query that are hidden from the caller or absent."""
    try:
        named = {name.lower() for name in named_tables(sql)}
    except TacitError:
        return
    caller.record_tables(action, named - {name.lower() for name in visible})
