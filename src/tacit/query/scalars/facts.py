"""Public facts about values: kinds, NULL, ranges, the mark of the unit; constants, clamped values and grid steps.

Promise: `derive` marks whatever is computed from the unit's own column, and says NULL wherever an input can be NULL;
`as_real`, `to_common_kind` and `as_temporal` change how a value is held, never the value.

0.0 and -0.0 are equal, so that it is not a function of a unit's rows which of them MIN, a window, a limit or a group
keeps. No rule may tell them apart: what would do so, which is writing a real as a text and POWER, reads `one_zero`.
Other rules give equal values for both; they may differ in the sign of a zero and in nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Final, TypeAlias

from sqlglot import exp

from tacit.privacy.errors import NotAllowed, OutOfRange, Place, TooWide, WrongKind
from tacit.privacy.numbers import rounded_down, rounded_up
from tacit.privacy.tables import Kind
from tacit.query.expressions import DERIVED_TEXT_MAX, EXACT_MAX, Constant, Expression, Range
from tacit.query.parse import is_text
from tacit.query.scalars import trees, value_ranges
from tacit.query.scalars.trees import Tree

Bind: TypeAlias = Callable[[exp.Expression], Expression]
"""Resolves a child node: columns, and whatever is nested."""

Locate: TypeAlias = Callable[[exp.Expression], Place | None]
"""Returns where in the query a node stands."""


TEXT_MAX: Final = 10_000
"""How many characters a text literal has at most."""

WHOLE_MAX: Final = 2**63 - 1
LEAST_SIZE: Final = 2**63
STEPS_MAX: Final = 2**62
"""The greatest number of grid steps, so that they fit into 64 bits."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How one class of node becomes an expression: its names in SQL, and the arguments that it reads.

    A node with other arguments is refused.
    """

    build: Callable[[exp.Expression, Bind], Expression]
    names: tuple[str, ...]
    takes: tuple[str, ...] = ("this", "expression", "expressions")


def derive(
    tree: Tree,
    kind: Kind,
    inputs: Sequence[Expression],
    *,
    range: Range | None = None,
    domain: tuple[Constant, ...] | None = None,
    nullable: bool | None = None,
    length: int | None = None,
    makes_null: bool | None = None,
) -> Expression:
    """Return the result of a function of the inputs; it is NULL where an input is, unless `nullable` says otherwise.

    A text is no longer than all texts of the inputs together, unless `length` says otherwise. NULL comes from the
    query itself if it does in an input, or if no input can be NULL, unless `makes_null` says otherwise.
    """
    stored = any(one.nullable for one in inputs)
    if makes_null is None:
        makes_null = any(one.makes_null for one in inputs) or (nullable is True and not stored)
    if kind is Kind.TEXT:
        length = sum(one.length for one in inputs if one.kind is Kind.TEXT) if length is None else length
        if length > DERIVED_TEXT_MAX:
            raise TooWide(
                f"this text could have {length:,} characters, and at most {DERIVED_TEXT_MAX:,} are computed",
                accepted="cut its parts with LEFT or SUBSTRING",
            )
    return Expression(
        tree,
        kind,
        range=range,
        domain=domain,
        nullable=stored if nullable is None else nullable,
        unit=any(one.unit for one in inputs),
        length=length or 0,
        makes_null=makes_null and nullable is not False,
    )


def with_article(kind: Kind) -> str:
    """Return a kind with its article, such as "an integer"."""
    return f"{'an' if kind is Kind.INTEGER else 'a'} {kind}"


def wrong_kind(function: str, takes: str, got: Expression) -> WrongKind:
    """Return the error for an argument of the wrong kind: what a function takes and what it got."""
    hint = "; use CAST to change it" if got.kind in (Kind.TEXT, Kind.BOOLEAN) else ""
    return WrongKind(f"{function} takes {takes} and got {with_article(got.kind)}{hint}")


def require_number(expression: Expression, function: str) -> Expression:
    """Return a number; raise WrongKind for any other kind."""
    if is_null(expression):
        return null(expression.kind if expression.kind.is_number else Kind.REAL)
    if not expression.kind.is_number:
        raise wrong_kind(function, "numbers", expression)
    return expression


def require_kind(expression: Expression, kind: Kind, function: str) -> Expression:
    """Return an expression of one kind; raise WrongKind for any other."""
    if is_null(expression):
        return null(kind)
    if expression.kind is not kind:
        takes = {Kind.BOOLEAN: "truth values", Kind.TEXT: "texts", Kind.INTEGER: "integers"}
        raise wrong_kind(function, takes.get(kind, f"{kind}s"), expression)
    return expression


def as_real(expression: Expression) -> Expression:
    """Return a number as a double."""
    if expression.kind is Kind.REAL:
        return expression
    if is_null(expression):
        return null(Kind.REAL)
    if is_known(expression):
        value = value_of(expression)
        assert isinstance(value, int)
        return replace(literal(float(value)), unit=expression.unit)
    ends = expression.range
    wide = None if ends is None else value_ranges.outward(ends.lower, ends.upper)
    return replace(expression, tree=trees.cast(expression.tree, Kind.REAL), kind=Kind.REAL, range=wide, domain=None)


def one_zero(expression: Expression) -> Tree:
    """Return the tree of a real with 0.0 in the place of -0.0; engines add as IEEE 754 says, and leave no addition out.

    Only the sum of two negative zeros is a negative zero.
    """
    ends = expression.range
    if ends is not None and not ends.lower <= 0 <= ends.upper:
        return expression.tree
    return trees.map_unguarded(expression.tree, lambda inner: trees.binary(exp.Add, inner, trees.constant(0.0)))


def as_temporal(expression: Expression, function: str) -> Expression:
    """Return a date or time; a text literal is parsed as one."""
    if is_null(expression):
        return null(expression.kind if expression.kind in (Kind.DATE, Kind.TIME) else Kind.DATE)
    if expression.kind is Kind.TEXT and is_known(expression):
        return parse_moment(str(value_of(expression)))
    if expression.kind not in (Kind.DATE, Kind.TIME):
        raise wrong_kind(function, "dates or times", expression)
    return expression


def parse_moment(text: str) -> Expression:
    """Return the date or time of a text literal; raise WrongKind if it is neither."""
    try:
        return literal(date.fromisoformat(text.strip()))
    except ValueError:
        pass
    try:
        return literal(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        raise WrongKind(f"{text[:40]!r} is not a date; write it as '2024-01-31' or '2024-01-31 23:59:59'") from None


def as_time(expression: Expression) -> Expression:
    """Return a date or time as a time; dates lie within the years 1 to 9999, so that the cast cannot fail."""
    if expression.kind is Kind.TIME:
        return expression
    if is_null(expression):
        return null(Kind.TIME)
    if is_known(expression):
        return replace(literal(_midnight(value_of(expression))), unit=expression.unit)
    ends = expression.range
    micros = None if ends is None else Range(ends.lower * value_ranges.DAY, ends.upper * value_ranges.DAY)
    domain = None if expression.domain is None else tuple(_midnight(value) for value in expression.domain)
    tree = trees.cast(expression.tree, Kind.TIME)
    return replace(expression, tree=tree, kind=Kind.TIME, range=micros, domain=domain)


def to_common_kind(expressions: Sequence[Expression], function: str) -> list[Expression]:
    """Return expressions converted to one kind; dates may be written as texts."""
    kinds = {one.kind for one in expressions if not is_null(one)}
    if kinds & {Kind.DATE, Kind.TIME}:
        dated = [as_temporal(one, function) for one in expressions]
        same = all(one.kind is Kind.DATE for one in dated)
        return dated if same else [as_time(one) for one in dated]
    if len(kinds) <= 1:
        kind = next(iter(kinds), Kind.TEXT)
        return [null(kind) if is_null(one) else one for one in expressions]
    if all(kind.is_number for kind in kinds):
        return [as_real(require_number(one, function)) for one in expressions]
    names = " and ".join(with_article(kind) for kind in sorted(kinds))
    raise WrongKind(f"{function} takes values of one kind and got {names}; use CAST to change one of them")


def whole_literal(expression: Expression, what: str, lower: int, upper: int) -> int:
    """Return a whole number that is written in the query, between two limits."""
    value = value_of(expression) if is_known(expression) else None
    if isinstance(value, bool) or not isinstance(value, int) or not lower <= value <= upper:
        raise NotAllowed(what, accepted=f"write a whole number from {lower:,} to {upper:,} there")
    return value


def union_facts(expressions: Sequence[Expression]) -> tuple[Range | None, tuple[Constant, ...] | None]:
    """Return the range and the domain of a value that is one of several expressions."""
    some = [one for one in expressions if not is_null(one)]
    ranges = [one.range for one in some]
    range_ = None
    if ranges and all(one is not None for one in ranges):
        range_ = value_ranges.union([one for one in ranges if one is not None])
    if not all(one.domain is not None for one in some):
        return range_, None
    return range_, tuple(dict.fromkeys(value for one in some for value in one.domain or ()))


def longest_text(expressions: Sequence[Expression]) -> int:
    """Return the greatest length of a text that is one of several."""
    return max((one.length for one in expressions if one.kind is Kind.TEXT), default=0)


def is_exact(range_: Range | None) -> bool:
    """Whether all whole numbers in the range are exact in doubles."""
    return range_ is not None and range_.size <= EXACT_MAX


def _midnight(value: Constant) -> datetime:
    assert isinstance(value, date)
    return datetime(value.year, value.month, value.day)


def literal(value: Constant) -> Expression:
    """Return a value as an expression; NULL is of any kind, and integers that take more than 64 bits are reals."""
    match value:
        case None:
            return Expression(trees.constant(None), Kind.TEXT, domain=(), length=0, makes_null=True)
        case bool():
            return _known_literal(value, Kind.BOOLEAN)
        case int():
            return _known_literal(value, Kind.INTEGER) if abs(value) <= WHOLE_MAX else literal(_nearest(value))
        case float():
            return literal(None) if math.isnan(value) else _known_literal(value + 0.0, Kind.REAL)  # -0.0 becomes 0.0
        case str():
            if len(value) > TEXT_MAX:
                raise TooWide(f"a text in a query has at most {TEXT_MAX:,} characters, not {len(value):,}")
            if not is_text(value):
                raise WrongKind("a text literal contains NUL or an unpaired surrogate, which no engine can hold")
            return _known_literal(value, Kind.TEXT)
        case datetime():
            return _known_literal(value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value, Kind.TIME)
        case date():
            return _known_literal(value, Kind.DATE)


def least_integer() -> Expression:
    """Return -2^63, to compare with; elsewhere it is a real (`literal`): engines read 2^63 in more than 64 bits."""
    return _known_literal(-LEAST_SIZE, Kind.INTEGER)


def null(kind: Kind) -> Expression:
    """Return NULL of a kind."""
    return Expression(trees.cast(trees.constant(None), kind), kind, domain=(), length=0, makes_null=True)


def is_null(expression: Expression) -> bool:
    """Whether the expression is NULL itself, of whatever kind."""
    return expression.nullable and expression.domain == ()


def is_known(expression: Expression) -> bool:
    """Whether the expression is a literal other than NULL."""
    single = expression.domain is not None and len(expression.domain) == 1 and not expression.nullable
    return single and trees.is_constant(expression.tree)


def value_of(expression: Expression) -> Constant:
    """Return the value of a literal."""
    return expression.domain[0] if expression.domain else None


def _known_literal(value: str | int | float | date, kind: Kind) -> Expression:
    """Return the expression of a value other than NULL."""
    ranged = kind not in (Kind.BOOLEAN, Kind.TEXT) and not (isinstance(value, float) and math.isinf(value))
    range_ = Range.of(value, value) if ranged and not isinstance(value, str) else None
    length = len(value) if isinstance(value, str) else 0
    return Expression(trees.constant(value), kind, range=range_, domain=(value,), nullable=False, length=length)


def _nearest(value: int) -> float:
    """Return the nearest double; for an integer just beyond 64 bits the next one, which differs from 2^63 and -2^63."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    is_rounded = abs(near) == LEAST_SIZE and abs(value) > LEAST_SIZE
    return math.nextafter(near, math.copysign(math.inf, near)) if is_rounded else near


def clamp(expression: Expression, range: Range) -> Expression:
    """Return a number clamped to a range; one whose range lies inside is left as it is."""
    if not expression.kind.is_number:
        raise wrong_kind("clamping", "numbers", expression)
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


def grid_steps(expression: Expression, step: Fraction, centre: Fraction) -> Tree:
    """Return the number of whole steps from `centre` to a number that has a range, as an integer of 64 bits.

    The result lies between the ends of the range counted in the same way, for Python's `round`, also after the engine
    has rounded in doubles. Whole numbers in whole steps are counted without doubles.
    """
    ends = expression.range
    if ends is None or not expression.kind.is_number:
        raise WrongKind(f"quantising needs numbers that have bounds, not {with_article(expression.kind)}")
    least, most = round((ends.lower - centre) / step), round((ends.upper - centre) / step)
    if max(abs(least), abs(most)) > STEPS_MAX:
        raise OutOfRange("the steps are too small to count in 64 bits", name="step", value=step)
    if expression.kind is Kind.INTEGER and step.denominator == 1 and centre.denominator == 1:
        counted = _whole_steps(expression, int(step), int(centre), least, most)
        if counted is not None:
            return counted
    tree = as_real(expression).tree
    if centre:
        tree = trees.binary(exp.Sub, tree, trees.constant(float(centre)))
    if step != 1:
        tree = trees.binary(exp.Div, tree, trees.constant(float(step)))
    tree = trees.try_cast(trees.call(exp.Round, tree), Kind.INTEGER)
    return trees.clamped(tree, trees.constant(least), trees.constant(most), real=False)


def _whole_steps(expression: Expression, step: int, centre: int, least: int, most: int) -> Tree | None:
    """Return whole numbers counted in whole steps, halves upwards, or None if that could overflow.

    What is computed is clamped before it is counted, so that a range that claimed too little cannot overflow here.
    """
    ends, value = expression.range, expression.tree
    assert ends is not None
    offset = 2 * (centre + step * least) - step
    if ends.size + abs(centre) >= STEPS_MAX or (step > 1 and 2 * ends.size + abs(offset) + 2 * step > STEPS_MAX):
        return None
    is_column = expression.is_stored and isinstance(value, exp.Column)
    if not (is_column or trees.is_constant(value) or _is_clamped(expression)):
        value = trees.clamped(value, *map(trees.constant, _ends(ends, Kind.INTEGER)), real=False)
    if step == 1:
        moved = trees.binary(exp.Sub, value, trees.constant(centre)) if centre else value.copy()
        return trees.cast(moved, Kind.INTEGER) if trees.is_constant(value) else moved
    # With `least` steps taken off, nothing is negative, where engines differ in how they cut off.
    doubled = trees.binary(exp.Mul, trees.cast(value, Kind.INTEGER), trees.constant(2))
    moved = trees.binary(exp.Sub, doubled, trees.constant(offset)) if offset else doubled
    counted = trees.binary(exp.IntDiv, moved, trees.constant(2 * step))
    counted = trees.binary(exp.Add, counted, trees.constant(least)) if least else counted
    if math.floor((ends.upper - centre) / step + Fraction(1, 2)) <= most:
        return counted
    return trees.clamped(counted, trees.constant(least), trees.constant(most), real=False)


def _is_clamped(expression: Expression) -> bool:
    """Return whether a tree by itself gives numbers within the range: it clamps to constants, or chooses among them."""
    ends, tree = expression.range, expression.tree.this if type(expression.tree) is exp.Cast else expression.tree
    if ends is None or not isinstance(tree, exp.Case):
        return False
    parts = trees.unclamped(tree)
    results = (
        parts[1:] if parts is not None else [*(one.args["true"] for one in tree.args["ifs"]), tree.args["default"]]
    )
    found = [trees.value(one) for one in results if one is not None and trees.is_constant(one)]
    is_all = len(found) == sum(one is not None and not isinstance(one, exp.Null) for one in results)
    return is_all and all(isinstance(one, int) and ends.lower <= one <= ends.upper for one in found)


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
