"""Leaks that attacks must not call consistent, and what they say where they could not have noticed one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit import attack
from tacit.attack.finding import Finding, Power, Verdict, judge
from tacit.attack.table_reconstruction import Published, PublishedTables
from tacit.privacy.errors import InvalidInput, OutOfRange, QueryRefused, WrongType


def weakly_traced(attributes: int, seed: int) -> Finding:
    random = np.random.default_rng([attributes, seed])
    shares = random.uniform(0.2, 0.8, attributes)
    people = (random.random((120, attributes)) < shares).astype(float)
    noisy = people[:60].mean(axis=0) + random.laplace(size=attributes) * attributes / 60 / 0.3
    target = attack.Statistics.of_means(noisy, shares, members=people[:60], outsiders=people[60:])
    return attack.run("tracing", target, 0.3, seed=seed)


def test_an_attack_that_refutes_no_epsilon_is_underpowered_and_its_finding_is_read_back() -> None:
    found = next(
        one
        for seed in range(60)
        if (one := weakly_traced(15, seed)).power is not None and one.power.is_noticed and not one.is_violation
    )
    assert found.power is not None
    assert found.power.least_epsilon == math.inf
    assert found.verdict is Verdict.UNDERPOWERED
    assert "no epsilon" in found.reason
    assert "no epsilon" in found.to_html()
    assert json.loads(found.to_json())["power"]["least_epsilon"] == "inf"
    assert Finding.from_json(found.to_json()).to_dict() == found.to_dict()
    assert Finding.from_json(found.to_json()).power == found.power


@pytest.mark.parametrize(
    ("least", "verdict"), [(0.09, "consistent"), (0.2, "underpowered"), (math.inf, "underpowered")]
)
def test_a_claim_of_epsilon_0_needs_an_attack_that_notices_a_small_epsilon(least: float, verdict: str) -> None:
    power = Power("a leak", 5.0, 0.0, is_noticed=True, least_epsilon=least)
    assert judge(attack.Claim(0.0), 0.0, power)[0] == judge(attack.Claim(1e-9), 0.0, power)[0] == verdict


def test_documents_that_were_written_under_earlier_rules_stay_readable() -> None:
    random = np.random.default_rng(0)
    present = random.integers(0, 2, 100).astype(bool)
    found = attack.run("canary_audit", attack.Model(np.where(present, 1.0, 0.0), present), 0.5, seed=1)
    assert found.power is not None
    accused = replace(found, power=replace(found.power, null_value=0.9))  # now not applicable
    assert Finding.from_dict(accused.to_dict()) == accused
    power = replace(found.power, least_epsilon=3.0)
    consistent = replace(found, claimed=attack.Claim(0.0), lower_bound=0.0, power=power, verdict=Verdict.CONSISTENT)
    assert Finding.from_dict(consistent.to_dict()) == consistent
    with pytest.raises(InvalidInput):
        Finding.from_dict(replace(found, verdict=Verdict.CONSISTENT).to_dict())


def test_a_claim_names_no_other_noise() -> None:
    for noise in (5, "laplace"):
        with pytest.raises(OutOfRange):
            attack.Claim(1.0, noise=noise)  # type: ignore[arg-type]


def refusing(secrets: np.ndarray[tuple[int], np.dtype[np.bool_]], ends: Sequence[Exception], others: object) -> object:
    """Return an interface that ends queries with a provocation by the first error for people with the secret."""

    def ask(sql: str) -> object:
        if "CASE" not in sql or ("LN(" in sql and others is not None):
            return int(secrets.sum()) if others is None else others
        raise ends[0] if secrets[int(re.findall(r"u = (\d+)", sql)[0])] else ends[-1]

    return ask


@pytest.mark.parametrize("others", [40, None])
@pytest.mark.parametrize(
    "ends",
    [
        (ZeroDivisionError("division by zero"), QueryRefused("not allowed")),
        (ZeroDivisionError("division by zero"), OverflowError("out of range")),
        (QueryRefused("division by zero"), QueryRefused("not allowed")),
        (ValueError("cannot cast 'x' of row 17"), ValueError("cannot read '1' of row 17")),
    ],
)
def test_another_kind_of_error_for_people_with_the_secret_is_found(ends: Sequence[Exception], others: object) -> None:
    secrets = np.arange(120) % 3 == 0
    for told, verdict in ((ends, Verdict.VIOLATES), (ends[:1], Verdict.UNDERPOWERED)):
        source = refusing(secrets, told, others)
        target = attack.QueryInterface(source, truth=secrets, table="t", unit="u", secret="s = 1")
        if others is None and verdict is Verdict.UNDERPOWERED:
            with pytest.raises(InvalidInput, match="too few"):
                attack.run("errors", target, 1.0, seed=1)
        else:
            found = attack.run("errors", target, 1.0, seed=1)
            assert found.is_violation == (verdict is Verdict.VIOLATES)


Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def loud_rounds(told: Matrix, random: np.random.Generator) -> Matrix:
    return np.vstack([told, *(told + random.normal(0, 40, told.shape) for _ in range(19))])


def shared_noise(told: Matrix, random: np.random.Generator) -> Matrix:
    noise = random.normal(0, 40, told.shape)
    return np.vstack([told + noise, noise])


UPDATES: dict[str, Callable[[Matrix, np.random.Generator], Matrix]] = {
    "one exact round among noisy ones": loud_rounds,
    "rounds that cancel": lambda told, random: np.vstack([told, -told + random.normal(0, 1e-3, told.shape)]),
    "gradients of the opposite sign": lambda told, _: -told,
    "noise that two rounds share": shared_noise,
    "the sum": lambda told, random: told + random.normal(0, 0.1, told.shape),
}


@pytest.mark.parametrize("name", UPDATES)
def test_canaries_are_found_in_whichever_rounds_tell_of_them(name: str) -> None:
    random = np.random.default_rng(5)
    canaries = random.normal(size=(400, 1500))
    canaries /= np.linalg.norm(canaries, axis=1, keepdims=True)
    present = random.integers(0, 2, 400).astype(bool)
    for told, verdict in ((present, "violates"), (random.permutation(present), "consistent")):
        rounds = UPDATES[name](canaries[told].sum(axis=0, keepdims=True), random)
        found = attack.run("update_audit", attack.Updates(rounds, canaries, present), 1.0, seed=1)
        assert found.verdict == verdict


START = datetime(2000, 1, 1, tzinfo=UTC)
CELLS: dict[str, Callable[[float], object]] = {
    "numbers as texts": lambda one: f"{one:.2f}",
    "texts with blanks": lambda one: f"  {one:.2f} ",
    "decimals": lambda one: Decimal(f"{one:.2f}"),
    "fractions": lambda one: Fraction(one),
    "dates": lambda one: (START + timedelta(round(100 * one))).date(),
    "times": lambda one: START + timedelta(one),
    "dates as texts": lambda one: (START + timedelta(round(100 * one))).date().isoformat(),
    "durations": lambda one: timedelta(one),
}


@pytest.mark.parametrize("odd", [None, "NA", 10**400, True])
@pytest.mark.parametrize("cells", CELLS)
def test_near_copies_are_found_in_columns_of_numbers_and_dates_of_any_type(cells: str, odd: object) -> None:
    values = np.arange(300.0)
    real, near, control = ({"a": [*map(CELLS[cells], (values + shift).tolist()), odd]} for shift in (0.0, 0.01, 0.5))
    found = attack.run("closest_record", attack.Synthetic(real, near, control), 1.0, seed=1)
    assert found.verdict == "violates"


def test_the_power_of_closest_record_is_that_about_copies_of_these_records() -> None:
    random = np.random.default_rng(2)
    for values, is_noticed in ((random.normal(size=4_000), True), (random.integers(0, 40, 4_000), False)):
        real, control = ({"a": part.tolist()} for part in np.split(values, 2))
        found = attack.run("closest_record", attack.Synthetic(real, {"a": [100.0]}, control), 1.0, seed=1)
        assert found.power is not None
        assert found.power.least_epsilon is not None
        assert math.isfinite(found.power.least_epsilon) == is_noticed
        assert found.verdict == ("consistent" if is_noticed else "underpowered")
        assert any("copies" in one for one in found.assumptions)


def test_an_odd_number_of_guesses_about_uneven_groups_has_its_own_baseline_and_ceiling() -> None:
    shares, found = [], None
    for seed in range(150):
        random = np.random.default_rng(seed)
        people = random.normal(size=(55, 5))
        target = attack.Statistics.of_means(
            random.normal(size=5) * 10, np.zeros(5), members=people[:50], outsiders=people[50:]
        )
        found = attack.run("tracing", target, 1e-6, seed=seed).measured("memberships_guessed_right")
        shares.append(found.value)
    assert found is not None
    assert found.baseline == pytest.approx((6 * 50 + 5 * 5) / 11 / 55)
    assert found.ceiling == pytest.approx(found.baseline, abs=1e-4)
    assert np.mean(shares) == pytest.approx(found.baseline, abs=5 * float(np.std(shares)) / math.sqrt(150))


@pytest.mark.parametrize(
    ("domain", "rules", "verdict"),
    [
        (["a"], [], "not applicable"),
        (["a", "b"], [({}, {"x": ["a"]})], "not applicable"),
        (["a", "b"], [], "violates"),
    ],
)
def test_records_that_are_certain_without_statistics_accuse_none(domain: Any, rules: Any, verdict: str) -> None:
    pytest.importorskip("ortools")
    tables = PublishedTables(2, {"x": domain}, [Published("in a", {"x": "a"}, 2)], rules)
    found = attack.run("table_reconstruction", attack.Statistics.of_tables(tables), attack.Claim(risk=0.1))
    assert found.verdict == verdict
    assert Finding.from_dict(found.to_dict()).to_dict() == found.to_dict()


def test_whole_numbers_of_other_types_are_read_back() -> None:
    table = attack.Table({"z": [1, 2]}, quasi_identifiers=["z"])
    claim = attack.Claim(risk=0.1)
    for seed in (3.0, np.float64(3), np.int64(3), Decimal(3)):
        for found in (attack.run("linkage", table, claim, seed=seed), *attack.suite(table, claim, seed=seed)):  # type: ignore[arg-type]
            assert (type(found.seed), found.seed) == (int, 3)
            assert Finding.from_json(found.to_json()).to_dict() == found.to_dict()
    published = Published("all", {}, 3, mean={"age": 1.67}, decimals=2.0)  # type: ignore[arg-type]
    assert (type(published.decimals), published.decimals) == (int, 2)
    assert type(PublishedTables(3.0, {"age": range(5)}, [published]).people) is int  # type: ignore[arg-type]


def test_numbers_that_tell_only_together_are_found_and_the_limits_of_the_search_are_stated() -> None:
    random = np.random.default_rng(3)
    signs = np.array([(-1) ** key.bit_count() for key in range(16)])  # of Thue and Morse: no line separates them

    def signed(x: int, count: int) -> object:
        key = random.integers(0, 16, count)
        return np.column_stack([key, signs[key] * (2 * x - 1) * 1_000 * random.random(count)])

    def independent(_x: int, count: int) -> object:
        return signed(1, count)

    for release, verdict in ((signed, "violates"), (independent, "consistent")):
        found = attack.run("mechanism_audit", attack.Mechanism(release, 0, 1, many=True, samples=4_000), 1.0, seed=1)
        assert found.verdict == verdict
        assert any("may go unnoticed" in one for one in found.assumptions)


class Unwritable:
    """An output without a text."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


MECHANISMS: dict[str, Callable[[], attack.Mechanism]] = {
    "inputs in the place of pairs": lambda: attack.Mechanism(lambda x: x, neighbours=[1, 2]),  # type: ignore[list-item]
    "triples": lambda: attack.Mechanism(lambda x: x, neighbours=[(1, 2, 3)]),  # type: ignore[list-item]
    "a number": lambda: attack.Mechanism(lambda x: x, neighbours=3),  # type: ignore[arg-type]
    "one output of many": lambda: attack.Mechanism(lambda _x, _count: 3, 0, 1, many=True),
    "one array of many": lambda: attack.Mechanism(lambda _x, _count: np.array(3), 0, 1, many=True),
    "outputs without a text": lambda: attack.Mechanism(lambda _x: Unwritable(), 0, 1, samples=200),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms_that_cannot_be_audited_are_refused(name: str) -> None:
    with pytest.raises(WrongType):
        attack.run("mechanism_audit", MECHANISMS[name](), 1.0, seed=1)


def test_outputs_that_hold_themselves_are_read() -> None:
    output: list[object] = [1]
    output[0:0] = [output, output]
    found = attack.run("mechanism_audit", attack.Mechanism(lambda _x: output, 0, 1, samples=200), 1.0, seed=1)
    assert not found.is_violation


def test_what_is_no_interface_is_refused() -> None:
    with pytest.raises(WrongType):
        attack.run("single_counts", attack.QueryInterface(make=lambda _secrets: None, people=5), 1.0, seed=1)
    with pytest.raises(WrongType):
        attack.QueryInterface(3, people=5)
