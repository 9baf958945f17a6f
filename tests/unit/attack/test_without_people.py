"""What is left of a finding without people: no id, secret or value of anybody, whichever attack found it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import attack
from tacit.attack.table_reconstruction import Published, PublishedTables
from tacit.privacy.errors import InvalidInput

pytest.importorskip("ortools")

PEOPLE = 12
IDS = [f"person-{7731 + index}" for index in range(PEOPLE)]
NUMBERS = [773_100_041 + index for index in range(PEOPLE)]
SECRETS = np.arange(PEOPLE) % 2 == 0
PLANTED = ("person-77", "7731", "ward-", "secret-", "entity-", "film-", "0.31415")
"""What is in the ids, quasi-identifiers, secrets and attributes of people below."""


def table(**more: Any) -> attack.Table:
    wards = [f"ward-{index}" for index in range(PEOPLE)]
    values = [f"secret-{index // 2}" for index in range(PEOPLE)]
    return attack.Table(
        {"ward": wards, "illness": values},
        quasi_identifiers=["ward"],
        sensitive="illness",
        register={"ward": wards, "name": IDS},
        identity="name",
        **more,
    )


def rows_of_people() -> attack.Table:
    films = [f"film-{index}-{item}" for index in range(PEOPLE) for item in range(3)]
    whose = [f"entity-{index}" for index in range(PEOPLE) for _ in range(3)]
    known = [name for name in IDS for _ in range(3)]
    truth = {name: f"entity-{index}" for index, name in enumerate(IDS)}
    return attack.Table(
        {"who": whose, "film": films, "stars": [3] * len(films)},
        entity="who", item="film", value="stars", truth=truth, identity="name",
        register={"name": known, "film": films, "stars": [3] * len(films)},
    )  # fmt: skip


def interface(ids: list[Any], answers: int | None = None) -> attack.QueryInterface:
    """An interface over a plain database, which refuses further questions by quoting them."""
    truth, left, connection = SECRETS[: len(ids)], [answers], duckdb.connect()
    connection.register("visits", pd.DataFrame({"id": ids, "ill": truth}))

    def ask(sql: str) -> Any:
        if left[0] is not None:
            left[0] -= 1
            if left[0] < 0:
                raise tacit.QueryRefused(f"no more answers, so none to {sql}")
        return connection.execute(sql).fetchone()[0]  # type: ignore[index]

    return attack.QueryInterface(ask, table="visits", unit="id", secret="ill", ids=ids, truth=truth)


def drawn() -> attack.QueryInterface:
    """An interface over secrets that the attack draws."""
    made = lambda secrets: lambda people: float(secrets[people].sum())  # noqa: E731
    return attack.QueryInterface(make=made, people=len(IDS))


def statistics() -> attack.Statistics:
    published = [Published("everybody", {}, 2), Published("the ill", {"illness": "secret-1"}, 1)]
    published += [Published("one ward", {"ward": "ward-1", "illness": "secret-1"}, 1)]
    domains = {"ward": ["ward-1", "ward-2"], "illness": ["secret-1", "secret-2"]}
    return attack.Statistics.of_tables(PublishedTables(2, domains, published))


def means() -> attack.Statistics:
    people = 0.31415 + np.random.default_rng(1).integers(0, 2, (40, 50))
    return attack.Statistics.of_means(people[:20].mean(0), people.mean(0), members=people[:20], outsiders=people[20:])


def audited() -> attack.Mechanism:
    return attack.Mechanism(lambda people, random: len(people) + random.laplace(), IDS, IDS[1:], samples=200)


def canaries(trainings: Any) -> attack.Model:
    scores = [0.31415 + index for index in range(40)]
    return attack.Model(scores, [index % 2 for index in range(40)], trainings=trainings)


def updates() -> attack.Updates:
    known = 0.31415 + np.eye(40)
    return attack.Updates(known[:1], known, [index % 2 for index in range(40)])


def synthetic() -> attack.Synthetic:
    records, others = ({"ward": [f"ward-{index + start}" for index in range(200)]} for start in (0, 200))
    return attack.Synthetic(records, records, others)


TARGETS: dict[str, list[Callable[[], Any]]] = {
    "linkage": [table, lambda: table(truth=IDS)],
    "attribute_linkage": [table, lambda: table(other=table())],
    "sparse_linkage": [rows_of_people],
    "single_counts": [drawn],
    "reconstruction": [lambda: interface(IDS, 60)],
    "table_reconstruction": [statistics],
    "linear_program": [lambda: interface(IDS, 30)],
    "exhaustive": [lambda: interface(IDS[:6])],
    "differencing": [lambda: interface(IDS, 21)],
    "averaging": [lambda: interface(IDS, 201)],
    "linear_sql": [lambda: interface(NUMBERS, 30)],
    "timing": [lambda: interface(IDS)],
    "errors": [lambda: interface(IDS)],
    "consistency": [lambda: interface(IDS, 3)],
    "tracing": [means],
    "floating_point": [audited],
    "mechanism_audit": [audited],
    "canary_audit": [lambda: canaries("one"), lambda: canaries("independent")],
    "gaussian_canary_audit": [lambda: canaries("one")],
    "update_audit": [updates],
    "closest_record": [synthetic],
}
SHOWN = {"linkage", "attribute_linkage", "sparse_linkage", "reconstruction", "linear_program", "differencing",
         "averaging"}  # fmt: skip
"""Attacks whose whole findings show somebody, by the records at risk or by the question that was refused."""


def test_every_attack_is_tried() -> None:
    assert TARGETS.keys() == {one.name for one in attack.attacks()}
    tried = {(name, type(make())) for name, made in TARGETS.items() for make in made}
    assert tried == {(one.name, one.target) for one in attack.attacks()}


@pytest.mark.parametrize(("name", "make"), [(name, make) for name, made in TARGETS.items() for make in made])
def test_nobody_is_in_what_is_left_of_a_finding(name: str, make: Callable[[], Any]) -> None:
    found = attack.run(name, make(), attack.Claim(1.0, 1e-6, permit="7-x"), seed=1)
    left = replace(found.without_people(), seconds=0.0)  # digits of a time could be those of an id
    if name in SHOWN:
        assert any(one in found.to_json() for one in PLANTED)
    assert [one for one in PLANTED if one in left.to_json()] == []
    assert attack.Finding.from_json(left.to_json()) == left
    kept = ("verdict", "reason", "lower_bound", "measurements", "power", "claimed", "threat_model", "series", "seed")
    assert [getattr(left, one) for one in kept] == [getattr(found, one) for one in kept]


def test_numbers_stay_in_the_details_and_whatever_may_quote_a_person_does_not() -> None:
    found = attack.run("averaging", interface(IDS, 201), 1.0, seed=1)
    assert IDS[0][:9] in found.details["refusal"]
    assert found.without_people().details == {"people": found.details["people"], "repeats": found.details["repeats"]}


@pytest.mark.parametrize(
    "change",
    [
        {"attack": 5},
        {"attack": None},
        {"confidence": "0.95"},
        {"confidence": True},
        {"seed": 1.5},
        {"seconds": float("nan")},
        {"measurements": {}},
        {"measurements": [{"name": "x", "value": "much"}]},
        {"measurements": [{"name": "x", "value": 1.0, "bounds": [0.0]}]},
        {"threat_model": {"access": "a", "knowledge": "k"}},
        {"claimed": {"epsilon": [1.0]}},
        {"power": []},
        {"series": [{"title": "t", "x": "x", "y": "y", "points": [[["a"], 1.0]]}]},
        {"worst": [5]},
        {"assumptions": [5]},
        {"details": []},
        {"verdict": "safe"},
        {"schema_version": 2},
        {"another": 1},
        {"verdict": "consistent"},
        {"verdict": "underpowered"},
        {"lower_bound": 0.1},
        {"lower_bound": -0.1},
        {"claimed": None},
        {"claimed": {"epsilon": -1.0}},
        {"claimed": {"risk": 2.0}},
        {"claimed": {"epsilon": 1.0, "delta": 1.0}},
        {"threat_model": {"access": "a", "knowledge": "k", "queries": -1}},
        {"confidence": 1.5},
        {"confidence": None},
        {"seconds": -1.0},
        {"seconds": None},
        {"details": {"person-7731 has flu": 1}},
        {"details": {"a\nb": 1}},
    ],
    ids=str,
)
def test_a_document_with_a_field_of_another_type_is_refused(change: dict[str, Any]) -> None:
    document = attack.run("linkage", table(complete_register=True), attack.Claim(risk=0.5), seed=1).to_dict()
    assert attack.Finding.from_dict(document).to_dict() == document
    with pytest.raises(InvalidInput, match="is no finding"):
        attack.Finding.from_dict(document | change)
    with pytest.raises(InvalidInput):
        attack.Finding.from_json(json.dumps([document]))


def test_nobody_is_in_what_is_left_of_a_suite_that_was_refused() -> None:
    for found in attack.suite(interface(IDS, 1), 1.0, seed=1):
        left = replace(found.without_people(), seconds=0.0)
        assert [one for one in PLANTED if one in left.to_json()] == []


TEXTS = st.text(max_size=20)
NUMBERS_OF_ALL_KINDS = st.floats(width=64)


@given(
    columns=st.lists(TEXTS, min_size=1, max_size=3, unique=True),
    value=NUMBERS_OF_ALL_KINDS,
    details=st.dictionaries(st.from_regex("[a-z_]{1,9}", fullmatch=True), NUMBERS_OF_ALL_KINDS | TEXTS, max_size=3),
    target=TEXTS,
)
def test_every_finding_is_read_as_it_was_written(
    columns: list[str], value: float, details: dict[str, Any], target: str
) -> None:
    """Names of columns hold line breaks and the like; figures are NaN and infinite."""
    rows = {name: [1, 2, 2] for name in columns}
    found = attack.run("linkage", attack.Table(rows, quasi_identifiers=columns), attack.Claim(risk=0.5), seed=1)
    figures = replace(found.measurements[0], value=value, baseline=value, bounds=(value, 1.0))
    found = replace(found, measurements=(figures,), details=details, target=target)
    for one in (found, found.without_people()):
        again = attack.Finding.from_json(one.to_json())
        assert again.to_dict() == one.to_dict()
        assert again.verdict is one.verdict


def test_details_are_named_by_identifiers() -> None:
    found = attack.run("linkage", table(), attack.Claim(risk=0.5), seed=1)
    with pytest.raises(InvalidInput, match="details"):
        replace(found, details={"person-7731 has flu": 1})


def test_a_page_shows_names_that_pictures_cannot_hold() -> None:
    """A control character in a picture ends the process of the program that draws it."""
    columns = ["\0", "a\nb", "\ud800", "\ufffe"]
    found = attack.run("linkage", attack.Table({name: [1, 2, 2] for name in columns}, quasi_identifiers=columns))
    assert found.to_html().count("<svg") == 1
