"""The error tree: stable codes, drawn whole in its module's docstring."""

import re

import pytest

import tacit
from tacit.privacy import errors

ERRORS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.TacitError)]
TREE_ROW = re.compile(r"^[│ ]*[├└]── (?P<name>\w+) +(?P<code>T\d{3}) ", re.MULTILINE)
EXIT_CODE = re.compile(r"^[├└─ ]+(?P<name>[A-Z]\w+).*\(exit code (?P<exit>\d)\)$", re.MULTILINE)


def test_no_two_errors_share_a_code() -> None:
    codes = [kind.code for kind in ERRORS]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("kind", ERRORS)
def test_a_code_is_a_t_and_three_digits(kind: type[errors.TacitError]) -> None:
    assert re.fullmatch(r"T\d{3}", kind.code)


def test_the_docstring_draws_every_error_with_its_code_and_nothing_else() -> None:
    drawn = {row["name"]: row["code"] for row in TREE_ROW.finditer(errors.__doc__ or "")}
    assert drawn == {kind.__name__: kind.code for kind in ERRORS if kind is not errors.TacitError}


def test_the_docstring_states_the_exit_code_of_every_branch() -> None:
    drawn = {row["name"]: int(row["exit"]) for row in EXIT_CODE.finditer(errors.__doc__ or "")}
    assert drawn == {kind.__name__: kind.exit_code for kind in errors.TacitError.__subclasses__()}


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_shares_the_hundred_and_the_exit_code_of_its_branch(kind: type[errors.TacitError]) -> None:
    parent = kind.__bases__[0]
    if issubclass(parent, errors.TacitError) and parent is not errors.TacitError:
        assert (kind.code[:2], kind.exit_code) == (parent.code[:2], parent.exit_code)


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_keeps_its_sentence(kind: type[errors.TacitError]) -> None:
    error = kind("a sentence that says what would work")
    assert error.message == str(error) == "a sentence that says what would work"


def test_an_invalid_input_carries_the_name_and_the_value() -> None:
    error = errors.NotPositive("epsilon must be above 0, not -1", name="epsilon", value=-1)
    assert (error.name, error.value) == ("epsilon", -1)


@pytest.mark.parametrize(
    "name", ["TacitError", "BudgetExceeded", "QueryRefused", "InvalidInput", "LedgerCorrupt", "NotPermitted"]
)
def test_the_branches_that_callers_catch_are_names_of_the_package(name: str) -> None:
    assert getattr(tacit, name) is getattr(errors, name)


@pytest.mark.parametrize("name", ["Busy", "Corrupt", "Full", "ReadOnly", "TooNew", "Unavailable"])
def test_a_failure_of_the_ledger_is_the_same_failure_of_storage(name: str) -> None:
    assert issubclass(getattr(errors, f"Ledger{name}"), getattr(errors, f"Storage{name}"))
