"""Documents of estimators: what is damaged is refused when it is read, in one sentence and a short time."""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import Any

import numpy as np
import pytest

from tacit import learn
from tacit.privacy.errors import InvalidInput
from tests.support.estimators import EXAMPLES, outputs

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


ODD: list[Any] = [
    *(None, True, 0, -1, 1e308, -1e308, 2**70, "", "x", "9" * 5000, [], {}, [[]], [0] * 1000),
    {"array": [1, 2], "dtype": "<f8"},
    {"array": [[1], [2, 3]], "dtype": "O"},
    {"array": [1], "dtype": "<U999999999"},
    {"array": [None], "dtype": "<i8"},
    *({"number": text} for text in ("nan", "inf", "1e999999")),
    {"date": "0001-01-01"},
    {"mapping": [[[], 1]]},
    {"bounds": [1, 0]},
    {"categories": [[1]]},
]
CHANGES = 400
"""Damaged documents of each estimator."""


def places(found: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = list(found) if isinstance(found, dict) else range(min(len(found), 6)) if isinstance(found, list) else []
    return [*([path] if path else []), *(one for key in keys for one in places(found[key], (*path, key)))]


@pytest.mark.parametrize("name", sorted(EXAMPLES))
@pytest.mark.filterwarnings("ignore")
def test_a_document_that_is_read_is_one_of_a_working_model(name: str) -> None:
    example, random = EXAMPLES[name], Random(1)
    good = json.loads(json.dumps(example.estimator(epsilon=1.0).fit(example.X, example.y).to_document()))
    assert outputs(learn.from_document(good), example.X)
    where, read = places(good), 0
    for _ in range(CHANGES):
        document, path = deepcopy(good), random.choice(where)
        holder = document
        for key in path[:-1]:
            holder = holder[key]
        if random.random() < 0.1:
            del holder[path[-1]]
        else:
            holder[path[-1]] = deepcopy(random.choice(ODD))
        try:
            model = learn.from_document(document)
        except InvalidInput:
            continue
        read += 1
        for rows in (1, 3, len(example.X)):
            outputs(model, example.X.head(rows))
        assert model.card, model.cost
        repr(model), model.to_document()
        if hasattr(model, "sample"):
            model.sample(5)
    assert 0 < read < CHANGES / 2


def test_what_was_written_is_read() -> None:
    rows = np.array([[0.1], [0.9]])
    assert (learn.from_document(GOOD).predict(rows) >= 0).all()
