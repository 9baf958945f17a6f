"""The long form, for `make soak`: 100,000 pairs of neighbours in one run, and what came of them.

Most are generated questions over small worlds, one plan for all neighbours of a world; the others are hostile questions
with a victim, whose outcome and time are compared as well.
"""

from __future__ import annotations

import time
from itertools import count

import pytest

from tests.property.query.neighbours import Tally, trial
from tests.property.query.outcomes import fuzz
from tests.property.query.parts import database

PAIRS = 100_000
HOSTILE_WORLDS = range(10_000, 10_060)
QUESTIONS = range(25)
FIRST = 1_000_000
"""Worlds from here on are in no other test."""


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_pairs_of_neighbours_are_no_further_apart_than_was_charged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    started_s, connection, tally = time.process_time(), database(), Tally()
    for seed in count(FIRST):
        tally += trial(seed, connection)
        if tally.pairs >= PAIRS:
            break
    answered = tally.questions - tally.refused
    with capsys.disabled():
        print(
            f"\n{tally.pairs:,} pairs of {tally.questions:,} questions: {tally.refused:,} refused, {answered:,} "
            f"answered; moved by {tally.tight:.9f} of what was charged at most; {time.process_time() - started_s:.0f} s"
        )
    assert tally.tight <= 1.0000001


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_hostile_questions_end_alike_with_and_without_their_victim(capsys: pytest.CaptureFixture[str]) -> None:
    started_s = time.process_time()
    tally = fuzz(HOSTILE_WORLDS, QUESTIONS)
    with capsys.disabled():
        print(
            f"\n{tally.pairs:,} hostile pairs of {tally.asked:,} questions: {tally.refused:,} refused, "
            f"{tally.answered:,} answered, {tally.failed:,} failed alike; moved by {tally.tight:.9f} of what was "
            f"charged at most; the victim took {tally.extra_s:.2f} s at most; {time.process_time() - started_s:.0f} s"
        )
    assert tally.failed == 0
