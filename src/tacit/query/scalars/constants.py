"""Values that stand in the query itself, and what is known of them."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Final

from tacit.privacy.errors import TooWide, WrongKind
from tacit.privacy.tables import Kind
from tacit.query.expressions import EXACT_MAX, Constant, Expression, Range
from tacit.query.parse import is_text
from tacit.query.scalars import trees

TEXT_MAX: Final = 10_000
"""How many characters a text in a query has at most."""


def literal(value: Constant) -> Expression:
    """Return a value as an expression; NULL is of any kind, and whole numbers beyond 2^53 are reals."""
    match value:
        case None:
            return Expression(trees.constant(None), Kind.TEXT, domain=(), length=0, makes_null=True)
        case bool():
            return _known(value, Kind.BOOLEAN)
        case int():
            return _known(value, Kind.INTEGER) if abs(value) <= EXACT_MAX else literal(_nearest(value))
        case float():
            return literal(None) if math.isnan(value) else _known(value + 0.0, Kind.REAL)  # -0.0 becomes 0.0
        case str():
            if len(value) > TEXT_MAX:
                raise TooWide(f"a text in a query has at most {TEXT_MAX:,} characters, not {len(value):,}")
            if not is_text(value):
                raise WrongKind("a text has a character that is none: NUL, or half of a pair of surrogates")
            return _known(value, Kind.TEXT)
        case datetime():
            return _known(value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value, Kind.TIME)
        case date():
            return _known(value, Kind.DATE)


def null(kind: Kind) -> Expression:
    """Return NULL of one kind."""
    return Expression(trees.cast(trees.constant(None), kind), kind, domain=(), length=0, makes_null=True)


def is_null(expression: Expression) -> bool:
    """Whether the expression is NULL itself, of whatever kind."""
    return expression.nullable and expression.domain == ()


def is_known(expression: Expression) -> bool:
    """Whether the expression stands for one value that is written in the query."""
    single = expression.domain is not None and len(expression.domain) == 1 and not expression.nullable
    return single and trees.is_constant(expression.tree)


def value_of(expression: Expression) -> Constant:
    """Return the value of an expression that is known."""
    return expression.domain[0] if expression.domain else None


def _known(value: str | int | float | date, kind: Kind) -> Expression:
    ranged = kind not in (Kind.BOOLEAN, Kind.TEXT) and not (isinstance(value, float) and math.isinf(value))
    range_ = Range.of(value, value) if ranged and not isinstance(value, str) else None
    length = len(value) if isinstance(value, str) else 0
    return Expression(trees.constant(value), kind, range=range_, domain=(value,), nullable=False, length=length)


def _nearest(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
