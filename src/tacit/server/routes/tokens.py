"""Tokens: made, shown once, listed, revoked."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from tacit.privacy.errors import UnknownName
from tacit.server.access import Action, Resource, Role, Token
from tacit.server.documents import TokenAsked
from tacit.server.listings import TokenGiven, TokenMade
from tacit.server.place import Who

router = APIRouter(prefix="/v1/tokens", tags=["tokens"])


@router.get("", response_model=list[TokenGiven])
def listed(who: Who) -> Any:
    """Return one's own tokens, or everybody's for an owner; the tokens themselves are nowhere."""
    who.require(Action.TOKEN_READ, Resource(person=who.name))
    tokens = who.server.access.tokens()
    return [_document(one) for one in tokens if who.may(Action.TOKEN_READ, Resource(person=one.person))]


@router.post("", status_code=201, response_model=TokenMade)
def create(who: Who, asked: TokenAsked) -> Any:
    """Make a token; its text is shown in this answer and never again."""
    person = asked.person or who.name
    who.require(Action.TOKEN_WRITE, Resource(person=person))
    role = None if asked.role is None else Role(asked.role)
    made = who.server.access.create_token(
        person, label=asked.label, days=asked.days, role=role, dataset=asked.dataset, **who.mark
    )
    return {"id": made.id, "token": made.text, "expires_at": made.expires_at.isoformat()}


@router.delete("/{token_id}", status_code=204)
def revoke(who: Who, token_id: str) -> None:
    """Make a token worthless at once."""
    who.require(Action.SERVER_READ)
    owner = next((one.person for one in who.server.access.tokens() if one.id == token_id), None)
    if owner is None or not who.may(Action.TOKEN_WRITE, Resource(person=owner)):
        if owner is not None:
            who.record(Action.TOKEN_WRITE, Resource(person=owner))
        raise UnknownName(f"no token is called {token_id}", name="token", value=token_id)
    who.server.access.revoke_token(token_id, **who.mark)


def _document(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "person": token.person,
        "label": token.label,
        "created_at": token.created_at.isoformat(),
        "expires_at": token.expires_at.isoformat(),
        "is_revoked": token.is_revoked,
        "last_used_at": token.last_used_at.isoformat() if token.last_used_at else None,
        "role": None if token.role is None else token.role.value,
        "dataset": token.dataset,
    }
