"""Asking for many counts at once: tables, ranges, prefixes, hierarchies, products and unions, under one price."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest

import tacit
from tacit import Budget
from tacit.privacy.errors import BudgetExceeded, InvalidInput, NotBounded, OutOfRange, TooLarge, WrongType
from tacit.stats import WorkloadAnswer, hierarchy, marginals, prefixes, ranges, workload
from tacit.stats.workloads import Cells, Hierarchy, Marginals, Prefixes, Ranges, date_edges

PEOPLE = 3000
AGES = np.arange(PEOPLE) % 90
SEXES = np.where(np.arange(PEOPLE) % 3 == 0, "F", "M")
WARDS = [("north", "south", "east", "west")[i % 7 % 4] for i in range(PEOPLE)]
COLUMNS = {"age": AGES, "sex": SEXES, "ward": WARDS}
DOMAIN = {"age": [0, 18, 65, 90], "sex": ["F", "M"], "ward": ["north", "south", "east", "west"]}


def rich(delta: float = 0.0) -> Budget:
    return Budget(1000.0, delta)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_tables_are_near_the_truth_and_agree(delta: float) -> None:
    budget = rich(delta)
    answer = marginals(COLUMNS, domain=DOMAIN, ways=(1, 2), epsilon=50.0, budget=budget)
    assert isinstance(answer, WorkloadAnswer)
    table = answer.table("age", "sex")
    assert table.values.shape == (3, 2)
    true = np.histogram2d(AGES, SEXES == "M", bins=[[0, 18, 65, 90], [0, 1, 2]])[0]
    assert np.abs(table.values - true).max() < 20
    np.testing.assert_array_equal(answer.table("sex", "age").values, table.values.T)
    np.testing.assert_array_equal(table.values.sum(axis=0), answer.table("sex").values)
    np.testing.assert_allclose(table.estimates.sum(axis=1), answer.table("age").estimates)
    assert answer.table("ward").values.sum() == table.values.sum()
    low, high = table.interval(0.999999)
    assert ((low <= true) & (true <= high)).all()
    assert ((low <= table.values) & (table.values <= high)).all()
    assert answer.cost.epsilon == pytest.approx(50.0)
    assert budget.spent().epsilon == pytest.approx(50.0, rel=0.2)
    assert table.rows[0].keys() == {"age", "sex", "value", "low", "high"}
    assert table.rows[0]["age"] == "0 to 18"


def test_the_answer_is_shown_like_any_other() -> None:
    answer = marginals(COLUMNS, domain=DOMAIN, ways=(1, 2), epsilon=5.0, budget=rich())
    assert len(answer.rows) == len(answer.value) == 3 + 2 + 4 + 6 + 12 + 8
    assert answer.rows[-1]["table"] == "sex, ward"
    assert "<table>" in answer._repr_html_()
    assert "<table>" in answer.table("sex")._repr_html_()
    assert answer.plot().spec["data"]["values"]
    assert "6 tables by 3 columns" in answer.card
    assert "Laplace noise" in answer.card
    assert "29 counts" not in repr(answer)
    assert "35 counts" in repr(answer)
    assert answer.expected_error > 0


def test_sets_may_be_named_and_a_margin_of_one_may_be_read() -> None:
    answer = marginals(COLUMNS, domain=DOMAIN, sets=[("ward", "sex")], epsilon=50.0, budget=rich())
    assert answer.table("sex").values.sum() == answer.table("sex", "ward").values.sum()
    with pytest.raises(InvalidInput, match="nor a table that holds it was released"):
        answer.table("age", "sex")


def test_ranges_prefixes_and_cells_are_sums_of_the_same_cells() -> None:
    edges = list(range(91))
    answer = ranges(AGES, edges=edges, epsilon=20.0, budget=rich())
    whole = answer.range(0, 90)
    assert whole.value == answer.value.sum() == answer.range(0, 40).value + answer.range(40, 90).value
    assert answer.prefix(40).value == answer.range(0, 40).value
    low, high = answer.range(20, 40).interval(0.999999)
    assert low <= 20 * PEOPLE / 90 + 10
    assert high >= 20 * PEOPLE / 90 - 10
    assert isinstance(whole.value, int)
    with pytest.raises(InvalidInput, match="not among the edges"):
        answer.range(0.5, 40)
    with pytest.raises(OutOfRange, match="a range must rise"):
        answer.range(40, 20)
    below = prefixes(AGES, edges=edges, epsilon=20.0, budget=rich())
    assert len(below.rows) == 90
    assert (np.diff(below.value) >= 0).all()
    assert below.prefix(90).value == below.value[-1]


def test_ranges_over_listed_values_hold_both_ends() -> None:
    answer = ranges(WARDS, edges=["north", "south", "east", "west"], epsilon=500.0, budget=rich())
    true = sum(ward in ("south", "east") for ward in WARDS)
    assert abs(answer.range("south", "east").value - true) <= 2


def test_a_hierarchy_of_dates_adds_up_level_by_level() -> None:
    days = np.array(["2023-01-01"], dtype="datetime64[D]") + np.arange(PEOPLE) % 400
    edges = date_edges(date(2023, 1, 1), date(2024, 3, 1))
    answer = hierarchy(days, edges=edges, levels=("year", "month"), epsilon=20.0, budget=rich())
    levels = answer.levels
    assert list(levels) == ["year", "month", "value"]
    assert levels["year"].labels == (("2023", "2024"),)
    assert len(levels["month"].values) == 14
    assert levels["month"].values[:12].sum() == levels["year"].values[0]
    assert levels["value"].values[:31].sum() == levels["month"].values[0]
    assert answer.prefix(date(2023, 2, 1)).value == levels["month"].values[0]
    assert [str(edge) for edge in date_edges(date(2024, 11, 5), date(2025, 2, 1), "month")] == [
        "2024-11-05", "2024-12-01", "2025-01-01", "2025-02-01",
    ]  # fmt: skip


def test_a_cell_that_lies_in_two_months_is_in_no_month_and_costs_nothing() -> None:
    days = np.array(["2023-01-01"], dtype="datetime64[D]") + np.arange(PEOPLE) % 60
    budget = rich()
    with pytest.raises(InvalidInput, match="the cell from 2023-01-20 to 2023-02-10 spans more than one month"):
        hierarchy(
            days,
            edges=[date(2023, 1, 1), date(2023, 1, 20), date(2023, 2, 10), date(2023, 3, 1)],
            levels=("month",),
            epsilon=1.0,
            budget=budget,
        )
    assert budget.spent().epsilon == 0


def test_a_hierarchy_of_places_is_a_mapping_from_child_to_parent() -> None:
    parents = {"north": "cold", "south": "warm", "east": "cold", "west": "warm"}
    answer = hierarchy(
        WARDS, levels=[{"cold": "all", "warm": "all"}, parents], edges=list(parents), epsilon=90.0, budget=rich()
    )
    levels = answer.levels
    assert [len(table.values) for table in levels.values()] == [1, 2, 4]
    assert levels["level 2"].labels == (("cold", "warm"),)
    assert levels["level 2"].values[0] == levels["value"].values[[0, 2]].sum()
    with pytest.raises(InvalidInput, match="no group for 'west'"):
        hierarchy(WARDS, levels=[{"north": 1, "south": 1, "east": 1}], edges=list(parents), epsilon=1.0, budget=rich())


def test_two_columns_may_be_crossed() -> None:
    columns = {"age": AGES, "sex": SEXES}
    domain = {"age": (90, (0, 90)), "sex": ["F", "M"]}
    answer = workload(columns, Ranges("age") * Cells("sex"), domain=domain, epsilon=200.0, budget=rich())
    true = int(((AGES >= 20) & (AGES < 60) & (SEXES == "F")).sum())
    found = answer.range(None, None, age=(20.0, 60.0), sex=("F", "F"))
    assert abs(found.value - true) <= 5
    assert answer.table("age", "sex").values.shape == (90, 2)
    assert answer.table("sex", "age").values.shape == (2, 90)
    assert answer.table("age", "sex").values.min() >= 0
    assert answer.range(None, None, age=(0.0, 90.0), sex=("F", "M")).value == answer.value.sum()


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_union_has_one_price(delta: float) -> None:
    budget = rich(delta)
    asked = Ranges("age") + Prefixes("age") + Marginals(("sex", "ward"))
    domain = {"age": (30, (0, 90)), "sex": ["F", "M"], "ward": list(dict.fromkeys(WARDS))}
    answer = workload(COLUMNS, asked, domain=domain, epsilon=2.0, budget=budget)
    assert answer.cost.epsilon == pytest.approx(2.0)
    assert answer.range(0.0, 90.0).value > 0
    assert answer.table("sex", "ward").values.shape == (2, 4)
    assert set(answer.tables) == {"age", "sex", "ward", "sex, ward"}
    twice = workload(COLUMNS, Ranges("age"), Ranges("age"), domain=domain, epsilon=2.0, budget=budget)
    assert len(twice.plan.parts) == 1  # type: ignore[attr-defined]


def test_rho_buys_gaussian_noise_and_is_what_is_charged() -> None:
    budget = Budget(1.0, 1e-6)
    rho = budget.remaining().rho
    answer = marginals(COLUMNS, domain=DOMAIN, rho=rho, budget=budget)
    assert "Gaussian noise" in answer.card
    assert answer.cost.rho <= rho
    assert budget.remaining().rho < rho / 1000
    with pytest.raises(BudgetExceeded):
        marginals(COLUMNS, domain=DOMAIN, rho=rho, budget=budget)


def test_units_with_many_rows_cost_as_much_as_they_move() -> None:
    units = np.arange(PEOPLE) // 3
    alone = ranges(AGES, edges=[0, 30, 60, 90], epsilon=1.0, budget=rich())
    many = ranges(AGES, edges=[0, 30, 60, 90], epsilon=1.0, budget=rich(), unit=units, rows_per_unit=3)
    replaced = ranges(AGES, edges=[0, 30, 60, 90], epsilon=1.0, budget=Budget(10, relation=tacit.Relation.REPLACE_ONE))
    assert many.expected_error == pytest.approx(9 * alone.expected_error)
    assert replaced.expected_error == pytest.approx(4 * alone.expected_error)


def test_frames_are_taken_by_their_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"sex": SEXES, "ward": WARDS})
    answer = marginals(frame, domain={"sex": ["F", "M"], "ward": DOMAIN["ward"]}, epsilon=50.0, budget=rich())
    assert answer.table("sex", "ward").values.shape == (2, 4)


def test_plans_tell_each_other_apart() -> None:
    budget = rich()
    one = ranges(AGES, edges=[0, 30, 60, 90], epsilon=1.0, budget=budget).plan
    same = ranges(AGES, edges=[0, 30, 60, 90], epsilon=1.0, budget=budget).plan
    others = [
        ranges(AGES, edges=[0, 30, 61, 90], epsilon=1.0, budget=budget).plan,
        ranges(AGES, edges=[0, 30, 60, 90], epsilon=2.0, budget=budget).plan,
        prefixes(AGES, edges=[0, 30, 60, 90], epsilon=1.0, budget=budget).plan,
    ]
    assert one.canonical == same.canonical
    assert len({one.canonical, *(other.canonical for other in others)}) == 4


CASES: list[tuple[type[Exception], dict[str, Any], Any, Any]] = [
    (InvalidInput, {"age": AGES}, Ranges("years"), None),
    (NotBounded, {"ward": WARDS}, Cells("ward"), None),
    (WrongType, {"age": AGES}, Ranges("age"), {"age": "0 to 90"}),
    (OutOfRange, {"age": AGES}, Ranges("age"), {"age": [0, 10, 10]}),
    (TooLarge, {"age": AGES}, Ranges("age"), {"age": (2**18, (0, 90))}),
    (InvalidInput, {"age": AGES}, Hierarchy("age", "year"), {"age": [0, 45, 90]}),
]


@pytest.mark.parametrize(("error", "columns", "asked", "domain"), CASES)
def test_what_cannot_be_asked_is_refused_before_anything_is_charged(
    error: type[Exception], columns: Any, asked: Any, domain: Any
) -> None:
    budget = rich()
    with pytest.raises(error):
        workload(columns, asked, domain=domain, epsilon=1.0, budget=budget)
    assert budget.spent().epsilon == 0


def test_workloads_that_make_no_sense_are_refused() -> None:
    for make in (
        lambda: Marginals((), (1,)),
        lambda: Marginals(("a", "b"), (3,)),
        lambda: Marginals(("a", "a")),
        lambda: Hierarchy("a", ()),
        lambda: Hierarchy("a", ("week",)),
        lambda: Ranges("a") * Ranges("a"),
        lambda: Ranges(""),
        lambda: Ranges("a") * Marginals(("a", "b")),
        lambda: Marginals(tuple(f"c{i}" for i in range(60)), (3,)),
        lambda: workload({"a": [1, 2]}, epsilon=1.0, budget=rich()),
        lambda: workload([1, 2], Ranges("a"), epsilon=1.0, budget=rich()),
    ):
        with pytest.raises(InvalidInput):
            make()  # type: ignore[no-untyped-call]
