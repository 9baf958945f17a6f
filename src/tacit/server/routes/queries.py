"""Routes of private SQL: previews, plans, answers as JSON, CSV or Arrow; stored answers, and jobs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool

from tacit.privacy.errors import UnknownName
from tacit.server.access import Action, Resource
from tacit.server.context import Caller, CallerDep, Server
from tacit.server.error_responses import AsciiJSONResponse
from tacit.server.jobs import LISTED_MAX, JobRow, class_of
from tacit.server.query_requests import Key, PlannedQuery, more_like_this, request_key, respond_with_job, wait_s
from tacit.server.releases import as_arrow, as_csv, release_response, require_arrow
from tacit.wire.requests import QueryRequest
from tacit.wire.responses import (
    AcceptedResponse,
    CostResponse,
    JobResponse,
    PaidResponse,
    PlanLine,
    PreviewResponse,
    ReleaseResponse,
    cost_responses,
)

router = APIRouter(prefix="/v1")

ARROW: Final = "application/vnd.apache.arrow.stream"
FORMS: Final = {"text/csv": as_csv, ARROW: as_arrow}


@router.post("/preview", tags=["queries"])
async def preview(caller: CallerDep, query: QueryRequest) -> PreviewResponse:
    """Return the exact price of a query and the widths of its intervals; spends nothing."""
    return await caller.run_planning(lambda: _preview(caller, query))


@router.post("/explain", tags=["queries"])
async def explain(caller: CallerDep, query: QueryRequest) -> list[PlanLine]:
    """Return the plan of a query, pass by pass: bounds, sensitivities, noise, and the SQL that the engine runs."""
    return (await caller.run_planning(lambda: _preview(caller, query))).lines


def _preview(caller: Caller, query: QueryRequest) -> PreviewResponse:
    found = PlannedQuery.of(caller, query, Action.QUESTION_PREVIEW).preview()
    return PreviewResponse(
        cost=CostResponse.of(found),
        widths=dict(found.widths),
        is_released=found.is_released,
        lines=[PlanLine(label=line.label, text=line.text) for line in found.lines],
        remaining=cost_responses(found.remaining),
        leaves=cost_responses(found.leaves),
        analyst=found.analyst,
        fits=found.fits,
        refusal=found.refusal,
        more_like_this=more_like_this(found, found.remaining),
    )


@router.post(
    "/queries",
    tags=["queries"],
    response_model=ReleaseResponse,
    responses={
        200: {"content": {"text/csv": {"schema": {"type": "string"}}, ARROW: {"schema": {"type": "string"}}}},
        202: {"model": AcceptedResponse, "description": "The query takes longer; its answer will be in the job."},
    },
)
async def ask(caller: CallerDep, query: QueryRequest, request: Request, key: Key = None) -> Response:
    """Answer a query, and charge it to the budget of its data set.

    The same query on the same data is answered from what was released, at no cost.
    """
    server = caller.server
    if _media_type(request) == ARROW:
        require_arrow()  # before anything is charged
    planned, kept, key_of_request, class_s = await caller.run_planning(lambda: _plan(caller, query, request, key))
    if kept is not None:
        server.metrics.released.labels("no").inc()
        return kept

    def run() -> ReleaseResponse:
        return _release(server, planned, query.level)

    datasets, most_s = planned.plan.datasets, wait_s(caller, query)
    found = await server.jobs.run(caller.name, datasets, run, class_s, most_s, key_of_request)
    if isinstance(found, str):
        return respond_with_job(found)
    assert isinstance(found, ReleaseResponse)
    server.metrics.released.labels("yes").inc()
    return await run_in_threadpool(_response, request, found)


def _plan(
    caller: Caller, query: QueryRequest, request: Request, key: str | None
) -> tuple[PlannedQuery, Response | None, Hashable, float]:
    """Plan a query; return it with the response if it was released before, its request key and its time class."""
    planned = PlannedQuery.of(caller, query, Action.QUESTION_ASK, key)
    kept = planned.find_released(query.level)
    class_s = class_of(planned.work, caller.server.settings.timing_class_s)
    return planned, None if kept is None else _response(request, kept), request_key(caller, query), class_s


def _release(server: Server, planned: PlannedQuery, level: float) -> ReleaseResponse:
    release = planned.release()
    answer = release_response(release, level, planned.remaining(), server.settings.limits.rows, planned.spec.analyst)
    server.releases.put(planned.caller.name, answer)
    return answer


def _media_type(request: Request) -> str:
    """Return the media type that the caller prefers."""
    return request.headers.get("Accept", "").split(",")[0].partition(";")[0].strip().lower()


def _response(request: Request, answer: ReleaseResponse) -> Response:
    """Return an answer in the media type that the caller prefers."""
    wanted = _media_type(request)
    if wanted in FORMS:
        return Response(FORMS[wanted](answer), 200, {"X-Tacit-Cost": answer.cost.model_dump_json()}, wanted)
    return AsciiJSONResponse(answer.model_dump())


@router.get("/releases", tags=["releases"])
def list_releases(
    caller: CallerDep, dataset: str | None = None, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> list[PaidResponse]:
    """Return the stored answers, newest first: one's own, or all of the data sets that one manages."""
    caller.require_somewhere(Action.RELEASE_READ)

    def is_visible(person: str, datasets: list[str]) -> bool:
        return (dataset is None or dataset in datasets) and _sees_release(caller, person, datasets)

    return caller.server.releases.list_paid(is_visible, limit)


@router.get("/releases/{permit}", tags=["releases"])
def show_release(caller: CallerDep, permit: str) -> ReleaseResponse:
    """Return a stored answer."""
    return _found_release(caller, permit)


@router.get(
    "/releases/{permit}/card",
    tags=["releases"],
    response_model=None,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def show_card(caller: CallerDep, permit: str) -> PlainTextResponse:
    """Return the card of a stored answer: what was released, in plain language."""
    return PlainTextResponse(_found_release(caller, permit).card)


def _found_release(caller: Caller, permit: str) -> ReleaseResponse:
    caller.require_somewhere(Action.RELEASE_READ)
    paid = caller.server.releases.paid_by(permit)
    if paid is None or not _sees_release(caller, *paid):
        caller.record(
            Action.RELEASE_READ, Resource() if paid is None else Resource(dataset=min(paid[1]), person=paid[0])
        )
        raise _absent(permit)
    answer = caller.server.releases.find(permit)
    if answer is None:  # deleted in between
        raise _absent(permit)
    return answer


def _absent(permit: str) -> UnknownName:
    return UnknownName(
        f"no answer is stored for the permit {permit}; repeating the query costs nothing", name="permit", value=permit
    )


def _sees_release(caller: Caller, person: str, datasets: list[str]) -> bool:
    return all(caller.may(Action.RELEASE_READ, Resource(dataset=one, person=person)) for one in datasets)


@router.get("/jobs", tags=["jobs"])
def list_jobs(caller: CallerDep) -> list[JobResponse]:
    """Return one's own jobs on the data sets that one may ask about, newest first; an owner sees those of all."""
    caller.require_somewhere(Action.JOB_READ)
    others = any(caller.may(Action.JOB_READ, place) for place in caller.places)
    found = caller.server.jobs.list_jobs(None if others else caller.name)
    return [one.response() for one in found if _sees_job(caller, Action.JOB_READ, one)][:LISTED_MAX]


@router.get("/jobs/{job}", tags=["jobs"])
def show_job(caller: CallerDep, job: str) -> JobResponse:
    """Return the state of a job, and its answer once it is done."""
    return _found_job(caller, job, Action.JOB_READ)


@router.delete("/jobs/{job}", status_code=202, tags=["jobs"])
def cancel_job(caller: CallerDep, job: str) -> JobResponse:
    """Cancel a job; what was charged stays charged."""
    _found_job(caller, job, Action.JOB_CANCEL)
    caller.server.jobs.cancel(job)
    return _found_job(caller, job, Action.JOB_READ)


def _found_job(caller: Caller, job: str, action: Action) -> JobResponse:
    caller.require_somewhere(action)
    found = caller.server.jobs.find(job)
    if found is None or not _sees_job(caller, action, found):
        caller.record(action, Resource() if found is None else _resources(found)[0])
        raise UnknownName(f"there is no job {job}", name="job", value=job)
    return found.response()


def _sees_job(caller: Caller, action: Action, job: JobRow) -> bool:
    """Return whether a caller may now perform an action on a job: on every data set that it is about."""
    return all(caller.may(action, one) for one in _resources(job))


def _resources(job: JobRow) -> list[Resource]:
    """Return a job on each of its data sets; on everything if they are unknown."""
    return [Resource(dataset=one, person=job.person) for one in sorted(job.datasets) or (None,)]
