"""The benchmarks of defences and groups: the attack finds what leaks and nothing else, and groups are what they are."""

from __future__ import annotations

import numpy as np
import pytest

from bench.__main__ import PART_NAMES
from bench.learn import PARTS
from bench.learning import defences, subgroups


@pytest.fixture(autouse=True)
def generated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TACIT_DATA", raising=False)


def test_help_names_the_parts() -> None:
    told = PART_NAMES.removeprefix("learn has ").replace(" and ", ", ").split(", ")
    assert told == list(PARTS)


def areas(shift: float, seed: int) -> float:
    """Return the area under the curve where use shifts margins of standard deviation 1 around means far apart."""
    random = np.random.default_rng(seed)
    used = random.integers(0, 2, (8, 1000)).astype(bool)
    margins = random.normal(0, 20, 1000) + shift * used + random.normal(size=used.shape)
    return defences.curve(defences.likelihood_ratios(margins, used), used)[0]


def test_likelihood_ratios_find_a_shift_that_margins_alone_would_hide_and_nothing_where_there_is_none() -> None:
    """False alarm 1e-9: the area of nothing has deviation below 0.01."""
    assert areas(2.0, 1) > 0.85  # the best attack that knows all means has 0.92
    assert areas(0.0, 2) == pytest.approx(0.5, abs=0.06)


def test_the_rate_at_one_percent_false_is_counted_above_a_threshold_of_rows_that_were_not_used() -> None:
    used = np.arange(400) < 200
    scores = np.where(used, np.arange(400) % 100, np.arange(400) % 100 - 50).astype(float)
    area, found = defences.curve(scores, used)
    assert found == pytest.approx(0.5 + 0.01, abs=0.011)
    assert 0.8 < area < 0.95


def test_candidates_start_with_mislabelled_rows_and_seeds_differ() -> None:
    size = defences.QUICK
    first, again, other = (defences.data(size, seed) for seed in (0, 0, 1))
    assert len(first.candidates[0]) == size.candidates
    assert bool((first.candidates[0] == again.candidates[0]).all())
    assert not bool((first.candidates[0] == other.candidates[0]).all())
    x, labels = defences.purchases(size.candidates + 2_500, np.random.default_rng(1_000))
    changed = first.candidates[1].numpy() != labels[: size.candidates]
    assert changed[: size.canaries].all()
    assert not changed[size.canaries :].any()
    assert np.array_equal(first.candidates[0].numpy(), x[: size.candidates])


def test_the_label_of_the_small_generated_group_depends_on_its_own_feature() -> None:
    people = subgroups.generated(2_000)
    few = (people.train["group"] == "few").to_numpy()
    assert (people.train["second"][~few] == 0).all()
    assert (people.train["first"][few] == 0).all()
    assert 0.01 < few.mean() < 0.04
