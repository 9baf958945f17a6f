"""Questions that outlast their request."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from tacit.privacy.errors import UnknownName
from tacit.server.access import Action, Resource
from tacit.server.documents import JobGiven
from tacit.server.place import Caller, Who

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.get("", response_model=list[JobGiven])
def listed(who: Who) -> Any:
    """Return one's own jobs, the newest first; an owner sees that there are others, and their answers as well."""
    who.require_somewhere(Action.JOB_READ)
    everybody = who.may(Action.JOB_READ, Resource())
    return who.server.jobs.shown(None if everybody else who.name)


@router.get("/{job}", response_model=JobGiven)
def show(who: Who, job: str) -> Any:
    """Return where a job stands, and its answer when it has one."""
    return _found(who, job, Action.JOB_READ)


@router.delete("/{job}", status_code=202, response_model=JobGiven)
def cancel(who: Who, job: str) -> Any:
    """Stop a job; what was charged stays charged."""
    _found(who, job, Action.JOB_CANCEL)
    who.server.jobs.cancel(job)
    return _found(who, job, Action.JOB_READ)


def _found(who: Caller, job: str, action: Action) -> dict[str, Any]:
    who.require_somewhere(action)
    found = who.server.jobs.find(job)
    if found is None or not who.may(action, Resource(person=found.person)):
        who.record(action, Resource() if found is None else Resource(person=found.person))
        raise UnknownName(f"no job is called {job}", name="job", value=job)
    return found.document()
