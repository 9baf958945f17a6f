"""Requests: what is sent again and what is not, where the token goes, and how a stranger is told from a server."""

from __future__ import annotations

import logging
import pickle
import socket
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

import tacit
from tacit.client import Client, InsecureWarning, transport
from tacit.privacy.errors import (
    InvalidInput,
    LedgerBusy,
    NotATacitServer,
    NotFinite,
    OutOfRange,
    QueueFull,
    ServerFailed,
    ServerUnreachable,
    TacitError,
    TooLarge,
)
from tests.unit.client.contract import ME, NOTHING, PREVIEW, RELEASE, SECRET, URL, Served, fine, in_order, refused

LOST = httpx.ReadError("the connection was reset")
UNSENT = httpx.ConnectError("connection refused")
NAMELESS = httpx.ReadTimeout("too slow")


@pytest.mark.parametrize("failure", [LOST, UNSENT, NAMELESS, httpx.RemoteProtocolError("half an answer")])
def test_a_question_whose_answer_was_lost_is_sent_again_with_the_same_key(failure: httpx.TransportError) -> None:
    served = Served(in_order(failure, failure, fine(RELEASE)))
    assert served.client.sql("SELECT 1", epsilon=0.5).rows[0]["n"] == 601
    keys = {request.headers["Idempotency-Key"] for request in served.requests}
    assert (len(served.requests), len(keys)) == (3, 1)


def test_two_questions_have_two_keys() -> None:
    served = Served(in_order(fine(RELEASE)))
    served.client.sql("SELECT 1", epsilon=0.5)
    served.client.sql("SELECT 1", epsilon=0.5)
    first, second = (request.headers["Idempotency-Key"] for request in served.requests)
    assert first != second
    assert len(first) == 32


def test_a_key_of_ones_own_is_sent_as_it_is() -> None:
    served = Served(in_order(fine(RELEASE)))
    served.client.sql("SELECT 1", epsilon=0.5, key="monday")
    assert served.requests[0].headers["Idempotency-Key"] == "monday"
    for key in ("", "a\nb", "ü", "x" * 201):
        with pytest.raises(InvalidInput):
            served.client.sql("SELECT 1", epsilon=0.5, key=key)


def test_who_gives_up_says_with_which_key_to_ask_again() -> None:
    served = Served(in_order(LOST), retries=2)
    with pytest.raises(ServerUnreachable, match="charged once") as caught:
        served.client.sql("SELECT 1", epsilon=0.5)
    assert served.requests[0].headers["Idempotency-Key"] in caught.value.message
    assert len(served.requests) == 3


@pytest.mark.parametrize("failure", [LOST, NAMELESS])
def test_what_changes_something_and_has_no_key_is_never_sent_twice(failure: httpx.TransportError) -> None:
    for ask in (
        lambda client: client.set_budget("visits", 1.0),
        lambda client: client.file_request("visits", tacit.Budget(1.0), "please"),
        lambda client: client.remove_table("visits"),
        lambda client: client.people.create_token(),
        lambda client: client.decide("1-a", True),
    ):
        served = Served(in_order(failure, fine({})))
        with pytest.raises(ServerUnreachable):
            ask(served.client)
        assert len(served.requests) == 1


def test_what_never_left_is_sent_again_whatever_it_is() -> None:
    served = Served(in_order(UNSENT, httpx.Response(204)))
    served.client.remove_table("visits")
    assert len(served.requests) == 2


def test_reads_and_previews_are_sent_again() -> None:
    served = Served(in_order(LOST, fine(PREVIEW), LOST, fine([]), LOST, fine(ME)))
    assert served.client.preview("SELECT 1", epsilon=0.5).more_like_this == 6
    assert served.client.tables() == []
    assert served.client.me() == ME


def test_pauses_grow_and_are_not_the_same_each_time() -> None:
    served = Served(in_order(LOST), retries=5)
    with pytest.raises(ServerUnreachable):
        served.client.tables()
    assert len(served.pauses) == 5
    for at, pause in enumerate(served.pauses):
        assert 0.1 * 2**at <= pause <= 0.15 * 2**at
    assert len({pause / 2**at for at, pause in enumerate(served.pauses)}) > 1


def test_a_busy_server_is_waited_for_and_that_counts_as_no_retry() -> None:
    busy = refused("T703", 429, Retry_After="2")
    served = Served(in_order(*[busy] * 4, fine(RELEASE)), retries=1)
    assert served.client.sql("SELECT 1", epsilon=0.5).rows
    assert [2 <= pause <= 3 for pause in served.pauses] == [True] * 4


def test_who_is_told_to_wait_longer_than_the_time_limit_is_told_at_once() -> None:
    served = Served(in_order(refused("T703", 429, Retry_After="100")), timeout_s=30)
    with pytest.raises(QueueFull) as caught:
        served.client.sql("SELECT 1", epsilon=0.5)
    assert (caught.value.retry_after_s, served.pauses) == (100, [])


def test_the_waits_together_stay_within_the_time_limit() -> None:
    now = [0.0]
    http = httpx.Client(transport=httpx.MockTransport(in_order(refused("T703", 429, Retry_After="4"))))
    one = transport.Transport(
        URL,
        transport.SecretToken(SECRET),
        timeout_s=30,
        http=http,
        clock=lambda: now[0],
        sleep=lambda pause: now.__setitem__(0, now[0] + pause),
    )
    with pytest.raises(QueueFull):
        one.get("tables")
    assert 20 < now[0] <= 30


def test_after_503_only_what_may_be_sent_twice_is_sent_again() -> None:
    busy = refused("T513", 503, Retry_After="1")
    with pytest.raises(LedgerBusy):
        Served(in_order(busy, fine({}))).client.set_budget("visits", 1.0)
    assert Served(in_order(busy, fine([]))).client.tables() == []


def test_an_error_without_a_time_to_come_again_is_raised_at_once() -> None:
    served = Served(in_order(refused("T513", 503), fine([])))
    with pytest.raises(LedgerBusy):
        served.client.tables()
    assert len(served.requests) == 1


@pytest.mark.parametrize("wait", ["-1", "inf", "nan", "Wed, 21 Oct 2026 07:28:00 GMT", ""])
def test_a_time_to_come_again_that_means_nothing_is_not_waited_for(wait: str) -> None:
    served = Served(in_order(refused("T703", 429, Retry_After=wait), fine([])))
    with pytest.raises(QueueFull):
        served.client.tables()
    assert served.pauses == []


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>It works!</html>"),
        httpx.Response(404, json={"detail": "Not Found"}),
        httpx.Response(500, text="oops"),
        httpx.Response(200, json={"hello": "world"}),
        httpx.Response(200, json=[{"hello": "world"}]),
        httpx.Response(401, json={"error": "invalid_token"}),
        httpx.Response(200, text="[" * 100_000),
    ],
)
def test_what_is_no_server_of_tacit_is_called_that(answer: httpx.Response) -> None:
    with pytest.raises(NotATacitServer):
        Served(in_order(answer)).client.tables()


def test_a_gateway_without_a_server_behind_it_is_tried_again() -> None:
    served = Served(in_order(httpx.Response(502, text="bad gateway"), fine([])))
    assert served.client.tables() == []
    with pytest.raises(ServerUnreachable):
        Served(in_order(httpx.Response(504, text="")), retries=0).client.tables()


def test_a_redirect_is_not_followed_so_the_token_goes_nowhere_else() -> None:
    served = Served(in_order(httpx.Response(302, headers={"Location": "http://elsewhere.example/v1/tables"})))
    with pytest.raises(NotATacitServer, match=r"elsewhere\.example"):
        served.client.tables()
    assert [request.url.host for request in served.requests] == ["127.0.0.1"]


def test_an_unknown_code_is_a_failure_of_the_server_that_names_it() -> None:
    with pytest.raises(ServerFailed, match="T999"):
        Served(in_order(refused("T999", 418))).client.tables()
    with pytest.raises(ServerFailed):
        Served(in_order(refused("T000", 500))).client.tables()


def test_an_answer_beyond_the_limit_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "ANSWER_BYTES_MAX", 1000)
    with pytest.raises(TooLarge):
        Served(in_order(fine(["x" * 2000]))).client.tables()


@pytest.mark.parametrize("ask", [lambda client: client.sql("SELECT 1", epsilon=0.5), lambda client: client.tables()])
def test_the_token_is_sent_and_shown_nowhere(caplog: pytest.LogCaptureFixture, ask: Callable[[Client], object]) -> None:
    caplog.set_level(logging.DEBUG)
    served = Served(in_order(httpx.ReadError("the connection was reset")), retries=1)
    with pytest.raises(TacitError) as caught:
        ask(served.client)
    assert served.requests[0].headers["Authorization"] == f"Bearer {SECRET}"
    seen = [repr(served.client), str(caught.value), repr(vars(caught.value)), caplog.text]
    seen += [repr(vars(served.client)), repr(vars(served.client._transport))]
    seen += traceback.TracebackException.from_exception(caught.value, capture_locals=True).format()
    seen += [repr(vars(one)) for one in _chain(caught.value)]
    assert all(SECRET not in one for one in seen)
    assert not any(isinstance(one, httpx.HTTPError) for one in _chain(caught.value)), "httpx's errors hold the token"


def _chain(error: BaseException) -> list[BaseException]:
    found = [error]
    while (inner := found[-1].__cause__ or found[-1].__context__) is not None:
        found.append(inner)
    return found


def test_a_client_is_not_pickled_for_its_token_would_be_in_the_file() -> None:
    with pytest.raises(TacitError):
        pickle.dumps(Served(in_order(fine([]))).client)


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "ünicode", "x" * 5000, "tab\t"])
def test_a_token_that_would_break_the_header_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Client(URL, token + "\x00x")
    assert token not in str(caught.value)
    assert caught.value.value is None


def test_the_token_comes_from_the_environment_or_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n", encoding="ascii")
    monkeypatch.delenv("TACIT_TOKEN", raising=False)
    with pytest.raises(InvalidInput, match="TACIT_TOKEN"):
        tacit.connect(URL)
    monkeypatch.setenv("TACIT_TOKEN", SECRET)
    for given in (None, f"file:{tmp_path / 'token'}", SECRET):
        sent: list[str] = []

        def answer(request: httpx.Request, sent: list[str] = sent) -> httpx.Response:
            sent.append(request.headers["Authorization"])
            return fine([])

        Client(URL, given, http=httpx.Client(transport=httpx.MockTransport(answer))).tables()
        assert sent == [f"Bearer {SECRET}"]
    (tmp_path / "empty").write_text("", encoding="ascii")
    for name in ("empty", "missing"):
        with pytest.raises(InvalidInput):
            tacit.connect(URL, f"file:{tmp_path / name}")


def test_the_server_comes_from_the_environment_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TACIT_SERVER", raising=False)
    with pytest.raises(InvalidInput, match="TACIT_SERVER"):
        tacit.connect(token=SECRET)
    monkeypatch.setenv("TACIT_SERVER", URL)
    with tacit.connect(token=SECRET) as client:
        assert client.url == URL
    with tacit.connect("https://localhost:9", SECRET) as client:
        assert client.url == "https://localhost:9"


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8321", "ftp://a", "http://", "http://a?x=1", "http://a#x", "http://[::1"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        tacit.connect(url, SECRET)


def test_an_address_with_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidInput) as caught:
        tacit.connect("http://ana:hunter2@127.0.0.1", SECRET)
    assert "hunter2" not in str(caught.value)


def test_a_path_before_the_api_is_kept_and_names_are_quoted() -> None:
    paths: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        paths.append(request.url.raw_path)
        return refused("T131", 404)

    http = httpx.Client(transport=httpx.MockTransport(answer))
    client = Client("http://localhost:1/tacit/", SECRET, http=http)
    for name in ("a/../../b", "x?y#z", "ü"):
        with pytest.raises(InvalidInput):
            client.table(name)
    assert paths == [b"/tacit/v1/tables/a%2F..%2F..%2Fb", b"/tacit/v1/tables/x%3Fy%23z", b"/tacit/v1/tables/%C3%BC"]


@pytest.mark.parametrize("host", ["tacit.example.org", "10.0.0.1", "localhost.example.org"])
def test_a_token_that_travels_unencrypted_to_another_machine_is_warned_of(host: str) -> None:
    with pytest.warns(InsecureWarning, match="without encryption"):
        tacit.connect(f"http://{host}:8321", SECRET)


@pytest.mark.parametrize("url", ["https://tacit.example.org", "http://localhost", "http://[::1]:1", "http://127.9.9.9"])
def test_what_is_encrypted_or_stays_here_is_not_warned_of(url: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tacit.connect(url, SECRET).close()


def test_what_is_on_this_machine_is_not_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(ServerUnreachable):
            tacit.connect("http://127.0.0.1:9", SECRET, retries=0, timeout_s=1).tables()
        proxy.settimeout(0.05)
        with pytest.raises(TimeoutError):
            proxy.accept()


def test_certificates_are_checked_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    with pytest.warns(InsecureWarning, match="not verified"):
        tacit.connect("https://localhost", SECRET, verify=False)
    (tmp_path / "no.pem").write_text("no certificate", encoding="ascii")
    for place in (tmp_path / "missing.pem", tmp_path / "no.pem"):
        with pytest.raises(InvalidInput):
            tacit.connect("https://localhost", SECRET, verify=place)


def test_numbers_that_json_has_not_are_refused_here() -> None:
    served = Served(in_order(fine(RELEASE)))
    with pytest.raises(NotFinite):
        served.client.sql("SELECT 1", epsilon=float("nan"))
    with pytest.raises(NotFinite):
        served.client.sql("SELECT 1", epsilon=1, keys={"a": [float("inf")]})  # type: ignore[list-item]
    with pytest.raises(NotFinite):
        transport.encode_body({"somewhere": [float("nan")]})
    with pytest.raises(InvalidInput):
        served.client.sql("SELECT 1", epsilon="0.5")
    assert served.requests == []


@pytest.mark.parametrize(
    "settings", [{"retries": -1}, {"retries": 1000}, {"timeout_s": 0}, {"timeout_s": float("nan")}]
)
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises((OutOfRange, InvalidInput)):
        Client(URL, SECRET, **settings)  # type: ignore[arg-type]


def test_nothing_is_sent_before_the_first_question() -> None:
    assert Served(in_order(fine(NOTHING))).requests == []
