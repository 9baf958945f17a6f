"""Grouping sets measured each by itself: what they cost, which noise they have, and how their groups are laid out."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tacit.accounting.closed_forms import pure_epsilon
from tacit.engines.protocol import Columns
from tacit.ledger.accounts import Measured
from tacit.mechanisms import Gaussian, Laplace
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy.bounds import Categories
from tacit.privacy.errors import TooWide
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Unit
from tacit.query import BudgetTerms, Plan, Target, answer_intervals, estimates
from tacit.query.run import add_noise
from tests.support.plans import plan_sql

SIZE = 8
PEOPLE = Table(
    "people",
    (
        Column("id", Kind.INTEGER, nullable=False),
        *(Column(f"c{index}", Kind.INTEGER, Categories(range(SIZE)), nullable=False) for index in range(6)),
    ),
    Unit("id"),
    Limits(rows_per_unit=1),
)
PAIRS = "GROUP BY GROUPING SETS ((c0, c1), (c2, c3), (c4, c5))"


def planned(group: str) -> Plan:
    return plan_sql(
        f"SELECT c0, GROUPING(c0) AS g, COUNT(*) AS n FROM people {group}",
        Schema([PEOPLE]),
        Target(epsilon=0.9),
        BudgetTerms(),
    )


def test_each_set_has_a_part_of_the_cost_and_all_of_them_are_charged() -> None:
    plan = planned(PAIRS)
    assert plan.sets_apart
    assert [statement.kept for statement in plan.statements] == [(0, 1), (2, 3), (4, 5)]
    (noise,) = plan.price.noises
    assert isinstance(noise, Laplace)
    charged = pure_epsilon(plan.event)
    assert Fraction(noise.epsilon) * 3 <= Fraction(charged) <= Fraction(0.9)
    assert charged == pytest.approx(0.9)


def test_gaussian_noise_grows_with_the_root_of_the_number_of_sets() -> None:
    pairs = ", ".join(f"(c{i}, c{j})" for i in range(6) for j in range(i))
    alone, many = (
        plan_sql(
            f"SELECT COUNT(*) AS n FROM people GROUP BY {group}", Schema([PEOPLE]), Target(rho=0.01), BudgetTerms()
        )
        for group in ("c0, c1", f"GROUPING SETS ({pairs})")
    )
    assert len(many.statements) == 15
    one, each = alone.price.noises[0], many.price.noises[0]
    assert isinstance(each, Gaussian)
    assert float(each.scale) == pytest.approx(15**0.5 * float(one.scale))
    assert Measured(many.event).concentrated[0] <= 0.01 * (1 + 1e-9)


def test_few_finest_groups_are_measured_once_and_added_up() -> None:
    assert not planned("GROUP BY CUBE (c0, c1)").sets_apart


def test_groups_stand_one_set_after_another_with_null_for_what_a_set_drops() -> None:
    plan = planned(PAIRS)
    found: list[Columns] = [
        {"k0": [1], "k1": [2], "m0": [10_000]},
        {"k0": [], "k1": [], "m0": []},
        {"k0": [7, 99], "k1": [7, 0], "m0": [20_000, 5]},
    ]
    noisy = add_noise(plan, found, SeededSource(1))
    rows, places = estimates.answer_rows(plan, noisy)
    assert len(rows) == len(places) == 3 * SIZE**2
    assert rows[SIZE + 2]["c0"] == 1
    assert rows[SIZE + 2]["g"] == 0
    assert rows[SIZE + 2]["n"] == pytest.approx(10_000, abs=200)
    assert {row["c0"] for row in rows[SIZE**2 :]} == {None}
    assert {row["g"] for row in rows[SIZE**2 :]} == {1}
    assert rows[-1]["n"] == pytest.approx(20_000, abs=200)
    assert all(abs(row["n"]) < 200 for row in rows[SIZE**2 : 2 * SIZE**2])
    spans = answer_intervals.intervals(plan, noisy, places, 0.95)
    widths = {span["n"].high - span["n"].low for span in spans if span["n"] is not None}
    assert len(widths) == 1


def test_sets_that_are_too_wide_even_by_themselves_are_refused() -> None:
    wide = Table(
        "wide",
        (
            *(Column(f"c{index}", Kind.INTEGER, Categories(range(4000))) for index in range(3)),
            Column("id", Kind.INTEGER, nullable=False),
        ),
        Unit("id"),
    )
    sql = "SELECT COUNT(*) AS n FROM wide GROUP BY GROUPING SETS ((c0, c1), (c2))"
    with pytest.raises(TooWide, match="groups"):
        plan_sql(sql, Schema([wide]), Target(epsilon=1), BudgetTerms())
