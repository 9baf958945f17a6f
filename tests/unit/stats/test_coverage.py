"""Answers by public cells say which rows are in none of them, from the plan and never from the rows."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.cli.app import run
from tacit.stats.rows import Cut

AGES = np.array([*range(20, 80), 200, -5] * 10)
OTHERS = np.arange(20, 82)


@pytest.mark.parametrize(
    ("cut", "sentence"),
    [
        (
            Cut("ward", ("a", "b")),
            "rows with another ward than the listed ones or without a value of ward are left out",
        ),
        (Cut("ward", ("a", None)), "rows with another ward than the listed ones are left out"),
        (Cut("ill", (False, True)), "rows without a value of ill are left out"),
        (Cut("ill", (False, True, None)), ""),
        (
            Cut("age", edges=(0, 18, 65)),
            "values of age below 0 are counted in the first cell and those above 65 in the last one; rows without a "
            "value of age are left out",
        ),
        (
            Cut("day", edges=(date(2024, 1, 1), date(2024, 2, 1))),
            "values of day below 2024-01-01 are counted in the first cell and those above 2024-02-01 in the last one; "
            "rows without a value of day are left out",
        ),
    ],
)
def test_a_partition_says_which_rows_are_in_no_cell(cut: Cut, sentence: str) -> None:
    assert cut.coverage == sentence


def test_values_beyond_the_outer_edges_are_counted_where_it_is_said() -> None:
    answer = tacit.stats.histogram(AGES, edges=[0, 50, 100], epsilon=1e4, budget=tacit.Budget(epsilon=1e5))
    assert answer.value.tolist() == [310, 310]  # -5 is in the first, 200 in the last
    assert "below 0 are counted in the first cell and those above 100 in the last one" in answer.card


def test_what_is_said_does_not_depend_on_the_rows() -> None:
    said = {
        tacit.stats.histogram(ages, edges=[0, 50, 100], epsilon=1, budget=tacit.Budget(epsilon=1)).coverage
        for ages in (AGES, OTHERS)
    }
    assert len(said) == 1


def test_groups_of_every_kind_of_statistic_say_it() -> None:
    sexes = np.array(["F", "M"] * 310)
    listed = {"epsilon": 1, "by": sexes, "keys": ["F"]}
    for answer in (
        tacit.stats.mean(AGES, bounds=(0, 120), budget=tacit.Budget(epsilon=9), **listed),
        tacit.stats.count(AGES, budget=tacit.Budget(epsilon=9), **listed),
        tacit.stats.median(AGES, bounds=(0, 120), budget=tacit.Budget(epsilon=9), **listed),
    ):
        assert "than the listed ones" in answer.coverage[0]
        assert "than the listed ones" in answer.card


def test_the_command_says_it_in_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("age,ward\n" + "".join(f"{i % 90},{'abc'[i % 3]}\n" for i in range(300)))
    for words, sentence in (
        (["age", "--edges", "0,18,65"], "those above 65 in the last one"),
        (["ward", "--keys", "a,b"], "rows with another ward than the listed ones"),
    ):
        command = ["stats", "histogram", str(tmp_path / "t.csv"), *words, "--each-row", "--epsilon", "1"]
        assert run(command) == 0
        said = capsys.readouterr()
        assert sentence in said.err
        assert sentence not in said.out
        assert run([*command, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert sentence in document["coverage"][0]
        assert sentence.removeprefix("rows") in document["card"]
