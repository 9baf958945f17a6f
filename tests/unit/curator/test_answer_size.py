"""An answer that is too large to be kept is refused before it is charged, or holds the groups that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import stats
from tacit.ledger import answer_storage, ledger
from tacit.privacy.errors import TooWide
from tacit.query.plan import CELL_BYTES, key_bytes
from tacit.query.run import Noisy
from tacit.stats.statistic import bytes_max, to_bytes
from tacit.stats.workloads import Marginals

ROWS = 4000
WORDS = [f"{'ä' * 300} {index}" for index in range(20)]
FRAME = pd.DataFrame(
    {
        "patient": range(ROWS),
        "age": [index % 90 for index in range(ROWS)],
        "weight": [index % 90 + 0.5 for index in range(ROWS)],
        "code": [f"code {index % 300}" for index in range(ROWS)],
        "word": [WORDS[index % 20] for index in range(ROWS)],
        "day": [date(2024, 1, 1 + index % 28) for index in range(ROWS)],
    }
)
ROOM = 4_000
CODES = [f"code {index}" for index in range(300)]

WIDE: dict[str, Callable[[tacit.Curator], Any]] = {
    "keys": lambda one: one.sql("SELECT code, COUNT(*) FROM visits GROUP BY code", 1, keys={"code": CODES}),
    "texts": lambda one: one.sql("SELECT word, COUNT(*) FROM visits GROUP BY word", 1, keys={"word": WORDS}),
    "sets": lambda one: one.sql(
        "SELECT code, word, COUNT(*) FROM visits GROUP BY ROLLUP (code, word)", 1, keys={"code": CODES, "word": ["a"]}
    ),
    "choices": lambda one: one.sql("SELECT code, MEDIAN(age) FROM visits GROUP BY code", 1, keys={"code": CODES}),
    "moments": lambda one: stats.mean(column(one, "age"), by=column(one, "code"), keys=CODES, epsilon=1),
    "histogram": lambda one: stats.histogram(column(one, "age"), bins=300, bounds=(0, 90), epsilon=1),
    "cdf": lambda one: stats.cdf(column(one, "weight"), bins=300, bounds=(0, 90), epsilon=1),
    "medians": lambda one: stats.median(column(one, "age"), by=column(one, "code"), keys=CODES, epsilon=1),
    "learnt medians": lambda one: stats.median(
        column(one, "age"), bounds="learn", by=column(one, "code"), keys=CODES, epsilon=1
    ),
    "top": lambda one: stats.top_k(column(one, "code"), 2, keys=CODES, epsilon=1),
    "marginals": lambda one: stats.workload(
        {"age": column(one, "age"), "code": column(one, "code")},
        Marginals(("age", "code"), (1, 2)),
        domain={"age": [0, 10, 50, 90], "code": tacit.Categories(CODES)},
        epsilon=1,
    ),
}


def column(curator: tacit.Curator, name: str) -> Any:
    return curator.table("visits")[name]


@pytest.fixture
def curator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tacit.Curator]:
    with tacit.Curator(tmp_path) as curator:
        one_row = tacit.Limits(rows_per_unit=1)
        bounds = {"age": tacit.Bounds(0, 90), "weight": tacit.Bounds(0, 91)}
        curator.add_table("visits", FRAME, unit="patient", limits=one_row, columns=bounds)
        with pytest.warns(UserWarning, match="epsilon"):
            curator.set_budget("visits", epsilon=1e6, delta=9e-4, epsilon_min=0)
        monkeypatch.setattr(answer_storage, "FRAME_BYTES", 300)
        for module in (answer_storage, ledger):
            monkeypatch.setattr(module, "ANSWER_BYTES_MAX", ROOM)
        yield curator


@pytest.mark.parametrize("name", WIDE)
def test_a_public_size_that_cannot_be_kept_is_refused_before_the_charge(curator: tacit.Curator, name: str) -> None:
    with pytest.raises(TooWide, match="fewer") as refused:
        WIDE[name](curator)
    assert refused.value.code == "T207"
    assert not curator.budget("visits").events


def test_a_preview_refuses_what_would_be_refused(curator: tacit.Curator) -> None:
    with pytest.raises(TooWide):
        curator.preview("SELECT code, COUNT(*) FROM visits GROUP BY code", 1, keys={"code": CODES})


@pytest.mark.parametrize(("key", "other"), [("code", False), ("code", True), ("word", False), ("day", False)])
def test_selected_groups_that_fit_are_kept_and_the_card_says_so(curator: tacit.Curator, key: str, other: bool) -> None:
    asked: dict[str, Any] = {"epsilon": 1e4, "other": other}
    question = f"SELECT {key}, COUNT(*) AS n, SUM(age) AS s, AVG(weight) AS w FROM visits GROUP BY {key}"
    release = curator.sql(question, **asked)
    every = sorted(set(FRAME[key]))
    shown = [row[key] for row in release.rows][: -1 if other else None]
    assert 0 < len(shown) <= len(every)
    assert shown == every[: len(shown)]
    assert ("The answer is truncated" in release.card) == (len(shown) < len(every))
    if other:
        assert abs(sum(row["n"] for row in release.rows) - ROWS) < 10
    again = curator.sql(question, **asked)
    assert (again.rows, again.cost.epsilon) == (release.rows, 0.0)
    assert again.card.split(" It cost")[0] == release.card.split(" It cost")[0]


def test_the_greatest_selected_values_are_kept(curator: tacit.Curator) -> None:
    answer = stats.top_k(column(curator, "word"), 20, epsilon=1e4)
    assert 0 < len(answer.keys or ()) < 20
    assert stats.top_k(column(curator, "word"), 3, epsilon=1e4).value.tolist() == pytest.approx([200] * 3, abs=1)
    small = stats.top_k(column(curator, "code"), 2, epsilon=1e4)
    assert len(small.keys or ()) == 2
    again = stats.top_k(column(curator, "code"), 2, epsilon=1e4)
    assert (again.keys, again.cost.epsilon) == (small.keys, 0.0)


def test_learned_bounds_do_not_widen_an_answer_after_the_charge(tmp_path: Path) -> None:
    """A ruler over learnt bounds may have more cells than the one that the plan stands on."""
    groups = [f"g{index}" for index in range(3000)]
    budget = tacit.Budget(epsilon=1e6)
    with pytest.raises(TooWide):
        stats.median(
            np.arange(5000) * 1000, kind="integer", bounds="learn", by=np.array(groups)[np.arange(5000) % 3000],
            keys=groups, epsilon=1e3, budget=budget,
        )  # fmt: skip
    assert not budget.events


def test_the_stated_sizes_are_not_below_the_written_ones(curator: tacit.Curator) -> None:
    least = np.full((7, 5), -(2**63), dtype=np.int64)
    noisy = (least, np.full((3, 2, 2), -1.7976931348623157e308), least[0])
    assert len(to_bytes(noisy)) <= bytes_max(noisy) + 2
    keys = (["ä\n\0'\"\\", None], [date(2024, 1, 1)] * 2)
    written = Noisy(keys, (least[0, :2], least[1, :2]), ([1.5, 2.5],)).to_bytes()
    empty = Noisy(((), ()), (least[0, :0],) * 2, ([],)).to_bytes()  # type: ignore[arg-type]
    groups = sum(key_bytes(key) + 2 * answer_storage.INTEGER_BYTES + CELL_BYTES for key in zip(*keys, strict=True))
    assert len(written) <= len(empty) + groups
