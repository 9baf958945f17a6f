"""The curator: one folder, one ledger, budgets and analysts."""

from pathlib import Path

import pytest

import tacit
from tacit import Budget, BudgetExceeded, Curator
from tacit.curator import PrivacyWarning
from tacit.privacy import events
from tacit.privacy.errors import EmptyInput, NameTaken, OutOfRange, UnknownName, WrongType


def test_the_lines_of_the_readme_work(tmp_path: Path) -> None:
    with Curator(tmp_path / "clinic") as curator:
        curator.set_budget("visits", epsilon=3.0, delta=1e-7)
        curator.add_analyst("ana", budgets={"visits": Budget(epsilon=1.0, delta=1e-8)})
        permit = curator.budget("visits", "ana").charge(events.Laplace(0.5), purpose="visits by month")
        assert permit.cost.epsilon == 0.5
        assert curator.budget("visits").spent().epsilon == 0.5
        assert curator.budget("visits", "ana").remaining().epsilon == pytest.approx(0.5)


def test_what_was_charged_is_there_when_the_folder_is_opened_again(tmp_path: Path) -> None:
    with Curator(tmp_path) as curator:
        curator.set_budget("visits", epsilon=3.0, delta=1e-7)
        curator.budget("visits").charge(events.Laplace(1.0))
    with Curator(str(tmp_path)) as curator:
        assert curator.budget("visits").spent().epsilon == 1.0


def test_an_analyst_stops_at_her_own_cap(tmp_path: Path) -> None:
    with Curator(tmp_path) as curator:
        curator.set_budget("visits", epsilon=3.0, delta=1e-7)
        curator.add_analyst("ana", budgets={"visits": Budget(epsilon=1.0, delta=1e-8)})
        with pytest.raises(BudgetExceeded, match="ana on visits"):
            curator.budget("visits", "ana").charge(events.Laplace(1.5))
        assert curator.budget("visits").spent().epsilon == 0


def test_an_analyst_gets_all_her_caps_or_none(tmp_path: Path) -> None:
    with Curator(tmp_path) as curator:
        curator.set_budget("visits", epsilon=3.0)
        with pytest.raises(UnknownName):
            curator.add_analyst("ana", budgets={"visits": Budget(1.0), "nowhere": Budget(1.0)})
        with pytest.raises(UnknownName):
            curator.budget("visits", "ana")


def test_a_cap_above_the_data_sets_is_refused(tmp_path: Path) -> None:
    with Curator(tmp_path) as curator:
        curator.set_budget("visits", epsilon=1.0)
        with pytest.raises(OutOfRange):
            curator.add_analyst("ana", budgets={"visits": Budget(2.0)})


def test_a_budget_is_set_once_it_is_charged(tmp_path: Path) -> None:
    with Curator(tmp_path) as curator:
        curator.set_budget("visits", epsilon=1.0)
        curator.set_budget("visits", epsilon=1.0)
        curator.set_budget("visits", epsilon=1.5).charge(events.Laplace(0.1))
        with pytest.raises(NameTaken):
            curator.set_budget("visits", epsilon=2.0)


def test_a_delta_that_gives_people_away_is_said_loudly(tmp_path: Path) -> None:
    with Curator(tmp_path) as curator, pytest.warns(PrivacyWarning, match="delta"):
        curator.set_budget("visits", epsilon=1.0, delta=1e-3, units=1000)


@pytest.mark.parametrize(("budgets", "error"), [({}, EmptyInput), ({"visits": 1.0}, WrongType)])
def test_an_analyst_needs_budgets(tmp_path: Path, budgets: dict[str, Budget], error: type[tacit.TacitError]) -> None:
    with Curator(tmp_path) as curator:
        curator.set_budget("visits", epsilon=1.0)
        with pytest.raises(error):
            curator.add_analyst("ana", budgets=budgets)
