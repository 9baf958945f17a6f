"""Clocks: whatever one says, a record has a time that can be shown, or nothing is written and one sentence says why."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Ledger
from tacit.ledger.clock import time_of
from tacit.ledger.journal import AT_US_MAX
from tacit.privacy import events
from tacit.privacy.errors import LedgerUnavailable

NOW_US = 1_700_000_000_000_000


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[Any], Ledger]:
    """Return a function that opens one ledger, which has a budget, with a clock that always says the same."""
    with Ledger.open(tmp_path, clock=lambda: NOW_US) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
    return lambda said: Ledger.open(tmp_path, clock=lambda: said)


@pytest.mark.parametrize(
    "said", [10**30, 10**18, AT_US_MAX + 1, -(10**30), -AT_US_MAX - 1, 1.5, math.nan, math.inf, True, None, "noon"]
)
def test_a_clock_that_says_no_time_is_refused_in_one_sentence(opened: Callable[[Any], Ledger], said: Any) -> None:
    with opened(said) as ledger:
        before = ledger.head()
        with pytest.raises(LedgerUnavailable, match=r"the clock returned .* nothing was written; set the clock"):
            ledger.reserve("visits", events.Laplace(0.1))
        assert ledger.head() == before
        assert ledger.budget("visits").remaining().epsilon == 1.0, "reading needs no clock"
        assert ledger.reservations() == []
        ledger.verify(full=True)


@pytest.mark.parametrize("said", [0, -1, -AT_US_MAX, 5, NOW_US - 1, NOW_US + 1, AT_US_MAX])
def test_a_clock_that_was_set_back_or_forward_is_noted_and_time_never_goes_back(
    opened: Callable[[Any], Ledger], said: int
) -> None:
    with opened(said) as ledger:
        permit = ledger.reserve("visits", events.Laplace(0.1))
        assert permit.issued_at == time_of(max(said, NOW_US))
        (record,) = ledger.history(2)
        assert (record.at_us, record.behind_us) == (max(said, NOW_US), max(NOW_US - said, 0))
        ledger.verify(full=True)
