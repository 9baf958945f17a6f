"""Tables in which a person has several rows: what is certain is compared with all worlds that agree with a table."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest

from tacit import attack
from tacit.attack import attribute_linkage
from tacit.privacy.errors import InvalidInput

RISK = attack.Claim(risk=0.1)
COLUMNS = ("age", "sex")
VALUES = {"age": ("10", "11", "20"), "sex": ("x", "y")}
MEANING: dict[Any, set[str]] = {
    **{value: {value} for values in VALUES.values() for value in values},
    "1*": {"10", "11"},
    "10-19": {"10", "11"},
    "{10, 20}": {"10", "20"},
    ">=11": {"11", "20"},
    "11-29": {"11", "20"},
    "{x, y}": {"x", "y"},
    "*": {"10", "11", "20", "x", "y"},
    None: {"10", "11", "20", "x", "y"},
}
KNOWN = ("flu", "cold")


@dataclass(frozen=True)
class Case:
    """A table, the person and the rows of each record, and the rows of people in the register."""

    whose: list[str]
    rows: list[tuple[Any, ...]]
    ill: list[Any]
    register: list[tuple[str, tuple[Any, ...]]]

    def table(self, **settings: Any) -> attack.Table:
        records = {name: [row[place] for row in self.rows] for place, name in enumerate(COLUMNS)}
        records |= {"ill": self.ill, "entity": [f"entity {one}" for one in self.whose]}
        return attack.Table(records, quasi_identifiers=COLUMNS, sensitive="ill", **settings)

    def known(self) -> dict[str, Any]:
        register = {name: [row[place] for _, row in self.register] for place, name in enumerate(COLUMNS)}
        return {"register": register | {"name": [one for one, _ in self.register]}, "identity": "name"}

    def values(self, records: list[int]) -> set[Any]:
        return {self.ill[one] for one in records} & set(KNOWN)


def agree(row: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(MEANING[cell] & MEANING[value] for cell, value in zip(row, other, strict=True))


def case_of(seed: int, *, is_vague_register: bool = False) -> Case:
    random = np.random.default_rng(seed)

    def one_of(values: Any) -> Any:
        return values[int(random.integers(len(values)))]

    def shown(name: str, value: str, is_vague: bool) -> Any:
        fitting = [cell for cell, meant in MEANING.items() if value in meant and meant & set(VALUES[name])]
        return one_of(fitting) if is_vague and random.random() < 0.5 else value

    is_vague = random.random() < 0.5
    true = [(one_of("PQST"), tuple(one_of(VALUES[name]) for name in COLUMNS)) for _ in range(random.integers(1, 6))]
    picked = [one_of(true) for _ in range(random.integers(1, 7))]
    rows = [tuple(shown(*cell, is_vague) for cell in zip(COLUMNS, row, strict=True)) for _, row in picked]
    ill = [one_of(("flu", "cold", "flu", "flu", "cold", "{flu, cold}", None)) for _ in picked]
    register = [
        (one, tuple(shown(*cell, is_vague_register) for cell in zip(COLUMNS, row, strict=True))) for one, row in true
    ]
    return Case([one for one, _ in picked], rows, ill, register)


def worlds(case: Case, groups: list[list[int]]) -> list[tuple[str, ...]]:
    """Return all ways to give groups of records to different people of the register who agree with all of them."""
    people = list(dict.fromkeys(one for one, _ in case.register))
    fitting = [
        [
            person
            for person in people
            if all(any(agree(case.rows[one], row) for name, row in case.register if name == person) for one in group)
        ]
        for group in groups
    ]
    return [world for world in product(*fitting) if len(set(world)) == len(world)]


def groups_of(case: Case, *, by_entity: bool) -> list[list[int]]:
    if not by_entity:
        return [[one] for one in range(len(case.rows))]
    return [[one for one, name in enumerate(case.whose) if name == owner] for owner in dict.fromkeys(case.whose)]


@pytest.mark.parametrize("is_vague_register", [False, True])
@pytest.mark.parametrize("by_entity", [False, True])
def test_what_is_certain_by_a_complete_register_holds_in_all_worlds(by_entity: bool, is_vague_register: bool) -> None:
    missed, judged = 0, 0
    for seed in range(300):
        case = case_of(seed, is_vague_register=is_vague_register)
        if not by_entity and len(set(case.whose)) < len(case.rows):
            continue  # without entity each record is of another person
        groups = groups_of(case, by_entity=by_entity)
        possible = worlds(case, groups)
        certain = 0
        for person in {one for one, _ in case.register}:
            held = [case.values(groups[world.index(person)]) if person in world else set() for world in possible]
            certain += bool(set.intersection(*held))
        linked = sum(len({world[place] for world in possible}) == 1 for place in range(len(groups)))
        target = case.table(**case.known(), complete_register=True, entity="entity" if by_entity else None)
        inferred = attack.run("attribute_linkage", target).lower_bound
        found = attack.run("linkage", target).lower_bound
        assert inferred is not None
        assert found is not None
        assert inferred <= certain / len(groups) + 1e-9, seed
        assert found <= linked / len(groups) + 1e-9, seed
        judged += certain
        missed += certain - round(inferred * len(groups))
    assert judged > 20
    assert missed <= judged / 50


def test_what_is_certain_without_a_register_is_what_all_candidates_have() -> None:
    found = 0
    for seed in range(300):
        case = case_of(seed)
        groups = groups_of(case, by_entity=True)
        expected = 0
        for group in groups:
            candidates = [
                other for other in groups
                if all(any(agree(case.rows[one], case.rows[another]) for another in other) for one in group)
            ]  # fmt: skip
            expected += bool(set.intersection(*(case.values(other) for other in candidates)))
        bound = attack.run("attribute_linkage", case.table(entity="entity")).lower_bound
        assert bound == pytest.approx(expected / len(groups)), seed
        found += expected
    assert found > 100


def test_the_worlds_notice_values_of_some_candidates_that_are_taken_for_those_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bug: what one candidate has is taken for certain."""

    def wrong(groups: Any) -> Any:
        found = [one for group in groups for one in group.of_some]
        return attribute_linkage._Known(right(groups).values, frozenset(found))

    right = attribute_linkage._Known.by
    monkeypatch.setattr(attribute_linkage._Known, "by", wrong)
    with pytest.raises(AssertionError):
        test_what_is_certain_by_a_complete_register_holds_in_all_worlds(True, False)


def visits(people: int) -> dict[str, list[Any]]:
    """Everybody was at two places, each of which somebody else was at, and no two people at the same ones."""
    places = [place for one in range(people) for place in (one, (one + 1) % people)]
    return {"place": places, "card": [f"c{one // 2}" for one in range(2 * people)]}


@pytest.mark.parametrize("settings", ["none", "truth", "complete"])
def test_each_value_of_a_person_who_is_alone_is_certain(settings: str) -> None:
    people = 40
    rows: dict[str, list[Any]] = {"zip": [one // 2 for one in range(2 * people)], "ill": ["flu", "cold"] * people}
    rows |= {"card": [f"c{one}" for one in rows["zip"]]}
    register = {"zip": range(people), "name": [f"n{one}" for one in range(people)]}
    more: dict[str, Any] = {} if settings == "none" else {"register": register, "identity": "name"}
    more |= {"truth": [f"n{one}" for one in rows["zip"]]} if settings == "truth" else {}
    more |= {"complete_register": True} if settings == "complete" else {}
    target = attack.Table(rows, quasi_identifiers=["zip"], sensitive="ill", entity="card", **more)
    found = attack.run("attribute_linkage", target, RISK)
    assert (found.verdict, found.lower_bound) == ("violates", 1.0)
    assert found.worst[0]["revealed"] == "cold, flu"
    if settings == "truth":  # also where the table has no pseudonyms
        alone = attack.Table(rows, quasi_identifiers=["zip"], sensitive="ill", **more)
        assert attack.run("attribute_linkage", alone, RISK).lower_bound == 1.0


@pytest.mark.parametrize("settings", ["none", "truth", "complete"])
def test_places_that_are_shared_one_by_one_identify_people_together(settings: str) -> None:
    rows = visits(40)
    more: dict[str, Any] = {}
    if settings != "none":
        more = {"register": {"place": rows["place"], "name": [f"N{one}" for one in rows["card"]]}, "identity": "name"}
        more |= {"truth": [f"N{one}" for one in rows["card"]]} if settings == "truth" else {"complete_register": True}
    together = attack.Table(rows, quasi_identifiers=["place"], entity="card", **more)
    assert attack.run("linkage", together, RISK).lower_bound == 1.0
    if settings != "complete":
        assert attack.run("linkage", attack.Table(rows, quasi_identifiers=["place"], **more), RISK).lower_bound == 0.0


def test_people_at_the_same_places_are_not_identified() -> None:
    rows = {"place": [1, 2, 1, 2, 3], "card": ["a", "a", "b", "b", "a"]}
    found = attack.run("linkage", attack.Table(rows, quasi_identifiers=["place"], entity="card"))
    assert found.lower_bound == 0.5  # everything that b did, a did as well


def test_a_row_that_only_one_person_fits_links_where_other_rows_are_not_in_the_register() -> None:
    target = attack.Table(
        {"age": [30, 31, 30], "card": ["a", "a", "b"]}, quasi_identifiers=["age"], entity="card",
        register={"age": [31, 30], "name": ["ana", "ben"]}, identity="name", truth=["ana", "ana", "ben"],
    )  # fmt: skip
    assert attack.run("linkage", target).lower_bound == 1.0


def test_many_people_with_visits_to_popular_places_are_compared_quickly() -> None:
    random, people = np.random.default_rng(1), 20_000
    rows = {"place": random.integers(0, 30, 8 * people).tolist(), "card": np.repeat(np.arange(people), 8).tolist()}
    found = attack.run("linkage", attack.Table(rows, quasi_identifiers=["place"], entity="card"))
    assert found.lower_bound is not None
    assert 0.85 < found.lower_bound < 0.95
    assert found.seconds < 20


@pytest.mark.parametrize("name", ["linkage", "attribute_linkage"])
def test_records_that_do_not_fit_their_own_people_are_refused(name: str) -> None:
    people = 20
    known = {"zip": [f"v{one}" for one in range(people)], "name": range(people)}
    rows = {"zip": [*(f"v{one} " for one in range(people - 1)), "v19"], "ill": range(people)}
    for more in ({"truth": list(range(people))}, {"complete_register": True}):
        target = attack.Table(rows, quasi_identifiers=["zip"], sensitive="ill", register=known, identity="name", **more)
        with pytest.raises(InvalidInput, match=r"only 1 of 20 records fit .* spellings"):
            attack.run(name, target, RISK)


def test_identities_are_compared_as_texts_by_both_attacks() -> None:
    target = attack.Table(
        {"zip": range(9), "ill": [f"s{one}" for one in range(9)]}, quasi_identifiers=["zip"], sensitive="ill",
        register={"zip": range(9), "name": range(9)}, identity="name", truth=[str(one) for one in range(9)],
    )  # fmt: skip
    for name in ("linkage", "attribute_linkage"):
        assert attack.run(name, target, RISK).lower_bound == 1.0


@pytest.mark.parametrize("name", ["linkage", "attribute_linkage"])
def test_more_records_than_people_of_a_complete_register_need_an_entity(name: str) -> None:
    rows = {"zip": range(80), "ill": range(80)}
    known = {"zip": range(80), "name": [one // 2 for one in range(80)]}
    target = attack.Table(
        rows, quasi_identifiers=["zip"], sensitive="ill", register=known, identity="name", complete_register=True
    )
    with pytest.raises(InvalidInput, match="entity"):
        attack.run(name, target, RISK)


@pytest.mark.parametrize("name", ["linkage", "attribute_linkage"])
def test_truth_says_who_has_several_pseudonyms_and_no_pseudonym_is_of_two_people(name: str) -> None:
    def target(pseudonyms: list[int], people: list[int]) -> attack.Table:
        rows = {"zip": range(20), "ill": range(20), "entity": pseudonyms}
        return attack.Table(
            rows, quasi_identifiers=["zip"], sensitive="ill", entity="entity", truth=people, identity="name",
            register={"zip": range(20), "name": people},
        )  # fmt: skip

    single, pairs = list(range(20)), [one // 2 for one in range(20)]
    assert attack.run(name, target(single, pairs), RISK).lower_bound == 1.0
    with pytest.raises(InvalidInput, match="contradict"):
        attack.run(name, target(pairs, single), RISK)


def test_somebody_whose_value_a_complete_register_does_not_know_may_be_anybody() -> None:
    target = attack.Table(
        {"zip": ["A"], "ill": ["flu"]}, quasi_identifiers=["zip"], sensitive="ill",
        register={"zip": ["A", None], "name": ["ana", "ben"]}, identity="name", complete_register=True,
    )  # fmt: skip
    for name in ("linkage", "attribute_linkage"):
        assert attack.run(name, target).lower_bound == 0.0


def test_two_tables_rule_out_no_value_of_somebody_with_several() -> None:
    register = {"zip": [1, 1], "name": ["ana", "ben"]}

    def bound(rows: dict[str, Any], **more: Any) -> float | None:
        other = attack.Table({"zip": [1, 1], "ill": ["flu", "hiv"]}, quasi_identifiers=["zip"], sensitive="ill")
        target = attack.Table(rows, quasi_identifiers=["zip"], sensitive="ill", other=other, **more)
        return attack.run("attribute_linkage", target).lower_bound

    rows = {"zip": [1, 1], "ill": ["flu", "cold"], "card": ["a", "b"]}
    known = {"register": register, "identity": "name", "complete_register": True}
    assert bound(rows, **known) == 1.0  # both people are in both tables, and flu alone is in both
    assert bound(rows, **known, entity="card") == 0.0
    smaller = {"zip": [1], "ill": ["flu"]}
    assert bound(smaller, **known) == 0.0  # one of them, nobody knows who
    with pytest.raises(InvalidInput, match="register"):  # nothing says who is in both
        bound(rows)


def test_truth_that_repeats_without_a_register_asks_for_the_entity() -> None:
    """As rows nobody is unique; by the truth everybody is."""
    rows = {"born": [70, 70, 71, 71]}
    table = attack.Table(rows, quasi_identifiers=["born"], truth=["Ann", "Ann", "Bob", "Bob"])
    with pytest.raises(InvalidInput, match="name it as entity"):
        attack.run("linkage", table, attack.Claim(risk=0.05))
