"""Synthetic data by the closest record, and federated updates by canary clients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit import attack
from tacit.privacy.errors import InvalidInput


def people(count: int, random: np.random.Generator) -> dict[str, list[Any]]:
    return {
        "age": random.integers(0, 90, count).tolist(),
        "income": [None if random.random() < 0.1 else one for one in random.normal(50, 20, count).tolist()],
        "job": random.choice(["nurse", "cook", "clerk"], count).tolist(),
        "ill": (random.random(count) < 0.3).tolist(),
    }


def joined(*parts: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: [one for part in parts for one in part[name]] for name in parts[0]}


def test_a_copy_of_the_real_records_violates_a_claim() -> None:
    random = np.random.default_rng(1)
    real, control = people(300, random), people(300, random)
    found = attack.run("closest_record", attack.Synthetic(real, real, control), 1.0, seed=1)
    assert found.verdict == "violates"
    noisy = {**real, "income": [None if one is None else one + random.normal() for one in real["income"]]}
    mixed = joined(noisy, people(300, random))
    assert attack.run("closest_record", attack.Synthetic(real, mixed, control), 1.0, seed=1).verdict == "violates"


@pytest.mark.parametrize("controls", [40, 300, 3_000])
def test_synthetic_records_of_independent_people_show_nothing(controls: int) -> None:
    """Each run is above 0 with probability 5 % at most; with other seeds, more than 5 of 40 in 1 of 100 tests."""
    above = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        target = attack.Synthetic(people(300, random), people(200, random), people(controls, random))
        found = attack.run("closest_record", target, 0.5, seed=seed)
        assert found.verdict in ("consistent", "underpowered")
        above += bool(found.lower_bound)
    assert above <= 2, above


def test_synthetic_data_need_the_same_columns_and_enough_records() -> None:
    few, other = {"a": [1, 2, 3]}, {"a": [4, 5, 6]}
    with pytest.raises(InvalidInput, match="same columns"):
        attack.Synthetic(few, few, {"b": [1]})
    with pytest.raises(InvalidInput, match="more real and control"):
        attack.run("closest_record", attack.Synthetic(few, few, other))
    (refused,) = attack.suite(attack.Synthetic(few, few, other), 1.0)
    assert refused.verdict == "not applicable"


@pytest.mark.parametrize("values", [[1e308, -1e308], [float("inf"), 0.0], [float("nan"), 1.0], [None, None], [3, 3]])
def test_columns_of_special_numbers_are_measured(values: list[Any]) -> None:
    column = {"a": values * 100, "b": list(range(200))}
    other = {"a": values * 100, "b": list(range(1_000, 1_200))}
    assert attack.run("closest_record", attack.Synthetic(column, column, other), 1.0, seed=1).verdict == "violates"


def updates(noise: float, random: np.random.Generator, rounds: int = 5) -> attack.Updates:
    canaries = random.normal(size=(400, 2_000))
    present = random.integers(0, 2, 400).astype(bool)
    released = (canaries / np.linalg.norm(canaries, axis=1, keepdims=True))[present].sum(axis=0)
    return attack.Updates(released + random.normal(0, noise, (rounds, 2_000)), canaries, present)


def test_updates_without_noise_violate_a_claim_and_noise_alone_shows_nothing() -> None:
    assert attack.run("update_audit", updates(0.01, np.random.default_rng(1)), 1.0, seed=1).verdict == "violates"
    above = 0
    for seed in range(40):
        found = attack.run("update_audit", updates(1e6, np.random.default_rng(seed)), (1.0, 1e-6), seed=seed)
        assert found.verdict == "consistent"
        above += bool(found.lower_bound)
    assert above <= 2, above


@pytest.mark.parametrize(
    ("rounds", "canaries", "present"),
    [
        ([[1.0, 2.0]], [[1.0]], [True]),
        ([[1.0]], [[1.0]], [True, False]),
        ([[1.0]], [[0.0]], [True]),
        ([[float("nan")]], [[1.0]], [True]),
        ([1.0], [[1.0]], [True]),
        ([["x"]], [[1.0]], [True]),
        ([[1.0]], [[1.0], [1.0, 2.0]], [True, False]),
    ],
)
def test_updates_that_make_no_sense_are_refused(rounds: Any, canaries: Any, present: Any) -> None:
    with pytest.raises(InvalidInput):
        attack.Updates(rounds, canaries, present)


@pytest.mark.parametrize("shared", [200, 100])
def test_control_records_that_were_used_are_refused(shared: int) -> None:
    """The synthetic records are the real ones; a control of real records would hide that."""
    random = np.random.default_rng(1)
    real, other = random.normal(size=(200, 3)), random.normal(size=(200, 3))
    control = np.concatenate([real[:shared], other[shared:]])
    tables = [dict(zip("abc", one.T.tolist(), strict=True)) for one in (real, real, control)]
    with pytest.raises(InvalidInput, match="among the real ones"):
        attack.Synthetic(*tables)
    attack.Synthetic(tables[0], tables[1], dict(zip("abc", other.T.tolist(), strict=True)))


def test_control_records_that_are_equal_by_chance_are_accepted() -> None:
    random = np.random.default_rng(1)
    parts = [{"sex": random.integers(0, 2, 300).tolist(), "age": random.integers(18, 60, 300).tolist()} for _ in "123"]
    attack.Synthetic(*parts)
