"""Fits without a budget of their own inside of what fits many times: nothing would add them up, so they are refused."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Final

from tacit.privacy.errors import InvalidInput

ONE_FIT: Final = ("base", "compose", "pipeline", "utils")
"""Modules of scikit-learn that fit an estimator once, or not at all; others may fit copies of it on the same rows."""


def refuse_inside_a_search() -> None:
    """Raise InvalidInput if the caller is, or may be, a part of scikit-learn that fits several copies of an estimator.

    A job in another thread or process does not show what started it, and may be one of many.
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
        frame = frame.f_back
    if frame is not None or running > started:
        raise InvalidInput(
            "each fit of a search, a cross-validation or an ensemble would have a budget of its own, and nothing "
            "would add them up; give the estimator budget=, from which every fit is paid, or use "
            "tacit.learn.PrivateSearch",
            name="budget",
        )
