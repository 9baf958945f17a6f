"""Reports: three numbers, each with what it is worth; only the first decides."""

from tacit.ledger import Budget
from tacit.ledger.budget import LABELS
from tacit.privacy import events


def test_a_report_holds_the_guarantee_the_bound_and_the_meaning() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    for _ in range(40):
        budget.charge(events.Laplace(0.02))
    report = budget.report()
    assert (report.guaranteed.epsilon, report.guaranteed.delta) == (1.0, 1e-6)
    assert report.bound is not None
    assert report.meaning is not None
    assert 0 < report.bound.lower <= report.bound.upper <= report.spent.epsilon <= 1.0
    assert 0 < report.meaning.advantage < 1


def test_a_report_says_under_which_condition_each_number_holds() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    budget.charge(events.Gaussian(20))
    text = str(budget.report())
    assert "guaranteed by the filter" in text
    assert "valid if parameters did not depend on answers" in text
    assert set(LABELS) == {"guaranteed", "bound", "meaning"}


def test_a_pure_budget_has_a_report_too() -> None:
    budget = Budget(epsilon=1.0)
    budget.charge(events.Laplace(0.25))
    bound = budget.report().bound
    assert bound is not None
    assert bound.upper <= 0.25 * (1 + 1e-9)


def test_nothing_admitted_has_no_bound() -> None:
    report = Budget(epsilon=1.0).report()
    assert (report.bound, report.meaning) == (None, None)
    assert str(report).startswith("epsilon 1 at delta 0: guaranteed")


def test_a_report_shows_what_was_admitted_when_it_was_made() -> None:
    budget = Budget(epsilon=1.0)
    budget.charge(events.Laplace(0.25))
    report = budget.report()
    budget.charge(events.Laplace(0.5))
    assert report.events == {events.Laplace(0.25): 1}
    assert report.spent.epsilon == 0.25
