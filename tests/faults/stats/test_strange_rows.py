"""One more row, whatever it holds, changes nothing that is not noisy: plan, cost, type of the answer, other units.

Neighbouring data differ by one unit, whose values anybody may have chosen: a date far out, a number of 400 digits, a
text among numbers. Kinds come from declared types and stated facts, so such a row is left out by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit
from tacit import stats
from tacit.stats.array_sums import ArrayRows, read_arrays
from tacit.stats.rows import Term


class FailingZone(tzinfo):
    """A time zone whose own code fails."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        raise RuntimeError("no offset")


class Failing:
    """An object that fails in every question about it, also about its class."""

    @property
    def __class__(self) -> Any:
        raise RuntimeError("no class")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no equality")

    def __hash__(self) -> int:
        raise RuntimeError("no hash")


class FailingNumber(int):
    """A whole number that cannot be converted or hashed."""

    def __hash__(self) -> int:
        raise RuntimeError("no hash")

    def __int__(self) -> int:
        raise RuntimeError("no number")


class FailingFraction(Fraction):
    """A fraction that cannot be compared, converted or hashed."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no equality")

    def __hash__(self) -> int:
        return 1

    def __float__(self) -> float:
        raise RuntimeError("no number")


def nested(depth: int) -> tuple[Any, ...]:
    """Return a tuple in a tuple and so on."""
    made: tuple[Any, ...] = ()
    for _ in range(depth):
        made = (made,)
    return made


STRANGE: dict[str, Any] = {
    "missing": None,
    "NaN": float("nan"),
    "NA": pd.NA,
    "NaT": pd.NaT,
    "not a time": np.datetime64("NaT"),
    "fraction": 2.5,
    "whole": 3,
    "huge": 10**20,
    "huger": 10**400,
    "infinite": float("inf"),
    "minus zero": -0.0,
    "tiny": 5e-324,
    "truth": True,
    "signalling NaN": Decimal("sNaN"),
    "text": "x",
    "empty text": "",
    "lone surrogate": "\ud800",
    "NUL": "a\0",
    "long text": "x" * 100_000,
    "bytes": b"x",
    "day": date(2024, 2, 3),
    "first day": date.min,
    "last day": date.max,
    "time": datetime(2024, 2, 3, 4, 5),
    "first time east": datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    "last time west": datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
    "time in UTC": datetime(2024, 2, 3, tzinfo=UTC),
    "year 20000": np.datetime64("20000-01-01"),
    "year -5": np.datetime64("-0005-01-01"),
    "nanoseconds": np.datetime64("2024-01-01T00:00:00.000000001"),
    "list": [1, 2],
    "tuple": (1, "a"),
    "array": np.zeros((2, 2)),
    "masked": np.ma.masked,
    "mapping": {"a": 1},
    "object": object(),
    "complex": 1j,
    "time span": np.timedelta64(5, "s"),
    "time span without a unit": np.timedelta64(5),
    "attoseconds": np.datetime64(-(2**62), "as"),
    "picoseconds": np.datetime64(2**62, "ps"),
    "failing zone": datetime(2024, 2, 3, tzinfo=FailingZone()),
    "failing object": Failing(),
    "failing number": FailingNumber(3),
    "failing fraction": FailingFraction(1, 2),
    "tuples in a tuple": nested(100_000),
    "failing object in a tuple": (1, Failing()),
}

MANY = 40
WHOLE = [row % 7 for row in range(MANY)]
REAL = [row / 4 for row in range(MANY)]
TEXTS = ["abc"[row % 3] for row in range(MANY)]
DAYS = [date(2024, 1, 1) + timedelta(days=row % 5) for row in range(MANY)]
TIMES = [datetime(2024, 1, 1) + timedelta(hours=row % 5) for row in range(MANY)]
TRUTHS = [row % 3 == 0 for row in range(MANY)]
DAY_ENDS = (date(2024, 1, 1), date(2024, 3, 1))
TIME_ENDS = (datetime(2024, 1, 1), datetime(2024, 3, 1))

ASKS: dict[str, tuple[list[Any], Callable[..., Any]]] = {
    "count": (WHOLE, stats.count),
    "count by text": (TEXTS, lambda v, **a: stats.count(v, by=v, keys=["a", "b"], **a)),
    "count by whole": (WHOLE, lambda v, **a: stats.count(v, by=v, keys=[1, 2], **a)),
    "count by truth": (TRUTHS, lambda v, **a: stats.count(v, by=v, keys=[True, False, None], **a)),
    "count by day": (DAYS, lambda v, **a: stats.count(v, by=v, keys=[DAYS[0], DAYS[1]], **a)),
    "count by time": (TIMES, lambda v, **a: stats.count(v, by=v, keys=[TIMES[0], TIMES[1]], **a)),
    "sum of whole": (WHOLE, lambda v, **a: stats.sum(v, bounds=(0, 7), kind="integer", **a)),
    "sum": (WHOLE, lambda v, **a: stats.sum(v, bounds=(0, 7), **a)),
    "sum of reals": (REAL, lambda v, **a: stats.sum(v, bounds=(0.0, 10.0), **a)),
    "mean": (REAL, lambda v, **a: stats.mean(v, bounds=(0, 10), **a)),
    "mean, learnt": (REAL, lambda v, **a: stats.mean(v, bounds="learn", **a)),
    "mean by text": (REAL, lambda v, **a: stats.mean(v, bounds=(0, 10), by=v, keys=["a"], **a)),
    "variance": (WHOLE, lambda v, **a: stats.variance(v, bounds=(0, 10), **a)),
    "std": (WHOLE, lambda v, **a: stats.std(v, bounds=(0, 10), **a)),
    "covariance": (WHOLE, lambda v, **a: stats.covariance(v, v, bounds=(0, 10), other_bounds=(0, 9), **a)),
    "correlation": (WHOLE, lambda v, **a: stats.correlation(v, v, bounds=(0, 10), other_bounds=(0, 9), **a)),
    "trend": (WHOLE, lambda v, **a: stats.trend(v, v, bounds=(0, 10), time_bounds=(0, 9), **a)),
    "median of whole": (WHOLE, lambda v, **a: stats.median(v, bounds=(0, 120), kind="integer", **a)),
    "median of days": (DAYS, lambda v, **a: stats.median(v, bounds=DAY_ENDS, **a)),
    "median of times": (TIMES, lambda v, **a: stats.median(v, bounds=TIME_ENDS, **a)),
    "median, learnt": (REAL, lambda v, **a: stats.median(v, bounds="learn", **a)),
    "quantiles": (REAL, lambda v, **a: stats.quantiles(v, [0.2, 0.5, 0.9], bounds=(0, 10), **a)),
    "box plot": (REAL, lambda v, **a: stats.box_plot(v, bounds=(0, 10), **a)),
    "histogram": (WHOLE, lambda v, **a: stats.histogram(v, bounds=(0, 10), **a)),
    "histogram of days": (DAYS, lambda v, **a: stats.histogram(v, edges=[*DAY_ENDS], **a)),
    "histogram of times": (TIMES, lambda v, **a: stats.histogram(v, bounds=TIME_ENDS, bins=3, **a)),
    "histogram of texts": (TEXTS, lambda v, **a: stats.histogram(v, keys=["a", "b", "a\0", None], **a)),
    "histogram of whole": (WHOLE, lambda v, **a: stats.histogram(v, keys=[0, 1, 2**63 - 1], **a)),
    "contingency": (TEXTS, lambda v, **a: stats.contingency(v, v, keys=["a", "b"], other_keys=["a", "c"], **a)),
    "cdf": (WHOLE, lambda v, **a: stats.cdf(v, bounds=(0, 10), **a)),
    "mode of keys": (TEXTS, lambda v, **a: stats.mode(v, keys=["a", "b"], **a)),
    "top of keys": (TEXTS, lambda v, **a: stats.top_k(v, 2, keys=["a", "b"], **a)),
    **{
        f"{name} of {kind}": (values, lambda v, ask=ask, kind=kind, **a: ask(v, kind=kind, **a))
        for kind, values in {
            "integer": WHOLE,
            "real": REAL,
            "text": TEXTS,
            "date": DAYS,
            "time": TIMES,
            "boolean": TRUTHS,
        }.items()
        for name, ask in {
            "mode": stats.mode,
            "top": lambda v, **a: stats.top_k(v, 2, **a),
        }.items()
    },
    "bounds": (REAL, stats.bounds),
    "bounds of whole": (WHOLE, lambda v, **a: stats.bounds(v, kind="integer", **a)),
    "t-test": (WHOLE, lambda v, **a: stats.t_test(v, bounds=(0, 10), popmean=3, **a)),
    "t-test by": (WHOLE, lambda v, **a: stats.t_test(v, bounds=(0, 10), by=v, keys=[1, 2], **a)),
    "t-test of two": (WHOLE, lambda v, **a: stats.t_test(v, [3, *v], bounds=(0, 10), **a)),
    "chi-squared": (TEXTS, lambda v, **a: stats.chi_squared(v, keys=["a", "b"], **a)),
    "chi-squared of two": (TEXTS, lambda v, **a: stats.chi_squared(v, v, keys=["a", "b"], other_keys=["b", "c"], **a)),
    "correlation test": (WHOLE, lambda v, **a: stats.correlation_test(v, v, bounds=(0, 9), other_bounds=(0, 9), **a)),
    "trend test": (WHOLE, lambda v, **a: stats.trend_test(v, v, bounds=(0, 9), time_bounds=(0, 9), **a)),
    "ranges": (WHOLE, lambda v, **a: stats.ranges(v, edges=[0, 2, 4, 8], **a)),
    "prefixes": (DAYS, lambda v, **a: stats.prefixes(v, edges=[*DAY_ENDS, date(2024, 5, 1)], **a)),
    "hierarchy": (TEXTS, lambda v, **a: stats.hierarchy(v, levels={"a": "x", "b": "x", "c": "y"}, **a)),
    "marginals": (
        TEXTS,
        lambda v, **a: stats.marginals({"one": v, "two": v}, domain={"one": ["a", "b"], "two": ["c", None]}, **a),
    ),
}


SLOW = ("MeanTest", "DifferenceTest", "TableTest", "RelationTest", "TreeQuantiles")
"""Plans whose values take long to compute from what was released."""


def seen(ask: Callable[..., Any], values: Any, *, all_of_it: bool = False) -> tuple[Any, ...]:
    """Return all of an answer that must not depend on one row: the plan, the cost, the types of what is shown."""
    budget = tacit.Budget(epsilon=100.0, delta=1e-4)
    try:
        answer = ask(values, epsilon=0.25, budget=budget)
    except tacit.TacitError as error:
        return (type(error), error.message, budget.spent())
    if all_of_it:
        str(answer.rows), answer.card, answer._repr_html_(), repr(answer)
    plan, name = answer.plan, type(answer.plan).__name__
    shown = None if name in SLOW else answer.value
    facts = (name, answer.label, answer.key_names, repr(plan.event), answer.cost, budget.spent())
    if name in ("LeadingMode", "SelectedTop"):
        return facts
    noises = [repr(part) for part in (getattr(plan, "parts", ()) or (getattr(plan, "part", None),))]
    return (*facts, noises, type(shown), np.asarray(shown).dtype.kind if name != "ListedMode" else "", np.shape(shown))


def objects(rows: list[Any]) -> Any:
    """Return rows as an array of objects."""
    made = np.empty(len(rows), dtype=object)
    for place, row in enumerate(rows):
        made[place] = row
    return made


@pytest.mark.parametrize("name", ASKS)
def test_a_strange_row_is_answered_as_an_ordinary_neighbour_is(name: str) -> None:
    values, ask = ASKS[name]
    ordinary = seen(ask, [*values, values[0]], all_of_it=True)
    assert not isinstance(ordinary[0], type), ordinary
    for row in STRANGE.values():
        assert seen(ask, [row, *values]) == ordinary, row
        assert seen(ask, objects([*values, row])) == ordinary, row


@pytest.mark.parametrize("name", ASKS)
def test_no_rows_are_answered_as_many_are(name: str) -> None:
    """How many rows there are is not public, not even whether there is one."""
    values, ask = ASKS[name]
    many = seen(ask, values)
    assert seen(ask, []) == seen(ask, values[:1]) == seen(ask, [None]) == seen(ask, objects([])) == many


def counted(units: Any, values: Any = None) -> int:
    """Return how many rows are counted, one of each unit."""
    given = np.ones(len(units)) if values is None else values
    columns, owner = read_arrays({"value": given}, units)
    return int(ArrayRows(columns, owner, 1).sums([Term()])[0])


IDS = [2**60 + place for place in range(1000)]


@pytest.mark.parametrize("form", [list, objects, lambda rows: pd.Series(rows, dtype=object)])
def test_a_strange_unit_merges_no_other_units(form: Callable[[list[Any]], Any]) -> None:
    assert counted(form(IDS)) == 1000
    for row in STRANGE.values():
        for rows in ([*IDS, row], [row, *IDS]):
            assert counted(form(rows)) in (1000, 1001)


@pytest.mark.parametrize("row", ["time span", "failing zone", "failing object", "tuples in a tuple"])
def test_what_cannot_be_read_is_no_unit(row: str) -> None:
    assert counted([STRANGE[row], *IDS]) == 1000


def test_nesting_decides_alone_whether_a_tuple_is_a_unit() -> None:
    units = [nested(depth) for depth in range(12)]
    depth_max = counted(units)
    assert 2 <= depth_max <= len(units)
    assert counted([*units, nested(1000)]) == depth_max


@pytest.mark.parametrize("unit", ["ns", "ps", "fs", "as"])
def test_times_of_any_unit_are_read(unit: str) -> None:
    values = np.array([0, -(2**62), 2**62], dtype=np.int64).view(f"datetime64[{unit}]")
    column = read_arrays({"value": values})[0]["value"]
    assert column.values.dtype == np.dtype("datetime64[us]")
    assert column.values.tolist() == values.astype("datetime64[us]").tolist()
    assert not column.missing.any()


def test_a_missing_unit_merges_no_other_units_of_frames() -> None:
    rows = [*IDS, None]
    for units in (pd.Series(rows, dtype="Int64"), pl.Series(rows, dtype=pl.Int64), pa.array(rows, pa.int64())):
        assert counted(units) == 1000
    texts = [*map(str, IDS), None]
    for units in (pd.Series(texts, dtype="string"), pl.Series(texts), pa.array(texts), pd.Series(texts)):
        assert counted(units) == 1000


def test_units_of_different_types_are_different_units() -> None:
    assert counted([1, True, "1", 1.0, np.int64(1), np.str_("1"), (1, 2), (1, 2)]) == 5
    assert counted(["a", "a\0", "\ud800", ""]) == 4
    assert counted([10**20, 10**20 + 1]) == 2


FRAMES: dict[str, tuple[Any, Any]] = {
    "pandas Int64": (pd.Series([1, 2], dtype="Int64"), pd.Series([1, 2, None], dtype="Int64")),
    "pandas Float64": (pd.Series([1, 2], dtype="Float64"), pd.Series([1, 2, None], dtype="Float64")),
    "pandas boolean": (pd.Series([True, False], dtype="boolean"), pd.Series([True, False, None], dtype="boolean")),
    "pandas string": (pd.Series(["a", "b"], dtype="string"), pd.Series(["a", "b", None], dtype="string")),
    "pandas str": (pd.Series(["a", "b"], dtype="str"), pd.Series(["a", "b", None], dtype="str")),
    "pandas time": (pd.to_datetime(pd.Series(["2024-01-01"])), pd.to_datetime(pd.Series(["2024-01-01", None]))),
    "pandas zone": (
        pd.to_datetime(pd.Series(["2024-01-01"])).dt.tz_localize("Europe/Berlin"),
        pd.to_datetime(pd.Series(["2024-01-01", None])).dt.tz_localize("Europe/Berlin"),
    ),
    "pandas arrow": (pd.Series([1], dtype="int64[pyarrow]"), pd.Series([1, None], dtype="int64[pyarrow]")),
    "pandas category": (
        pd.Series(["a", "b"], dtype="category"),
        pd.Series(["a", "b", None], dtype="category"),
    ),
    "polars whole": (pl.Series([1, 2]), pl.Series([1, 2, None])),
    "polars truth": (pl.Series([True, False]), pl.Series([True, False, None])),
    "polars text": (pl.Series(["a", "b"]), pl.Series(["a", "b", None])),
    "polars category": (pl.Series(["a"], dtype=pl.Categorical), pl.Series(["a", None], dtype=pl.Categorical)),
    "polars day": (pl.Series(DAYS), pl.Series([*DAYS, None])),
    "polars time": (pl.Series(TIMES), pl.Series([*TIMES, None])),
    "polars decimal": (pl.Series([Decimal(1)]), pl.Series([Decimal(1), None])),
    "arrow whole": (pa.array([1, 2]), pa.array([1, 2, None])),
    "arrow chunks": (pa.chunked_array([[1], [2]]), pa.chunked_array([[1], [2, None]])),
    "arrow truth": (pa.array([True]), pa.array([True, None])),
    "arrow real": (pa.array([1.5]), pa.array([1.5, None])),
    "arrow text": (pa.array(["a"]), pa.array(["a", None])),
    "arrow dictionary": (pa.array(["a"]).dictionary_encode(), pa.array(["a", None]).dictionary_encode()),
    "arrow day": (pa.array(DAYS), pa.array([*DAYS, None])),
    "arrow time": (pa.array(TIMES), pa.array([*TIMES, None])),
    "arrow decimal": (pa.array([Decimal("1.5")]), pa.array([Decimal("1.5"), None])),
    "arrow wild text": (
        pa.array(["a"]),
        pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1, 2], "i4")), pa.py_buffer(b"a\xff")),
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_typed_column_has_its_kind_whether_a_value_is_missing_or_not(name: str) -> None:
    whole, lacking = (read_arrays({"value": column})[0]["value"] for column in FRAMES[name])
    assert whole.kind is lacking.kind
    assert (whole.kind is None) == (name == "pandas category")
    assert not whole.missing.any()
    assert lacking.missing.tolist() == [False] * (len(lacking) - 1) + [True]
    assert whole.values.dtype == lacking.values.dtype


def test_types_without_a_kind_are_refused_even_if_they_are_empty() -> None:
    budget = tacit.Budget(1.0)
    for strange in (np.zeros(0, dtype=complex), np.zeros(0, dtype="m8[s]"), np.zeros(0, dtype="S1"), pa.array([[1]])):
        with pytest.raises(tacit.TacitError):
            stats.count(strange, epsilon=0.1, budget=budget)
    assert budget.spent().epsilon == 0


def test_unsigned_numbers_beyond_64_bits_are_missing_and_not_negative() -> None:
    values = np.array([5, 2**64 - 1, 2**63], dtype=np.uint64)
    answer = stats.sum(values, bounds=(-10, 10), epsilon=1000.0, budget=tacit.Budget(1e6))
    assert answer.value == 5


def test_times_beyond_the_year_9999_are_its_last_moment() -> None:
    values = np.array(["20000-01-01"] * 30 + ["2000-01-01"], dtype="datetime64[D]")
    bounds = (date(1999, 1, 1), date.max)
    answer = stats.quantile(values, 0.5, bounds=bounds, epsilon=1e5, budget=tacit.Budget(1e6))
    assert answer.value >= date(9990, 1, 1)  # a cell has four years
