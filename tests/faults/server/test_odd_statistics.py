"""Whatever JSON an argument of a statistic is, the server answers, or refuses with a code and charges nothing.

The values are those of `tests/support/odd_arguments.py` as far as JSON has them, and some that only a request holds.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tacit.server.routes.statistics import COMMON, FUNCTIONS
from tests.support.odd_arguments import ODD
from tests.support.statistic_calls import AGE, CALLS, PRICE, SEX
from tests.unit.server import clinic
from tests.unit.server.clinic import Clinic

LATE_S: Final = 1.0
PERSON: Final = "curator.visits"
DEEP: Final = "[" * 40 + "]" * 40
MANY: Final = f"[{'0,' * 300_000}0]"
DEEPER: Final = "[" * 900 + "]" * 900
DEEPEST: Final = "[" * 100_000 + "]" * 100_000
WHOLLY: Final = ("marginals", "hierarchy")
"""Functions that are tried with all values; of the others each argument with every STRIDE-th, from another one on."""

STRIDE: Final = 24


def _in_json() -> Iterator[str]:
    for one in ODD:
        try:
            written = json.dumps(one)
        except (TypeError, ValueError):
            continue
        yield written
    yield from (
        "1e400",
        "-1e400",
        '"NaN"',
        '"Infinity"',
        '"learn"',
        DEEP,
        DEEPER,
        DEEPEST,
        MANY,
        str(2**63),
        str(10**4000),
        "[NaN]",
    )
    yield from (json.dumps(one) for one in _about())
    yield from (json.dumps("x" * 100_000), json.dumps({"x" * 5_000: 1}), "[1e308, -1e308]", "[1, 1]", '{"a\\u0000": 1}')


def _about() -> Iterator[Any]:
    """Yield columns, tables and dates in odd places."""
    yield from (
        AGE,
        SEX,
        [AGE, SEX],
        {"x": AGE},
        {"x": [AGE]},
        {"\ud800": AGE},
        [[AGE]],
        {"table": "visits"},
        {"column": "age"},
    )
    yield from (
        {"table": "secret", "column": "score"},
        {"table": "nowhere", "column": "x"},
        AGE | {"column": "nothing"},
    )
    yield from ({"table": "labs", "column": "value"}, {"table": "visits", "column": "age", "more": 1})
    yield from (
        {"table": None, "column": 3},
        {"date": "2024-01-31"},
        {"date": "never"},
        {"time": 3},
        {"date": 1, "x": 2},
    )
    yield from ([{"date": "2024-01-31"}, 3], [True, False], ["F", 1], ["F", "F"], [None, None], ["F", None], [[], []])
    yield from (
        [{"F": []}],
        [{"F": {}}],
        [{"F": [1]}],
        [{"F": None}],
        [{"F": True}],
        [{"F": "\ud800", "M": "x"}],
        {"F": "M", "M": "F"},
        ["year"],
    )
    yield from (
        {"age": [1, 0]},
        {"age": 10**9},
        {"age": -1},
        {"age": {}},
        {"age": [[]]},
        {"age": [3, [0, 1]]},
        {"sex": 3},
    )


VALUES: Final = tuple(dict.fromkeys(_in_json()))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    made = clinic.make(tmp_path_factory.mktemp("clinic"), rows=60)
    with made.client:
        yield made
    made.close()


def test_every_statistic_is_tried() -> None:
    assert CALLS.keys() == FUNCTIONS.keys()


def tried(function: str) -> Iterator[tuple[str, str]]:
    """Yield the arguments of a statistic and what they are tried with."""
    own = [
        name
        for name, one in inspect.signature(FUNCTIONS[function]).parameters.items()
        if one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    for index, name in enumerate([*own, *sorted(COMMON)]):
        is_whole = function in WHOLLY and name in own
        first = (list(FUNCTIONS).index(function) + 5 * index) % STRIDE
        yield from ((name, odd) for odd in (VALUES if is_whole else VALUES[first::STRIDE]))


def asked(place: Clinic, function: str, arguments: dict[str, str]) -> Any:
    """Ask for a statistic with arguments that are JSON texts."""
    pairs = ", ".join(f'"{name}": {value}' for name, value in arguments.items())
    body = f'{{"function": "{function}", "arguments": {{{pairs}}}}}'.encode("utf-8", "surrogatepass")
    return place.call(PERSON, "POST", "/v1/statistics", content=body, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_odd_argument_of_a_statistic_is_refused_with_a_code_at_no_charge(place: Clinic, function: str) -> None:
    usual = {name: json.dumps(value) for name, value in {**CALLS[function], **PRICE, "epsilon": 0.01}.items()}
    assert asked(place, function, usual).status_code == 200
    wrong = []
    for name, odd in tried(function):
        before, started_s = place.curator.ledger.head(), time.monotonic()
        found = asked(place, function, usual | {name: odd})
        took_s, shown = time.monotonic() - started_s, f"{name}={odd[:60]}: {found.status_code} {found.text[:150]}"
        if found.status_code == 200:
            continue
        is_coded = 400 <= found.status_code < 500 and found.json()["error"]["code"] > "T000"
        if not is_coded or place.curator.ledger.head() != before or took_s > LATE_S:
            wrong.append(f"{shown} after {took_s:.1f} s")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("odd", ["\ud800", "a\0", "", "x" * 150, "mean ", "__init__", "workload", "Answer"])
def test_an_odd_name_of_a_statistic_or_argument_is_refused_with_a_code(place: Clinic, odd: str) -> None:
    before = place.curator.ledger.head()
    usual = {**CALLS["mean"], **PRICE}
    for document in (
        {"function": odd, "arguments": usual},
        {"function": "mean", "arguments": {**usual, odd: 1}},
    ):
        body = json.dumps(document).encode()
        found = place.call(PERSON, "POST", "/v1/statistics", content=body, headers={"Content-Type": "application/json"})
        assert 400 <= found.status_code < 500, found.text
        assert found.json()["error"]["code"] > "T000"
    assert place.curator.ledger.head() == before
