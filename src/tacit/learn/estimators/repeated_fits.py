"""Fits without a budget of their own inside of what fits many times: nothing would add them up, so they are refused."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Final

from tacit.privacy.errors import InvalidInput

ONE_FIT: Final = ("base", "compose", "pipeline", "utils")
"""Modules of scikit-learn that fit an estimator once, or not at all; others may fit copies of it on the same rows."""


def refuse_inside_a_search(private: type) -> None:
    """Raise InvalidInput if the caller is, or may be, a part of scikit-learn that fits several estimators on the rows.

    Several parts of a FeatureUnion or ColumnTransformer without a budget are as many fits as well, while the steps of a
    pipeline are written out one by one. A job in another thread or process does not show what started it, and may be
    one of many. `private` is the class of the estimators.
    """
    frame: FrameType | None = sys._getframe(1)
    started = running = 0
    while frame is not None:
        package, _, module = str(frame.f_globals.get("__name__")).partition(".")
        if package == "sklearn":
            started += frame.f_code.co_qualname == "Parallel.__call__"
            running += frame.f_code.co_qualname == "_FuncWrapper.__call__"
            if module.partition(".")[0] not in ONE_FIT:
                break
            _refuse_several(frame.f_locals.get("self"), private)
        frame = frame.f_back
    if frame is not None or running > started:
        raise InvalidInput(
            "each fit of a search, a cross-validation or an ensemble would have a budget of its own, and nothing "
            "would add them up; give the estimator budget=, from which every fit is paid, or use "
            "tacit.learn.PrivateSearch",
            name="budget",
        )


def _refuse_several(whole: Any, private: type) -> None:
    """Raise InvalidInput for a union or a transformer of columns with several parts that have no budget."""
    parts = getattr(whole, "transformer_list", None) or getattr(whole, "transformers", None) or ()
    if sum(_has_none(part[1], private) for part in parts) > 1:
        raise InvalidInput(
            f"each part of a {type(whole).__name__} would have a budget of its own, and nothing would add them up; "
            "give the estimators in it the same budget=, from which every fit is paid",
            name="budget",
        )


def _has_none(part: Any, private: type) -> bool:
    """Whether a part of a union is or holds an estimator without a budget."""
    held = part.get_params().values() if hasattr(part, "get_params") else ()
    return any(isinstance(one, private) and getattr(one, "budget", None) is None for one in (part, *held))
