"""Errors as HTTP responses: a status and `{"error": {"code", "name", "message", "details"}}`.

Promise: a response holds the message and the attributes of a TacitError and nothing else. Any other exception is
answered with T000 and a reference, under which the log has its class and its place in the code, but not its text, which
might hold a value of the data.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from tacit.privacy import errors
from tacit.privacy.errors import TacitError
from tacit.wire.requests import invalid_request
from tacit.wire.responses import ErrorBody, ErrorResponse
from tacit.wire.values import encode_details

STATUSES: Final[Mapping[type[TacitError], HTTPStatus]] = {
    errors.NotInCatalog: HTTPStatus.NOT_FOUND,
    errors.UnknownName: HTTPStatus.NOT_FOUND,
    errors.NameTaken: HTTPStatus.CONFLICT,
    errors.AlreadySettled: HTTPStatus.CONFLICT,
    errors.KeyReused: HTTPStatus.CONFLICT,
    errors.InvalidInput: HTTPStatus.BAD_REQUEST,
    errors.QueryRefused: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.BudgetExceeded: HTTPStatus.PAYMENT_REQUIRED,
    errors.NotKnown: HTTPStatus.UNAUTHORIZED,
    errors.Throttled: HTTPStatus.TOO_MANY_REQUESTS,
    errors.NotPermitted: HTTPStatus.FORBIDDEN,
    errors.StorageFailed: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.Unavailable: HTTPStatus.NOT_IMPLEMENTED,
    errors.TimedOut: HTTPStatus.GATEWAY_TIMEOUT,
    errors.Cancelled: HTTPStatus.CONFLICT,
    errors.EngineFailed: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.SourceMissing: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.BodyTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.SlowRequest: HTTPStatus.REQUEST_TIMEOUT,
    errors.AnswersFull: HTTPStatus.INSUFFICIENT_STORAGE,
    errors.HeadersTooLarge: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    errors.WrongHost: HTTPStatus.MISDIRECTED_REQUEST,
    errors.ServerLimit: HTTPStatus.TOO_MANY_REQUESTS,
}
"""The status of an error is that of its nearest base class here."""

DOCUMENTED: Final = (400, 401, 402, 403, 404, 405, 408, 409, 413, 421, 422, 429, 431, 500, 501, 503, 504, 507)
CODE_HEADER: Final = "X-Tacit-Code"
_LOG: Final = logging.getLogger("tacit.server")


class AsciiJSONResponse(JSONResponse):
    """JSON in ASCII, so that messages can quote lone surrogates of a request."""

    def render(self, content: Any) -> bytes:
        """Return the content as bytes."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def status_of(error: TacitError) -> int:
    """Return the HTTP status of an error."""
    for kind in type(error).__mro__:
        if kind in STATUSES:
            return int(STATUSES[kind])
    return int(HTTPStatus.INTERNAL_SERVER_ERROR)


def error_response(error: TacitError) -> ErrorResponse:
    """Return the document of an error."""
    return _document(error.code, type(error).__name__, error.message, encode_details(error))


def respond_to(error: TacitError) -> JSONResponse:
    """Return the HTTP response to an error."""
    headers = {CODE_HEADER: error.code}
    if (after_s := getattr(error, "retry_after_s", None)) is not None:
        headers["Retry-After"] = str(max(1, round(after_s)))
    if isinstance(error, errors.NotKnown):
        headers["WWW-Authenticate"] = "Bearer"
    return AsciiJSONResponse(error_response(error).model_dump(), status_of(error), headers)


def install(app: FastAPI) -> None:
    """Register the exception handlers of an application."""

    @app.exception_handler(TacitError)
    async def _known(_request: Request, error: TacitError) -> JSONResponse:
        return respond_to(error)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        if any(one["loc"] == ("body",) for one in error.errors()) and not _states_json(request):
            return respond_to(errors.InvalidInput("send Content-Type: application/json", name="Content-Type"))
        return respond_to(invalid_request(next(iter(error.errors()), {"loc": (), "msg": "cannot be read"})))

    @app.exception_handler(HTTPException)
    async def _of_the_framework(_request: Request, error: HTTPException) -> JSONResponse:
        sentence = {404: "there is no such path; see /openapi.json", 405: "method not allowed; see /openapi.json"}
        name = HTTPStatus(error.status_code).name.title().replace("_", "")
        document = _document("T100", name, sentence.get(error.status_code, f"{name}: see /openapi.json"))
        return AsciiJSONResponse(
            document.model_dump(), error.status_code, {**(error.headers or {}), CODE_HEADER: "T100"}
        )


def _states_json(request: Request) -> bool:
    return "json" in request.headers.get("content-type", "").lower()


def respond_to_defect(error: BaseException) -> JSONResponse:
    """Return the HTTP response to an unexpected exception."""
    return AsciiJSONResponse(
        defect_response(error).model_dump(), int(HTTPStatus.INTERNAL_SERVER_ERROR), {CODE_HEADER: TacitError.code}
    )


def defect_response(error: BaseException) -> ErrorResponse:
    """Return the document of an unexpected exception, and log where it was raised."""
    reference, places, at = secrets.token_hex(4), [], error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        places.append(f"{code.co_filename.rpartition('/tacit/')[2]}:{at.tb_lineno} {code.co_name}")
        at = at.tb_next
    _LOG.error("defect", extra={"facts": {"reference": reference, "kind": type(error).__name__, "at": places[-8:]}})
    sentence = f"internal error, a defect of tacit; see {reference} in the server's log"
    return _document("T000", "Defect", sentence)


def _document(code: str, name: str, message: str, details: Mapping[str, Any] | None = None) -> ErrorResponse:
    # not validated: a message may quote lone surrogates, which pydantic refuses
    body = ErrorBody.model_construct(code=code, name=name, message=message, details=dict(details or {}))
    return ErrorResponse.model_construct(error=body)
