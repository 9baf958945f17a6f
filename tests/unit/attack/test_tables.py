"""Linkage of records, of attributes and of sparse rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tacit import attack
from tacit.attack.cells import fits, meets
from tacit.privacy.errors import InvalidInput, NotInCatalog, WrongType

PUBLISHED = {
    "zip": ["02138", "02138", "02139", "02139"],
    "born": ["1945-07-31", "1962-02-01", "1945-07-31", "1970-01-01"],
    "sex": ["M", "M", "F", "F"],
    "diagnosis": ["flu", "asthma", "flu", "measles"],
}
VOTERS = {
    "name": ["governor", "neighbour", "cousin"],
    "zip": ["02138", "02138", "02139"],
    "born": ["1945-07-31", "1950-05-05", "1945-07-31"],
    "sex": ["M", "M", "F"],
}
KNOWN = ("zip", "born", "sex")


@pytest.mark.parametrize(
    ("cell", "value", "expected"),
    [
        *((None, 3, True), ("*", "x", True), ("130**", "13053", True), ("130**", "13153", False)),
        *(
            ("130**", "1305", False),
            ("5*", 55, True),
            ("20-29", 25, True),
            ("20-29", 30, False),
            ("[20, 30)", 30, False),
        ),
        *(
            (">=65", 65, True),
            ("<18", 18, False),
            ("{a, b}", "b", True),
            ("{a, b}", "c", False),
            (3, 3, True),
            (3, 4, False),
        ),
        *(("20-29", "x", False), ("5", 5, True), (5, "5", True), ("N*", None, False), ("1*3", "153", True)),
        *(("2020-05", "2020-05", True), ("None", None, False), ("1*3", "1553", False)),
        *(("1*", "10-19", False), ("10-19", "10-19", True), ("*", "10-19", True), ("20-29", "25-34", False)),
    ],
)
def test_a_generalised_cell_fits_the_values_that_it_stands_for(cell: object, value: object, expected: bool) -> None:
    assert fits(cell, value) is expected


@pytest.mark.parametrize(
    ("cell", "other", "expected"),
    [
        *(
            ("20-29", "25-34", True),
            ("20-29", "30-39", False),
            ("[20, 30)", "[30, 40)", False),
            ("20-30", ">30", False),
        ),
        *(("<18", "17+", True), ("130**", "13053-13099", True), ("130**", "20-29", False), ("1*", "10-19", True)),
        *(("1*", "20-29", False), ("{10, 20}", "1*", True), ("{10, 20}", "3*", False), ("{10, 20}", "15-25", True)),
        *(("{a, b}", "{b, c}", True), ("{a, b}", "{c}", False), ("13*", "130**", True), ("13*", "1*", True)),
        *(("1*3", "15*", True), ("1*3", "1**", True), ("1*3", "1*4", False), ("1*3", "1***", False)),
        *(("x*", "10-19", False), ("", "{a}", True), ("25", "20-29", True), ("35", "20-29", False), (25, "2*", True)),
    ],
)
def test_two_cells_meet_if_they_can_stand_for_one_value(cell: object, other: object, expected: bool) -> None:
    assert meets(cell, other) is expected
    assert meets(other, cell) is expected


def test_people_of_overlapping_groups_are_not_told_apart() -> None:
    register = {"age": ["25-34", "20-29"], "name": ["ana", "ben"]}
    target = attack.Table(
        {"age": ["20-29", "25-34"], "ill": ["flu", "cold"]}, quasi_identifiers=["age"], sensitive="ill",
        register=register, identity="name", complete_register=True,
    )  # fmt: skip
    assert attack.run("attribute_linkage", target).lower_bound == 0.0


def test_a_record_that_one_voter_fits_is_linked_to_its_name() -> None:
    target = attack.Table(
        PUBLISHED, quasi_identifiers=KNOWN, sensitive="diagnosis", register=VOTERS, identity="name",
        truth=["governor", "somebody", "cousin", "nobody"],
    )  # fmt: skip
    found = attack.run("linkage", target, attack.Claim(risk=0.0), seed=1)
    assert found.measurements[0].value == 1.0  # of the two voters who are in the table
    assert {one["person"]: one["revealed"] for one in found.worst} == {"governor": "flu", "cousin": "flu"}
    assert found.verdict == "violates"
    assert dict(found.series[0].points) == {"zip": 2.0, "zip + born": 1.0, "zip + born + sex": 1.0}
    assert found.details["uniqueness"]["sex"] == 0.0


def test_a_suite_scores_values_by_the_identities_of_records() -> None:
    target = attack.Table(
        PUBLISHED, quasi_identifiers=KNOWN, sensitive="diagnosis", register=VOTERS, identity="name",
        truth=["governor", "somebody", "cousin", "nobody"],
    )  # fmt: skip
    found = {one.attack: one for one in attack.suite(target, attack.Claim(risk=0.5), seed=1)}
    assert set(found) == {"linkage", "attribute_linkage"}
    assert {one.name: one.value for one in found["attribute_linkage"].measurements}["values guessed right"] == 1.0


def people_of(count: int, random: np.random.Generator) -> dict[str, list[int]]:
    return {"zip": random.integers(0, 100, count).tolist(), "age": random.integers(0, 90, count).tolist()}


def test_a_register_of_other_people_shows_candidates_and_refutes_nothing() -> None:
    """No person of the register is in the table, and still every tenth record fits exactly one of them."""
    random = np.random.default_rng(1)
    published, others = people_of(2000, random), people_of(2000, random)
    ill = random.integers(0, 2, 2000).tolist()
    target = attack.Table(
        {**published, "ill": ill}, quasi_identifiers=["zip", "age"], sensitive="ill",
        register={**others, "name": range(2000)}, identity="name",
    )  # fmt: skip
    for name in ("linkage", "attribute_linkage"):
        found = attack.run(name, target, attack.Claim(risk=0.01), seed=1)
        assert (found.verdict, found.lower_bound) == ("not applicable", None)
        assert "candidates" in found.reason
        assert found.measurements[0].value > 0.05


def test_a_complete_register_makes_links_a_bound() -> None:
    random = np.random.default_rng(1)
    published, more = people_of(2000, random), people_of(500, random)
    target = attack.Table(
        {**published, "ill": random.integers(0, 2, 2000).tolist()}, quasi_identifiers=["zip", "age"], sensitive="ill",
        register={name: [*published[name], *more[name]] for name in published} | {"name": range(2500)},
        identity="name", complete_register=True,
    )  # fmt: skip
    linked = attack.run("linkage", target, attack.Claim(risk=0.01), seed=1)
    assert linked.verdict == "violates"
    inferred = attack.run("attribute_linkage", target, attack.Claim(risk=0.01), seed=1)
    assert inferred.verdict == "violates"
    assert inferred.lower_bound is not None
    assert linked.lower_bound is not None
    assert inferred.lower_bound >= linked.lower_bound  # who is linked has one value, and others may share theirs


def test_people_at_risk_are_counted_among_those_in_both_lists() -> None:
    """Of 10,000 records and as many voters 50 are of the same people, and all of these are found."""
    target = attack.Table(
        {"id": range(10_000)}, quasi_identifiers=["id"], truth=[f"x{one}" for one in range(10_000)],
        register={"id": range(9_950, 19_950), "name": [f"x{one}" for one in range(9_950, 19_950)]}, identity="name",
    )  # fmt: skip
    found = attack.run("linkage", target, attack.Claim(risk=0.01), seed=1)
    assert (found.verdict, found.lower_bound) == ("violates", 1.0)


def test_people_with_several_rows_are_counted_once() -> None:
    """Each of 1,000 patients has four equal rows: as rows nobody is unique, as people everybody is."""
    rows = {"patient": np.repeat(np.arange(1000), 4).tolist(), "born": np.repeat(np.arange(1000), 4).tolist()}
    by_rows = attack.run("linkage", attack.Table(rows, quasi_identifiers=["born"]), attack.Claim(risk=0.05))
    assert "each record is of another person" in " ".join(by_rows.assumptions)
    by_people = attack.run(
        "linkage", attack.Table(rows, quasi_identifiers=["born"], entity="patient"), attack.Claim(risk=0.05)
    )
    assert (by_people.verdict, by_people.lower_bound, by_people.assumptions) == ("violates", 1.0, ())
    assert by_people.details["people"] == 1000
    assert {one.name: one.value for one in by_people.measurements}["smallest group (k-anonymity)"] == 1
    assert len({one["born"] for one in by_people.worst}) == 5


def test_equal_rows_of_several_people_are_no_link() -> None:
    rows = {"patient": [1, 1, 2, 2, 3], "born": [70, 70, 70, 70, 71]}
    found = attack.run("linkage", attack.Table(rows, quasi_identifiers=["born"], entity="patient"))
    assert found.lower_bound == pytest.approx(1 / 3)
    assert {one.name: one.value for one in found.measurements}["share of people with a unique record"] == 1 / 3


@pytest.mark.parametrize("entity", [None, "patient"])
def test_several_records_and_entries_of_one_person_link_to_that_person(entity: str | None) -> None:
    """Ann has two equal records and two entries in the register, Bob one of each."""
    target = attack.Table(
        {"born": [70, 70, 71], "patient": [1, 1, 2]}, quasi_identifiers=["born"], entity=entity,
        truth=["Ann", "Ann", "Bob"], register={"born": [70, 70, 71], "name": ["Ann", "Ann", "Bob"]}, identity="name",
    )  # fmt: skip
    found = attack.run("linkage", target, attack.Claim(risk=0.5))
    assert (found.verdict, found.lower_bound) == ("violates", 1.0)
    assert found.details["linked"] == 2


def test_values_of_people_with_several_rows_are_counted_by_person() -> None:
    """Ann's ten visits have two diagnoses in groups of her own; ten others, alike, have one visit each."""
    rows = {
        "who": ["Ann"] * 10 + [f"x{one}" for one in range(10)],
        "age": [*range(10), *([50] * 10)],
        "ill": ["flu"] * 10 + ["flu", "hiv"] * 5,
    }
    table = attack.Table(rows, quasi_identifiers=["age"], sensitive="ill", entity="who")
    assert attack.run("attribute_linkage", table).lower_bound == pytest.approx(1 / 11)


def test_a_value_of_one_of_several_records_is_a_right_one() -> None:
    target = attack.Table(
        {"age": [30, 30, 31], "zip": [1, 2, 3], "ill": ["flu", "hiv", "flu"]}, quasi_identifiers=["age", "zip"],
        sensitive="ill", truth=["Ann", "Ann", "Bob"], identity="name",
        register={"age": [30, 31], "zip": [1, 3], "name": ["Ann", "Bob"]},
    )  # fmt: skip
    assert attack.run("attribute_linkage", target, attack.Claim(risk=0.5)).lower_bound == 1.0


def test_values_that_one_table_alone_gives_away_are_a_share_of_those_who_fit_it() -> None:
    register = {"name": ["a", "b", "c"], "q": ["a", "b", "b"]}
    other = attack.Table({"q": ["a", "b"], "s": ["x", "z"]}, quasi_identifiers=["q"], sensitive="s")
    target = attack.Table(
        {"q": ["a", "b"], "s": ["x", "y"]}, quasi_identifiers=["q"], sensitive="s", register=register, identity="name",
        other=other,
    )  # fmt: skip
    assert attack.run("attribute_linkage", target).measurements[-1].value == 1.0


def test_values_are_inferred_from_many_records_for_a_large_register() -> None:
    random, people = np.random.default_rng(1), 20_000
    columns = {"zip": random.integers(0, 1000, people), "age": random.integers(0, 90, people)}
    target = attack.Table(
        {**columns, "ill": random.integers(0, 2, people)}, quasi_identifiers=["zip", "age"], sensitive="ill",
        register={**columns, "name": range(people)}, identity="name",
    )  # fmt: skip
    assert attack.run("attribute_linkage", target).seconds < 30  # each record against each person would take hours


def test_a_person_who_fits_two_records_is_linked_to_neither() -> None:
    twice = {name: [*values, values[0]] for name, values in PUBLISHED.items()}
    target = attack.Table(twice, quasi_identifiers=KNOWN, register=VOTERS, identity="name")
    assert {one["person"] for one in attack.run("linkage", target).worst} == {"cousin"}


def test_uniqueness_is_near_what_independent_columns_predict() -> None:
    random = np.random.default_rng(1)
    people = {"a": random.integers(0, 30, 3000), "b": random.integers(0, 40, 3000), "c": random.integers(0, 2, 3000)}
    target = attack.Table(people, quasi_identifiers=["a", "b", "c"])
    unique = attack.run("linkage", target, seed=1).measurements[1]
    assert unique.predicted is not None
    assert abs(unique.value - unique.predicted) < 0.03


TWO_ANONYMOUS = {
    "age": ["5*", "5*", "3*", "3*"],
    "zip": ["130**", "130**", "130**", "130**"],
    "disease": ["heart", "cancer", "flu", "flu"],
}


def test_two_alike_with_one_disease_give_it_away_and_two_diseases_are_left_for_others() -> None:
    register = {"age": [55, 33], "zip": ["13053", "13068"], "name": ["bob", "carl"]}
    target = attack.Table(
        TWO_ANONYMOUS, quasi_identifiers=["age", "zip"], sensitive="disease", register=register, identity="name"
    )
    found = attack.run("attribute_linkage", target)
    figures = {one.name: one.value for one in found.measurements}
    assert figures["share of people with one possible value"] == 0.5
    assert figures["share of people with one of two values left"] == 0.5
    assert found.worst == ({"age": 33, "zip": "13068", "revealed": "flu"},)


def test_two_tables_about_the_same_people_leave_what_is_possible_in_both() -> None:
    register = {"age": [55], "zip": ["13053"], "name": ["bob"]}
    other = attack.Table(
        {"age": ["50-59", "50-59"], "zip": ["13***", "13***"], "disease": ["heart", "asthma"]},
        quasi_identifiers=["age", "zip"],
        sensitive="disease",
    )
    target = attack.Table(
        TWO_ANONYMOUS,
        quasi_identifiers=["age", "zip"],
        sensitive="disease",
        register=register,
        identity="name",
        other=other,
    )
    assert attack.run("attribute_linkage", target).worst[0]["revealed"] == "heart"


def ratings(people: int, known: int, wrong: int) -> attack.Table:
    """A generated table of ratings, and what an attacker knows of some people: items, of which some are wrong."""
    random = np.random.default_rng(8)
    shares = np.arange(1, 501) ** -0.7
    shares /= shares.sum()
    rows: dict[str, list[object]] = {"user": [], "film": [], "stars": [], "day": []}
    heard: dict[str, list[object]] = {"who": [], "film": [], "stars": [], "day": []}
    for user in range(people):
        films = random.choice(500, size=random.integers(15, 60), replace=False, p=shares)
        stars, days = random.integers(1, 6, len(films)), random.integers(0, 2000, len(films))
        rows["user"] += [user] * len(films)
        rows["film"] += films.tolist()
        rows["stars"] += stars.tolist()
        rows["day"] += days.tolist()
        if user < 60:
            chosen = random.permutation(len(films))[:known]
            films = films[chosen].copy()
            films[:wrong] = random.integers(0, 500, wrong)
            heard["who"] += [f"person {user}"] * known
            heard["film"] += films.tolist()
            heard["stars"] += stars[chosen].tolist()
            heard["day"] += (days[chosen] + random.integers(-14, 15, known)).tolist()
    return attack.Table(
        rows, entity="user", item="film", value="stars", when="day", register=heard, identity="who",
        truth={f"person {user}": user for user in range(60)},
    )  # fmt: skip


def test_eight_ratings_of_which_two_are_wrong_identify_nearly_everybody() -> None:
    found = attack.run("sparse_linkage", ratings(1000, 8, 2))
    assert found.measurements[0].value >= 0.95


def baskets(people: int, entities: int, *, is_copy: bool) -> tuple[dict[str, list[object]], dict[str, list[object]]]:
    """Items of entities without values or times, and of people: the same ones, or others that tell nothing."""
    random = np.random.default_rng(5)
    rows = [(one, int(item)) for one in range(entities) for item in random.choice(300, 20, replace=False)]
    other = [(one, int(item)) for one in range(people) for item in random.choice(300, 5, replace=False)]
    known = rows if is_copy else other
    return (
        {"who": [one for one, _ in rows], "item": [item for _, item in rows]},
        {"name": [f"p{one}" for one, _ in known], "item": [item for _, item in known]},
    )


def test_items_alone_identify_who_has_them() -> None:
    published, known = baskets(200, 200, is_copy=True)
    target = attack.Table(
        published, entity="who", item="item", register=known, identity="name",
        truth={f"p{one}": one for one in range(200)},
    )  # fmt: skip
    found = attack.run("sparse_linkage", target, attack.Claim(risk=0.01), seed=1)
    assert found.verdict == "violates"
    assert found.measurements[0].value > 0.95


@pytest.mark.parametrize("truth", [{f"q{one}": one for one in range(9)}, {f"p{one}": f"e{one}" for one in range(9)}])
def test_a_truth_that_names_nobody_who_is_there_is_refused(truth: dict[str, object]) -> None:
    published, known = baskets(9, 9, is_copy=True)
    target = attack.Table(published, entity="who", item="item", register=known, identity="name", truth=truth)
    with pytest.raises(InvalidInput, match="truth"):
        attack.run("sparse_linkage", target, attack.Claim(risk=0.01))


@pytest.mark.parametrize("entities", [5, 10, 50])
def test_right_names_by_chance_identify_nobody(entities: int) -> None:
    published, known = baskets(500, entities, is_copy=False)
    target = attack.Table(
        published, entity="who", item="item", register=known, identity="name",
        truth={f"p{one}": one % entities for one in range(500)},
    )  # fmt: skip
    found = attack.run("sparse_linkage", target, attack.Claim(risk=0.01), seed=1)
    assert not found.is_violation
    assert found.power is not None
    assert found.power.null_value == 0.0


def test_a_scoreboard_that_would_not_know_a_copy_is_underpowered() -> None:
    """Everybody has the same items, so that not even a copy of the rows stands out."""
    rows = {"who": [one for one in range(60) for _ in range(3)], "item": [0, 1, 2] * 60}
    known = {"name": [f"p{one}" for one in range(60) for _ in range(3)], "item": [0, 1, 2] * 60}
    truth = {f"p{one}": one for one in range(60)}
    target = attack.Table(rows, entity="who", item="item", register=known, identity="name", truth=truth)
    assert attack.run("sparse_linkage", target, attack.Claim(risk=0.01), seed=1).verdict == "underpowered"


def test_the_scoreboard_abstains_where_it_knows_nothing_and_is_right_where_it_names_somebody() -> None:
    found = attack.run("sparse_linkage", ratings(1000, 4, 4))
    figures = {one.name: one.value for one in found.measurements}
    assert figures["share of people identified"] <= 0.1
    assert figures["share abstained from"] >= 0.3


@pytest.mark.parametrize("cell", ["*", "", None, "?", float("nan"), "{flu, cold}", "f*"])
def test_a_suppressed_or_generalised_value_is_not_certain(cell: object) -> None:
    columns = {"zip": ["02138"] * 4 + ["02139"] * 2, "ill": [cell] * 4 + ["flu", "cold"]}
    for register in (None, {"zip": ["02138", "02139"], "name": ["ana", "ben"]}):
        target = attack.Table(columns, quasi_identifiers=["zip"], sensitive="ill", register=register, identity="name")
        found = attack.run("attribute_linkage", target, attack.Claim(risk=0.0))
        assert found.measurements[0].value == 0.0
        assert not found.worst
        assert found.measurements[2].value <= 1.0


def test_a_list_of_one_value_and_what_two_generalised_values_share_are_certain() -> None:
    alone = attack.Table({"zip": [1, 1], "ill": ["{flu}", "flu"]}, quasi_identifiers=["zip"], sensitive="ill")
    assert attack.run("attribute_linkage", alone).lower_bound == 1.0
    other = attack.Table({"zip": [1], "ill": ["{flu, cold}"]}, quasi_identifiers=["zip"], sensitive="ill")
    for cell, certain in (("{flu, asthma}", 1.0), ("{flu, cold}", 0.0), ("*", 0.0), ("30-39", 0.0)):
        target = attack.Table(
            {"zip": [1], "ill": [cell]}, quasi_identifiers=["zip"], sensitive="ill", other=other,
            register={"zip": [1], "name": ["ana"]}, identity="name",
        )  # fmt: skip
        if cell == "30-39":
            with pytest.raises(InvalidInput):
                attack.run("attribute_linkage", target)
        else:
            assert attack.run("attribute_linkage", target).measurements[0].value == certain


def test_a_record_with_a_missing_value_is_not_that_of_the_person_whose_value_is_missing() -> None:
    register = {"zip": ["", "02138", "02139"], "name": ["ana", "ben", "cem"]}
    target = attack.Table({"zip": ["", "02138"]}, quasi_identifiers=["zip"], register=register, identity="name")
    assert [one["person"] for one in attack.run("linkage", target).worst] == ["ben"]
    alone = attack.Table({"zip": ["", "02138", "02139"]}, quasi_identifiers=["zip"])
    assert {one["zip"] for one in attack.run("linkage", alone).worst} == {"02138", "02139"}
    values = attack.Table(
        {"zip": ["", "02138"], "ill": ["flu", "cold"]}, quasi_identifiers=["zip"], sensitive="ill", register=register,
        identity="name",
    )  # fmt: skip
    assert [one["zip"] for one in attack.run("attribute_linkage", values).worst] == ["02139"]


def test_missing_identities_are_nobody() -> None:
    linked = attack.Table(
        {"zip": ["1", "2"]}, quasi_identifiers=["zip"], register={"zip": ["1", "2"], "name": [None, "ben"]},
        identity="name", truth=[None, "ben"],
    )  # fmt: skip
    found = attack.run("linkage", linked)
    assert found.lower_bound == 1.0  # of ben, who alone has a name
    assert {one.name: one.value for one in found.measurements}["links that are right"] == 0.5


@pytest.mark.parametrize("nobody", [None, "", float("nan")])
def test_rows_without_an_entity_or_a_person_identify_nobody(nobody: object) -> None:
    published = {"who": [nobody] * 3 + ["x"] * 3 + ["y"] * 3, "film": [1, 2, 3, 4, 5, 6, 7, 8, 9]}
    known = {"name": ["ana"] * 3 + [nobody] * 3, "film": [1, 2, 3, 4, 5, 6]}
    target = attack.Table(
        {**published, "stars": [3] * 9}, entity="who", item="film", value="stars",
        register={**known, "stars": [3] * 6}, identity="name", truth={"ana": "y"},
    )  # fmt: skip
    found = attack.run("sparse_linkage", target)
    assert found.details["entities"] == 2
    assert found.details["people"] == 1
    assert found.measurements[0].value == found.measurements[3].value == 0.0


def test_columns_that_do_not_exist_and_registers_without_names_are_refused() -> None:
    with pytest.raises(NotInCatalog, match="did you mean zip"):
        attack.Table(PUBLISHED, quasi_identifiers=["zipp"])
    with pytest.raises(InvalidInput, match="identity"):
        attack.run("linkage", attack.Table(PUBLISHED, quasi_identifiers=KNOWN, register=VOTERS))
    with pytest.raises(InvalidInput, match="needs sensitive"):
        attack.run("attribute_linkage", attack.Table(PUBLISHED, quasi_identifiers=KNOWN))


@pytest.mark.parametrize("column", ["zip", "ill", "who"])
def test_cells_that_are_lists_or_sets_are_refused(column: str) -> None:
    rows: dict[str, list[object]] = {"zip": [1, 2], "ill": [1, 2], "who": [1, 2]}
    with pytest.raises(WrongType, match=f"{column} must hold single values"):
        attack.Table(rows | {column: [[1], {2}]}, quasi_identifiers=["zip"], sensitive="ill", entity="who")
    with pytest.raises(WrongType, match="truth must hold single values"):
        attack.Table(rows, quasi_identifiers=["zip"], register=rows, identity="who", truth=[[1], [2]])


def test_columns_may_be_named_by_numbers() -> None:
    columns: dict[object, object] = {1: [1, 2], 2: ["flu", "cold"]}
    target = attack.Table(columns, quasi_identifiers=[1], sensitive=2)  # type: ignore[list-item, arg-type]
    assert attack.run("attribute_linkage", target).lower_bound == 1.0


def test_values_and_times_of_sparse_rows_are_numbers_dates_or_missing() -> None:
    def target(**columns: Sequence[object]) -> attack.Table:
        known = {name: [3, 3] if name == "stars" else ["2020-01-01", "2020-01-02"] for name in columns}
        return attack.Table(
            {"who": ["a", "b"], "film": [1, 2], **columns}, entity="who", item="film", identity="name",
            value="stars" if "stars" in columns else None, when="day" if "day" in columns else None,
            register={"name": ["A", "B"], "film": [1, 2], **known}, truth={"A": "a", "B": "b"},
        )  # fmt: skip

    for good in (["?", ""], [None, "3"], [3, 4.0]):
        assert attack.run("sparse_linkage", target(stars=good)).details["people"] == 2
    assert attack.run("sparse_linkage", target(day=["2020-01-01", "?"])).details["people"] == 2
    for name, bad in (("stars", "x"), ("stars", "inf"), ("day", "yesterday")):
        with pytest.raises(WrongType, match="value" if name == "stars" else "when"):
            attack.run("sparse_linkage", target(**{name: [bad, None]}))
