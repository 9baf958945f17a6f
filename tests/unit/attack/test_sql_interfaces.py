"""Attacks through SQL: a plain database leaks by each of them, and a curator by none within its epsilon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import attack
from tacit.attack.differencing import _pseudorandom
from tacit.attack.kit import Attack
from tacit.privacy.errors import InvalidInput

PEOPLE = 60
SECRETS = np.random.default_rng(4).integers(0, 2, PEOPLE).astype(bool)
FEW = {"exhaustive": 9, "linear_program": 16, "reconstruction": 16}
"""How many people attacks are run on that take long."""
ROWS = pd.DataFrame({"id": range(PEOPLE), "ill": SECRETS})


def interface(ask: Any, epsilon: float | None = None) -> attack.QueryInterface:
    return attack.QueryInterface(
        ask, table="visits", unit="id", secret="ill", ids=range(PEOPLE), truth=SECRETS, epsilon=epsilon
    )


@pytest.fixture
def database() -> Iterator[Any]:
    connection = duckdb.connect()
    connection.register("visits", ROWS)
    yield lambda sql: connection.execute(sql).fetchone()[0]  # type: ignore[index]
    connection.close()


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("visits", ROWS, unit="id")
        curator.set_budget("visits", epsilon=1.0, epsilon_min=1e-4)
        yield curator


@pytest.mark.parametrize("name", ["reconstruction", "differencing", "averaging", "linear_sql", "errors"])
def test_a_plain_database_gives_its_secrets_away(database: Any, name: str) -> None:
    assert attack.run(name, interface(database), 1.0, seed=1).verdict == "violates"


@pytest.mark.parametrize(
    "name", [pytest.param("reconstruction", marks=pytest.mark.soak), "differencing", "averaging", "errors"]
)
def test_a_curator_gives_away_no_more_than_its_budget(curator: tacit.Curator, name: str) -> None:
    found = attack.run(name, interface(curator, 1.0), 1.0, seed=1)
    assert found.verdict in ("consistent", "underpowered")
    assert curator.budget("visits").spent().epsilon <= 1.0 + 1e-9


def test_equivalent_questions_have_one_answer_of_a_curator(curator: tacit.Curator) -> None:
    found = attack.run("consistency", interface(curator, 1.0), seed=1)
    assert found.details["answers"]
    assert found.verdict == "not applicable"


@pytest.mark.parametrize("step", [1, 1009, 2**20, 10**9])
def test_subsets_by_arithmetic_separate_any_two_ids(step: int) -> None:
    ids = np.arange(200, dtype=np.int64) * step
    random = np.random.default_rng(1)
    masks = np.array([_pseudorandom(ids, "id", random).people for _ in range(1000)])
    assert np.abs(masks.mean(axis=0) - 0.5).max() < 0.08
    assert np.abs((masks[:, :1] == masks[:, 1:]).mean(axis=0) - 0.5).max() < 0.08  # 5 standard deviations


def test_ids_that_a_fixed_modulus_would_not_tell_apart_are_decoded() -> None:
    """Pairs of ids with equal remainders of 1009 and different secrets, behind an interface without noise."""
    ids = [*range(50), *range(1009, 1059)]
    secrets = np.arange(100) < 50
    with duckdb.connect() as connection:
        connection.register("visits", pd.DataFrame({"id": ids, "ill": secrets}))
        target = attack.QueryInterface(
            lambda sql: connection.execute(sql).fetchone()[0],  # type: ignore[index]
            table="visits", unit="id", secret="ill", ids=ids, truth=secrets,
        )  # fmt: skip
        found = attack.run("linear_sql", target, 1.0, seed=1)
    assert (found.verdict, found.measurements[0].value) == ("violates", 1.0)


@pytest.mark.parametrize("entry", [one for one in attack.attacks() if one.target is attack.QueryInterface])
def test_a_prior_is_taken_by_the_attacks_whose_baseline_it_changes(database: Any, entry: Attack) -> None:
    few = FEW.get(entry.name, PEOPLE)
    target = attack.QueryInterface(
        make=lambda _: database, people=few, table="visits", unit="id", secret="ill"
    ) if "make" in entry.needs else attack.QueryInterface(
        database, table="visits", unit="id", secret="ill", ids=range(few), truth=SECRETS[:few]
    )  # fmt: skip
    if entry.uses_prior:
        assert attack.run(entry.name, target, 1.0, 0.97, seed=1).measurements[0].baseline == 0.97
    else:
        with pytest.raises(InvalidInput, match="does not use a prior"):
            attack.run(entry.name, target, 1.0, 0.97, seed=1)


def test_times_of_a_database_are_measured(database: Any) -> None:
    assert attack.run("timing", interface(database), 8.0, seed=1).verdict in ("consistent", "underpowered")


def test_the_share_at_risk_in_a_table_is_exact() -> None:
    """12 of 1,000 records are unique, which is above a claim of 1 %, whatever an interval for a sample would say."""
    table = attack.Table({"a": [*range(12), *(99 for _ in range(988))]}, quasi_identifiers=["a"])
    assert attack.run("linkage", table, attack.Claim(risk=0.01)).verdict == "violates"
    assert attack.run("linkage", table, attack.Claim(risk=0.012)).verdict == "consistent"
    homogeneous = attack.Table(
        {"a": [0] * 6 + [1] * 94, "ill": ["yes"] * 6 + ["yes", "no"] * 47}, quasi_identifiers=["a"], sensitive="ill"
    )
    assert attack.run("attribute_linkage", homogeneous, attack.Claim(risk=0.05)).verdict == "violates"
    assert attack.run("attribute_linkage", homogeneous, attack.Claim(risk=0.06)).verdict == "consistent"


@pytest.mark.parametrize("epsilon_min", [0.0, 0.01, 0.0145])
def test_an_epsilon_that_runs_out_is_no_error_that_tells_a_secret(epsilon_min: float) -> None:
    random = np.random.default_rng(1)
    silent = attack.QueryInterface(
        make=lambda _: lambda _sql: random.normal(), people=140, table="visits", unit="id", secret="ill", epsilon=1.0,
        epsilon_min=epsilon_min,
    )  # fmt: skip
    for seed in range(4):
        found = attack.run("errors", silent, 1.0, seed=seed)
        assert found.lower_bound == 0.0
        assert set(found.details["outcomes"]) == {"answered"}


def test_an_interface_that_refuses_everything_has_no_verdict() -> None:
    def refuse(_sql: str) -> float:
        raise tacit.QueryRefused("no")

    silent = attack.QueryInterface(
        make=lambda _: refuse, people=140, table="visits", unit="id", secret="ill", epsilon=1.0
    )
    with pytest.raises(InvalidInput, match="too few"):
        attack.run("errors", silent, 1.0, seed=1)


def test_an_interface_of_sql_without_its_unit_or_secret_is_refused() -> None:
    with pytest.raises(InvalidInput, match="needs table, unit and secret"):
        attack.QueryInterface(lambda sql: 0, table="visits", truth=[True])


@pytest.mark.parametrize("name", ["reconstruction", "differencing", "averaging", "linear_sql"])
def test_people_beside_those_who_are_attacked_hide_nobody(name: str) -> None:
    others = pd.DataFrame({"id": range(PEOPLE, 2_000), "ill": [True, False] * ((2_000 - PEOPLE) // 2)})
    with duckdb.connect() as connection:
        connection.register("visits", pd.concat([ROWS, others]))
        target = interface(lambda sql: connection.execute(sql).fetchone()[0])  # type: ignore[index]
        assert attack.run(name, target, 1.0, seed=1).verdict == "violates"


def test_an_attack_that_cannot_afford_its_queries_asks_none() -> None:
    asked: list[str] = []
    target = attack.QueryInterface(
        lambda sql: asked.append(sql) or 0.0, table="visits", unit="id", secret="ill", ids=range(PEOPLE), truth=SECRETS,
        epsilon=0.1, epsilon_min=0.01,
    )  # fmt: skip
    with pytest.raises(InvalidInput, match="needs at least 31 queries, and epsilon suffices for 10"):
        attack.run("reconstruction", target, 0.1, seed=1)
    assert not asked


def test_queries_that_fail_after_their_charge_are_paid_from_the_epsilon_of_the_attack() -> None:
    asked: list[str] = []

    def fail(sql: str) -> float:
        asked.append(sql)
        raise tacit.EngineFailed("what was charged stays charged")

    target = attack.QueryInterface(
        fail, table="visits", unit="id", secret="ill", ids=range(PEOPLE), truth=SECRETS, epsilon=0.5, epsilon_min=0.01
    )
    with pytest.raises(InvalidInput, match="too few"):
        attack.run("errors", target, 0.5, seed=1)
    assert len(asked) <= 50


NAMES = [f"Person {index}" for index in range(PEOPLE)]


@pytest.mark.parametrize(
    ("name", "whole_table"),
    [
        ("linear_program", False),
        *((name, whole) for name in ("reconstruction", "averaging") for whole in (False, True)),
    ],
)
def test_ids_in_another_spelling_are_no_evidence_of_privacy(name: str, whole_table: bool) -> None:
    """The database answers exactly, about other people than the attack believes."""
    with duckdb.connect() as connection:
        connection.register("visits", ROWS.assign(id=NAMES))
        target = attack.QueryInterface(
            lambda sql: connection.execute(sql).fetchone()[0],  # type: ignore[index]
            table="visits", unit="id", secret="ill", ids=[one.upper() for one in NAMES], truth=SECRETS,
            whole_table=whole_table,
        )  # fmt: skip
        found = attack.run(name, target, 1.0, seed=1)
    assert found.verdict == "underpowered"
    assert "do not fit the truth that was handed over" in found.reason


@pytest.mark.parametrize("spelling", [str.upper, lambda one: one[7:]])
@pytest.mark.parametrize(
    "name", ["reconstruction", "linear_program", "differencing", "averaging", "exhaustive", "errors", "timing"]
)
def test_ids_of_nobody_are_no_evidence_of_privacy(name: str, spelling: Any) -> None:
    """Ids in another case, or numbers in the place of names: every count is 0."""
    few = FEW.get(name, PEOPLE)
    with duckdb.connect() as connection:
        connection.register("visits", ROWS.assign(id=NAMES))
        for ids, is_right in ((list(map(spelling, NAMES)), False), (NAMES, True)):
            target = attack.QueryInterface(
                lambda sql: connection.execute(sql).fetchone()[0],  # type: ignore[index]
                table="visits", unit="id", secret="ill", ids=ids[:few], truth=SECRETS[:few],
            )  # fmt: skip
            found = attack.run(name, target, 1.0, seed=1)
            assert found.power is not None
            assert (found.power.doubt == "") is is_right
            assert is_right or found.verdict == "underpowered"


def test_the_secrets_of_other_people_are_no_evidence_of_privacy() -> None:
    others = np.random.default_rng(9).integers(0, 2, 9).astype(bool)
    target = attack.QueryInterface(lambda mask: (others & mask).sum(), truth=np.roll(others, 4))
    assert attack.run("exhaustive", target, 0.5, seed=1).verdict == "underpowered"
    far = attack.QueryInterface(lambda mask: (SECRETS & mask).sum() + 10**6, truth=~SECRETS)
    assert attack.run("reconstruction", far, 1.0, seed=1).verdict == "underpowered"


def test_answers_with_honest_noise_fit_the_truth() -> None:
    """In 1 of 5,000 runs they would not; an answer is clamped to 0 as curators may do."""
    for name, questions in (("linear_program", 241), ("differencing", 60)):
        for seed in range(20):
            random = np.random.default_rng(seed)

            def make(secrets: Any, scale: int = questions, random: np.random.Generator = random) -> Any:
                return lambda mask: max(0.0, (secrets & mask).sum() + random.laplace(scale=scale))

            target = attack.QueryInterface(make=make, people=PEOPLE)
            found = attack.run(name, target, 1.0, seed=seed)
            assert not found.is_violation
            assert found.power is not None
            assert found.power.doubt == ""


@pytest.mark.parametrize("ids", [[0, 1, 1], ["a", "b", "a"], [1, 1.0, 2], [None, 1, 2], [float("nan"), 1, 2]])
def test_ids_that_name_nobody_or_one_person_twice_are_refused(ids: list[Any]) -> None:
    with pytest.raises(InvalidInput, match="ids must"):
        attack.QueryInterface(lambda sql: 0, table="visits", unit="id", secret="ill", ids=ids, truth=[1, 0, 1])


@pytest.mark.parametrize("answer", [float("nan"), float("inf"), None, "12", 1e300, 1j, [1]])
@pytest.mark.parametrize("name", ["reconstruction", "differencing", "linear_sql", "timing", "consistency"])
def test_answers_that_are_no_finite_numbers_have_no_verdict(name: str, answer: Any) -> None:
    with pytest.raises(InvalidInput, match="finite numbers"):
        attack.run(name, interface(lambda sql: answer), 1.0, seed=1)
    assert {one.verdict for one in attack.suite(interface(lambda sql: answer), 1.0, seed=1)} == {"not applicable"}


@pytest.mark.parametrize("shift", [-PEOPLE, -7, 2**41, 2**52, 2**62, 0.5, "x"])
def test_ids_on_which_databases_and_python_calculate_differently_are_not_attacked(shift: Any) -> None:
    ids = [f"{shift}{one}" if shift == "x" else one + shift for one in range(PEOPLE)]
    target = attack.QueryInterface(lambda sql: 0, table="visits", unit="id", secret="ill", ids=ids, truth=SECRETS)
    with pytest.raises(InvalidInput, match="linear_sql needs ids"):
        attack.run("linear_sql", target, 1.0, seed=1)
