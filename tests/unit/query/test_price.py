"""One epsilon pays for the whole answer, and the ledger agrees."""

from __future__ import annotations

import pytest

from tacit.ledger import Budget
from tacit.ledger.accounts import Measured, SumAccount
from tacit.mechanisms import Gaussian, Laplace
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, NeedsDelta, NotAllowed, NotPositive, OutOfRange
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import Relation, Unit
from tacit.query import BudgetTerms, Plan, PlanSettings, Target
from tests.support.plans import plan_sql

CAP = Budget(epsilon=10, delta=1e-6).cap
SLICE = SumAccount.of(CAP).slice
VISITS = Table(
    "visits",
    (
        Column("patient", Kind.INTEGER),
        Column("age", Kind.INTEGER, Bounds(0, 120)),
        Column("cost", Kind.REAL, Bounds(0, 1000), nullable=False),
        Column("income", Kind.REAL),
        Column("sex", Kind.TEXT, Categories(["F", "M"])),
        Column("code", Kind.INTEGER, Bounds(0, 999)),
        Column("city", Kind.TEXT),
    ),
    Unit("patient"),
)
SCHEMA = Schema([VISITS])
QUESTIONS = (
    "SELECT COUNT(*) FROM visits",
    "SELECT sex, COUNT(*), SUM(cost), AVG(age) FROM visits GROUP BY sex",
    "SELECT sex, MEDIAN(age), MAX(cost), MODE(code % 3) FROM visits GROUP BY sex",
    "SELECT city, COUNT(*), COUNT(DISTINCT code), STDDEV(cost) FROM visits GROUP BY city",
    "SELECT AVG(income), SUM(income) FROM visits",
    "SELECT CORR(age, cost), COVAR_POP(age, cost) FROM visits",
)


def planned(
    sql: str,
    target: Target,
    *,
    delta: float = SLICE,
    limits: Limits | None = None,
    relation: Relation = Relation.ADD_REMOVE,
) -> Plan:
    return plan_sql(sql, SCHEMA, target, BudgetTerms(relation, delta), PlanSettings(limits or Limits()))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("relation", list(Relation))
def test_the_ledger_charges_what_was_asked_and_hardly_less(relation: Relation, sql: str, epsilon: float) -> None:
    plan = planned(sql, Target(epsilon=epsilon), relation=relation)
    charged, delta = SumAccount.of(CAP).approximate(Measured(plan.event))
    # Under replace-one keys are selected by twice as many, smaller choices, which compose to less than their sum.
    least = 0.95 if relation is Relation.ADD_REMOVE else 0.88
    assert least * epsilon <= charged <= epsilon * (1 + 1e-12)
    assert delta <= 2.5 * SLICE


@pytest.mark.parametrize("rho", [0.001, 0.1, 1.0])
@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("relation", list(Relation))
def test_a_rho_is_kept_as_well(relation: Relation, sql: str, rho: float) -> None:
    measured = Measured(planned(sql, Target(rho=rho), relation=relation).event)
    assert measured.concentrated[0] <= rho * (1 + 1e-9)


def test_without_a_delta_noise_is_laplace() -> None:
    plan = planned(QUESTIONS[1], Target(epsilon=1), delta=0.0)
    assert all(isinstance(noise, Laplace) for noise in plan.price.noises)
    assert Measured(plan.event).pure <= 1


def test_many_groups_a_unit_make_gaussian_noise_the_narrower_one() -> None:
    sql = "SELECT code, COUNT(*) FROM visits GROUP BY code"
    few = planned(sql, Target(epsilon=1), limits=Limits(groups_per_unit=2))
    many = planned(sql, Target(epsilon=1), limits=Limits(groups_per_unit=200))
    assert isinstance(few.price.noises[0], Laplace)
    assert isinstance(many.price.noises[0], Gaussian)


def test_an_error_is_met_and_not_by_much_more_than_needed() -> None:
    plan = planned("SELECT COUNT(*) FROM visits", Target(error=25))
    assert 23 <= plan.price.half_width(0) <= 25


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ({}, InvalidInput),
        ({"epsilon": 1, "rho": 1}, InvalidInput),
        ({"epsilon": 0}, NotPositive),
        ({"epsilon": -1}, NotPositive),
        ({"epsilon": 1, "delta": 1.0}, OutOfRange),
    ],
)
def test_exactly_one_price_is_said(target: dict[str, float], error: type[Exception]) -> None:
    with pytest.raises(error):
        Target(**target)


def test_an_error_needs_a_number_whose_interval_is_known_beforehand() -> None:
    with pytest.raises(NotAllowed):
        planned("SELECT AVG(age) FROM visits", Target(error=1))
    with pytest.raises(NotAllowed):
        planned("SELECT SUM(income) FROM visits", Target(error=1))


def test_keys_that_are_not_public_need_a_delta() -> None:
    with pytest.raises(NeedsDelta) as caught:
        planned("SELECT city, COUNT(*) FROM visits GROUP BY city", Target(epsilon=1), delta=0.0)
    assert "categories" in caught.value.message


def test_disjoint_conditions_share_one_part_where_rows_are_added_up_as_they_are() -> None:
    table = Table("visits", VISITS.columns, VISITS.unit, Limits(rows_per_unit=3))
    sql = "SELECT COUNT(*) FILTER (WHERE age < 18), COUNT(*) FILTER (WHERE age >= 18), COUNT(*) FROM visits"
    plan = plan_sql(sql, Schema([table]), Target(epsilon=1), BudgetTerms())
    assert [float(noise.epsilon) for noise in plan.price.noises] == pytest.approx([0.5] * 3)  # type: ignore[union-attr]
    assert Measured(plan.event).pure <= 1
    parts = planned(sql, Target(epsilon=1), delta=0.0)
    assert sum(float(noise.epsilon) for noise in parts.price.noises) <= 1  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["epsilon", "rho", "error"])
@pytest.mark.parametrize("price", [1e19, 1e300])
def test_a_price_beyond_every_budget_is_refused_before_anything_is_computed(name: str, price: float) -> None:
    with pytest.raises(OutOfRange, match="at most 1e"):
        Target(**{name: price})
