"""Estimators by their names, and fitted ones from their documents.

A document may come from anywhere: no code is read from it, and one that does not describe a working model is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from tacit import learn
from tacit.accounting.conversions import Cost
from tacit.learn.estimators.base import PrivateEstimator
from tacit.learn.estimators.documents import FORMAT, decode, decode_features, example_rows
from tacit.privacy.errors import InvalidInput, TacitError, UnknownName

METHODS: Final = ("predict", "predict_proba", "transform", "score_samples")
"""What a model computes of rows; the first that an estimator has is its default."""


EXAMPLES_MIN: Final = 7
"""The least number of made-up rows that a model is tried on when it is read."""

DAMAGE: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    StopIteration,
    TacitError,
    TypeError,
    ValueError,
)
"""What a damaged document raises."""


def from_document(document: Mapping[str, Any]) -> PrivateEstimator:
    """Return the fitted model that `PrivateEstimator.to_document` wrote, with the same predictions and no budget."""
    if not isinstance(document, Mapping):
        raise InvalidInput("a document of an estimator is a mapping", name="document")
    name = document.get("estimator")
    kind = getattr(learn, name, None) if name in learn.ESTIMATORS else None
    if document.get("format") != FORMAT or not isinstance(kind, type) or not issubclass(kind, PrivateEstimator):
        raise InvalidInput("this is no document of an estimator that this version of tacit has", name="document")
    try:
        model: PrivateEstimator = kind(**{name: decode(one) for name, one in document["parameters"].items()})
        model.cost_ = Cost(**decode(document["cost"]))
        if not all(type(one) in (int, float) for one in (model.cost_.epsilon, model.cost_.delta, model.cost_.rho)):
            raise InvalidInput("a cost is no number", name="document")
        fitted = {name: decode(one) for name, one in document["fitted"].items()}
        if strange := [one for one in fitted if not one.endswith("_") or one.startswith("_") or hasattr(kind, one)]:
            raise InvalidInput(f"{strange[0]} is no fitted attribute", name="document")
        if not isinstance(fitted.get("card_"), str):
            raise InvalidInput("there is no card", name="document")
        model._set_fitted(decode_features(document["features"]), fitted, fitted.get("feature_names_in_"))
        _require_working(model)
    except DAMAGE as error:
        raise InvalidInput(f"the document is damaged: {error}", name="document") from None
    return model


def _require_working(model: PrivateEstimator) -> None:
    """Raise what a damaged model raises at a prediction, for rows of every category and between all edges."""
    model.require_shapes()
    for least in (EXAMPLES_MIN, EXAMPLES_MIN + 1):  # one length may be that of a damaged array by chance
        rows = example_rows(model.features_, least)
        count = len(next(iter(rows.values())))
        if least > EXAMPLES_MIN and count > least:
            rows = {name: [*listed, listed[0]] for name, listed in rows.items()}
            count += 1
        for method in METHODS:
            if hasattr(model, method):
                found = np.asarray(getattr(model, method)(rows))
                if found.shape[:1] != (count,) or found.ndim > 2 or (found.dtype.kind == "O" and method != "predict"):
                    raise InvalidInput(f"{method} has results of another shape", name="document")
                if method == "predict_proba" and found.shape[1] != len(getattr(model, "classes_", ())):
                    raise InvalidInput("there is no probability for each class", name="document")
                if method == "transform" and found.shape[1] != len(model.get_feature_names_out()):
                    raise InvalidInput("there is no name for each transformed column", name="document")


def estimator_class(name: object) -> type[PrivateEstimator]:
    """Return an estimator of `tacit.learn` by its name, or raise UnknownName."""
    known = {one: getattr(learn, one) for one in learn.ESTIMATORS if issubclass(getattr(learn, one), PrivateEstimator)}
    names = [one for one, kind in known.items() if kind.is_for_servers]
    if name not in names:
        why = f"there is no estimator {name}"
        if name in known:
            why = (
                f"{name} is trained in the curator's process alone, by curator.train in Python, as its running time "
                "has to stay secret"
            )
        raise UnknownName(f"{why}; the estimators are {', '.join(names)}", name="estimator")
    found: type[PrivateEstimator] = known[str(name)]
    return found
