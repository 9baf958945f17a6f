"""Notes of permits as a compare-and-set: who says how far a release came learns whether another one went on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit import Budget
from tacit.ledger import Ledger
from tacit.privacy import events
from tacit.privacy.errors import AlreadySettled, InvalidInput, UnknownName


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", 1.0)
        yield ledger


def test_a_note_replaces_the_one_that_is_stated_and_no_other(ledger: Ledger, tmp_path: Path) -> None:
    permit = ledger.reserve("visits", events.Laplace(0.1))
    assert ledger.note(permit) == ""
    ledger.annotate(permit, "step 1", before="")
    head = ledger.head()
    for before in ("", "step 0"):
        with pytest.raises(AlreadySettled, match="was annotated meanwhile"):
            ledger.annotate(permit, "step 2", before=before)
    assert ledger.head() == head
    ledger.annotate(permit, "step 2", before="step 1")
    with Ledger.open(tmp_path) as other:
        assert other.note(permit.id) == "step 2"
        with pytest.raises(AlreadySettled):
            other.annotate(permit.id, "step 2", before="step 1")
    ledger.annotate(permit, "anything")
    ledger.commit(permit)
    assert ledger.note(permit) == "anything"
    with pytest.raises(AlreadySettled):
        ledger.annotate(permit, "step 3", before="anything")
    with pytest.raises(UnknownName):
        ledger.note("nobody")
    ledger.verify(full=True)


def test_the_key_of_a_permit_with_a_note_admits_no_other_run(ledger: Ledger) -> None:
    """A run that failed was noted: under the same key the data would be read again without a charge."""
    permit = ledger.reserve("visits", events.Laplace(0.1), key="monday")
    assert ledger.reserve("visits", events.Laplace(0.1), key="monday").id == permit.id
    ledger.annotate(permit, "failed/T610", before="")
    with pytest.raises(AlreadySettled, match="has ended or failed"):
        ledger.reserve("visits", events.Laplace(0.1), key="monday")
    assert ledger.budget("visits").spent().epsilon == pytest.approx(0.1)


def test_budgets_in_memory_and_of_a_ledger_take_notes_alike(ledger: Ledger) -> None:
    for budget in (Budget(1.0), ledger.budget("visits")):
        permit = budget.reserve(events.Laplace(0.1), "in steps")
        assert budget.spent().epsilon == pytest.approx(0.1)
        assert budget.note(permit) == ""
        budget.annotate(permit.id, "step 1", before="")
        with pytest.raises(AlreadySettled):
            budget.annotate(permit, "step 1", before="")
        assert budget.note(permit.id) == "step 1"
        budget.commit(permit)
        with pytest.raises(UnknownName):
            budget.note("nobody")
        with pytest.raises(InvalidInput):
            budget.annotate(permit, "", before="step 1")
    assert not Budget(1.0).is_durable
    assert ledger.budget("visits").is_durable
