"""Generated questions about generated worlds give the same numbers in every engine."""

from __future__ import annotations

import pytest

from tests.conformance.query.engines import OTHERS
from tests.conformance.query.same_worlds import SEEDS, check_generated_questions_give_the_same_numbers


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_generated_questions_give_the_same_numbers(seed: int, engine: str) -> None:
    check_generated_questions_give_the_same_numbers(seed, engine)
