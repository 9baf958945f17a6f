"""What a rule is: how one node of an analyst's SQL becomes an expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from tacit.privacy.errors import Place
from tacit.query.expressions import Expression

Bind: TypeAlias = Callable[[exp.Expression], Expression]
"""Resolves a child node: columns, and whatever is nested."""

Locate: TypeAlias = Callable[[exp.Expression], Place | None]
"""Says where in the query a node stands."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How a kind of node is built, its names in SQL, and the arguments that it reads; a node with others is refused."""

    build: Callable[[exp.Expression, Bind], Expression]
    names: tuple[str, ...]
    takes: tuple[str, ...] = ("this", "expression", "expressions")
