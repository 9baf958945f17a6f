"""The application beside its own description: whatever is sent, what comes back is what `/openapi.json` says.

Schemathesis makes requests from the description, right and wrong ones; each goes out as the next person of the clinic.
There is no answer 500, no status, form or header that is not described. `TACIT_CASES` asks for more examples.
"""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from schemathesis.engine import events, from_schema

from tacit.privacy.events import Laplace
from tacit.server.routes.statistics import COMMON, FUNCTIONS
from tests.unit.server import clinic
from tests.unit.server.cases import finding_of
from tests.unit.server.clinic import NOBODY, PEOPLE, Clinic

CASES = int(os.environ.get("TACIT_CASES", "4"))
SEED = 20_261
PHASES = ("examples", "coverage", "fuzzing", "stateful")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
)
"""What is asserted; that a right form is accepted is not, since most of it is no SQL and names no table."""
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT sex, AVG(age) AS m FROM visits GROUP BY sex",
    "SELECT sex, SUM(value) AS s FROM labs GROUP BY sex",
    "SELECT COUNT(*) FROM secret",
)
COLUMN = {"table": "visits", "column": "age"}
ODD: tuple[Any, ...] = (
    *(None, True, -1, 10**30, 1e308, "x", [], {}, [1, "a"], [[1]], {"a": 1}, [None], {"date": "2024-01-01"}, [1, 0]),
    *(COLUMN, [COLUMN], {"table": "visits", "column": "nope"}),
)

pytestmark = pytest.mark.filterwarnings("ignore")  # of libraries that make and send requests


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Clinic]:
    """Make a clinic for one phase: schemathesis stops the application at its end, and its threads with it."""
    made = clinic.make(tmp_path)
    yield made
    made.close()


@pytest.fixture
def everybody(place: Clinic) -> Iterator[None]:
    """Let each request go out as the next person; some are made to be about tables and permits that are there."""
    people, questions = itertools.cycle((*PEOPLE, NOBODY)), itertools.cycle((None, *QUESTIONS))
    permit = place.curator.ledger.reserve("visits", Laplace(0.01)).id
    findings = itertools.cycle((None, finding_of(permit).to_dict()))

    def before_call(_context: Any, case: Any, _kwargs: Any) -> None:
        headers = {name: value for name, value in (case.headers or {}).items() if name.lower() != "authorization"}
        case.headers = {**headers, **place.headers(next(people))}
        question = next(questions)
        if question is not None and isinstance(case.body, dict) and isinstance(case.body.get("sql"), str):
            case.body = {**case.body, "sql": question}
        if isinstance(case.body, dict) and isinstance(case.body.get("finding"), dict) and (found := next(findings)):
            case.body = {**case.body, "finding": found}

    schemathesis.hook("before_call")(before_call)
    yield
    schemathesis.hooks.unregister_all()


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.usefixtures("everybody")
def test_what_comes_back_is_what_is_described(place: Clinic, phase: str) -> None:
    failures, sent = set(), 0
    for event in from_schema(described(place, phase)).execute():
        assert not isinstance(event, events.NonFatalError | events.FatalError), event
        if isinstance(event, events.ScenarioFinished):
            sent += len(event.recorder.cases)
            failures |= set(failed(event))
    assert failures == set()
    assert sent or phase in ("examples", "stateful")  # of which there may be none


def test_whatever_a_statistic_is_given_there_is_no_defect(tmp_path: Path) -> None:
    calls = list(odd_statistics())
    step = max(1, len(calls) // (30 * CASES)) | 1
    place = clinic.make(tmp_path)
    with place.client:
        for arguments in calls[::step]:
            response = place.call("owner", "POST", "/v1/statistics", json=arguments)
            assert response.status_code < 500, (arguments, response.text)
    place.close()


def odd_statistics() -> Iterator[dict[str, Any]]:
    """Yield every argument of every statistic with every odd value, the others being right."""
    for name, function in FUNCTIONS.items():
        parameters = inspect.signature(function).parameters.values()
        own = [one for one in parameters if one.kind is not one.VAR_KEYWORD]
        right: dict[str, Any] = {one.name: COLUMN for one in own if one.default is one.empty}
        right |= {argument: value for argument, value in (("q", 0.5), ("qs", [0.5]), ("k", 2)) if argument in right}
        right |= {"epsilon": 0.001, "rows_per_unit": 2}
        for argument in (*(one.name for one in own), *sorted(COMMON)):
            for odd in ODD:
                yield {"function": name, "arguments": {**right, argument: odd}}


def described(place: Clinic, phase: str) -> Any:
    generation = {"max-examples": CASES, "deterministic": True, "database": "none"}
    phases = {name: {"enabled": name == phase} for name in PHASES}
    checks = {"enabled": False, **{name: {"enabled": True} for name in CHECKS}}
    settings = {"seed": SEED, "generation": generation, "phases": phases, "checks": checks}
    config = schemathesis.Config.from_dict(settings)
    return schemathesis.openapi.from_asgi("/openapi.json", place.app, config=config)


def failed(event: events.ScenarioFinished) -> Iterator[str]:
    """Yield the checks that a request did not pass."""
    recorder = event.recorder
    for case, checks in recorder.checks.items():
        response = recorder.interactions[case].response
        for check in checks:
            if check.failure_info is None or (check.name == "not_a_server_error" and response.status_code == 501):
                continue  # 501 is described, too: this clinic knows no provider of identities
            yield f"{event.label}: {check.failure_info.failure} in {check.failure_info.code_sample}"
