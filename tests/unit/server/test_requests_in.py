"""What is refused before the application sees a request: other hosts, and bodies that are nested deeply."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st

from tacit.server import middleware
from tacit.server.middleware import JSON_DEPTH_MAX, RequestLimits
from tacit.server.settings import Settings
from tests.unit.server.clinic import Clinic, TestClient

LOCAL: dict[str, Any] = {}
OPEN = {"host": "0.0.0.0", "without_tls": 2}


def status(named: str, path: Path, **settings: Any) -> int:
    """Return how a request with a Host header is answered."""
    app = FastAPI()
    app.add_api_route("/", lambda: "here")
    app.add_middleware(RequestLimits, settings=Settings(folder=path, **settings))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        return client.get("/", headers={"Host": named}).status_code


@pytest.mark.parametrize(
    ("host", "settings", "expected"),
    [
        ("127.0.0.1:8321", LOCAL, 200),
        ("LocalHost", LOCAL, 200),
        ("[::1]:8321", LOCAL, 200),
        ("localhost.", LOCAL, 200),
        ("evil.example", LOCAL, 421),
        ("evil.example:8321", LOCAL, 421),
        ("127.0.0.1.evil.example", LOCAL, 421),
        ("localhost@evil.example", LOCAL, 421),
        ("", LOCAL, 421),
        ("192.0.2.7", LOCAL, 421),
        ("192.0.2.7:8321", OPEN, 200),
        ("[2001:db8::7]", OPEN, 200),
        ("clinic.example", OPEN, 421),
        ("clinic.example", {**OPEN, "hosts": ("Clinic.example",)}, 200),
        ("clinic.example:443", {"hosts": ("clinic.example",), "proxies": ("127.0.0.1",)}, 200),
        ("sub.clinic.example", {"hosts": ("clinic.example",)}, 421),
        ("clinic.example", {"host": "clinic.example", "without_tls": 2}, 200),
    ],
)
def test_only_the_servers_own_names_are_answered(
    host: str, settings: dict[str, Any], expected: int, tmp_path: Path
) -> None:
    assert status(host, tmp_path, **settings) == expected


def test_a_second_host_is_refused(clinic_place: Clinic) -> None:
    response = clinic_place.client.get("/healthz", headers=[("Host", "localhost"), ("Host", "evil.example")])
    assert (response.status_code, response.json()["error"]["code"]) == (421, "T715")


DEEP = (
    "/v1/preview",
    "/v1/explain",
    "/v1/queries",
    "/v1/statistics",
    "/v1/models",
    "/v1/login",
    "/v1/tables",
    "/v1/budgets",
)


@pytest.mark.parametrize("path", DEEP)
@pytest.mark.parametrize("depth", [JSON_DEPTH_MAX + 1, 900, 20_000])
@pytest.mark.parametrize("form", ["[]", "{}"])
def test_deeply_nested_bodies_are_refused_with_a_code(clinic_place: Clinic, path: str, depth: int, form: str) -> None:
    opening, closing = ("[", "]") if form == "[]" else ('{"a":', "}")
    value = f"{opening * depth}1{closing * depth}"
    text = (
        f'{{"sql": "x", "epsilon": 1, "function": "mean", "keys": {{"a": [{value}]}}, "arguments": {{"a": {value}}}}}'
    )
    response = clinic_place.call("owner", "POST", path, content=text, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "T106")


def test_brackets_in_texts_are_no_nesting(clinic_place: Clinic) -> None:
    sql = "SELECT COUNT(*) FROM visits WHERE sex = '" + '[{"\\' * 200 + "'"
    response = clinic_place.call("owner", "POST", "/v1/preview", json={"sql": sql, "epsilon": 0.1})
    assert response.status_code == 200, response.text


NESTED = st.recursive(
    st.none() | st.text(st.sampled_from('[]{}"\\x')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.sampled_from('[{"\\'), max_size=3), inner),
)


@given(NESTED)
def test_the_depth_is_that_of_the_parsed_value(value: Any) -> None:
    def depth(one: Any) -> int:
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    assert middleware._depth(json.dumps(value).encode()) == depth(value)


@pytest.mark.parametrize("text", [b'"\\"' * 300_000, b'"' + b'\\"' * 500_000, b"[]" * 500_000, b'{"a":"' * 150_000])
def test_looking_for_depth_takes_linear_time(text: bytes) -> None:
    begun = time.perf_counter()
    middleware._depth(text)
    assert time.perf_counter() - begun < 2.0


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer tacit_0123456789ab_nonsense"}])
def test_large_bodies_of_strangers_are_refused_unread(
    clinic_place: Clinic, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a million wrong elements took seconds of the event loop before anybody asked who sent them."""
    parsed: list[int] = []
    monkeypatch.setattr(middleware, "_require_shallow", lambda body: parsed.append(len(body)))
    steps = [0] * 200_000
    body = {"name": "a", "source": "b", "unit": {"column": "a", "through": steps}}
    answer = clinic_place.client.post("/v1/tables", json=body, headers=headers)
    assert (answer.status_code, parsed) == (401, [])


def test_long_lists_of_steps_are_refused_at_their_limit(clinic_place: Clinic) -> None:
    body = {"name": "a", "source": "b", "unit": {"column": "a", "through": [0] * 300_000}}
    begun = time.process_time()
    answer = clinic_place.call("owner", "POST", "/v1/tables", json=body)
    assert answer.status_code == 400
    assert time.process_time() - begun < 1.0
