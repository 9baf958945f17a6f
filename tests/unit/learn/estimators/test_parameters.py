"""The parameters that estimators share: described in `help`, and refused before the charge where they cannot be."""

from __future__ import annotations

import re
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import learn
from tacit.learn.estimators.parameters import SHARED
from tacit.privacy.errors import TacitError

ROWS = np.column_stack([np.linspace(20, 80, 60), np.linspace(1, 16, 60)])
FRAME = pd.DataFrame(ROWS, columns=["age", "years"])
LABELS = np.arange(60) % 2
LISTS = {"listed pairs": [(17, 90), (1, 16)], "lows and highs": ([17, 1], [90, 16]), "arrays": (ROWS[0], ROWS[1])}


def refusal(rows: Any, labels: Any = LABELS, **stated: Any) -> str:
    budget = tacit.Budget(2.0)
    model = learn.LogisticRegression(**{"epsilon": 1.0, "budget": budget, "classes": [0, 1], **stated})
    with pytest.raises(TacitError) as caught:
        model.fit(rows, labels)
    assert budget.spent().epsilon == 0
    return str(caught.value)


@pytest.mark.parametrize("name", learn.ESTIMATORS)
def test_every_parameter_of_an_estimator_is_described_where_help_shows_it(name: str) -> None:
    kind = getattr(learn, name)
    described = str(kind.__doc__)
    own = signature(kind).parameters
    assert not [one for one in own if not re.search(rf"\b{one}\b", described)]
    assert all((f"\n    {one} " in described) == (one in own) for one in SHARED)


@pytest.mark.parametrize("name", LISTS)
def test_bounds_of_another_form_are_refused_with_all_forms_that_are_accepted(name: str) -> None:
    for rows in (ROWS, FRAME):
        said = refusal(rows, bounds=LISTS[name])
        for words in ("one pair for all", "a mapping of names to pairs", "x0, x1, ...", '"learn"'):
            assert words in said


def test_names_of_bounds_that_are_no_features_are_told_beside_those_of_x() -> None:
    assert "no such feature; X has 'x0', 'x1' (features of an array are x0, x1, ...)" in refusal(
        ROWS, bounds={"age": (17, 90)}
    )
    assert "X has 'age', 'years'" in refusal(FRAME, bounds={"x0": (17, 90)})
    assert "the bounds of age must be a pair" in refusal(FRAME, bounds={"age": (1, 2, 3)})


def test_missing_bounds_of_arrays_warn_of_transformers_that_are_not_private() -> None:
    said = refusal(ROWS)
    assert "x0 has no declared bounds" in said
    assert "a transformer of scikit-learn that is fitted on private rows is not private" in said


def test_only_bounds_can_be_learnt() -> None:
    bounds = {"age": (17, 90), "years": (1, 16)}
    for stated in ({"classes": "learn"}, {"categories": "learn"}, {"categories": {"years": "learn"}}):
        assert "only bounds can be learnt" in refusal(FRAME, bounds=bounds, **stated)


def test_a_label_that_is_no_class_is_told_by_the_classes_alone() -> None:
    said = refusal(ROWS, np.where(LABELS == 1, "yes", "maybe"), bounds=(0, 100), classes=["no", "yes"])
    assert "not among the classes: 'no', 'yes'" in said
    assert "maybe" not in said
