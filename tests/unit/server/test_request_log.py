"""Every request leaves one line and its figures, and a defect is answered without its text."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from tacit.server import telemetry
from tests.unit.server.clinic import Clinic

MARK = "Qq7markerqQ"


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    written = io.StringIO()
    telemetry.configure(written)
    yield written
    root.handlers[:] = before
    root.setLevel(level)


def requests(lines: io.StringIO) -> list[dict[str, object]]:
    read = [json.loads(line) for line in lines.getvalue().splitlines()]
    return [line for line in read if line["event"] == "request"]


def test_a_line_says_who_asked_for_what_and_no_more(clinic_place: Clinic, lines: io.StringIO) -> None:
    clinic_place.call("analyst.visits", "GET", f"/v1/tables/{MARK}?secret={MARK}")
    (line,) = requests(lines)
    assert MARK not in lines.getvalue()
    assert {name: line[name] for name in ("method", "route", "status", "code", "who")} == {
        "method": "GET",
        "route": "/v1/tables/{name}",
        "status": 404,
        "code": "T131",
        "who": "analyst.visits",
    }


def test_what_is_counted_is_found_among_the_figures(clinic_place: Clinic) -> None:
    clinic_place.call("known", "GET", "/v1/audit")
    page = clinic_place.call("owner", "GET", "/metrics").text
    assert 'tacit_requests_total{route="/v1/audit",status="403"}' in page
    assert 'tacit_refusals_total{code="T400"}' in page


def test_a_defect_is_answered_without_its_text(
    clinic_place: Clinic, lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(MARK)

    monkeypatch.setattr(type(clinic_place.access.tokens), "all", broken)
    response = clinic_place.call("owner", "GET", "/v1/tokens")
    assert (response.status_code, response.json()["error"]["code"]) == (500, "T000")
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert MARK not in response.text + lines.getvalue()
    reference = response.json()["error"]["message"].split()[-1]
    assert reference in lines.getvalue()
    assert requests(lines)[-1]["status"] == 500
