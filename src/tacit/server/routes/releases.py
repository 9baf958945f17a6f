"""Answers that were given before, with their cards."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse

from tacit.privacy.errors import UnknownName
from tacit.server.access import Action, Resource
from tacit.server.documents import ReleaseGiven
from tacit.server.listings import PaidGiven
from tacit.server.place import Caller, Who

router = APIRouter(prefix="/v1/releases", tags=["releases"])


@router.get("", response_model=list[PaidGiven])
def listed(who: Who, dataset: str | None = None, limit: Annotated[int, Query(ge=1, le=1_000)] = 100) -> Any:
    """Return which answers were paid for, the newest first: one's own, or all on data sets that one keeps."""
    who.require_somewhere(Action.RELEASE_READ)
    others = any(who.may(Action.RELEASE_READ, Resource(one.dataset, one.table)) for one in who.actor.grants)
    found = who.server.releases.listed(None, 10 * limit) if others else who.server.releases.listed(who.name, limit)
    return [
        document
        for datasets, document in found
        if _sees(who, document["person"], datasets) and (dataset is None or dataset in datasets)
    ][:limit]


@router.get("/{permit}", response_model=ReleaseGiven)
def show(who: Who, permit: str) -> Any:
    """Return an answer as it was given."""
    return _found(who, permit)


@router.get(
    "/{permit}/card",
    response_model=None,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def card(who: Who, permit: str) -> PlainTextResponse:
    """Return in plain language what was released."""
    return PlainTextResponse(_found(who, permit)["card"])


def _found(who: Caller, permit: str) -> dict[str, Any]:
    who.require_somewhere(Action.RELEASE_READ)
    paid = who.server.releases.paid_by(permit)
    if paid is None or not _sees(who, *paid):
        who.record(Action.RELEASE_READ, Resource() if paid is None else Resource(dataset=min(paid[1]), person=paid[0]))
        raise _absent(permit)
    document = who.server.releases.find(permit)
    if document is None:  # pruned in between
        raise _absent(permit)
    return document


def _absent(permit: str) -> UnknownName:
    return UnknownName(
        f"no answer is kept for the permit {permit}; the same question again costs nothing", name="permit", value=permit
    )


def _sees(who: Caller, person: str, datasets: list[str]) -> bool:
    return all(who.may(Action.RELEASE_READ, Resource(dataset=one, person=person)) for one in datasets)
