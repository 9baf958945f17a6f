"""Routes of people: logins by password and OpenID Connect, people with their grants, tokens."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from tacit.privacy.errors import Unavailable, UnknownName
from tacit.server.access import Action, Grant, NewSession, Oidc, Person, Resource, Role, Token, csrf_of
from tacit.server.context import COOKIE, Caller, CallerDep, Server
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

router = APIRouter(prefix="/v1")

STATE_COOKIE: Final = "tacit_oidc"
STATE_S: Final = 600
REDIRECT_PAGE: Final = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>tacit</title>'
)


@router.post("/login", tags=["logins"])
async def login(caller: CallerDep, body: LoginRequest, response: Response) -> LoginResponse:
    """Begin a browser session; send `csrf` in the header X-Tacit-CSRF of requests that change something."""
    access = caller.server.access
    # only a few passwords are hashed at a time, and a waiting login must not hold a thread of other requests
    made = await caller.server.logins.run(
        caller.address, lambda: access.login(body.name, body.password, caller.address), caller.disconnected
    )
    _set_cookie(response, caller.server, made)
    return LoginResponse(name=body.name, csrf=made.csrf, expires_at=made.expires_at)


@router.post("/logout", status_code=204, response_class=Response, tags=["logins"])
def logout(caller: CallerDep) -> Response:
    """End the browser session."""
    caller.require(Action.SERVER_READ)
    if caller.cookie is not None and caller.bearer is None:
        caller.server.access.logout(caller.cookie)
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, path="/")
    return response


@router.get("/me", tags=["logins"])
def me(caller: CallerDep) -> MeResponse:
    """Return the caller's name and grants, and the limits of the server."""
    caller.require(Action.SERVER_READ)
    actor = caller.actor
    return MeResponse(
        name=actor.name,
        token=actor.token_id,
        csrf=csrf_of(caller.cookie) if actor.is_session and caller.cookie else None,
        grants=[_grant_response(one) for one in actor.grants],
        server=ServerResponse(version=__version__, limits=caller.server.settings.limits.model_dump()),
    )


@router.get("/oidc/start", response_class=RedirectResponse, status_code=307, tags=["logins"])
def start(caller: CallerDep) -> RedirectResponse:
    """Redirect the browser to the OpenID Connect provider."""
    url, state = _oidc(caller).start()
    response = RedirectResponse(url, 307)
    settings = caller.server.settings
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
def callback(caller: CallerDep, request: Request) -> HTMLResponse:
    """Complete a login at the OpenID Connect provider, and begin the session.

    The response is a page that leads on: after a redirect, the browser would still be coming from the other site and
    would not send the cookie, which is SameSite=Strict.
    """
    oidc = _oidc(caller)
    name = oidc.finish(dict(request.query_params), request.cookies.get(STATE_COOKIE, ""))
    made = caller.server.access.session_for(name, create=oidc.settings.creates_people, address=caller.address)
    response = HTMLResponse(REDIRECT_PAGE)
    response.delete_cookie(STATE_COOKIE, path="/v1/oidc")
    _set_cookie(response, caller.server, made)
    return response


def _oidc(caller: Caller) -> Oidc:
    if caller.server.oidc is None:
        raise Unavailable("this server has no OpenID Connect provider; log in with a password, or use a token")
    return caller.server.oidc


def _set_cookie(response: Response, server: Server, made: NewSession) -> None:
    response.set_cookie(
        COOKIE, made.text, httponly=True, secure=server.settings.is_encrypted, samesite="strict", path="/"
    )


@router.get("/people", tags=["people"])
def list_people(caller: CallerDep) -> list[PersonResponse]:
    """Return all people, including those who were removed."""
    caller.require(Action.PEOPLE_READ)
    return [_person_response(person) for person in caller.server.access.people.all()]


@router.post("/people", status_code=201, tags=["people"])
def add_person(caller: CallerDep, body: PersonRequest) -> PersonResponse:
    """Add a person, without grants."""
    caller.require(Action.PEOPLE_WRITE, Resource(person=body.name))
    caller.server.access.people.add(body.name, body.password, by=caller.name, address=caller.address)
    return _person_response(caller.server.access.people.one(body.name))


@router.delete("/people/{name}", status_code=204, tags=["people"])
def remove_person(caller: CallerDep, name: str) -> None:
    """Remove a person with all grants, tokens and sessions; charges stay on record."""
    caller.require(Action.PEOPLE_WRITE, Resource(person=name))
    caller.server.access.people.remove(name, **caller.origin)


@router.post("/people/{name}/grants", status_code=201, tags=["people"])
def add_grant(caller: CallerDep, name: str, body: GrantRequest) -> PersonResponse:
    """Grant a role to a person: everywhere, on a data set or on a table."""
    caller.require(Action.PEOPLE_WRITE, Resource(person=name))
    caller.server.access.people.grant(name, _grant(body), **caller.origin)
    return _person_response(caller.server.access.people.one(name))


@router.delete("/people/{name}/grants", tags=["people"])
def withdraw_grant(caller: CallerDep, name: str, body: GrantRequest) -> PersonResponse:
    """Withdraw a grant."""
    caller.require(Action.PEOPLE_WRITE, Resource(person=name))
    caller.server.access.people.withdraw(name, _grant(body), **caller.origin)
    return _person_response(caller.server.access.people.one(name))


def _grant(body: GrantRequest) -> Grant:
    return Grant(Role(body.role), body.dataset, body.table)


def _person_response(person: Person) -> PersonResponse:
    grants = [_grant_response(one) for one in person.grants]
    return PersonResponse(name=person.name, is_active=person.is_active, created_at=person.created_at, grants=grants)


def _grant_response(grant: Grant) -> GrantResponse:
    return GrantResponse(role=grant.role.value, dataset=grant.dataset, table=grant.table)


@router.get("/tokens", tags=["tokens"])
def list_tokens(caller: CallerDep) -> list[TokenResponse]:
    """Return one's own tokens, or those of all for an owner; without their texts, which are not stored."""
    caller.require(Action.TOKEN_READ, Resource(person=caller.name))
    tokens = caller.server.access.tokens.all()
    return [_token_response(one) for one in tokens if caller.may(Action.TOKEN_READ, Resource(person=one.person))]


@router.post("/tokens", status_code=201, tags=["tokens"])
def create_token(caller: CallerDep, body: TokenRequest) -> NewTokenResponse:
    """Create a token; its text is in this response only."""
    person = body.person or caller.name
    caller.require(Action.TOKEN_WRITE, Resource(person=person))
    role = None if body.role is None else Role(body.role)
    made = caller.server.access.tokens.create(
        person, label=body.label, days=body.days, role=role, dataset=body.dataset, **caller.origin
    )
    return NewTokenResponse(id=made.id, token=made.text, expires_at=made.expires_at)


@router.delete("/tokens/{token_id}", status_code=204, tags=["tokens"])
def revoke_token(caller: CallerDep, token_id: str) -> None:
    """Revoke a token."""
    caller.require(Action.SERVER_READ)
    owner = next((one.person for one in caller.server.access.tokens.all() if one.id == token_id), None)
    if owner is None or not caller.may(Action.TOKEN_WRITE, Resource(person=owner)):
        if owner is not None:
            caller.record(Action.TOKEN_WRITE, Resource(person=owner))
        raise UnknownName(f"there is no token {token_id}", name="token", value=token_id)
    caller.server.access.tokens.revoke(token_id, **caller.origin)


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
