"""Public values of keys: which groups an answer has, if the values of every key are public.

Public values are declared categories, truth values, short ranges of whole numbers and of dates, the results of a CASE
over literals, and what the caller states for the question at hand. All of them are shown, also those that no unit is
in, so that showing a group tells nothing. Otherwise groups are selected by their number of units (`KeySelection`).

NULL is a public value where the query makes it, by an outer join or a CASE without ELSE. Where it is merely stored and
the owner did not list it, its rows are left out, as are those whose value is not among the declared categories, and the
plan says so. A group for NULL would not be free: a unit may be in it as well, so all groups would have more noise; to
have one, list None.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np
from sqlglot import exp

from tacit.engines.relations import TYPES
from tacit.privacy.bounds import Categories, Category
from tacit.privacy.errors import InvalidInput, NotInCatalog
from tacit.privacy.tables import Kind, fit_categories
from tacit.query.expressions import Constant, Expression
from tacit.query.question import Question
from tacit.query.relations import FromScope
from tacit.query.scratch_database import TABLE, evaluate

RANGE_MAX: Final = 10_000
"""Maximum length of a range of integers or days whose values are enumerated as public keys."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The public values of a key; `restricts` if the caller listed them, so that others are left out as asked."""

    values: tuple[Constant, ...]
    restricts: bool = False
    is_listed: bool = False
    """Whether they come from declared categories; a column may hold other values, which are in no group."""

    def digest(self, kind: Kind) -> str:
        """Return a digest of the values; False and 0 are of different kinds."""
        return _digest(self.values, kind)


@lru_cache(maxsize=256)
def _digest(values: tuple[Constant, ...], kind: Kind) -> str:
    """Return a digest of public values; cached, as many questions share them."""
    return hashlib.sha256("\0".join([kind, *map(repr, values)]).encode()).hexdigest()


def public_domains(question: Question, given: Mapping[str, Sequence[Category]]) -> tuple[Domain, ...] | None:
    """Return the public values of every key, or None if one of them has none."""
    stated = {name.lower(): Categories(values) for name, values in given.items()}
    used: set[str] = set()
    found: list[Domain | None] = []
    for index, key in enumerate(question.keys):
        names = {key.tree.name.lower(), key.text.lower(), *question.names_of_key(index)} & set(stated)
        if names:
            used |= names
            if len(names) > 1:
                raise InvalidInput(f"keys are given twice for one key: {' and '.join(sorted(names))}", name="keys")
            (name,) = names
            found.append(Domain(fit_categories(name, key.kind, stated[name]).values, restricts=True))
        else:
            computed = None if _is_plain(key) else computed_values(key, question.scope)
            values = computed or public_values(key)
            if values is not None and key.makes_null and key.nullable and None not in values:
                values = (*values, None)
            is_listed = key.listed is not None or (computed is not None and _reads_categories(key, question.scope))
            found.append(Domain(values, is_listed=is_listed) if values is not None else None)
    if unused := set(stated) - used:
        raise NotInCatalog(f"keys are given for {sorted(unused)[0]}, which is not in GROUP BY", name="keys")
    known = [one for one in found if one is not None]
    return tuple(known) if len(known) == len(found) else None


def public_values(key: Expression) -> tuple[Constant, ...] | None:
    """Return every value that a key can have, where that is public."""
    if key.listed is not None:
        return key.listed
    if key.domain is not None:
        return key.domain or (None,)  # what has no value is always NULL
    if key.kind is Kind.BOOLEAN:
        return (False, True)
    if key.range is None or key.range.upper - key.range.lower >= RANGE_MAX:
        return None
    first, last = key.range.lower.__ceil__(), key.range.upper.__floor__()
    if key.kind is Kind.INTEGER:
        return tuple(range(first, last + 1))
    if key.kind is Kind.DATE:
        return tuple(date(1970, 1, 1) + timedelta(days=day) for day in range(first, last + 1))
    return None


def computed_values(key: Expression, scope: FromScope) -> tuple[Constant, ...] | None:
    """Return the values of an expression over columns with public values, by evaluating it on all combinations."""
    columns = sorted({(one.table, one.name) for one in key.tree.find_all(exp.Column)})
    fields = [_field(scope, alias, name) for alias, name in columns]
    values = [public_values(field) if field is not None else None for field in fields]
    known = [one for one in values if one is not None]
    if not columns or len(known) < len(columns) or math.prod(len(one) + 1 for one in known) > RANGE_MAX:
        return None
    given = list(product(*((*one, None) for one in known)))
    table = {
        f"x{index}": np.array([*column, None], dtype=object)[:-1]
        for index, column in enumerate(zip(*given, strict=True))
    }

    def replaced(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column):
            return node
        index = columns.index((node.table, node.name))
        return exp.cast(exp.column(f"x{index}"), TYPES[fields[index].kind])  # type: ignore[union-attr]

    tree = exp.select(exp.alias_(key.tree.transform(replaced), "v")).distinct().from_(TABLE)
    rows = evaluate(tree.sql(dialect="duckdb"), table)
    found = [value + 0.0 if isinstance(value, float) else value for (value,) in rows]  # of the two zeros one
    return tuple(sorted(value for value in found if value is not None)) or (None,)


def _field(scope: FromScope, alias: str, name: str) -> Expression | None:
    """Return the field that a column of the engine's tree belongs to."""
    for source in scope.sources:
        if source.alias == alias:
            for field in source.fields.values():
                if [(one.table, one.name) for one in field.tree.find_all(exp.Column)][:1] == [(alias, name)]:
                    return field
    return None


def _reads_categories(key: Expression, scope: FromScope) -> bool:
    """Whether a key is computed from a column with declared categories."""
    fields = [_field(scope, one.table, one.name) for one in key.tree.find_all(exp.Column)]
    return any(field is not None and field.listed is not None for field in fields)


def _is_plain(key: Expression) -> bool:
    """Whether a key's values are listed without evaluating anything."""
    return key.domain is not None or key.listed is not None or isinstance(key.tree, exp.Column)
