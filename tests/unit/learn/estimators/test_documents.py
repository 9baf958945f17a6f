"""Documents of estimators: what is damaged is refused when it is read, in one sentence and a short time."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from tacit import learn
from tacit.privacy.errors import InvalidInput

GOOD: Any = learn.KMeans(2, epsilon=1.0, bounds=(0, 1)).fit(np.random.default_rng(0).random((50, 1))).to_document()


def nested(depth: int) -> Any:
    found: Any = 0
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("parameters", []),
        ("fitted", None),
        ("fitted", {}),
        ("fitted", {"predict": 3}),
        ("fitted", {"__dict__": {"mapping": []}}),
        ("fitted", {**GOOD["fitted"], "cluster_centers_": {"array": ["a"], "dtype": "<U500000000"}}),
        ("fitted", {**GOOD["fitted"], "cluster_centers_": {"array": [10**400], "dtype": "<i8"}}),
        ("fitted", {**GOOD["fitted"], "cluster_centers_": nested(5_000)}),
        ("features", [{**GOOD["features"][0], "step": "1/0"}]),
        ("features", [{**GOOD["features"][0], "step": "1e99999999"}]),
        ("features", [{**GOOD["features"][0], "shift": "a"}]),
        ("cost", []),
    ],
)
def test_a_damaged_document_is_refused_when_it_is_read(part: str, value: Any) -> None:
    document = deepcopy(GOOD)
    document[part] = value
    with pytest.raises(InvalidInput):
        learn.from_document(document)


def test_what_was_written_is_read() -> None:
    rows = np.array([[0.1], [0.9]])
    assert (learn.from_document(GOOD).predict(rows) >= 0).all()
