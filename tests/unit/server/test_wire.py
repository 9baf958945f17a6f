"""Values as JSON has them, and back."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

from tacit.privacy.errors import InvalidInput, TooLarge
from tacit.server.wire import kind_of, read, written


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
    assert json.dumps(written(value), allow_nan=False) == text


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
    assert read(asked) == {
        "a": [date(2024, 1, 31), "2024-01-31"],
        "b": datetime(2024, 1, 31, 12),
        "c": {"date": "x", "d": 1},
    }


def test_what_is_no_date_or_nested_too_deep_is_refused() -> None:
    with pytest.raises(InvalidInput, match="ISO 8601"):
        read({"date": "yesterday"})
    deep: Any = 1
    for _ in range(20):
        deep = [deep]
    with pytest.raises(TooLarge):
        read(deep)
