"""What a rule checks of its inputs, and what follows for its result: kinds, NULL, and the mark of the unit.

Promise: `made` marks whatever is computed from the unit's own column, and says NULL wherever an input can be NULL;
`real`, `common` and `temporal` change how a value is held, never the value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime

from tacit.privacy.errors import NotAllowed, TooWide, WrongKind
from tacit.privacy.tables import Kind
from tacit.query.expressions import DERIVED_TEXT_MAX, EXACT_MAX, Constant, Expression, Range
from tacit.query.scalars import intervals, trees
from tacit.query.scalars.constants import is_known, is_null, literal, null, value_of
from tacit.query.scalars.trees import Tree

ARTICLES = {Kind.INTEGER: "an integer"}


def made(
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
    """Return what a function of the inputs gives; it is NULL where an input is, unless `nullable` says otherwise.

    A text is no longer than all texts of the inputs together, unless `length` says otherwise. NULL comes of the query
    itself if it does in an input, or if no input can be NULL, unless `makes_null` says otherwise.
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


def shown(kind: Kind) -> str:
    """Return a kind as it stands in a sentence."""
    return ARTICLES.get(kind, f"a {kind}")


def wrong(function: str, takes: str, got: Expression) -> WrongKind:
    """Return the error that says what a function takes and what it got."""
    hint = "; use CAST to change it" if got.kind in (Kind.TEXT, Kind.BOOLEAN) else ""
    return WrongKind(f"{function} takes {takes} and got {shown(got.kind)}{hint}")


def number(expression: Expression, function: str) -> Expression:
    """Return a number, or refuse."""
    if is_null(expression):
        return null(expression.kind if expression.kind.is_number else Kind.REAL)
    if not expression.kind.is_number:
        raise wrong(function, "numbers", expression)
    return expression


def of_kind(expression: Expression, kind: Kind, function: str) -> Expression:
    """Return an expression of one kind, or refuse."""
    if is_null(expression):
        return null(kind)
    if expression.kind is not kind:
        takes = {Kind.BOOLEAN: "truth values", Kind.TEXT: "texts", Kind.INTEGER: "whole numbers"}
        raise wrong(function, takes.get(kind, f"{kind}s"), expression)
    return expression


def real(expression: Expression) -> Expression:
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
    wide = None if ends is None else intervals.outward(ends.lower, ends.upper)
    return replace(expression, tree=trees.cast(expression.tree, Kind.REAL), kind=Kind.REAL, range=wide, domain=None)


def temporal(expression: Expression, function: str) -> Expression:
    """Return a date or time; a text in the query is read as one."""
    if is_null(expression):
        return null(expression.kind if expression.kind in (Kind.DATE, Kind.TIME) else Kind.DATE)
    if expression.kind is Kind.TEXT and is_known(expression):
        return moment(str(value_of(expression)))
    if expression.kind not in (Kind.DATE, Kind.TIME):
        raise wrong(function, "dates or times", expression)
    return expression


def moment(text: str) -> Expression:
    """Return the date or time that a text of the query stands for."""
    try:
        return literal(date.fromisoformat(text.strip()))
    except ValueError:
        pass
    try:
        return literal(datetime.fromisoformat(text.strip()))
    except (ValueError, OverflowError):
        raise WrongKind(f"{text[:40]!r} is no date; write one as '2024-01-31' or '2024-01-31 23:59:59'") from None


def time(expression: Expression) -> Expression:
    """Return a date or time as a time; dates lie within the years 1 to 9999, so that the cast cannot fail."""
    if expression.kind is Kind.TIME:
        return expression
    if is_null(expression):
        return null(Kind.TIME)
    if is_known(expression):
        return replace(literal(_midnight(value_of(expression))), unit=expression.unit)
    ends = expression.range
    micros = None if ends is None else Range(ends.lower * intervals.DAY, ends.upper * intervals.DAY)
    domain = None if expression.domain is None else tuple(_midnight(value) for value in expression.domain)
    tree = trees.cast(expression.tree, Kind.TIME)
    return replace(expression, tree=tree, kind=Kind.TIME, range=micros, domain=domain)


def common(expressions: Sequence[Expression], function: str) -> list[Expression]:
    """Return expressions that can stand for one another, as one kind; dates may be written as texts."""
    kinds = {one.kind for one in expressions if not is_null(one)}
    if kinds & {Kind.DATE, Kind.TIME}:
        dated = [temporal(one, function) for one in expressions]
        same = all(one.kind is Kind.DATE for one in dated)
        return dated if same else [time(one) for one in dated]
    if len(kinds) <= 1:
        kind = next(iter(kinds), Kind.TEXT)
        return [null(kind) if is_null(one) else one for one in expressions]
    if all(kind.is_number for kind in kinds):
        return [real(number(one, function)) for one in expressions]
    names = " and ".join(shown(kind) for kind in sorted(kinds))
    raise WrongKind(f"{function} takes values of one kind and got {names}; use CAST to change one of them")


def whole_literal(expression: Expression, what: str, lower: int, upper: int) -> int:
    """Return a whole number that is written in the query, between two limits."""
    value = value_of(expression) if is_known(expression) else None
    if isinstance(value, bool) or not isinstance(value, int) or not lower <= value <= upper:
        raise NotAllowed(what, accepted=f"write a whole number from {lower:,} to {upper:,} there")
    return value


def union(expressions: Sequence[Expression]) -> tuple[Range | None, tuple[Constant, ...] | None]:
    """Return the range and the domain of a value that is one of several expressions."""
    some = [one for one in expressions if not is_null(one)]
    ranges = [one.range for one in some]
    range_ = None
    if ranges and all(one is not None for one in ranges):
        range_ = intervals.union([one for one in ranges if one is not None])
    if not all(one.domain is not None for one in some):
        return range_, None
    return range_, tuple(dict.fromkeys(value for one in some for value in one.domain or ()))


def longest(expressions: Sequence[Expression]) -> int:
    """Return how long a text is at most that is one of several."""
    return max((one.length for one in expressions if one.kind is Kind.TEXT), default=0)


def is_exact(range_: Range | None) -> bool:
    """Whether whole numbers in the range are the same as integers and as doubles."""
    return range_ is not None and range_.size <= EXACT_MAX


def _midnight(value: Constant) -> datetime:
    assert isinstance(value, date)
    return datetime(value.year, value.month, value.day)
