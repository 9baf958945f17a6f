"""Coming and going: passwords, browsers, and a provider of identities (OIDC)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse

from tacit.privacy.errors import Unavailable
from tacit.server.access import Action, NewSession
from tacit.server.documents import LoginAsked
from tacit.server.listings import LoginGiven, MeGiven
from tacit.server.place import COOKIE, Caller, Server, Who
from tacit.version import __version__

if TYPE_CHECKING:
    from tacit.server.access.oidc import Oidc

router = APIRouter(prefix="/v1", tags=["logins"])

STATE_COOKIE: Final = "tacit_oidc"
STATE_S: Final = 600
ONWARDS: Final = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/"><title>tacit</title>'
)


@router.post("/login", response_model=LoginGiven)
async def login(who: Who, asked: LoginAsked) -> JSONResponse:
    """Open a browser's session; the answer's `csrf` goes into the header X-Tacit-CSRF of whatever changes something."""
    access = who.server.access
    # passwords are hashed a few at a time, and who waits for that must not hold a thread of others' requests
    made = await who.server.logins.run(
        who.address, lambda: access.login(asked.name, asked.password, who.address), who.gone
    )
    response = JSONResponse({"name": asked.name, "csrf": made.csrf, "expires_at": made.expires_at.isoformat()})
    _set_cookie(response, who.server, made)
    return response


@router.post("/logout", status_code=204, response_class=Response)
def logout(who: Who) -> Response:
    """Close the browser's session."""
    who.require(Action.SERVER_READ)
    if who.cookie is not None and who.bearer is None:
        who.server.access.logout(who.cookie)
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, path="/")
    return response


@router.get("/me", response_model=MeGiven)
def me(who: Who) -> Any:
    """Say who the caller is, what she may do, and what the server's limits are."""
    who.require(Action.SERVER_READ)
    actor = who.actor
    return {
        "name": actor.name,
        "token": actor.token_id,
        "csrf": who.server.access.csrf_of(who.cookie) if actor.is_session and who.cookie else None,
        "grants": [{"role": one.role.value, "dataset": one.dataset, "table": one.table} for one in actor.grants],
        "server": {"version": __version__, "limits": who.server.settings.limits.model_dump()},
    }


@router.get("/oidc/start", response_class=RedirectResponse, status_code=307)
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
