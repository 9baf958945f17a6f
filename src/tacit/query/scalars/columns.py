"""Numbers held to a range, and counted in steps."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sqlglot import exp

from tacit.privacy.errors import OutOfRange
from tacit.privacy.numbers import rounded_down, rounded_up
from tacit.privacy.tables import Kind
from tacit.query.expressions import Expression, Range
from tacit.query.scalars import trees
from tacit.query.scalars.constants import is_null
from tacit.query.scalars.facts import real, wrong
from tacit.query.scalars.trees import Tree

WHOLE_MAX: Final = 2**63 - 1
STEPS_MAX: Final = 2**62


def clamp(expression: Expression, range: Range) -> Expression:
    """Return a number moved into a range; what lies there already is left as it is."""
    if not expression.kind.is_number:
        raise wrong("clamping", "numbers", expression)
    own = expression.range
    if is_null(expression) or (own is not None and range.lower <= own.lower and own.upper <= range.upper):
        return expression
    lower, upper = _ends(range, expression.kind)
    inner = trees.unguarded(expression.tree)  # clamping looks after NaN itself
    tree = trees.clamped(inner, trees.constant(lower), trees.constant(upper), real=expression.kind is Kind.REAL)
    ends = Range.of(lower, upper)
    if own is not None:
        ends = Range(min(max(own.lower, ends.lower), ends.upper), max(min(own.upper, ends.upper), ends.lower))
    return replace(expression, tree=tree, range=ends, domain=None)


def steps(expression: Expression, step: Fraction, centre: Fraction) -> Tree:
    """Return the number of whole steps from `centre` to a number that has a range, as an integer of 64 bits.

    The result lies between the ends of the range counted in the same way, for Python's `round`, also after the engine
    has rounded in doubles. Whole numbers in whole steps are counted without doubles.
    """
    ends = expression.range
    if ends is None or not expression.kind.is_number:
        raise wrong("counting in steps", "numbers that have bounds", expression)
    least, most = round((ends.lower - centre) / step), round((ends.upper - centre) / step)
    if max(abs(least), abs(most)) > STEPS_MAX:
        raise OutOfRange("the steps are too small to count in 64 bits", name="step", value=step)
    if expression.kind is Kind.INTEGER and step.denominator == 1 and centre.denominator == 1:
        counted = _whole_steps(expression, int(step), int(centre), least, most)
        if counted is not None:
            return counted
    tree = real(expression).tree
    if centre:
        tree = trees.binary(exp.Sub, tree, trees.constant(float(centre)))
    if step != 1:
        tree = trees.binary(exp.Div, tree, trees.constant(float(step)))
    tree = trees.try_cast(trees.call(exp.Round, tree), Kind.INTEGER)
    return trees.clamped(tree, trees.constant(least), trees.constant(most), real=False)


def _whole_steps(expression: Expression, step: int, centre: int, least: int, most: int) -> Tree | None:
    """Return whole numbers counted in whole steps, halves upwards, or None if that could overflow."""
    ends = expression.range
    assert ends is not None
    if step == 1 and ends.size + abs(centre) < STEPS_MAX:
        moved = trees.binary(exp.Sub, expression.tree, trees.constant(centre)) if centre else expression.tree
        return trees.cast(moved, Kind.INTEGER) if trees.is_constant(expression.tree) else moved.copy()
    # With `least` steps taken off, nothing is negative, where engines differ in how they cut off.
    offset = 2 * (centre + step * least) - step
    if 2 * ends.size + abs(offset) + 2 * step > STEPS_MAX:
        return None
    doubled = trees.binary(exp.Mul, trees.cast(expression.tree, Kind.INTEGER), trees.constant(2))
    moved = trees.binary(exp.Sub, doubled, trees.constant(offset)) if offset else doubled
    counted = trees.binary(exp.IntDiv, moved, trees.constant(2 * step))
    counted = trees.binary(exp.Add, counted, trees.constant(least)) if least else counted
    if math.floor((ends.upper - centre) / step + Fraction(1, 2)) <= most:
        return counted
    return trees.clamped(counted, trees.constant(least), trees.constant(most), real=False)


def _ends(range_: Range, kind: Kind) -> tuple[int | float, int | float]:
    """Return the least and greatest numbers of a kind inside a range, or the nearest one if there is none."""
    ends: tuple[int | float, int | float]
    if kind is Kind.INTEGER:
        ends = max(math.ceil(range_.lower), -WHOLE_MAX), min(math.floor(range_.upper), WHOLE_MAX)
        nearest: int | float = min(max(round(range_.middle), -WHOLE_MAX), WHOLE_MAX)
    else:
        ends = rounded_up(range_.lower) + 0.0, rounded_down(range_.upper) + 0.0
        nearest = float(range_.middle)
    return ends if ends[0] <= ends[1] else (nearest, nearest)
