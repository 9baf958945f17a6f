"""Databases from published statistics, and secrets from counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bench.attacks.data import BLOCK
from tacit import attack
from tacit.attack import table_reconstruction
from tacit.attack.html_report import figures
from tacit.attack.linear_reconstruction import Subsets, decode, predicted_recovery
from tacit.attack.table_reconstruction import Published, PublishedTables, conflict, databases
from tacit.privacy.errors import InvalidInput

pytest.importorskip("ortools")


@pytest.mark.parametrize(
    ("left_out", "count", "certain"),
    [((), 1, 7), (("4A",), 2, None), (("2A",), 1, 7), (("2B",), 1, 7), (("2A", "2B"), 8, 4), (("3B",), 22, 1)],
)
def test_the_published_block_has_as_many_databases_as_its_authors_found(
    left_out: tuple[str, ...], count: int, certain: int | None
) -> None:
    found = databases(BLOCK.without(left_out))
    assert found.is_complete
    assert len(found.found) == count
    if certain is not None:
        assert found.certain.total() == certain


def test_records_that_are_in_all_databases_are_named() -> None:
    found = databases(BLOCK.without(["2A", "2B"])).certain
    assert set(found) == {(8, "F", "B", "S"), (36, "F", "B", "M"), (66, "F", "B", "M"), (84, "M", "B", "M")}


def test_statistics_that_contradict_one_another_are_named() -> None:
    wrong = PublishedTables(7, BLOCK.attributes, [*BLOCK.statistics, Published("5X", {"sex": "F"}, 5)], BLOCK.rules)
    assert set(conflict(wrong)) >= {"5X"}
    assert len(conflict(wrong)) == 2
    found = attack.run("table_reconstruction", attack.Statistics.of_tables(wrong))
    assert found.details["contradicting_statistics"] == conflict(wrong)
    assert found.verdict == "not applicable"


def test_intervals_in_the_place_of_counts_leave_more_databases() -> None:
    small = {"sex": ["F", "M"], "ill": [0, 1]}
    exact = PublishedTables(
        4, small, [Published("ill women", {"sex": "F", "ill": 1}, 2), Published("women", {"sex": "F"}, 2)]
    )
    noisy = PublishedTables(
        4, small, [Published("ill women", {"sex": "F", "ill": 1}, (0, 4)), Published("women", {"sex": "F"}, (1, 3))]
    )
    assert len(databases(exact).found) < len(databases(noisy).found)


def test_a_block_that_is_known_whole_violates_a_claim_of_no_risk() -> None:
    found = attack.run("table_reconstruction", attack.Statistics.of_tables(BLOCK), attack.Claim(risk=0.0))
    assert found.verdict == "violates"
    assert found.lower_bound == 1.0
    assert len(found.worst) == 7
    assert dict(found.series[0].points)["3B"] == 22


@pytest.mark.parametrize(
    "make",
    [
        lambda: PublishedTables(0, {"a": [1]}, [Published("x")]),
        lambda: PublishedTables(3, {"a": [1]}, []),
        lambda: PublishedTables(3, {"a": [1]}, [Published("x", {"b": 1})]),
        lambda: PublishedTables(3, {"a": ["u"]}, [Published("x", {}, 3, {"a": 1.0})]),
        lambda: Published("x", {}, (0, 2), {"a": 1.0}),
        lambda: databases(PublishedTables(3, {"a": [1]}, [Published("x", {"a": 2}, 3)])),
    ],
)
def test_tables_that_make_no_sense_are_refused(make: object) -> None:
    with pytest.raises(InvalidInput):
        make()  # type: ignore[operator]


AGES = {"age": range(100), "sex": ["F", "M"]}


@pytest.mark.parametrize(
    "make",
    [
        *(
            lambda count=count: Published("x", {}, count)  # type: ignore[misc]
            for count in (2.5, "x", 10**23, -1, (3, 0), [3, 0], (1, 2, 3), ("a", 2), float("nan"), True)
        ),
        *(
            lambda mean=mean: Published("x", {}, 3, {"age": mean})  # type: ignore[misc]
            for mean in (float("inf"), float("nan"), "x", None, 1e300, (3.0, 1.0), (1.0,), ("a", "b"))
        ),
        *(
            lambda median=median: Published("x", {}, 3, {}, {"age": median})  # type: ignore[misc]
            for median in (float("inf"), float("nan"), "x", None, 1e300, (1, 2), 30.3)
        ),
        lambda: Published("x", {}, 0, {"age": 3}),
        lambda: Published("x", {}, 3, {"age": 3}, decimals=-1),
        lambda: Published("x", {}, 3, {"age": 3.3}, decimals=2),
        lambda: Published(3),  # type: ignore[arg-type]
        lambda: Published("x", [("age", 3)]),  # type: ignore[arg-type]
        *(
            lambda wanted=wanted: PublishedTables(3, AGES, [Published("x", {"age": wanted}, 1)])  # type: ignore[misc]
            for wanted in (("x", 5), (50, 20), (1, 2, 3), (float("nan"), None))
        ),
        *(
            lambda domain=domain: PublishedTables(3, {"a": domain}, [Published("x", {}, 1)])  # type: ignore[misc]
            for domain in ([], range(5, 2), range(10**12), range(10**30), range(9, 0, -1), "FM", 5, ["a", "a"])
        ),
        lambda: PublishedTables(3, {str(one): range(10_000) for one in range(5)}, [Published("x")]),
        lambda: PublishedTables(3, AGES, [{"name": "x"}]),  # type: ignore[list-item]
        lambda: PublishedTables(3, AGES, [Published("x")], [({"age": 3},)]),  # type: ignore[list-item]
        lambda: PublishedTables("x", AGES, [Published("x")]),  # type: ignore[arg-type]
    ],
)
def test_malformed_statistics_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        make()


def test_a_search_that_stopped_says_at_least_and_calls_no_record_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_reconstruction, "databases", lambda tables, most=3: databases(tables, most))
    ages = PublishedTables(2, {"age": range(9)}, [Published("all", {}, 2), Published("young", {"age": (0, 1)}, 1)])
    found = attack.run("table_reconstruction", attack.Statistics.of_tables(ages), attack.Claim(risk=0.1))
    count, certain = found.measurements
    assert figures(count) == "at least 3 (search stopped)"
    assert figures(certain) == "none, baseline 0"
    assert (found.lower_bound, found.worst) == (None, ())
    assert "search stopped after 3 databases" in found.reason
    assert "at least 3 (search stopped)" in found.to_html()
    assert attack.Finding.from_json(found.to_json()).measurements[0].is_stopped


def test_statistics_that_contradict_one_another_are_called_so() -> None:
    ages = PublishedTables(2, {"age": range(3)}, [Published("all", {}, 2), Published("old", {"age": 2}, (3, 3))])
    found = attack.run("table_reconstruction", attack.Statistics.of_tables(ages), attack.Claim(risk=0.1))
    assert found.measurements[0].value == 0
    assert "contradict one another" in found.reason


def test_a_rounded_mean_is_certain_only_where_its_interval_says_so() -> None:
    """Of three people of age 0 or 1 the mean is 2/3, published as 1."""
    domain = {"age": range(2)}

    def attacked(**how: int) -> attack.Finding:
        tables = PublishedTables(3, domain, [Published("all", {}, 3, {"age": 1.0}, **how)])
        return attack.run("table_reconstruction", attack.Statistics.of_tables(tables), attack.Claim(risk=0.5))

    assert attacked().verdict == "violates"
    assert "no decimals stated" in attacked().assumptions[1]
    rounded = attacked(decimals=0)
    assert rounded.measurements[0].value == 2
    assert rounded.lower_bound == pytest.approx(2 / 3)
    assert "rounded to 0 decimals" in rounded.assumptions[1]
    median = [Published("all", {}, 2, {}, {"age": 1}, decimals=0)]
    assert len(databases(PublishedTables(2, {"age": range(3)}, median)).found) == 4  # medians of 0.5, 1 and 1.5


def secrets_of(people: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.random.default_rng(seed).integers(0, 2, people).astype(bool)


@pytest.mark.parametrize("people", [9, 16, 61])
def test_sums_over_packed_subsets_are_products_with_the_matrix_of_bits(people: int) -> None:
    random = np.random.default_rng(people)
    subsets = Subsets.drawn(3000, people, random)  # more than one block
    matrix = np.array(list(subsets))
    assert matrix.shape == (3000, people)
    assert matrix[0].all()
    assert 0.4 < matrix[1:].mean() < 0.6
    values, weights = random.normal(size=people), random.normal(size=3000)
    assert np.allclose(subsets.sums(values), matrix @ values)
    assert np.allclose(subsets.totals(weights), weights @ matrix)
    assert np.array_equal(np.array(list(Subsets.of(matrix).first(7))), matrix[:7])


def test_noise_that_all_answers_share_does_not_mislead_least_squares() -> None:
    random, people = np.random.default_rng(6), 200
    secrets, subsets = secrets_of(people, 7), Subsets.drawn(2000, people, random)
    assert np.array_equal(decode(subsets, subsets.sums(secrets) + 50) > 0.5, secrets)


def test_subsets_that_are_all_equal_tell_nothing_and_end() -> None:
    alike = Subsets.of(np.ones((30, 10), dtype=bool))
    assert np.array_equal(decode(alike, np.full(30, 4.0)), np.full(10, 0.5))


def test_least_squares_recovers_what_theory_predicts() -> None:
    random, people = np.random.default_rng(3), 400
    for each, noise in ((10, 0.25), (10, 1.0), (4, 0.25)):
        secrets = secrets_of(people, 5)
        subsets = Subsets.drawn(each * people, people, random)
        deviation = noise * np.sqrt(people)
        answers = subsets.sums(secrets) + random.normal(scale=deviation, size=len(subsets))
        predicted = predicted_recovery(len(subsets), people, deviation)
        assert predicted is not None
        assert predicted - 0.03 < float(((decode(subsets, answers) > 0.5) == secrets).mean()) < predicted + 0.08


def test_nothing_is_predicted_from_few_counts() -> None:
    """From two counts a person least squares within [0, 1] recovers far more than the formula without bounds says."""
    assert predicted_recovery(799, 200, 1.0) is None
    assert predicted_recovery(800, 200, 1.0) is not None


def test_an_interface_without_noise_is_reconstructed_and_one_with_enough_of_it_is_not() -> None:
    random = np.random.default_rng(1)
    open_ = attack.QueryInterface(make=lambda secrets: lambda people: (secrets & people).sum(), people=100)
    found = attack.run("reconstruction", open_, 1.0, seed=1)
    assert found.verdict == "violates"
    assert found.measurements[0].value == 1.0
    questions = 10 * 100 + 1
    private = attack.QueryInterface(
        make=lambda secrets: lambda people: (secrets & people).sum() + random.laplace(scale=questions), people=100
    )
    found = attack.run("reconstruction", private, 1.0, seed=1)
    assert found.verdict == "underpowered"  # 1,001 answers share an epsilon of 1
    assert found.measurements[0].value < found.measurements[0].ceiling  # type: ignore[operator]
    assert found.power is not None
    assert found.power.is_noticed


def test_fresh_noise_averages_out_the_more_the_effort() -> None:
    """Whole numbers up to 5 are added anew to each answer, within no epsilon at all."""
    shares = []
    for effort in ("ci", "nightly", "full"):
        random = np.random.default_rng(2)
        noisy = attack.QueryInterface(
            make=lambda secrets: lambda people: (secrets & people).sum() + random.integers(-5, 6),  # noqa: B023
            people=40,
        )
        found = attack.run("averaging", noisy, 1.0, effort=effort, seed=1)
        shares.append(found.measurements[0].value)
    assert shares == sorted(shares)
    assert shares[-1] >= 0.95
    assert found.verdict == "violates"


def test_all_subset_counts_leave_at_most_four_times_the_error_of_bits_wrong() -> None:
    random = np.random.default_rng(4)
    target = attack.QueryInterface(
        make=lambda secrets: lambda people: (secrets & people).sum() + random.uniform(-0.9, 0.9), people=9
    )
    found = attack.run("exhaustive", target, seed=2)
    assert found.measurements[1].value <= found.details["bits_wrong_at_most"] < 4


def test_a_linear_program_recovers_secrets_although_some_answers_are_far_off() -> None:
    random = np.random.default_rng(4)
    target = attack.QueryInterface(
        make=lambda secrets: lambda people: (secrets & people).sum() + (random.random() < 0.2) * random.normal(0, 50),
        people=40,
    )
    assert attack.run("linear_program", target, seed=2).measurements[0].value == 1.0


def test_too_few_people_and_too_many_are_refused() -> None:
    make = lambda secrets: lambda people: 0  # noqa: E731
    for name, people in (
        ("reconstruction", 3),
        ("reconstruction", 20_001),
        ("exhaustive", 20),
        ("linear_program", 1000),
    ):
        with pytest.raises(InvalidInput):
            attack.run(name, attack.QueryInterface(make=make, people=people))
