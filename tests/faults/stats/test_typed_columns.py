"""One row more does not change how the other rows of a typed column are read, and is never refused by its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tacit
from tacit.privacy.errors import TooWide
from tacit.privacy.tables import Kind
from tacit.stats.column_reader import cast_column, read_column, unit_codes
from tacit.stats.rows import EDGES_MAX, Cut

DAY_MS = 86_400_000
IDS = [2**53 + number for number in range(2_000)]


def _date64(values: list[int]) -> Any:
    return pa.Array.from_buffers(pa.date64(), len(values), [None, pa.py_buffer(np.array(values, "<i8").tobytes())])


def _arrow_texts(values: list[bytes]) -> Any:
    ends = np.cumsum([0, *map(len, values)]).astype("<i4").tobytes()
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])


def _pandas_texts(values: list[bytes]) -> Any:
    texts = _arrow_texts(values).cast(pa.large_binary()).view(pa.large_string())
    return pd.Series(pd.arrays.ArrowStringArray(pa.chunked_array([texts])))


def _categories(values: list[Any]) -> Any:
    return pd.Series(values, dtype=object).astype("category")


class Hostile(float):
    def __float__(self) -> float:
        raise ValueError("this one")


@pytest.mark.parametrize(
    ("make", "rows", "more", "kind"),
    [
        (_date64, [DAY_MS, 2 * DAY_MS], [3 * DAY_MS + 5], Kind.DATE),
        (_date64, [DAY_MS, 2 * DAY_MS], [2**62], Kind.DATE),
        (_arrow_texts, [b"a", b"b"], [b"\xff"], Kind.TEXT),
        (_pandas_texts, [b"a", b"b"], [b"\xff"], Kind.TEXT),
        (_categories, IDS, [None], Kind.INTEGER),
        (lambda values: pd.Categorical(values), IDS, [None], Kind.INTEGER),
        (lambda values: pd.CategoricalIndex(values), IDS, [None], Kind.INTEGER),
        (list, [1.0, 2.5], [Hostile(3)], Kind.REAL),
    ],
)
def test_a_row_more_changes_nothing_about_the_others(
    make: Callable[[list[Any]], Any], rows: list[Any], more: list[Any], kind: Kind
) -> None:
    before, missing_before = cast_column("x", read_column("x", make(rows)), kind)
    after, missing_after = cast_column("x", read_column("x", make(rows + more)), kind)
    assert not missing_before.any()
    assert after[: len(rows)].tolist() == before.tolist()
    assert missing_after[: len(rows)].tolist() == missing_before.tolist()


def test_a_missing_category_merges_no_units() -> None:
    codes = unit_codes(read_column("unit", _categories([*IDS, None])))
    assert len(set(codes[:-1].tolist())) == len(IDS)
    assert codes[-1] == -1


def test_values_of_date64_are_their_days() -> None:
    found, _ = cast_column("x", read_column("x", _date64([0, 3 * DAY_MS + 5, -1])), Kind.DATE)
    assert found.astype("datetime64[D]").astype(str).tolist() == ["1970-01-01", "1970-01-04", "1969-12-31"]


@pytest.mark.parametrize("step", [8e304, 5e-324], ids=["beyond doubles", "below doubles"])
def test_many_edges_over_a_range_that_no_double_holds_are_refused(step: float) -> None:
    edges = tuple((number - EDGES_MAX // 2) * step for number in range(EDGES_MAX + 2))
    with pytest.raises(TooWide):
        Cut("x", edges=edges)
    Cut("x", edges=edges[:EDGES_MAX])


def test_a_histogram_of_too_wide_edges_is_refused_before_the_charge() -> None:
    budget = tacit.Budget(epsilon=1.0)
    with pytest.raises(TooWide):
        tacit.stats.histogram([1.0], edges=[(i - 2500) * 4e304 for i in range(5001)], epsilon=0.5, budget=budget)
    assert budget.spent().epsilon == 0
