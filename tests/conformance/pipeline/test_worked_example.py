"""The worked example of ARCHITECTURE.md is a kind of release that keeps the pipeline's promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.pipeline.kinds import clinic, spent, worked_example


def test_the_kind_of_release_in_the_architecture_is_charged_once_and_repeated_for_free(tmp_path: Path) -> None:
    """The count is off by 60 or more in fewer than 1 of 10^12 runs."""
    with clinic(tmp_path / "clinic") as curator:
        first, second = (worked_example().row_count(curator, "visits", 0.5) for _ in range(2))
        assert first.answer == second.answer
        assert abs(first.answer - 300) < 60
        assert (second.permit, spent(curator)) == (None, pytest.approx(0.5))
