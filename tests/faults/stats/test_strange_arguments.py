"""Whatever an argument is, a statistic is answered, or refused with a code before anything is charged."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import stats
from tacit.stats.preparation import CommonOptions
from tacit.stats.workloads import Ranges
from tests.support.odd_arguments import ODD

NUMBERS = np.arange(30) % 7
TEXTS = np.array(["a", "b", "c"] * 10)
DAYS = np.array(["2024-01-01", "2024-01-02", "2024-01-03"] * 10, dtype="datetime64[D]")
BOUNDED: dict[str, Any] = {"values": NUMBERS, "bounds": (0, 7), "by": TEXTS, "keys": ["a", "b"]}
PAIR: dict[str, Any] = {**BOUNDED, "others": NUMBERS, "other_bounds": (0, 7)}
LISTED: dict[str, Any] = {"values": TEXTS, "keys": ["a", "b"]}

BASES: dict[str, dict[str, Any]] = {
    "count": {"values": NUMBERS, "by": TEXTS, "keys": ["a", "b"]},
    "sum": BOUNDED,
    "mean": BOUNDED,
    "variance": BOUNDED,
    "std": BOUNDED,
    "covariance": PAIR,
    "correlation": PAIR,
    "trend": {**BOUNDED, "times": NUMBERS, "time_bounds": (0, 7)},
    "quantile": {**BOUNDED, "q": 0.3},
    "quantiles": {**BOUNDED, "qs": [0.1, 0.5]},
    "median": {**BOUNDED, "method": "tree"},
    "box_plot": BOUNDED,
    "histogram": {"values": NUMBERS, "bins": 3, "bounds": (0, 7), "by": TEXTS, "by_keys": ["a"], "nonnegative": True},
    "contingency": {**LISTED, "others": TEXTS, "other_keys": ["a", "c"], "nonnegative": False},
    "cdf": {**BOUNDED, "bins": 4},
    "mode": LISTED,
    "top_k": {**LISTED, "k": 1},
    "bounds": {"values": NUMBERS},
    "t_test": {"values": NUMBERS, "bounds": (0, 7), "by": TEXTS, "keys": ["a", "b"]},
    "chi_squared": {**LISTED, "others": TEXTS, "other_keys": ["a", "c"]},
    "correlation_test": {"values": NUMBERS, "others": NUMBERS, "bounds": (0, 7), "other_bounds": (0, 7)},
    "trend_test": {"values": NUMBERS, "times": NUMBERS, "bounds": (0, 7), "time_bounds": (0, 7)},
    "ranges": {"values": NUMBERS, "edges": [0, 3, 7], "name": "x"},
    "prefixes": {"values": NUMBERS, "edges": [0, 3, 7], "name": "x"},
    "hierarchy": {"values": TEXTS, "levels": {"a": 1, "b": 1, "c": 2}, "edges": None, "name": "x"},
    "marginals": {
        "columns": {"one": TEXTS, "two": NUMBERS},
        "domain": {"one": ["a", "b"], "two": [0, 3, 7]},
        "ways": (1, 2),
        "sets": None,
    },
    "workload": {"columns": {"one": NUMBERS}, "domain": {"one": [0, 3, 7]}},
}

STRANGE: list[Any] = [
    *ODD,
    5e-324,
    "learn",
    "integer",
    [0, 1, 2],
    (0, float("nan")),
    (0, 2**70),
    (0, 10**400),
    (date(2024, 1, 1), date(2024, 1, 3)),
    (date(1, 1, 1), date(9999, 12, 31)),
    (datetime.min, datetime.max),
    ("2024-01-01", "2024-01-03"),
    (20, (0, 7)),
    {"a": 1},
    {"one": 1},
    {"one": ["a", "a"], "two": (3, "learn")},
    {"one": [["a"]], "two": {}},
    {"a": [], "b": []},
    [{"a": "x", "b": "x", "c": "y"}, "year"],
    ["year", "month"],
    [["one"], ["one", "two"]],
    [("one", 3)],
    [{}],
    [1, [2]],
    np.zeros(30, dtype=complex),
    NUMBERS,
    TEXTS,
    DAYS,
    int,
    Ranges("one"),
]


def names(function: str) -> list[str]:
    """Return the arguments of a statistic, its own and those that all have."""
    own = inspect.signature(getattr(stats, function)).parameters.keys() - {"asked"}
    return [*sorted(own), *CommonOptions.__annotations__, "units"]


def test_all_statistics_are_tried() -> None:
    functions = [name for name in stats.__all__ if inspect.isfunction(getattr(stats, name))]
    assert sorted(functions) == sorted([*BASES, "prepare", "preview"])


def ask(function: str, changed: dict[str, Any], budget: Any) -> Any:
    """Ask for a statistic with some arguments of its base in another way."""
    call: Callable[..., Any] = getattr(stats, function)
    given = {**BASES[function], "epsilon": 0.5, "unit": np.arange(30), "rows_per_unit": 1, "budget": budget, **changed}
    if function == "workload":
        return call(given.pop("columns"), given.pop("workloads", Ranges("one")), **given)
    return call(**given)


@pytest.mark.parametrize("function", BASES)
def test_a_strange_argument_is_answered_or_refused_before_the_charge(function: str) -> None:
    for name in names(function):
        for odd in STRANGE:
            budget = tacit.Budget(epsilon=10.0, delta=1e-4)
            is_answered = True
            try:
                ask(function, {name: odd}, budget)
            except tacit.TacitError:
                is_answered = False
            except Exception as error:
                raise AssertionError(f"{function}({name}={odd!r}) ends in {type(error).__name__}: {error}") from error
            assert bool(budget.events) == is_answered, (name, odd)
