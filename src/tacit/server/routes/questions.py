"""Private SQL: what it would cost, how it would be answered, and its answer as JSON, CSV or Arrow."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from tacit.ledger.permits import cost_to_dict
from tacit.server.access import Action
from tacit.server.asking import Key, Planned, more_like_this, sameness
from tacit.server.documents import Accepted, LineGiven, PreviewGiven, QuestionAsked, ReleaseGiven
from tacit.server.place import Caller, Server, Who
from tacit.server.releases import Document, as_arrow, as_csv, release_document, require_arrow
from tacit.server.timing import class_of

router = APIRouter(prefix="/v1", tags=["questions"])

ARROW: Final = "application/vnd.apache.arrow.stream"
FORMS: Final = {"text/csv": as_csv, ARROW: as_arrow}


@router.post("/preview", response_model=PreviewGiven)
async def preview(who: Who, question: QuestionAsked) -> Any:
    """Say exactly what a question would cost, and how wide its intervals would be; spends nothing."""
    return await who.planned(lambda: _preview(who, question))


def _preview(who: Caller, question: QuestionAsked) -> Document:
    planned = Planned.of(who, question, Action.QUESTION_PREVIEW)
    found = planned.preview()
    left = planned.remaining()
    return {
        "cost": cost_to_dict(found),
        "widths": dict(found.widths),
        "is_released": found.is_released,
        "lines": [{"label": line.label, "text": line.text} for line in found.lines],
        "remaining": {name: cost_to_dict(cost) for name, cost in left.items()},
        "more_like_this": more_like_this(found, left),
    }


@router.post("/explain", response_model=list[LineGiven])
async def explain(who: Who, question: QuestionAsked) -> Any:
    """Say, pass by pass, what a question would do: bounds, sensitivities, noise, and the SQL that the engine runs."""
    found = await who.planned(lambda: Planned.of(who, question, Action.QUESTION_PREVIEW).preview())
    return [{"label": line.label, "text": line.text} for line in found.lines]


@router.post(
    "/queries",
    response_model=ReleaseGiven,
    responses={
        200: {"content": {"text/csv": {"schema": {"type": "string"}}, ARROW: {"schema": {"type": "string"}}}},
        202: {"model": Accepted, "description": "It takes longer; look for the answer under the job."},
    },
)
async def ask(who: Who, question: QuestionAsked, request: Request, key: Key = None) -> Response:
    """Answer a question, and charge it to the budgets that it is about.

    The same question again is answered from what was released, at no cost.
    """
    server = who.server
    if _wanted(request) == ARROW:
        require_arrow()  # before anything is charged
    planned, kept, same, class_s = await who.planned(lambda: _planned(who, question, request, key))
    if kept is not None:
        server.metrics.released.labels("no").inc()
        return kept
    limits = server.settings.limits
    wait_s = limits.wait_s if question.wait_s is None else min(question.wait_s, limits.wait_s)

    def work() -> Document:
        return _answered(server, planned, question.level)

    found = await server.jobs.answered(who.name, work, class_s, wait_s, same)
    if isinstance(found, str):
        body = json.dumps({"job": found})
        return Response(body, 202, {"Location": f"/v1/jobs/{found}"}, "application/json")
    server.metrics.released.labels("yes").inc()
    return await run_in_threadpool(_response, request, found)


def _planned(
    who: Caller, question: QuestionAsked, request: Request, key: str | None
) -> tuple[Planned, Response | None, Hashable, float]:
    """Plan a question; return its answer if it was released before, to which requests it is the same, and its class."""
    planned = Planned.of(who, question, Action.QUESTION_ASK, key)
    kept = planned.kept(question.level)
    class_s = class_of(planned.plan, who.server.settings.timing_class_s, who.step_s(planned.plan.tables))
    return planned, None if kept is None else _response(request, kept), sameness(who, question), class_s


def _answered(server: Server, planned: Planned, level: float) -> Document:
    release = planned.release(server.settings.limits.question_s)
    document = release_document(release, level, planned.remaining(), server.settings.limits.rows)
    server.releases.keep(planned.caller.name, document)
    return document


def _wanted(request: Request) -> str:
    """Return the form that the caller wants the answer in."""
    return request.headers.get("Accept", "").split(",")[0].partition(";")[0].strip().lower()


def _response(request: Request, document: Document) -> Response:
    """Return an answer in the form that the caller wants."""
    wanted = _wanted(request)
    if wanted in FORMS:
        cost = json.dumps(document["cost"])
        return Response(FORMS[wanted](document), 200, {"X-Tacit-Cost": cost}, wanted)
    return Response(json.dumps(document, allow_nan=False), 200, None, "application/json")
