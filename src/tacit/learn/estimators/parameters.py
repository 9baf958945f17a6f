"""The parameters that estimators share: their descriptions for `help`, and checks of what public facts they state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import cleandoc, signature
from textwrap import fill
from typing import Any, Final

import numpy as np

from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import InvalidInput, WrongType
from tacit.stats.stated_kinds import LEARN

SHARED: Final = {
    "epsilon": "what a fit costs; it is stated here or, for a registered table, with the training",
    "delta": "the most that a fit takes of the delta of its budget; without it a fit has Laplace noise, or Gaussian "
    "noise for a small share of that delta",
    "budget": "the `tacit.Budget` that pays for each fit; without it each fit has one of its own, and nothing adds up "
    "several",
    "bounds": "of numeric features, chosen without looking at the data: one pair for all, a mapping of names to pairs "
    '(features of an array are x0, x1, ...), or "learn"',
    "categories": "a mapping of names to lists of the values that a feature can take, which are public",
    "classes": "the list of the labels that there can be, which are public",
    "target_bounds": 'bounds of the target, chosen without looking at the data: a pair, or "learn"',
    "rows_per_unit": "how many rows of a unit are counted; needed with the `unit` of a fit",
}
"""What the parameters with these names are, in every estimator."""
PAIR: Final = "(0, 120)"
BOUNDS: Final = (
    f'bounds is one pair for all features, as in {PAIR}, a mapping of names to pairs, as in {{"age": {PAIR}}} '
    '(features of an array are x0, x1, ...), or "learn"'
)
UNBOUNDED: Final = (
    'give bounds=(low, high), chosen without looking at the data, or bounds="learn". If a transformer made it, use '
    "tacit.learn.StandardScaler, or one that is fitted on public rows: a transformer of scikit-learn that is fitted on "
    "private rows is not private, and neither is what follows it"
)
"""What would bound a feature of an array."""
SHOWN_MAX: Final = 10
WIDTH: Final = 110


def described(kind: type) -> str | None:
    """Return the docstring of an estimator with the shared parameters of its own signature; None if it has none."""
    if kind.__doc__ is None or "__init__" not in vars(kind):
        return kind.__doc__
    own = [_line(name) for name in signature(kind).parameters if name in SHARED]
    return "\n".join([cleandoc(kind.__doc__), "\nParameters of all estimators:\n", *own])


def _line(name: str) -> str:
    return fill(SHARED[name], WIDTH, initial_indent=f"    {name:<16}", subsequent_indent=" " * 20)


def check_bounds(stated: Any, features: Sequence[str]) -> None:
    """Raise unless bounds are one pair, a mapping of features to pairs, or "learn"."""
    if isinstance(stated, Mapping):
        _check_names("bounds", stated, features)
        for name, one in stated.items():
            if not _is_pair(one):
                raise WrongType(
                    f'the bounds of {name} must be a pair, as in {PAIR}, or "learn"', name="bounds", value=one
                )
    elif not _is_pair(stated):
        raise WrongType(BOUNDS, name="bounds", value=stated)


def check_categories(stated: Any, features: Sequence[str]) -> None:
    """Raise unless categories are a mapping of features to lists."""
    if stated is None:
        return
    if not isinstance(stated, Mapping):
        learnt = "; only bounds can be learnt" if isinstance(stated, str) else ""
        raise WrongType(f"categories is a mapping from names to lists of values{learnt}", name="categories")
    _check_names("categories", stated, features)
    for name, one in stated.items():
        if isinstance(one, str):
            raise WrongType(
                f"the categories of {name} must be a list of values; only bounds can be learnt", name="categories"
            )


def check_classes(stated: Any) -> None:
    """Raise if classes are a text, which is no list of labels."""
    if isinstance(stated, str):
        raise WrongType(
            "classes must be a list of labels, as in classes=[0, 1]; only bounds can be learnt", name="classes"
        )


def in_words(values: Sequence[Any]) -> str:
    """Return public values in words, of many the first."""
    more = [] if len(values) <= SHOWN_MAX else [f"{len(values) - SHOWN_MAX:,} more"]
    return ", ".join([*map(repr, values[:SHOWN_MAX]), *more])


def _is_pair(stated: Any) -> bool:
    if stated is None or isinstance(stated, Bounds) or (isinstance(stated, str) and stated == LEARN):
        return True
    if isinstance(stated, str) or not isinstance(stated, Sequence) or len(stated) != 2:
        return False
    return not any(isinstance(end, Sequence | np.ndarray) and not isinstance(end, str) for end in stated)


def _check_names(what: str, stated: Mapping[Any, Any], features: Sequence[str]) -> None:
    for name in stated:
        if name not in features:
            raise InvalidInput(
                f"{what} names {name!r}, and there is no such feature; X has {in_words(features)} (features of an "
                "array are x0, x1, ...)",
                name=what,
                value=name,
            )
