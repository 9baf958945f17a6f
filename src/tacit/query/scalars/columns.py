"""Declared columns as they are read, and numbers held to a range.

Promise: whatever a column holds, its expression keeps what the owner declared: values beyond the bounds are moved to
them, values that are no category are NULL, and so is NaN. Dates and times always lie within the years 1 to 9999.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, datetime
from datetime import time as time_of_day
from fractions import Fraction
from typing import Final

from sqlglot import exp

from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import OutOfRange, WrongKind
from tacit.privacy.numbers import Real, rounded_down, rounded_up
from tacit.privacy.tables import Column, Kind
from tacit.query.expressions import Constant, Expression, Range, position
from tacit.query.scalars import trees
from tacit.query.scalars.constants import is_null
from tacit.query.scalars.facts import real, shown, wrong
from tacit.query.scalars.trees import Tree

WHOLE_MAX: Final = 2**63 - 1
STEPS_MAX: Final = 2**62

_TYPES: Final[dict[Kind, tuple[type, ...]]] = {
    Kind.BOOLEAN: (bool,),
    Kind.INTEGER: (int,),
    Kind.REAL: (int, float),
    Kind.TEXT: (str,),
    Kind.DATE: (date,),
    Kind.TIME: (datetime,),
}


def read(column: Column, reference: exp.Column) -> Expression:
    """Return a declared column; `reference` is how the engine calls it."""
    if isinstance(column.facts, Categories):
        return _listed(column, column.facts, reference)
    if isinstance(column.facts, Bounds):
        return _bounded(column, column.facts, reference)
    if column.kind is Kind.REAL:
        return Expression(trees.not_nan(reference), column.kind)
    if column.kind in (Kind.DATE, Kind.TIME):
        ends = (date.min, date.max) if column.kind is Kind.DATE else (datetime.min, datetime.max)
        tree = trees.clamped(reference, trees.constant(ends[0]), trees.constant(ends[1]), real=False)
        return Expression(tree, column.kind, nullable=column.nullable)
    return Expression(reference.copy(), column.kind, nullable=column.nullable)


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


def _listed(column: Column, categories: Categories, reference: exp.Column) -> Expression:
    values = [value for value in categories.values if value is not None]
    allowed = _TYPES[column.kind]
    for value in values:
        if not isinstance(value, allowed) or (isinstance(value, bool) and column.kind is not Kind.BOOLEAN):
            raise WrongKind(f"{column.name} is {shown(column.kind)}, and its category {value!r} is not")
        if column.kind is Kind.DATE and isinstance(value, datetime):
            raise WrongKind(f"{column.name} is a date, and its category {value} is a time")
    domain: tuple[Constant, ...] = tuple(float(v) if column.kind is Kind.REAL else v for v in values)  # type: ignore[arg-type]
    if not domain:
        return Expression(trees.cast(trees.constant(None), column.kind), column.kind, domain=())
    range_ = None
    if column.kind not in (Kind.TEXT, Kind.BOOLEAN):
        places = [position(value) for value in domain]  # type: ignore[arg-type]
        range_ = Range(min(places), max(places))
    member = exp.In(this=reference.copy(), expressions=[trees.constant(value) for value in domain])
    return Expression(trees.case((member, reference)), column.kind, range=range_, domain=domain)


def _bounded(column: Column, bounds: Bounds, reference: exp.Column) -> Expression:
    lower, upper = _bound(column, bounds.lower, end=False), _bound(column, bounds.upper, end=True)
    if column.kind.is_number:
        lower, upper = _ends(Range.of(lower, upper), column.kind)
    real_ = column.kind is Kind.REAL
    tree = trees.clamped(reference, _constant(lower), _constant(upper), real=real_)
    return Expression(tree, column.kind, range=Range.of(lower, upper), nullable=column.nullable or real_)


def _bound(column: Column, bound: Real | date, *, end: bool) -> int | float | Fraction | date:
    """Return a bound as the column's kind has it; a day, for times, lasts until its last microsecond."""
    match column.kind, bound:
        case Kind.DATE, datetime():
            return bound.date()
        case Kind.DATE, date():
            return bound
        case Kind.TIME, datetime():
            return bound.replace(tzinfo=None)
        case Kind.TIME, date():
            return datetime.combine(bound, time_of_day.max if end else time_of_day.min)
        case ((Kind.INTEGER | Kind.REAL), (int() | float() | Fraction())):
            return bound
    raise WrongKind(f"{column.name} is {shown(column.kind)}, and its bound {bound} is not")


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


def _constant(value: int | float | Fraction | date) -> Tree:
    assert not isinstance(value, Fraction)
    return trees.constant(value)
