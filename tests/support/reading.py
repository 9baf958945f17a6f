"""A declared column over rows that keep to nothing, with the facts that the query engine knows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from tacit.engines.relations import value_range
from tacit.privacy.bounds import Categories
from tacit.privacy.tables import Column, Kind
from tacit.query.expressions import Expression, Range, position
from tacit.query.resolve import declared_value
from tacit.query.scalars import trees


def read(column: Column, reference: exp.Column) -> Expression:
    """Return a column's value, clamped and without NaN, in the place of a reference to a relation that shows it so.

    Categories stand for what CASE WHEN column IN (...) THEN column END would be: values that all are listed.
    """
    known = declared_value(column, reference)
    if not isinstance(column.facts, Categories):
        return replace(known, tree=_held(column, reference), nullable=column.nullable or column.kind is Kind.REAL)
    values = tuple(value for value in column.facts.values if value is not None)
    member = exp.In(this=reference.copy(), expressions=[trees.constant(value) for value in values])
    range_ = None
    if column.kind not in (Kind.TEXT, Kind.BOOLEAN):
        places = [position(value) for value in values]  # type: ignore[arg-type]
        range_ = Range(min(places), max(places))
    return Expression(trees.case((member, reference)), column.kind, range=range_, domain=values)


def _held(column: Column, reference: exp.Column) -> exp.Expression:
    """Return what an engine shows, as analysts' own LEAST and GREATEST would write it."""
    limits = value_range(column)
    if limits is None:
        return trees.not_nan(reference) if column.kind is Kind.REAL else reference.copy()
    lower, upper = map(trees.constant, limits)
    return trees.clamped(reference, lower, upper, real=column.kind is Kind.REAL)
