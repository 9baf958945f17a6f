"""Private SQL: previews, plans, answers as JSON, CSV or Arrow; answers that were given before, and jobs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool

from tacit.privacy.errors import UnknownName
from tacit.server.access import Action, Resource
from tacit.server.context import Caller, Server, Who
from tacit.server.error_responses import AsciiJSONResponse
from tacit.server.query_requests import Key, PlannedQuery, accepted, more_like_this, sameness, wait_s
from tacit.server.releases import as_arrow, as_csv, release_response, require_arrow
from tacit.server.response_padding import class_of
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
async def preview(who: Who, query: QueryRequest) -> PreviewResponse:
    """Say exactly what a question would cost, and how wide its intervals would be; spends nothing."""
    return await who.planned(lambda: _preview(who, query))


@router.post("/explain", tags=["queries"])
async def explain(who: Who, query: QueryRequest) -> list[PlanLine]:
    """Say, pass by pass, what a question would do: bounds, sensitivities, noise, and the SQL that the engine runs."""
    return (await who.planned(lambda: _preview(who, query))).lines


def _preview(who: Caller, query: QueryRequest) -> PreviewResponse:
    found = PlannedQuery.of(who, query, Action.QUESTION_PREVIEW).preview()
    return PreviewResponse(
        cost=CostResponse.of(found),
        widths=dict(found.widths),
        is_released=found.is_released,
        lines=[PlanLine(label=line.label, text=line.text) for line in found.lines],
        remaining=cost_responses(found.remaining),
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
        202: {"model": AcceptedResponse, "description": "It takes longer; look for the answer under the job."},
    },
)
async def ask(who: Who, query: QueryRequest, request: Request, key: Key = None) -> Response:
    """Answer a question, and charge it to the budgets that it is about.

    The same question again is answered from what was released, at no cost.
    """
    server = who.server
    if _wanted(request) == ARROW:
        require_arrow()  # before anything is charged
    planned, kept, same, class_s = await who.planned(lambda: _planned(who, query, request, key))
    if kept is not None:
        server.metrics.released.labels("no").inc()
        return kept

    def work() -> ReleaseResponse:
        return _answered(server, planned, query.level)

    found = await server.jobs.answered(who.name, work, class_s, wait_s(who, query), same)
    if isinstance(found, str):
        return accepted(found)
    assert isinstance(found, ReleaseResponse)
    server.metrics.released.labels("yes").inc()
    return await run_in_threadpool(_response, request, found)


def _planned(
    who: Caller, query: QueryRequest, request: Request, key: str | None
) -> tuple[PlannedQuery, Response | None, Hashable, float]:
    """Plan a question; return its answer if it was released before, to which requests it is the same, and its class."""
    planned = PlannedQuery.of(who, query, Action.QUESTION_ASK, key)
    kept = planned.find_released(query.level)
    class_s = class_of(planned.work, who.server.settings.timing_class_s)
    return planned, None if kept is None else _response(request, kept), sameness(who, query), class_s


def _answered(server: Server, planned: PlannedQuery, level: float) -> ReleaseResponse:
    release = planned.release()
    answer = release_response(release, level, planned.remaining(), server.settings.limits.rows)
    server.releases.keep(planned.caller.name, answer)
    return answer


def _wanted(request: Request) -> str:
    """Return the form that the caller wants the answer in."""
    return request.headers.get("Accept", "").split(",")[0].partition(";")[0].strip().lower()


def _response(request: Request, answer: ReleaseResponse) -> Response:
    """Return an answer in the form that the caller wants."""
    wanted = _wanted(request)
    if wanted in FORMS:
        return Response(FORMS[wanted](answer), 200, {"X-Tacit-Cost": answer.cost.model_dump_json()}, wanted)
    return AsciiJSONResponse(answer.model_dump())


@router.get("/releases", tags=["releases"])
def list_releases(
    who: Who, dataset: str | None = None, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> list[PaidResponse]:
    """Return which answers were paid for, the newest first: one's own, or all on data sets that one keeps."""
    who.require_somewhere(Action.RELEASE_READ)
    others = any(who.may(Action.RELEASE_READ, Resource(one.dataset, one.table)) for one in who.actor.grants)
    found = who.server.releases.listed(None, 10 * limit) if others else who.server.releases.listed(who.name, limit)
    return [
        one
        for one in found
        if _sees_release(who, one.person, one.datasets) and (dataset is None or dataset in one.datasets)
    ][:limit]


@router.get("/releases/{permit}", tags=["releases"])
def show_release(who: Who, permit: str) -> ReleaseResponse:
    """Return an answer as it was given."""
    return _found_release(who, permit)


@router.get(
    "/releases/{permit}/card",
    tags=["releases"],
    response_model=None,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def show_card(who: Who, permit: str) -> PlainTextResponse:
    """Return in plain language what was released."""
    return PlainTextResponse(_found_release(who, permit).card)


def _found_release(who: Caller, permit: str) -> ReleaseResponse:
    who.require_somewhere(Action.RELEASE_READ)
    paid = who.server.releases.paid_by(permit)
    if paid is None or not _sees_release(who, *paid):
        who.record(Action.RELEASE_READ, Resource() if paid is None else Resource(dataset=min(paid[1]), person=paid[0]))
        raise _absent(permit)
    answer = who.server.releases.find(permit)
    if answer is None:  # pruned in between
        raise _absent(permit)
    return answer


def _absent(permit: str) -> UnknownName:
    return UnknownName(
        f"no answer is kept for the permit {permit}; the same question again costs nothing", name="permit", value=permit
    )


def _sees_release(who: Caller, person: str, datasets: list[str]) -> bool:
    return all(who.may(Action.RELEASE_READ, Resource(dataset=one, person=person)) for one in datasets)


@router.get("/jobs", tags=["jobs"])
def list_jobs(who: Who) -> list[JobResponse]:
    """Return one's own jobs, the newest first; an owner sees that there are others, and their answers as well."""
    who.require_somewhere(Action.JOB_READ)
    everybody = who.may(Action.JOB_READ, Resource())
    return who.server.jobs.listed(None if everybody else who.name)


@router.get("/jobs/{job}", tags=["jobs"])
def show_job(who: Who, job: str) -> JobResponse:
    """Return where a job stands, and its answer when it has one."""
    return _found_job(who, job, Action.JOB_READ)


@router.delete("/jobs/{job}", status_code=202, tags=["jobs"])
def cancel_job(who: Who, job: str) -> JobResponse:
    """Stop a job; what was charged stays charged."""
    _found_job(who, job, Action.JOB_CANCEL)
    who.server.jobs.cancel(job)
    return _found_job(who, job, Action.JOB_READ)


def _found_job(who: Caller, job: str, action: Action) -> JobResponse:
    who.require_somewhere(action)
    found = who.server.jobs.find(job)
    if found is None or not who.may(action, Resource(person=found.person)):
        who.record(action, Resource() if found is None else Resource(person=found.person))
        raise UnknownName(f"no job is called {job}", name="job", value=job)
    return found.response()
