"""CAST and TRY_CAST, which are the same here: what cannot be cast is NULL.

Reals are rounded to the nearest whole number, and become NULL beyond 2^53; dates are NULL outside of the years 1 to
9999, and so are texts of more than MOMENT_LENGTH_MAX characters as dates and times.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from typing import Final

from sqlglot import exp

from tacit.privacy.errors import NotAllowed, WrongKind
from tacit.privacy.tables import MOMENT_LENGTH_MAX, Kind
from tacit.query.expressions import EXACT_MAX, Constant, Expression, Range
from tacit.query.scalars import trees, value_ranges
from tacit.query.scalars.comparisons import compare
from tacit.query.scalars.facts import (
    Bind,
    Rule,
    as_real,
    as_time,
    derive,
    is_known,
    is_null,
    literal,
    null,
    one_zero,
    parse_moment,
    value_of,
    with_article,
)
from tacit.query.scalars.numbers import DIGITS_MAX, round_to_digits
from tacit.query.scalars.trees import Tree

_Type = exp.DataType.Type
KINDS: Final = {
    Kind.BOOLEAN: (_Type.BOOLEAN,),
    Kind.INTEGER: (_Type.TINYINT, _Type.SMALLINT, _Type.INT, _Type.BIGINT),
    Kind.REAL: (_Type.FLOAT, _Type.DOUBLE),
    Kind.TEXT: (_Type.TEXT, _Type.VARCHAR, _Type.CHAR, _Type.NCHAR, _Type.NVARCHAR),
    Kind.DATE: (_Type.DATE,),
    Kind.TIME: (_Type.TIMESTAMP, _Type.TIMESTAMPNTZ, _Type.DATETIME),
}
LENGTHS: Final = {Kind.BOOLEAN: 5, Kind.INTEGER: 20, Kind.REAL: 32, Kind.DATE: 16, Kind.TIME: 40}
"""How many characters a value of each kind has at most as a text, in any engine."""

_KIND_OF: Final = {type_: kind for kind, types in KINDS.items() for type_ in types}
_WHOLE: Final = re.compile(r"\s*[+-]?\d{1,15}\s*", re.ASCII)
READ_STEPS: Final = {
    Kind.BOOLEAN: (64, 2),
    Kind.INTEGER: (384, 8),
    Kind.REAL: (256, 4),
    Kind.DATE: (512, 0),
    Kind.TIME: (768, 0),
}
"""How many steps it takes to read a text as each kind: some for the text, and some for each character."""
REAL_SHOWN_STEPS: Final = 128
"""How many steps it takes to write a real as text: engines search for the shortest digits that read back as it."""
_EARLIEST: Final = {Kind.DATE: date.min, Kind.TIME: datetime.min}
_LATEST: Final = {Kind.DATE: date.max, Kind.TIME: datetime.max}


def convert(expression: Expression, kind: Kind) -> Expression:
    """Return a value as another kind, NULL where that is not possible."""
    if is_null(expression):
        return null(kind)
    if expression.kind is kind:
        return expression
    cast = _CASTS.get((expression.kind, kind))
    if cast is None:
        dates = expression.kind in (Kind.DATE, Kind.TIME) and kind.is_number
        instead = "; EXTRACT, DATE_DIFF and EPOCH make numbers of dates" if dates else ""
        raise WrongKind(f"CAST cannot turn {with_article(expression.kind)} into {with_article(kind)}{instead}")
    return cast(expression)


def _read(a: Expression, kind: Kind) -> Tree:
    """Return the cast of a text to another kind."""
    fixed, each = READ_STEPS[kind]
    return trees.add_work(trees.try_cast(a.tree, kind), fixed + each * a.length)


def _short(a: Expression) -> Expression:
    """Return a text with NULL in the place of those that are too long for a date or time."""
    if a.length <= MOMENT_LENGTH_MAX:
        return a
    length = trees.add_work(trees.call(exp.Length, a.tree), a.length // trees.CHARACTERS_COPIED)
    inside = trees.binary(exp.LTE, length, trees.constant(MOMENT_LENGTH_MAX))
    tree = trees.case((inside, a.tree))
    return derive(tree, Kind.TEXT, (a,), nullable=True, length=MOMENT_LENGTH_MAX, makes_null=True)


def _text_to_integer(a: Expression) -> Expression:
    if is_known(a) and _WHOLE.fullmatch(str(value_of(a))):
        return literal(int(str(value_of(a))))
    return derive(_read(a, Kind.INTEGER), Kind.INTEGER, (a,), nullable=True, makes_null=True)


def _text_to_real(a: Expression) -> Expression:
    return derive(trees.not_nan(_read(a, Kind.REAL)), Kind.REAL, (a,), nullable=True, makes_null=True)


def _text_to_boolean(a: Expression) -> Expression:
    return derive(_read(a, Kind.BOOLEAN), Kind.BOOLEAN, (a,), nullable=True, makes_null=True)


def _text_to_temporal(kind: Kind) -> Callable[[Expression], Expression]:
    def cast(a: Expression) -> Expression:
        if is_known(a):
            return convert(parse_moment(str(value_of(a))), kind)
        read = _read(_short(a), kind)
        inside = exp.And(
            this=trees.binary(exp.GTE, read, trees.constant(_EARLIEST[kind])),
            expression=trees.binary(exp.LTE, read, trees.constant(_LATEST[kind])),
        )
        return derive(trees.case((inside, read)), kind, (a,), nullable=True, makes_null=True)

    return cast


def _real_to_integer(a: Expression) -> Expression:
    if is_known(a):
        value = value_of(a)
        assert isinstance(value, float)
        return literal(round(value)) if abs(value) <= EXACT_MAX else null(Kind.INTEGER)
    if a.range is not None and a.range.size <= EXACT_MAX:
        range_ = value_ranges.stepwise(a.range, round)
        return derive(trees.cast(a.tree, Kind.INTEGER), Kind.INTEGER, (a,), range=range_)
    inner = trees.unguarded(a.tree)  # NaN is not below 2^53
    inside = exp.And(
        this=trees.binary(exp.GTE, inner, trees.constant(float(-EXACT_MAX))),
        expression=trees.binary(exp.LTE, inner, trees.constant(float(EXACT_MAX))),
    )
    tree = trees.case((inside, trees.try_cast(inner, Kind.INTEGER)))
    return derive(tree, Kind.INTEGER, (a,), range=Range.of(-EXACT_MAX, EXACT_MAX), nullable=True, makes_null=True)


def _to_boolean(a: Expression) -> Expression:
    return compare(exp.NEQ, a, literal(0))


def _boolean_to_integer(a: Expression) -> Expression:
    if is_known(a):
        return literal(int(bool(value_of(a))))
    return derive(trees.cast(a.tree, Kind.INTEGER), Kind.INTEGER, (a,), range=Range.of(0, 1))


def _to_text(a: Expression) -> Expression:
    domain: tuple[Constant, ...] | None = None
    if a.kind is Kind.BOOLEAN:
        domain = ("false", "true")
    elif a.domain is not None and a.kind in (Kind.INTEGER, Kind.DATE):
        domain = tuple(str(value) for value in a.domain)
        if is_known(a):
            return literal(str(value_of(a)))
    steps, held = (REAL_SHOWN_STEPS, one_zero(a)) if a.kind is Kind.REAL else (LENGTHS[a.kind], a.tree)
    tree = trees.add_work(trees.cast(held, Kind.TEXT), steps)
    return derive(tree, Kind.TEXT, (a,), domain=domain, length=LENGTHS[a.kind])


def _time_to_date(a: Expression) -> Expression:
    if is_known(a):
        return literal(_day(value_of(a)))
    ends = a.range
    days = None if ends is None else Range(*(Fraction(one // value_ranges.DAY) for one in (ends.lower, ends.upper)))
    domain = None if a.domain is None else tuple(dict.fromkeys(_day(value) for value in a.domain))
    return derive(trees.cast(a.tree, Kind.DATE), Kind.DATE, (a,), range=days, domain=domain)


def _day(value: Constant) -> date:
    assert isinstance(value, datetime)
    return value.date()


_CASTS: Final[dict[tuple[Kind, Kind], Callable[[Expression], Expression]]] = {
    (Kind.TEXT, Kind.INTEGER): _text_to_integer,
    (Kind.TEXT, Kind.REAL): _text_to_real,
    (Kind.TEXT, Kind.BOOLEAN): _text_to_boolean,
    (Kind.TEXT, Kind.DATE): _text_to_temporal(Kind.DATE),
    (Kind.TEXT, Kind.TIME): _text_to_temporal(Kind.TIME),
    (Kind.REAL, Kind.INTEGER): _real_to_integer,
    (Kind.INTEGER, Kind.REAL): as_real,
    (Kind.INTEGER, Kind.BOOLEAN): _to_boolean,
    (Kind.REAL, Kind.BOOLEAN): _to_boolean,
    (Kind.BOOLEAN, Kind.INTEGER): _boolean_to_integer,
    (Kind.BOOLEAN, Kind.REAL): lambda a: as_real(_boolean_to_integer(a)),
    (Kind.DATE, Kind.TIME): as_time,
    (Kind.TIME, Kind.DATE): _time_to_date,
} | {(kind, Kind.TEXT): _to_text for kind in Kind if kind is not Kind.TEXT}
CAST_KINDS: Final = tuple(_CASTS)
"""All pairs of a kind and another one to which it can be cast."""


def _decimal(operand: Expression, type_: exp.DataType) -> Expression:
    """Return a number as DECIMAL(p, s): a real, rounded to s digits after the point."""
    parameters = [int(one.this.name) for one in type_.expressions]
    digits = parameters[1] if len(parameters) > 1 else 0
    return as_real(round_to_digits(convert(operand, Kind.REAL), min(digits, DIGITS_MAX)))


def _cast(node: Tree, bind: Bind) -> Expression:
    if node.args["to"].this is _Type.DECIMAL:
        return _decimal(bind(node.this), node.args["to"])
    kind = _KIND_OF.get(node.args["to"].this)
    if kind is None or (node.args["to"].expressions and kind is not Kind.TEXT):
        accepted = "cast to BOOLEAN, BIGINT, DOUBLE, DECIMAL, VARCHAR, DATE or TIMESTAMP"
        raise NotAllowed(f"CAST to {node.args['to'].sql(dialect='duckdb')} is not supported", accepted=accepted)
    return convert(bind(node.this), kind)


def _date(node: Tree, bind: Bind) -> Expression:
    return convert(bind(node.this), Kind.DATE)


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Cast: Rule(_cast, ("CAST",), ("this", "to")),
    exp.TryCast: Rule(_cast, ("TRY_CAST",), ("this", "to")),
    exp.Date: Rule(_date, ("DATE",), ("this",)),
}
