"""Notes of permits: written in one form, read in all that were ever written."""

from __future__ import annotations

import pytest

from tacit.pipeline.notes import FailureNote, Note, StepNote, in_words, read

STATE = "0a" * 32
WRITTEN: dict[str, tuple[str, Note]] = {
    "failed/T501": ("the run failed: T501", FailureNote("T501")),
    "failed/T501/ana": ("the run failed: T501 for ana", FailureNote("T501", "ana")),
    "failed/ValueError/a/b for c": ("the run failed: ValueError for a/b for c", FailureNote("ValueError", "a/b for c")),
    "seen/T501/ana": ("seen by the owner: the run failed: T501 for ana", FailureNote("T501", "ana", is_seen=True)),
    f"step/3/10/{STATE}": (f"step 3 of 10, state {STATE}", StepNote(3, 10, STATE)),
}


@pytest.mark.parametrize("form", WRITTEN)
def test_a_form_and_the_sentence_of_older_ledgers_are_read_as_the_same_note(form: str) -> None:
    """Changing one of these lines changes what counts as a failure in ledgers that exist."""
    sentence, note = WRITTEN[form]
    assert str(note) == form
    assert read(form) == read(sentence) == note
    assert in_words(form) == in_words(sentence) == sentence


@pytest.mark.parametrize("text", ["", "the worker was killed", "failed", "failed/", "step/1/2", f"step/x/2/{STATE}"])
def test_a_text_of_a_person_is_no_note_of_the_pipeline(text: str) -> None:
    assert read(text) is None
    assert in_words(text) == text


def test_the_note_of_a_failure_that_was_seen_keeps_its_reason_and_its_payer() -> None:
    assert str(FailureNote("T501", "ana").seen) == "seen/T501/ana"
