"""A statistic that is prepared is planned and priced, and nothing more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tacit
from tacit import stats
from tacit.privacy.errors import InvalidInput

AGES = np.arange(300) % 90


def test_a_prepared_statistic_charges_nothing_before_its_release_and_then_what_its_preview_says() -> None:
    budget = tacit.Budget(1.0)
    prepared = stats.prepare(stats.mean, AGES, bounds=(0, 90), epsilon=0.5, budget=budget)
    quote = prepared.preview()
    assert (quote.fits, quote.is_released, budget.spent().epsilon) == (True, False, 0.0)
    assert prepared.release().cost == quote
    assert budget.spent().epsilon == pytest.approx(0.5)
    again = stats.preview(stats.mean, AGES, bounds=(0, 90), epsilon=0.6, budget=budget)
    assert not again.fits
    assert "0.5" in again.refusal


@pytest.mark.parametrize("function", [stats.RunningCount, print])
def test_what_is_no_statistic_is_refused_and_charges_nothing(function: Any) -> None:
    budget = tacit.Budget(1.0)
    named = {"horizon": 5, "epsilon": 0.5, "budget": budget} if function is stats.RunningCount else {}
    with pytest.raises(InvalidInput, match="no statistic"):
        stats.prepare(function, **named)
    assert budget.spent().epsilon == 0.0


def test_a_key_for_arrays_is_refused_and_charges_nothing() -> None:
    budget = tacit.Budget(1.0)
    with pytest.raises(InvalidInput, match="key"):
        stats.count(AGES, epsilon=0.5, budget=budget, key="monday")
    assert budget.spent().epsilon == 0.0
