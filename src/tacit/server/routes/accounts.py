"""Accounts: logins by password and OIDC, who is known with which roles, and tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from tacit.privacy.errors import Unavailable, UnknownName
from tacit.server.access import Action, Grant, NewSession, Person, Resource, Role, Token
from tacit.server.context import COOKIE, Caller, Server, Who
from tacit.version import __version__
from tacit.wire.requests import GrantRequest, LoginRequest, PersonRequest, TokenRequest
from tacit.wire.responses import (
    GrantResponse,
    LoginResponse,
    MeResponse,
    NewTokenResponse,
    PersonResponse,
    ServerResponse,
    TokenResponse,
)

if TYPE_CHECKING:
    from tacit.server.access.logins import Oidc

router = APIRouter(prefix="/v1")

STATE_COOKIE: Final = "tacit_oidc"
STATE_S: Final = 600
ONWARDS: Final = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>tacit</title>'
)


@router.post("/login", tags=["logins"])
async def login(who: Who, asked: LoginRequest, response: Response) -> LoginResponse:
    """Open a browser's session; the answer's `csrf` goes into the header X-Tacit-CSRF of whatever changes something."""
    access = who.server.access
    # passwords are hashed a few at a time, and who waits for that must not hold a thread of others' requests
    made = await who.server.logins.run(
        who.address, lambda: access.login(asked.name, asked.password, who.address), who.gone
    )
    _set_cookie(response, who.server, made)
    return LoginResponse(name=asked.name, csrf=made.csrf, expires_at=made.expires_at)


@router.post("/logout", status_code=204, response_class=Response, tags=["logins"])
def logout(who: Who) -> Response:
    """Close the browser's session."""
    who.require(Action.SERVER_READ)
    if who.cookie is not None and who.bearer is None:
        who.server.access.logout(who.cookie)
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, path="/")
    return response


@router.get("/me", tags=["logins"])
def me(who: Who) -> MeResponse:
    """Say who the caller is, what they may do, and what the server's limits are."""
    who.require(Action.SERVER_READ)
    actor = who.actor
    return MeResponse(
        name=actor.name,
        token=actor.token_id,
        csrf=who.server.access.csrf_of(who.cookie) if actor.is_session and who.cookie else None,
        grants=[_grant_response(one) for one in actor.grants],
        server=ServerResponse(version=__version__, limits=who.server.settings.limits.model_dump()),
    )


@router.get("/oidc/start", response_class=RedirectResponse, status_code=307, tags=["logins"])
def start(who: Who) -> RedirectResponse:
    """Send the browser to the provider of identities."""
    url, state = _oidc(who).start()
    response = RedirectResponse(url, 307)
    settings = who.server.settings
    response.set_cookie(
        STATE_COOKIE,
        state,
        max_age=STATE_S,
        httponly=True,
        secure=settings.is_encrypted,
        samesite="lax",
        path="/v1/oidc",
    )
    return response


@router.get(
    "/oidc/callback",
    tags=["logins"],
    response_model=None,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
)
def callback(who: Who, request: Request) -> HTMLResponse:
    """Take the browser back from the provider, and open its session.

    A page of our own leads on: with a redirect, the browser would still be coming from the other site and leave the
    strict cookie at home.
    """
    oidc = _oidc(who)
    name = oidc.finish(dict(request.query_params), request.cookies.get(STATE_COOKIE, ""))
    made = who.server.access.session_for(name, create=oidc.settings.creates_people, address=who.address)
    response = HTMLResponse(ONWARDS)
    response.delete_cookie(STATE_COOKIE, path="/v1/oidc")
    _set_cookie(response, who.server, made)
    return response


def _oidc(who: Caller) -> Oidc:
    if who.server.oidc is None:
        raise Unavailable("this server knows no provider of identities; log in with a password or a token")
    return who.server.oidc


def _set_cookie(response: Response, server: Server, made: NewSession) -> None:
    response.set_cookie(
        COOKIE, made.text, httponly=True, secure=server.settings.is_encrypted, samesite="strict", path="/"
    )


@router.get("/people", tags=["people"])
def list_people(who: Who) -> list[PersonResponse]:
    """Return everybody who is known."""
    who.require(Action.PEOPLE_READ)
    return [_person_response(person) for person in who.server.access.people()]


@router.post("/people", status_code=201, tags=["people"])
def add_person(who: Who, asked: PersonRequest) -> PersonResponse:
    """Make somebody known; without a grant they may do nothing."""
    who.require(Action.PEOPLE_WRITE, Resource(person=asked.name))
    who.server.access.add_person(asked.name, asked.password, by=who.name, address=who.address)
    return _person_response(who.server.access.person(asked.name))


@router.delete("/people/{name}", status_code=204, tags=["people"])
def remove_person(who: Who, name: str) -> None:
    """Forget somebody, with all tokens and browsers' sessions; what they were charged stays."""
    who.require(Action.PEOPLE_WRITE, Resource(person=name))
    who.server.access.remove_person(name, **who.mark)


@router.post("/people/{name}/grants", status_code=201, tags=["people"])
def add_grant(who: Who, name: str, asked: GrantRequest) -> PersonResponse:
    """Give somebody a role, everywhere or on a data set or a table."""
    who.require(Action.PEOPLE_WRITE, Resource(person=name))
    who.server.access.grant(name, _grant(asked), **who.mark)
    return _person_response(who.server.access.person(name))


@router.delete("/people/{name}/grants", tags=["people"])
def withdraw_grant(who: Who, name: str, asked: GrantRequest) -> PersonResponse:
    """Take a role away."""
    who.require(Action.PEOPLE_WRITE, Resource(person=name))
    who.server.access.withdraw(name, _grant(asked), **who.mark)
    return _person_response(who.server.access.person(name))


def _grant(asked: GrantRequest) -> Grant:
    return Grant(Role(asked.role), asked.dataset, asked.table)


def _person_response(person: Person) -> PersonResponse:
    grants = [_grant_response(one) for one in person.grants]
    return PersonResponse(name=person.name, is_active=person.is_active, created_at=person.created_at, grants=grants)


def _grant_response(grant: Grant) -> GrantResponse:
    return GrantResponse(role=grant.role.value, dataset=grant.dataset, table=grant.table)


@router.get("/tokens", tags=["tokens"])
def list_tokens(who: Who) -> list[TokenResponse]:
    """Return one's own tokens, or everybody's for an owner; the tokens themselves are nowhere."""
    who.require(Action.TOKEN_READ, Resource(person=who.name))
    tokens = who.server.access.tokens()
    return [_token_response(one) for one in tokens if who.may(Action.TOKEN_READ, Resource(person=one.person))]


@router.post("/tokens", status_code=201, tags=["tokens"])
def create_token(who: Who, asked: TokenRequest) -> NewTokenResponse:
    """Make a token; its text is shown in this answer and never again."""
    person = asked.person or who.name
    who.require(Action.TOKEN_WRITE, Resource(person=person))
    role = None if asked.role is None else Role(asked.role)
    made = who.server.access.create_token(
        person, label=asked.label, days=asked.days, role=role, dataset=asked.dataset, **who.mark
    )
    return NewTokenResponse(id=made.id, token=made.text, expires_at=made.expires_at)


@router.delete("/tokens/{token_id}", status_code=204, tags=["tokens"])
def revoke_token(who: Who, token_id: str) -> None:
    """Make a token worthless at once."""
    who.require(Action.SERVER_READ)
    owner = next((one.person for one in who.server.access.tokens() if one.id == token_id), None)
    if owner is None or not who.may(Action.TOKEN_WRITE, Resource(person=owner)):
        if owner is not None:
            who.record(Action.TOKEN_WRITE, Resource(person=owner))
        raise UnknownName(f"no token is called {token_id}", name="token", value=token_id)
    who.server.access.revoke_token(token_id, **who.mark)


def _token_response(token: Token) -> TokenResponse:
    return TokenResponse(
        id=token.id,
        person=token.person,
        label=token.label,
        created_at=token.created_at,
        expires_at=token.expires_at,
        is_revoked=token.is_revoked,
        last_used_at=token.last_used_at,
        role=None if token.role is None else token.role.value,
        dataset=token.dataset,
    )
