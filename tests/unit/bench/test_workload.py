"""The workload benchmark: its data are what is said of them, and its figures are laid out with goals and peers."""

import numpy as np
import pytest

from bench import workload
from bench.workload import Errors


def test_the_data_are_the_same_every_time_and_keep_their_domains() -> None:
    table = workload._table()
    assert list(table) == [f"c{column}" for column in range(workload.COLUMNS)]
    for column, values in enumerate(table.values()):
        assert len(values) == workload.ROWS
        assert set(np.unique(values)) <= set(range(workload._size(column)))
    assert all((one == other).all() for one, other in zip(table.values(), workload._table().values(), strict=True))
    tables = workload._true_tables(table)
    assert len(tables) == 45
    assert {int(one.sum()) for one in tables.values()} == {workload.ROWS}
    values = workload._values()
    assert 0 <= values.min() < values.max() < workload.BINS


def test_asking_one_by_one_has_the_error_of_its_share() -> None:
    tables = {name: np.zeros((10, 10), dtype=np.int64) for name in range(5)}
    found = workload._one_by_one(tables, 20)
    assert found.squared == pytest.approx(2 * 5**2, rel=0.2)
    assert found.absolute == pytest.approx(5, rel=0.1)


def test_errors_become_ratios_with_their_goal_and_a_peer_that_is_missing_is_left_out() -> None:
    ours, alone = Errors(10.0, 2.0, 0.951), Errors(40.0, 5.0)
    lines = list(workload._lines("x", 9.0, ours, alone, None, goal=3.0))
    ratio = next(line for line in lines if line.metric == "x: squared error below one by one")
    assert ratio.value == 4.0
    assert ratio.met
    assert lines[1].peers == {"one by one": 40.0, "opendp": None}
    assert not any("below opendp" in line.metric for line in lines)
    assert any("below opendp" in line.metric for line in workload._lines("x", 9.0, ours, alone, alone, goal=None))
