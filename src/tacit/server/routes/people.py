"""Who is known, and which roles they have where."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from tacit.server.access import Action, Grant, Person, Resource, Role
from tacit.server.documents import GrantAsked, PersonAsked
from tacit.server.listings import PersonGiven
from tacit.server.place import Who

router = APIRouter(prefix="/v1/people", tags=["people"])


@router.get("", response_model=list[PersonGiven])
def listed(who: Who) -> Any:
    """Return everybody who is known."""
    who.require(Action.PEOPLE_READ)
    return [_document(person) for person in who.server.access.people()]


@router.post("", status_code=201, response_model=PersonGiven)
def add(who: Who, asked: PersonAsked) -> Any:
    """Make somebody known; she may do nothing before she is granted a role."""
    who.require(Action.PEOPLE_WRITE, Resource(person=asked.name))
    who.server.access.add_person(asked.name, asked.password, by=who.name, address=who.address)
    return _document(who.server.access.person(asked.name))


@router.delete("/{name}", status_code=204)
def remove(who: Who, name: str) -> None:
    """Forget somebody, with all tokens and browsers' sessions; what she was charged stays."""
    who.require(Action.PEOPLE_WRITE, Resource(person=name))
    who.server.access.remove_person(name, **who.mark)


@router.post("/{name}/grants", status_code=201, response_model=PersonGiven)
def grant(who: Who, name: str, asked: GrantAsked) -> Any:
    """Give somebody a role, everywhere or on a data set or a table."""
    who.require(Action.PEOPLE_WRITE, Resource(person=name))
    who.server.access.grant(name, _grant(asked), **who.mark)
    return _document(who.server.access.person(name))


@router.delete("/{name}/grants", response_model=PersonGiven)
def withdraw(who: Who, name: str, asked: GrantAsked) -> Any:
    """Take a role away."""
    who.require(Action.PEOPLE_WRITE, Resource(person=name))
    who.server.access.withdraw(name, _grant(asked), **who.mark)
    return _document(who.server.access.person(name))


def _grant(asked: GrantAsked) -> Grant:
    return Grant(Role(asked.role), asked.dataset, asked.table)


def _document(person: Person) -> dict[str, Any]:
    return {
        "name": person.name,
        "is_active": person.is_active,
        "created_at": person.created_at.isoformat(),
        "grants": [{"role": one.role.value, "dataset": one.dataset, "table": one.table} for one in person.grants],
    }
