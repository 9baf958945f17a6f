"""A budget in memory is charged by the process that made it, and by no fork of it."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

import tacit
from tacit.privacy.errors import InvalidInput
from tacit.privacy.events import Pure

CHANGES: dict[str, Callable[[tacit.Budget, str], object]] = {
    "charge": lambda budget, _: budget.charge(Pure(0.5)),
    "reserve": lambda budget, _: budget.reserve(Pure(0.5)),
    "annotate": lambda budget, permit: budget.annotate(permit, "a", before=""),
    "commit": lambda budget, permit: budget.commit(permit),
    "refund": lambda budget, permit: budget.refund(permit, Pure(0.1)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_forked_process_cannot_spend_a_budget_in_memory_again(change: str) -> None:
    budget = tacit.Budget(2.0)
    permit = budget.reserve(Pure(0.5)).id
    child = os.fork()
    if not child:
        try:
            CHANGES[change](budget, permit)
        except InvalidInput as error:
            os._exit(3 if "ledger" in str(error) else 4)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    CHANGES[change](budget, permit)
