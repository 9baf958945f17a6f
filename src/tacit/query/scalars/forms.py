"""The one form in which a comparison of a value with a constant is written.

Whole numbers and dates are compared with <= and >= only, and the clamping of a value is left out where the comparison
says the same without it: below, within and above its bounds, and for NULL.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from sqlglot import exp

from tacit.query.expressions import EXACT_MAX
from tacit.query.scalars import trees
from tacit.query.scalars.trees import Tree


def compared(kind: type[Tree], left: Tree, right: Tree) -> Tree:
    """Return a comparison of two trees."""
    left, right = trees.bare(left), trees.bare(right)
    if trees.is_constant(right):
        kind, right = _discrete(kind, right)
        left = _free(kind, left, right)
    return trees.binary(kind, left, right)


def _discrete(kind: type[Tree], right: Tree) -> tuple[type[Tree], Tree]:
    """Return x >= 18 for x > 17, and x <= 17 for x < 18; reals are compared with reals, so that this is for others."""
    if kind not in (exp.GT, exp.LT):
        return kind, right
    value = trees.value(right)
    step, closed = (1, exp.GTE) if kind is exp.GT else (-1, exp.LTE)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < EXACT_MAX:
        return closed, trees.constant(value + step)
    if isinstance(value, date) and not isinstance(value, datetime) and date.min < value < date.max:
        return closed, trees.constant(value + timedelta(days=step))
    return kind, right


def _free(kind: type[Tree], left: Tree, right: Tree) -> Tree:
    found = trees.unclamped(left)
    if found is None:
        return left
    inner, lower, upper = found
    value: Any = trees.value(right)
    above, below = trees.value(lower) < value, value < trees.value(upper)
    at_ends = kind in (exp.LTE, exp.GT) and trees.value(lower) == value and below
    at_ends = at_ends or (kind in (exp.GTE, exp.LT) and trees.value(upper) == value and above)
    return inner if (above and below and kind in _COMPARED) or at_ends else left


_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
