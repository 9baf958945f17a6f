"""HTTP requests to one server with one token: repetition, limits, errors.

Promise: a request is repeated only if that is safe: it was never sent (no connection), it changes nothing (GET,
previews), or it carries an idempotency key. Pauses grow exponentially, with jitter. A busy server that states when to
retry is waited for, within `timeout_s`. Redirects are not followed, so the token is sent to no other address. A
response is read up to a limit. No repr, error or log holds the text of the token.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel

from tacit.client.errors import error_in, error_of, parse_list, parse_response, require_readable
from tacit.privacy.errors import (
    EmptyInput,
    InvalidInput,
    NotATacitServer,
    NotFinite,
    OutOfRange,
    ServerUnreachable,
    TacitError,
    TooLarge,
    WrongType,
)
from tacit.privacy.numbers import seconds, whole
from tacit.privacy.texts import path as path_of
from tacit.privacy.texts import source_name
from tacit.wire.requests import KEY_HEADER, RequestModel

M = TypeVar("M", bound=BaseModel)

ANSWER_BYTES_MAX: Final = 256 * 2**20
RETRIES_MAX: Final = 20
PAUSE_S: Final = 0.1
PAUSE_MAX_S: Final = 5.0
BUSY: Final = (429, 503)
GATEWAY: Final = (502, 503, 504)
UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
TOKEN_VARIABLE: Final = "TACIT_TOKEN"
SERVER_VARIABLE: Final = "TACIT_SERVER"
TOKEN_FILE: Final = "file:"
TOKEN_LENGTH_MAX: Final = 4096


class InsecureWarning(UserWarning):
    """A token is sent where others can read it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response with a status below 400: its JSON document and its headers."""

    status: int
    document: Any
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A request that was not answered by a document, or by an error."""

    error: TacitError
    was_sent: bool = True
    is_transient: bool = True
    """Whether a repetition may succeed."""


@dataclass(frozen=True, slots=True)
class _Request:
    """One request; `path` is below /v1."""

    method: str
    path: tuple[str, ...]
    content: bytes | None
    query: Mapping[str, object] | None
    headers: Mapping[str, str]


def chosen_server(given: str | None) -> str:
    """Return the given address of a server, by default that of TACIT_SERVER."""
    found = os.environ.get(SERVER_VARIABLE, "") if given is None else given
    if given is None and not found:
        raise EmptyInput(
            f'a server is needed: url="https://..." or the environment variable {SERVER_VARIABLE}', name="url"
        )
    return found


class SecretToken:
    """The text of a token, which no repr shows."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not 0 < len(text) <= TOKEN_LENGTH_MAX or not all("!" <= letter <= "~" for letter in text):
            # without the value, which may be a secret or a part of one
            raise InvalidInput("a token is one word of ASCII characters, as the server showed it", name="token")
        self._text: Final = text

    @classmethod
    def of(cls, given: str | None) -> SecretToken:
        """Return the given token, read from its file if it is "file:PATH"; by default that of TACIT_TOKEN."""
        text = os.environ.get(TOKEN_VARIABLE, "") if given is None else given
        if not isinstance(text, str):
            raise InvalidInput(f"a token is a text, not {type(text).__name__}", name="token")
        if text.startswith(TOKEN_FILE):
            return cls(_read_token(Path(text.removeprefix(TOKEN_FILE))))
        if not text:
            raise EmptyInput(
                f'a token is needed: token="tacit_...", token="file:PATH" or the environment variable {TOKEN_VARIABLE}',
                name="token",
            )
        return cls(text.strip())

    @property
    def header(self) -> str:
        """The value of the header Authorization."""
        return f"Bearer {self._text}"

    def __repr__(self) -> str:
        return "SecretToken(...)"

    def __reduce__(self) -> str:
        raise InvalidInput("a token cannot be pickled; connect where it is needed", name="token")


def _read_token(path: Path) -> str:
    try:
        with path.expanduser().open(encoding="ascii") as file:
            text = file.read(TOKEN_LENGTH_MAX + 2).strip()
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"the token file {path} cannot be read", name="token") from None
    if not text:
        raise EmptyInput(f"the token file {path} is empty", name="token")
    return text


class Transport:
    """Sends requests to one server with one token; threads may share it."""

    def __init__(
        self,
        url: str,
        token: SecretToken,
        *,
        timeout_s: float = 60,
        verify: bool | str | Path = True,
        retries: int = 3,
        http: httpx.Client | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url: Final = server_url(url)
        self.timeout_s: Final = seconds(timeout_s)
        self.retries: Final = whole("retries", retries, at_least=0)
        if self.retries > RETRIES_MAX:
            raise OutOfRange(f"retries is a number up to {RETRIES_MAX}", name="retries", value=retries)
        self._token: Final = token
        self._clock, self._sleep = clock, sleep
        self._is_own: Final = http is None
        self._http: Final = http or httpx.Client(
            verify=_trusted(verify),
            follow_redirects=False,
            trust_env=not _is_local(httpx.URL(self.url).host),  # no proxy for this machine
        )
        if self._is_own:
            # a client that was not closed closes its sockets without a warning
            weakref.finalize(self, _close_quietly, self._http)

    def get(self, model: type[M], *path: str, query: Mapping[str, object] | None = None) -> M:
        """Read a resource."""
        return parse_response(model, self.ask("GET", *path, query=query, is_repeatable=True).document, _what(path))

    def get_list(self, model: type[M], *path: str, query: Mapping[str, object] | None = None) -> list[M]:
        """Read a list of resources."""
        return parse_list(model, self.ask("GET", *path, query=query, is_repeatable=True).document, _what(path))

    def post(self, model: type[M], *path: str, body: RequestModel | None = None, is_repeatable: bool = False) -> M:
        """Send a request and return the response."""
        return parse_response(
            model, self.ask("POST", *path, body=body, is_repeatable=is_repeatable).document, _what(path)
        )

    def delete(self, *path: str, body: RequestModel | None = None) -> None:
        """Delete a resource; not repeated, since a deleted one is not found."""
        self.ask("DELETE", *path, body=body)

    def ask(
        self,
        method: str,
        *path: str,
        body: RequestModel | None = None,
        query: Mapping[str, object] | None = None,
        key: str | None = None,
        is_repeatable: bool = False,
    ) -> Reply:
        """Send a request, repeated where that is safe, and return the reply or raise the error."""
        deadline_s = self._clock() + self.timeout_s
        headers = {} if key is None else {KEY_HEADER: key}
        content = None if body is None else encode_body(body.model_dump(exclude_unset=True))
        repeats = 0
        while True:
            found = self._send(_Request(method, path, content, query, headers))
            if isinstance(found, Reply):
                return found
            pause_s = self._pause(found, repeats, is_repeatable or key is not None)
            is_busy = isinstance(found, BusyServer)  # limited by time, while failed attempts are limited by number
            if pause_s is None or (is_busy and self._clock() + pause_s > deadline_s):
                raise found.error
            repeats += not is_busy
            self._sleep(pause_s)

    def save(self, *path: str, query: Mapping[str, object], write: Callable[[bytes], object]) -> None:
        """Pass a response of any size to `write`, piece by piece."""
        failed: TacitError | None = None
        try:
            with self._stream(_Request("GET", path, None, query, {})) as answer:
                if answer.status_code >= 400:
                    outcome = self._outcome(answer, _read_all(answer))
                    failed = outcome.error if isinstance(outcome, FailedAttempt) else None
                else:
                    for piece in answer.iter_bytes():
                        write(piece)
        except httpx.HTTPError as error:
            failed = self._failure(error).error
        if failed is not None:
            raise failed

    def close(self) -> None:
        """Close the connections, unless `http` was given."""
        if self._is_own:
            self._http.close()

    def _send(self, request: _Request) -> Reply | FailedAttempt:
        """Send a request once; errors of httpx, which hold the token, are not raised further."""
        try:
            with self._stream(request) as answer:
                return self._outcome(answer, _read_all(answer))
        except httpx.HTTPError as error:
            return self._failure(error)

    @contextmanager
    def _stream(self, request: _Request) -> Iterator[httpx.Response]:
        place = "".join(f"/{quote(source_name('a name', part), safe='')}" for part in ("v1", *request.path))
        given = {name: value for name, value in (request.query or {}).items() if value is not None}
        wanted = {name: source_name(name, str(value)) for name, value in given.items()}
        sent = {"Authorization": self._token.header, "Accept": "application/json", **request.headers}
        if request.content is not None:
            sent["Content-Type"] = "application/json"
        with self._http.stream(
            request.method,
            f"{self.url}{place}",
            content=request.content,
            params=wanted or None,
            headers=sent,
            timeout=httpx.Timeout(self.timeout_s),
            follow_redirects=False,
        ) as answer:
            yield answer

    def _outcome(self, answer: httpx.Response, body: bytes) -> Reply | FailedAttempt:
        status, headers = answer.status_code, dict(answer.headers)
        if 300 <= status < 400:
            return self._not_tacit(f"redirects to {headers.get('location', 'another address')[:200]}; use that address")
        document: Any = None
        is_json = True
        try:
            document = json.loads(body) if body else None
        except (ValueError, RecursionError):
            is_json = False
        if status < 400 and is_json:
            return Reply(status, document, headers)
        if (reported := error_in(document)) is not None:
            wait_s = _retry_after_s(headers.get("retry-after"))
            with require_readable(f"the error that {self.url} reports"):
                error = error_of(reported, retry_after_s=wait_s)
            return (
                BusyServer(error, status=status, wait_s=wait_s)
                if status in BUSY and wait_s is not None
                else FailedAttempt(error, is_transient=False)
            )
        if status in GATEWAY:
            return FailedAttempt(
                ServerUnreachable(f"the gateway at {self.url} cannot reach the server (status {status})")
            )
        return self._not_tacit(f"answers with status {status} and another kind of document; check the address")

    def _not_tacit(self, why: str) -> FailedAttempt:
        return FailedAttempt(
            NotATacitServer(f"what answers at {self.url} is not a tacit server: it {why}"), is_transient=False
        )

    def _failure(self, error: httpx.HTTPError) -> FailedAttempt:
        """Return why no response arrived, in a message that holds nothing of the request."""
        if isinstance(error, _ResponseTooLarge):
            limit = f"{ANSWER_BYTES_MAX // 2**20} MB"
            return FailedAttempt(TooLarge(f"the answer is larger than {limit}; request fewer rows"), is_transient=False)
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return FailedAttempt(
                ServerUnreachable(
                    f"the certificate of {self.url} is not trusted; name the one to trust: verify='ca.pem'"
                ),
                was_sent=False,
                is_transient=False,
            )
        if isinstance(error, UNSENT):
            return FailedAttempt(ServerUnreachable(f"no server answers at {self.url}"), was_sent=False)
        if isinstance(error, httpx.TimeoutException):
            return FailedAttempt(
                ServerUnreachable(f"the server at {self.url} did not answer within {self.timeout_s:g} s")
            )
        if isinstance(error, httpx.UnsupportedProtocol | httpx.DecodingError):
            return self._not_tacit("speaks another protocol")
        return FailedAttempt(ServerUnreachable(f"the connection to {self.url} was lost before the response arrived"))

    def _pause(self, found: FailedAttempt, repeats: int, is_repeatable: bool) -> float | None:
        """Return the pause before the request is repeated, or None if it is not."""
        if isinstance(found, BusyServer):
            # after 429 nothing was begun; after 503 something may have been
            return _jittered(max(found.wait_s, PAUSE_S)) if is_repeatable or found.status == 429 else None
        if not found.is_transient or repeats >= self.retries or (found.was_sent and not is_repeatable):
            return None
        return _jittered(min(PAUSE_S * 2**repeats, PAUSE_MAX_S))


@dataclass(frozen=True, slots=True)
class BusyServer(FailedAttempt):
    """A busy server that states when to retry."""

    status: int = 429
    wait_s: float = 0.0


class _ResponseTooLarge(httpx.HTTPError):
    """A response is larger than the limit."""


def _close_quietly(http: httpx.Client) -> None:
    with suppress(Exception):
        http.close()


def _read_all(answer: httpx.Response) -> bytes:
    pieces: list[bytes] = []
    size = 0
    for piece in answer.iter_bytes():
        size += len(piece)
        if size > ANSWER_BYTES_MAX:
            raise _ResponseTooLarge("too large")
        pieces.append(piece)
    return b"".join(pieces)


def encode_body(body: Any) -> bytes:
    """Return a document as JSON; raise NotFinite for NaN and infinity."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_date_text)
        return text.encode()
    except TypeError as error:
        raise WrongType(f"an argument cannot be sent: {error}", name="arguments") from None
    except UnicodeEncodeError:
        raise InvalidInput("a text argument must be valid UTF-8", name="arguments") from None
    except ValueError:
        raise NotFinite("NaN and infinity cannot be sent; leave them out", name="arguments") from None


def _what(path: tuple[str, ...]) -> str:
    return f"the response at /v1/{path[0]}"


def _date_text(value: Any) -> str:
    if isinstance(value, date):
        return value.isoformat()
    raise WrongType(f"an argument of type {type(value).__name__} cannot be sent", name="arguments")


def server_url(url: object) -> str:
    """Return the normalized URL of a server, or raise InvalidInput."""
    try:
        parsed = httpx.URL(str(url).rstrip("/"))
    except (httpx.InvalidURL, UnicodeEncodeError):
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.query or parsed.fragment:
        raise InvalidInput(
            "the address of a server is like http://127.0.0.1:8321 or https://tacit.example.org", name="url"
        )
    if parsed.userinfo:
        raise InvalidInput("the server's URL must hold no user name or password; pass the token as token=", name="url")
    if parsed.scheme == "http" and not _is_local(parsed.host):
        warnings.warn(
            f"the token is sent to {parsed.host} without encryption, so it and the answers can be read in transit; use "
            "https",
            InsecureWarning,
            stacklevel=4,
        )
    return str(parsed).rstrip("/")


def _is_local(host: str) -> bool:
    """Return whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _trusted(verify: bool | str | Path) -> Any:
    """Return the argument `verify` of httpx: the usual certificates, or those of a file or folder."""
    if verify is True:
        return True
    if verify is False:
        warnings.warn(
            "certificates are not verified, so the token and the answers can be read in transit",
            InsecureWarning,
            stacklevel=5,
        )
        return False
    import ssl

    place = path_of("verify", verify)
    try:
        if place.is_dir():
            return ssl.create_default_context(capath=str(place))
        return ssl.create_default_context(cafile=str(place))
    except OSError:  # SSLError is one
        raise InvalidInput(f"there are no certificates at {place}", name="verify", value=str(place)) from None


def _retry_after_s(header: str | None) -> float | None:
    """Return the seconds of a Retry-After header; None for a date, which needs synchronized clocks."""
    try:
        seconds = float(header) if header is not None else math.nan
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _jittered(seconds: float) -> float:
    """Return a pause that is up to half as long again, so that clients do not retry at the same moment."""
    return seconds * (1 + secrets.randbelow(1000) / 2000)
