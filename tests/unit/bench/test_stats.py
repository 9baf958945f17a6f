"""The benchmark of statistics: its data are the same every time, and its measures notice what is wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench import peers
from bench.statistics import coverage, errors
from bench.statistics.data import ASKED, SHAPES, TRUE, Data, made, planned, rows_of
from tacit.mechanisms.simulation import SeededSource


@pytest.mark.parametrize("shape", SHAPES)
def test_data_are_the_same_every_time_and_keep_their_bounds(shape: str) -> None:
    one, again = made(shape, 500), made(shape, 500)
    assert np.array_equal(one.values, again.values)
    assert np.array_equal(one.others, again.others)
    for values in (one.values, one.others):
        assert one.bounds[0] <= values.min() <= values.max() <= one.bounds[1]
    assert (one.values.dtype == np.int64) == (shape == "whole numbers")


@pytest.mark.parametrize("statistic", ASKED)
def test_with_next_to_no_noise_every_statistic_is_its_true_value(statistic: str) -> None:
    data = made("normal", 400)
    plan, rows = planned(statistic, data, 50_000.0), rows_of(statistic, data)
    assert plan.value(plan.measure(rows)) == pytest.approx(TRUE[statistic](data), rel=0.01, abs=0.06)


def test_sums_that_are_kept_are_those_of_the_rows() -> None:
    data = made("skewed", 300)
    plan, rows = planned("variance", data, 1.0), rows_of("variance", data)
    first, second = ([int(one) for one in plan.measure(rows, SeededSource(3))] for _ in range(2))
    assert first == second


def test_errors_are_typical_distances_in_spreads_of_the_data() -> None:
    data = Data("normal", np.array([0.0, 10.0]), np.zeros(2), (0, 10))
    assert errors.error_of("mean", data, [5.0, 10.0, 15.0]) == 1.0
    assert errors.error_of("sum", data, [10.0, 30.0, 30.0]) == 2.0
    assert errors.error_of("count", data, [2, 4]) == 0.5
    assert errors.error_of("median", data, [0.0]) == errors.LEAST


def test_intervals_hold_as_often_as_they_should_and_narrow_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    data = made("normal", 1_000)
    held = coverage._held("mean", data, 1.0, 100, math.inf, seed=1)
    assert np.mean(held) > 0.85
    plan = planned("mean", data, 1.0)
    quiet = tuple(replace(part, noise=replace(part.noise, epsilon=30)) for part in plan.parts)  # type: ignore[attr-defined]

    def half(*_: Any, **__: Any) -> Any:
        class Narrow:
            def measure(self, *given: Any) -> Any:
                return plan.measure(*given)

            def interval(self, *given: Any) -> Any:
                return replace(plan, parts=quiet).interval(*given)  # type: ignore[call-arg]

        return Narrow()

    monkeypatch.setattr(coverage, "planned", half)
    assert np.mean(coverage._held("mean", data, 1.0, 40, math.inf, seed=1)) < 0.5


def test_peers_that_are_not_installed_are_shown_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "is_installed", lambda _: False)
    shown = list(errors.measured((50,), (1.0,), 3, 1.0))
    assert len(shown) == len(errors.STATISTICS)
    assert all(set(result.peers.values()) == {None} for result in shown)


def test_peers_are_compared_over_the_data_about_which_all_have_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(name: str, *_: Any, **asked: Any) -> dict[str, Any]:
        reached = len(asked["sets"]) if name == "diffprivlib" else 1
        line = {"epsilon": 1.0, "kind": name, "statistic": "mean", "values": [1e6 if name == "opendp" else 1e3]}
        return {"answers": [{**line, "set": index} for index in range(reached)]}

    monkeypatch.setattr(peers, "run", run)
    shown = {result.metric: result for result in errors.measured((50,), (1.0,), 30, 1.0)}
    assert shown["mean, epsilon 1: error over the best peer's"].met
    data = made(SHAPES[0], 50)
    theirs = shown["mean, epsilon 1: error"].peers
    assert theirs["opendp"] == pytest.approx(errors.error_of("mean", data, [1e6]))
    assert theirs["diffprivlib"] == pytest.approx(errors.error_of("mean", data, [1e3]))
    assert theirs["opendp, n public"] is None
    assert "median, epsilon 1: error over the best peer's" not in shown
