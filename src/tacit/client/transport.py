"""Transport: requests and their repetition over one connection pool, to one address, with one token.

Promise: a request is sent again only where that cannot do harm: it never left (no connection), it changes nothing
(GET, previews), or it carries a key by which the server charges it once. The pauses between grow, with jitter from the
operating system. A server that is busy and says when to come again is waited for, within `timeout_s`. Redirects are
not followed: a token goes to the address that it was given for and to no other. An answer is read up to a limit. No
repr, error or log holds the text of the token.
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

from tacit.client.errors import error_in, error_of, parsed, parsed_list, understood
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
TOKEN_FILE: Final = "file:"
TOKEN_LENGTH_MAX: Final = 4096


class InsecureWarning(UserWarning):
    """A token travels where others can read it."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: a status below 400, a JSON document and the headers."""

    status: int
    document: Any
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Broken:
    """A request to which no document came back."""

    error: TacitError
    was_sent: bool = True
    is_passing: bool = True
    """Whether it may be different the next time."""


class SecretToken:
    """A secret text; what shows objects shows that there is one, and no more."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        if not 0 < len(text) <= TOKEN_LENGTH_MAX or not all("!" <= letter <= "~" for letter in text):
            # the value is left out on purpose: it is a secret, or a part of one
            raise InvalidInput("a token is one word of plain letters, as the server showed it once", name="token")
        self._text: Final = text

    @classmethod
    def of(cls, given: str | None) -> SecretToken:
        """Return the token that was given, as it is or as "file:PATH"; without one, that of TACIT_TOKEN."""
        text = os.environ.get(TOKEN_VARIABLE, "") if given is None else given
        if not isinstance(text, str):
            raise InvalidInput(f"a token is a text, not {type(text).__name__}", name="token")
        if text.startswith(TOKEN_FILE):
            return cls(_read_token(Path(text.removeprefix(TOKEN_FILE))))
        if not text:
            raise EmptyInput(
                f'say who asks: token="tacit_...", token="file:PATH", or the environment variable {TOKEN_VARIABLE}',
                name="token",
            )
        return cls(text.strip())

    @property
    def header(self) -> str:
        """What goes into the header Authorization."""
        return f"Bearer {self._text}"

    def __repr__(self) -> str:
        return "Token(...)"

    def __reduce__(self) -> str:
        raise InvalidInput("a token is not written into files of others; connect anew where it is needed", name="token")


def _read_token(path: Path) -> str:
    try:
        with path.expanduser().open(encoding="ascii") as file:
            text = file.read(TOKEN_LENGTH_MAX + 2).strip()
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"the file of the token, {path}, cannot be read", name="token") from None
    if not text:
        raise EmptyInput(f"the file of the token, {path}, is empty", name="token")
    return text


class Transport:
    """One server, as one token sees it; threads may share it."""

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
        self.url: Final = address(url)
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
            trust_env=not _is_here(httpx.URL(self.url).host),  # what stays on this machine goes through no proxy
        )
        if self._is_own:
            # A client that was forgotten holds nothing that could be lost; its sockets close without a warning.
            weakref.finalize(self, _close_forgotten, self._http)

    def get(self, model: type[M], *path: str, query: Mapping[str, object] | None = None) -> M:
        """Read a resource."""
        return parsed(model, self.ask("GET", *path, query=query, is_repeatable=True).document, _what(path))

    def get_list(self, model: type[M], *path: str, query: Mapping[str, object] | None = None) -> list[M]:
        """Read a list of resources."""
        return parsed_list(model, self.ask("GET", *path, query=query, is_repeatable=True).document, _what(path))

    def post(self, model: type[M], *path: str, body: RequestModel | None = None, is_repeatable: bool = False) -> M:
        """Send a request and return the response."""
        return parsed(model, self.ask("POST", *path, body=body, is_repeatable=is_repeatable).document, _what(path))

    def delete(self, *path: str, body: RequestModel | None = None) -> None:
        """Remove something; as what is gone is not found, it is not done twice."""
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
        """Send a request until it is answered, or raise what the server said, or why none did."""
        deadline_s = self._clock() + self.timeout_s
        headers = {} if key is None else {KEY_HEADER: key}
        content = None if body is None else written(body.model_dump(exclude_unset=True))
        repeats = 0
        while True:
            found = self._sent(method, path, content, query, headers)
            if isinstance(found, Reply):
                return found
            pause_s = self._pause(found, repeats, is_repeatable or key is not None)
            is_busy = isinstance(found, Refused)  # limited by time; attempts that fail are limited by their number
            if pause_s is None or (is_busy and self._clock() + pause_s > deadline_s):
                raise found.error
            repeats += not is_busy
            self._sleep(pause_s)

    def save(self, *path: str, query: Mapping[str, object], write: Callable[[bytes], object]) -> None:
        """Read an answer of any size piece by piece."""
        broken: TacitError | None = None
        try:
            with self._answer("GET", path, None, query, {}) as answer:
                if answer.status_code >= 400:
                    outcome = self._outcome(answer, _read_all(answer))
                    broken = outcome.error if isinstance(outcome, Broken) else None
                else:
                    for piece in answer.iter_bytes():
                        write(piece)
        except httpx.HTTPError as error:
            broken = self._failed(error).error
        if broken is not None:
            raise broken

    def close(self) -> None:
        """Let go of the connections, unless somebody else keeps them."""
        if self._is_own:
            self._http.close()

    def _sent(
        self,
        method: str,
        path: tuple[str, ...],
        content: bytes | None,
        query: Mapping[str, object] | None,
        headers: Mapping[str, str],
    ) -> Reply | Broken:
        """Send a request once; errors of the library, which hold the token, end here."""
        try:
            with self._answer(method, path, content, query, headers) as answer:
                return self._outcome(answer, _read_all(answer))
        except httpx.HTTPError as error:
            return self._failed(error)

    @contextmanager
    def _answer(
        self,
        method: str,
        path: tuple[str, ...],
        content: bytes | None,
        query: Mapping[str, object] | None,
        headers: Mapping[str, str],
    ) -> Iterator[httpx.Response]:
        place = "".join(f"/{quote(source_name('a name', part), safe='')}" for part in ("v1", *path))
        given = {name: value for name, value in (query or {}).items() if value is not None}
        wanted = {name: source_name(name, str(value)) for name, value in given.items()}
        sent = {"Authorization": self._token.header, "Accept": "application/json", **headers}
        if content is not None:
            sent["Content-Type"] = "application/json"
        with self._http.stream(
            method,
            f"{self.url}{place}",
            content=content,
            params=wanted or None,
            headers=sent,
            timeout=httpx.Timeout(self.timeout_s),
            follow_redirects=False,
        ) as answer:
            yield answer

    def _outcome(self, answer: httpx.Response, body: bytes) -> Reply | Broken:
        status, headers = answer.status_code, dict(answer.headers)
        if 300 <= status < 400:
            return self._stranger(f"sends on to {headers.get('location', 'another address')[:200]}; give that address")
        document: Any = None
        is_json = True
        try:
            document = json.loads(body) if body else None
        except (ValueError, RecursionError):
            is_json = False
        if status < 400 and is_json:
            return Reply(status, document, headers)
        if (told := error_in(document)) is not None:
            wait_s = _seconds(headers.get("retry-after"))
            with understood(f"the error that {self.url} reports"):
                error = error_of(told, retry_after_s=wait_s)
            return (
                Refused(error, status=status, wait_s=wait_s)
                if status in BUSY and wait_s is not None
                else Broken(error, is_passing=False)
            )
        if status in GATEWAY:
            return Broken(ServerUnreachable(f"a gateway at {self.url} finds no server behind it (status {status})"))
        return self._stranger(f"answers with status {status} and no document of tacit; check the address")

    def _stranger(self, why: str) -> Broken:
        return Broken(NotATacitServer(f"what answers at {self.url} is not a tacit server: it {why}"), is_passing=False)

    def _failed(self, error: httpx.HTTPError) -> Broken:
        """Say why no answer came, in a sentence that holds nothing of the request."""
        if isinstance(error, _TooLong):
            limit = f"{ANSWER_BYTES_MAX // 2**20} MB"
            return Broken(TooLarge(f"the answer is larger than {limit}; ask for less at once"), is_passing=False)
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return Broken(
                ServerUnreachable(
                    f"the certificate of {self.url} is not trusted here; name the one to trust: verify='ca.pem'"
                ),
                was_sent=False,
                is_passing=False,
            )
        if isinstance(error, UNSENT):
            return Broken(ServerUnreachable(f"no server answers at {self.url}"), was_sent=False)
        if isinstance(error, httpx.TimeoutException):
            return Broken(ServerUnreachable(f"the server at {self.url} did not answer within {self.timeout_s:g} s"))
        if isinstance(error, httpx.UnsupportedProtocol | httpx.DecodingError):
            return self._stranger("cannot be understood")
        return Broken(ServerUnreachable(f"the connection to {self.url} was lost before the answer came"))

    def _pause(self, found: Broken, repeats: int, is_repeatable: bool) -> float | None:
        """Return how long to wait before the request is sent again, or None if it is not."""
        if isinstance(found, Refused):
            # 429 says that nothing was begun; after 503 something may have been
            return _jittered(max(found.wait_s, PAUSE_S)) if is_repeatable or found.status == 429 else None
        if not found.is_passing or repeats >= self.retries or (found.was_sent and not is_repeatable):
            return None
        return _jittered(min(PAUSE_S * 2**repeats, PAUSE_MAX_S))


@dataclass(frozen=True, slots=True)
class Refused(Broken):
    """A server that is busy, and says when to come again."""

    status: int = 429
    wait_s: float = 0.0


class _TooLong(httpx.HTTPError):
    """An answer passed the limit."""


def _close_forgotten(http: httpx.Client) -> None:
    with suppress(Exception):
        http.close()


def _read_all(answer: httpx.Response) -> bytes:
    pieces: list[bytes] = []
    size = 0
    for piece in answer.iter_bytes():
        size += len(piece)
        if size > ANSWER_BYTES_MAX:
            raise _TooLong("too long")
        pieces.append(piece)
    return b"".join(pieces)


def written(body: Any) -> bytes:
    """Return a document as bytes; what JSON has not, such as NaN and infinity, is refused."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_date_text)
        return text.encode()
    except TypeError as error:
        raise WrongType(f"an argument cannot be sent: {error}", name="arguments") from None
    except UnicodeEncodeError:
        raise InvalidInput("an argument must be a text that can be written as UTF-8", name="arguments") from None
    except ValueError:
        raise NotFinite("NaN and infinity cannot be sent; leave them out", name="arguments") from None


def _what(path: tuple[str, ...]) -> str:
    return f"what the server answers at /v1/{path[0]}"


def _date_text(value: Any) -> str:
    if isinstance(value, date):
        return value.isoformat()
    raise WrongType(f"an argument of type {type(value).__name__} cannot be sent", name="arguments")


def address(url: object) -> str:
    """Return the address of a server without what is no part of it, or refuse it."""
    try:
        parsed = httpx.URL(str(url).rstrip("/"))
    except (httpx.InvalidURL, UnicodeEncodeError):
        parsed = httpx.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host or parsed.query or parsed.fragment:
        raise InvalidInput(
            "the address of a server is like http://127.0.0.1:8321 or https://tacit.example.org", name="url"
        )
    if parsed.userinfo:
        raise InvalidInput("the address of a server holds no name or password; give the token as token=", name="url")
    if parsed.scheme == "http" and not _is_here(parsed.host):
        warnings.warn(
            f"the token goes to {parsed.host} without encryption, and whoever is on the way can read it and the "
            "answers; use https",
            InsecureWarning,
            stacklevel=4,
        )
    return str(parsed).rstrip("/")


def _is_here(host: str) -> bool:
    """Whether a host is this machine, so that nothing leaves it."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _trusted(verify: bool | str | Path) -> Any:
    """Return which certificates are trusted: the usual ones, or those of a file or folder."""
    if verify is True:
        return True
    if verify is False:
        warnings.warn(
            "certificates are not checked: whoever is on the way can read the token and the answers",
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


def _seconds(header: str | None) -> float | None:
    """Read how long a server asks to wait; a date, which needs clocks that agree, is not taken."""
    try:
        seconds = float(header) if header is not None else math.nan
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _jittered(seconds: float) -> float:
    """Return a pause between once and one and a half times as long, so that many clients do not come at once."""
    return seconds * (1 + secrets.randbelow(1000) / 2000)
