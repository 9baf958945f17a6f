"""Errors over the wire are the errors of the embedded curator: class, code, sentence, attributes."""

from __future__ import annotations

import inspect
import math

import pytest

from tacit.accounting import Cost
from tacit.client.errors import error_attributes, error_classes, error_of
from tacit.privacy import errors
from tacit.privacy.errors import Place, ServerFailed, TacitError
from tacit.server.error_responses import error_response
from tacit.wire.responses import ErrorBody

TREE = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, TacitError) and kind is not TacitError
]


def test_every_class_of_the_tree_is_known_by_its_code() -> None:
    assert set(error_classes().values()) == set(TREE)
    assert all(error_classes()[kind.code] is kind for kind in TREE)


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_an_error_that_the_server_writes_is_read_as_the_same_error(kind: type[TacitError]) -> None:
    given = {
        "name": "epsilon",
        "asked": Cost(0.5, 0.0, math.inf),
        "remaining": Cost(0.2, 1e-9, 0.02),
        "fits": None,
        "scope": "ana on visits",
        "accepted": "group by a column of the person instead",
        "place": Place(2, 8),
        "retry_after_s": 7.0,
    }
    taken = inspect.signature(kind.__init__).parameters
    made = kind("it does not work", **{name: one for name, one in given.items() if name in taken})
    read = error_of(error_response(made).error)
    assert type(read) is kind
    assert (read.code, read.message, str(read), read.exit_code) == (made.code, made.message, str(made), made.exit_code)
    for name in error_attributes(kind):
        if name not in ("value", "text", "position", "record", "differs"):  # these are not sent
            assert getattr(read, name) == getattr(made, name), name


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_an_error_without_details_has_all_its_attributes(kind: type[TacitError]) -> None:
    read = error_of(ErrorBody(code=kind.code, message="no"))
    for name in vars(kind("no")):
        assert hasattr(read, name)


def test_an_error_that_nobody_foresaw_is_a_failure_of_the_server() -> None:
    assert isinstance(error_of(ErrorBody(code="T000", message="a defect")), ServerFailed)
    assert isinstance(error_of(ErrorBody(code="T998", message="from the future")), ServerFailed)


def test_a_subclass_of_somebody_else_does_not_take_a_code() -> None:
    class Mine(errors.BudgetExceeded):
        pass

    error_classes.cache_clear()
    assert error_classes()["T300"] is errors.BudgetExceeded
    assert Mine not in error_classes().values()
