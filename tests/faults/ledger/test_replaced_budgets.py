"""A budget that may have been charged by records that are lost is a promise, and is not replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.ledger import Ledger
from tacit.privacy import events
from tacit.privacy.errors import NameTaken, OutOfRange


@pytest.mark.parametrize("is_charged", [False, True])
def test_after_a_restoration_with_losses_no_budget_of_before_is_replaced(tmp_path: Path, is_charged: bool) -> None:
    with Ledger.open(tmp_path / "ledger") as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        ledger.backup(tmp_path / "backup")
        if is_charged:
            ledger.commit(ledger.reserve("visits", events.Laplace(1.0)), b"42", plan="q", data_version="1")
    lost = _restored(tmp_path)
    assert (lost > 0) is is_charged
    with Ledger.open(tmp_path / "ledger") as ledger:
        assert ledger.budget("visits").spent().epsilon == 0
        if is_charged:
            with pytest.raises(NameTaken):
                ledger.create_budget("visits", epsilon=100.0)
        else:
            assert ledger.create_budget("visits", epsilon=100.0).epsilon == 100.0
        assert ledger.create_budget("others", epsilon=1.0).epsilon == 1.0
        assert ledger.create_budget("others", epsilon=2.0).epsilon == 2.0


def _restored(folder: Path) -> int:
    """Restore the backup, and return how many records that took."""
    for lost in range(10):
        try:
            Ledger.restore(
                folder / "ledger", folder / "backup", by="olga", reason="a lost disk", lost_records=lost
            ).close()
        except OutOfRange:
            continue
        return lost
    raise AssertionError("the backup was not restored")
