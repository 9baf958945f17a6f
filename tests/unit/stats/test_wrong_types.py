"""What cannot be used is refused with a code, whatever it is: a server passes on what it was sent."""

from typing import Any

import pytest

from tacit import Budget, Categories, stats
from tacit.privacy.errors import EmptyInput, WrongType

VALUES = [1, 2, 3]
ASKED: dict[str, Any] = {"epsilon": 1.0, "rows_per_unit": 1, "budget": Budget(10.0)}


def test_keys_that_are_no_list_are_refused() -> None:
    with pytest.raises(WrongType, match="list of values"):
        stats.chi_squared(VALUES, keys=True, **ASKED)
    with pytest.raises(WrongType, match="keys must be a list"):
        stats.count(VALUES, keys=True, **ASKED)
    with pytest.raises(WrongType, match="not one int"):
        Categories(7)  # type: ignore[arg-type]


def test_a_second_column_that_is_missing_is_asked_for() -> None:
    with pytest.raises(EmptyInput, match="its other values"):
        stats.correlation(VALUES, None, bounds=(0, 3), other_bounds=(0, 3), **ASKED)
    with pytest.raises(EmptyInput, match="its value values"):
        stats.contingency(None, VALUES, **ASKED)


@pytest.mark.parametrize("statistic", [stats.ranges, stats.prefixes])
def test_a_column_is_called_by_a_text(statistic: Any) -> None:
    with pytest.raises(WrongType, match="must be a text"):
        statistic(VALUES, edges=[0, 2, 4], name=[], **ASKED)


def test_levels_that_are_no_list_are_refused() -> None:
    with pytest.raises(WrongType, match="levels"):
        stats.hierarchy(VALUES, levels=None, edges=[0, 2, 4], **ASKED)
