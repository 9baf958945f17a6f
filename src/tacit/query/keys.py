"""Which groups an answer has: all of them, if the values of every key are public, or those that many units share.

Public values are declared categories, truth values, short ranges of whole numbers and of dates, what a CASE over
literals can give, and what the caller states for the question at hand. All of them are shown, also those that no unit
is in, so that showing a group tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from tacit.privacy.bounds import Categories, Category
from tacit.privacy.errors import NotInCatalog
from tacit.privacy.tables import Kind
from tacit.query.expressions import Constant, Expression

RANGE_MAX: Final = 10_000
"""How long a range of whole numbers or days may be to count as a list of public values."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The public values of a key; `restricts` if there may be rows with other values, which are left out."""

    values: tuple[Constant, ...]
    restricts: bool = False


def domains(keys: Sequence[Expression], given: Mapping[str, Sequence[Category]]) -> tuple[Domain, ...] | None:
    """Return the public values of every key, or None if one of them has none."""
    stated = {name.lower(): Categories(values).values for name, values in given.items()}
    used: set[str] = set()
    found: list[Domain] = []
    for key in keys:
        name = key.tree.name.lower() or key.text.lower()
        if name in stated:
            used.add(name)
            found.append(Domain(stated[name], restricts=True))
        elif (values := public_values(key)) is not None:
            found.append(Domain(values))
        else:
            return None
    if unused := set(stated) - used:
        raise NotInCatalog(f"keys are given for {sorted(unused)[0]}, by which the question does not group", name="keys")
    return tuple(found)


def public_values(key: Expression) -> tuple[Constant, ...] | None:
    """Return every value that a key can have, where that is public."""
    if key.domain is not None:
        return key.domain
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
