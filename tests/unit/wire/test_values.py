"""Values as JSON has them, and back."""

from __future__ import annotations

import functools
import json
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, NotFinite, TooLarge
from tacit.wire.values import DEPTH_MAX, column_reference, decode, encode, kind_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), "null"),
        (float("inf"), "null"),
        (np.float64(0.5), "0.5"),
        (np.array([[1, 2], [3, 4]]), "[[1, 2], [3, 4]]"),
        (date(2024, 1, 31), '"2024-01-31"'),
        (datetime(2024, 1, 31, 12), '"2024-01-31T12:00:00"'),
        ({"a": (1, None, True)}, '{"a": [1, null, true]}'),
    ],
)
def test_values_are_written_as_json_has_them(value: Any, text: str) -> None:
    assert json.dumps(encode(value), allow_nan=False) == text


@pytest.mark.parametrize(
    ("values", "kind"),
    [([], "text"), ([None, True], "boolean"), ([1], "integer"), ([1.5], "real"), (["a"], "text"),
     ([date(2024, 1, 1)], "date"), ([datetime(2024, 1, 1)], "time"), ([np.int64(1)], "integer")],
)  # fmt: skip
def test_a_column_has_the_kind_of_its_first_value(values: list[Any], kind: str) -> None:
    assert kind_of(values) == kind


def test_dates_are_told_from_texts() -> None:
    asked = {
        "a": [{"date": "2024-01-31"}, "2024-01-31"],
        "b": {"time": "2024-01-31T12:00:00"},
        "c": {"date": "x", "d": 1},
    }
    assert decode(asked) == {
        "a": [date(2024, 1, 31), "2024-01-31"],
        "b": datetime(2024, 1, 31, 12),
        "c": {"date": "x", "d": 1},
    }


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 0.5, "2024-01-31", date(2024, 1, 31), datetime(2024, 1, 31, 12), [1, [date(2024, 1, 1)]], {"a": 1}],
)
def test_what_one_side_writes_into_a_request_the_other_reads(value: Any) -> None:
    assert decode(json.loads(json.dumps(encode(value, tagged=True)))) == value


def test_what_is_not_a_finite_number_is_null_in_an_answer_and_refused_in_a_request() -> None:
    for odd in (float("nan"), float("inf"), np.float64("nan")):
        assert encode([odd]) == [None]
        with pytest.raises(NotFinite):
            encode([odd], tagged=True)


def nested(depth: int) -> Any:
    return functools.reduce(lambda inner, _: [inner], range(depth), 1)


def test_both_sides_have_one_nesting_limit_and_an_answer_that_was_charged_has_none() -> None:
    assert decode(encode(nested(DEPTH_MAX), tagged=True)) == nested(DEPTH_MAX)
    for side in (decode, functools.partial(encode, tagged=True)):
        with pytest.raises(TooLarge):
            side(nested(DEPTH_MAX + 1))
    assert encode(nested(40)) == nested(40)


def test_a_column_is_read_by_whoever_knows_tables_and_is_an_object_to_others() -> None:
    reference = column_reference("visits", "age")
    assert decode([reference], column=lambda *parts: parts) == [("visits", "age", None)]
    assert decode([reference]) == [reference]
    with pytest.raises(TooLarge, match="at most 2 elements"):
        decode([1, 2, 3], size_max=2)


@pytest.mark.parametrize(
    "facts",
    [Bounds(0, 120), Bounds("2024-01-01", "2024-12-31"), Categories(["a", "b", None]), Categories([date(2024, 1, 1)])],
)
def test_what_is_stated_of_a_column_comes_along(facts: Bounds | Categories) -> None:
    reference = column_reference("visits", "age", facts)
    assert decode(reference, column=lambda *parts: parts) == ("visits", "age", facts)


@pytest.mark.parametrize(
    "stated", [{"bounds": [1]}, {"bounds": 3}, {"categories": "a"}, {"bounds": [0, 1], "categories": ["a"]}]
)
def test_what_cannot_be_stated_of_a_column_is_refused(stated: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        decode({"table": "visits", "column": "age", **stated}, column=lambda *parts: parts)


def test_what_is_no_date_or_nested_too_deep_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ISO 8601"):
        decode({"date": "yesterday"})
    deep: Any = 1
    for _ in range(20):
        deep = [deep]
    with pytest.raises(TooLarge):
        decode(deep)
