"""A preview says whether what is left pays for the question, and what would fit; it spends nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import tacit
from tacit.cli.app import run
from tacit.privacy.errors import BudgetExceeded

COUNT = "SELECT COUNT(*) AS n FROM t"


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    with tacit.Curator(tmp_path / "clinic") as made:
        made.add_table("t", pd.DataFrame({"person": range(100), "age": 40}), unit="person")
        made.set_budget("t", epsilon=1.0)
        made.add_analyst("ana", budgets={"t": tacit.Budget(epsilon=0.4)})
        yield made


def test_a_preview_says_that_a_question_does_not_fit_as_the_refusal_would(curator: tacit.Curator) -> None:
    assert curator.preview(COUNT, epsilon=1.0).fits
    preview = curator.preview(COUNT, epsilon=1.5)
    assert not preview.fits
    assert preview.epsilon == 1.5
    assert preview.remaining["t"].epsilon == 1.0
    with pytest.raises(BudgetExceeded) as caught:
        curator.sql(COUNT, epsilon=1.5)
    assert preview.refusal == caught.value.message
    assert "epsilon=1 would fit" in preview.refusal
    assert curator.budget("t").spent().epsilon == 0


def test_a_preview_is_about_the_cap_of_whoever_asks(curator: tacit.Curator) -> None:
    assert curator.preview(COUNT, epsilon=0.4, analyst="ana").fits
    preview = curator.preview(COUNT, epsilon=0.6, analyst="ana")
    assert not preview.fits
    assert preview.remaining["t"].epsilon == pytest.approx(0.4)
    assert curator.preview(COUNT, epsilon=0.6).fits


def test_an_answer_that_was_released_fits_into_an_empty_budget(curator: tacit.Curator) -> None:
    curator.sql(COUNT, epsilon=1.0)
    assert curator.preview(COUNT, epsilon=1.0).fits
    assert not curator.preview(COUNT, epsilon=0.5).fits


def test_the_command_says_it_and_ends_well(curator: tacit.Curator, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["preview", COUNT, "--epsilon", "1.5", "--folder", str(curator.folder)]
    assert run(words) == 0
    out = capsys.readouterr().out
    assert 'over budget,"asked for epsilon 1.5, 1 is left for t; --epsilon 1 would fit"' in out
    assert "remaining,ε 1 on t" in out
    assert run([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["fits"], document["remaining"]["t"]["epsilon"]) == (False, 1.0)
    assert run(["preview", COUNT, "--epsilon", "0.5", "--folder", str(curator.folder)]) == 0
    assert "over budget" not in capsys.readouterr().out
