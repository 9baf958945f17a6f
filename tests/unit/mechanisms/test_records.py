"""Each record is read on its own: no record changes what is read of another, whatever holds them."""

from array import array
from collections import Counter, UserList, deque
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from tacit.mechanisms import RandomizedResponse, SmoothMedian, StableMode, SubsampleAggregate
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.errors import WrongType

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

RECORDS = [1] * 200
READ: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
    "UserList": UserList,
    "object array": lambda records: np.array([*records, None], dtype=object)[:-1],
}
REFUSED: dict[str, Callable[[list[Any]], Any]] = {
    "pandas series": pandas.Series,
    "pandas Int64": lambda records: pandas.Series(records, dtype="Int64" if records == RECORDS else None),
    "pandas index": pandas.Index,
    "pandas frame": lambda records: pandas.DataFrame({"one": records}),
    "polars series": lambda records: polars.Series(records, strict=False),
    "polars frame": lambda records: polars.DataFrame({"one": records}, strict=False),
    "arrow array": lambda records: pyarrow.array([*map(float, records[:-1]), records[-1]]),
    "dict": lambda records: dict(enumerate(records)),
    "set": lambda records: {*range(len(records)), *records},
    "text": lambda records: "".join(map(str, records)),
    "bytes": lambda records: bytes(len(records)),
}


def estimates(records: Any, estimate: Callable[[Any], Any]) -> list[float]:
    """Return the blocks' estimates, of which the private median is then taken."""
    seen: list[list[float]] = []

    def released(self: SmoothMedian, values: Any, *, source: Any) -> float:
        seen.append(np.asarray(values).tolist())
        return 0.0

    with patch.object(SmoothMedian, "release", released):
        SubsampleAggregate(1, 0, 1, 11).release(records, estimate, source=SeededSource(5))
    return seen[0]


def share_of_odd_numbers(block: Any) -> float:
    return float(np.mean(block & 1))


@pytest.mark.parametrize("other", [None, 1.5, "x", 2**80, [1, 2], np.ma.masked], ids=repr)
@pytest.mark.parametrize("held", READ)
def test_a_record_of_another_type_moves_one_estimate(held: str, other: Any) -> None:
    one, two = (estimates(READ[held]([*RECORDS[:-1], last]), share_of_odd_numbers) for last in (1, other))
    assert one == [1.0] * 11
    assert sum(left != right for left, right in zip(one, two, strict=True)) <= 1


@pytest.mark.parametrize("held", REFUSED)
def test_a_container_that_writes_records_by_one_another_is_refused_whatever_it_holds(held: str) -> None:
    for last in (1, None, 1.5):
        with pytest.raises(WrongType, match="records are a list or a numpy array"):
            estimates(REFUSED[held]([*RECORDS[:-1], last]), share_of_odd_numbers)


def test_the_longest_text_does_not_show_in_the_type_of_another_block() -> None:
    short = np.array(["a"] * 200)
    long = np.array(["a"] * 199 + ["a" * 99])
    one, two = (estimates(records, lambda block: block.dtype.itemsize / 1000) for records in (short, long))
    assert sum(left != right for left, right in zip(one, two, strict=True)) == 1


def test_arrays_are_read_by_their_declared_dtype() -> None:
    for records in (np.ones(200, dtype=np.int32), array("q", RECORDS), range(1, 401, 2)):
        assert estimates(records, share_of_odd_numbers) == [1.0] * 11
    assert estimates(np.ones((200, 3)), lambda block: block.shape[1] / 10) == [0.3] * 11


@pytest.mark.parametrize("estimate", [None, "mean", 3], ids=repr)
def test_an_estimate_that_is_no_function_is_refused_whatever_the_records(estimate: Any) -> None:
    with pytest.raises(WrongType, match="estimate is a function"):
        SubsampleAggregate(1, 0, 1, 11).release(RECORDS, estimate)


@pytest.mark.parametrize("held", [held for held in REFUSED if held not in {"set", "text", "bytes"}])
def test_the_mode_refuses_columns_of_which_one_null_rewrites_every_value(held: str) -> None:
    for records in (RECORDS, [*RECORDS[:-1], None]):
        with pytest.raises(WrongType, match="values are a list or a numpy array"):
            StableMode(5, 0.01).release(REFUSED[held](records))


def test_the_mode_is_still_of_anything_that_can_be_gone_through() -> None:
    for values in (iter("aab" * 99), Counter(a=99).elements(), deque("a" * 99), np.array(["a"] * 99)):
        assert StableMode(5, 0.01).release(values) == "a"


def test_one_answer_does_not_change_the_kind_of_the_other_reports() -> None:
    response = RandomizedResponse(1.0)
    kinds = {response.release(answers).dtype for answers in ([True, False, True], [True, 1, True], [1, 0, 1])}
    assert kinds == {np.dtype(np.int64)}
    assert response.release(np.array([True, False])).dtype == np.bool_
    assert isinstance(response.release(True), bool)
