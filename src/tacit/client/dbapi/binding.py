"""Parameters become literals in the tree of a statement, never text that is pasted into it.

Promise: whatever a value holds, it stays one value: the statement is parsed first, `:name` is replaced in the tree by a
literal of the value's own type, and the tree is written out. A name without a value, and a value without a name, are
refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tacit.client.dbapi.errors import DataError, ProgrammingError
from tacit.query.parse import TEXT_MAX

DIALECT: Final = "duckdb"
"""The SQL that tacit reads."""

PARAMETERS_MAX: Final = 1_000


def bound(sql: Any, parameters: Any) -> str:
    """Return a statement with its parameters in it; without parameters, as it was written."""
    if not isinstance(sql, str):
        raise ProgrammingError(f"a statement is a text, not {type(sql).__name__}")
    if parameters is None:
        return sql
    if not isinstance(parameters, Mapping):
        if not parameters:  # what some callers pass for none
            return sql
        raise ProgrammingError('parameters are given by name: execute("... WHERE age > :age", {"age": 60})')
    if len(sql) > TEXT_MAX or len(parameters) > PARAMETERS_MAX:
        raise ProgrammingError(f"a statement has at most {TEXT_MAX:,} letters and {PARAMETERS_MAX:,} parameters")
    literals = {str(name): literal(str(name), value) for name, value in parameters.items()}
    tree, used = _parsed(sql), set()
    for node in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        name = node.name
        if not isinstance(node, exp.Placeholder) or name in ("", "?"):
            raise ProgrammingError("parameters are written :name")
        if name not in literals:
            raise ProgrammingError(f"the statement has a parameter :{name}, and no value is given for it")
        node.replace(literals[name].copy())
        used.add(name)
    if unused := sorted(literals.keys() - used):
        raise ProgrammingError(f"the statement has no parameter :{unused[0]}")
    return tree.sql(dialect=DIALECT)


def literal(name: str, value: Any) -> exp.Expr:
    """Return a value as a literal of its own type."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            return _number(str(abs(value)), is_negative=value < 0)
        case float() | Decimal() if not math.isfinite(value):
            raise DataError(f"the parameter :{name} is {value}, and a finite number is needed")
        case float():
            return _number(repr(abs(value)), is_negative=value < 0)
        case Decimal():
            return _number(format(abs(value), "f"), is_negative=value < 0)
        case str():
            if "\0" in value:
                raise DataError(f"the parameter :{name} has a character that no text in SQL has")
            return exp.Literal.string(value)
        case datetime():
            moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo is not None else value
            return exp.cast(exp.Literal.string(moment.isoformat(sep=" ")), "TIMESTAMP")
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    if hasattr(value, "item") and not hasattr(value, "__len__"):  # a number of numpy
        return literal(name, value.item())
    raise DataError(f"the parameter :{name} is {type(value).__name__}; a number, text, truth value or date is needed")


def _number(digits: str, *, is_negative: bool) -> exp.Expr:
    """Return a number; the sign is a node of its own in brackets, so that `-:x` never becomes a comment."""
    number = exp.Literal.number(digits)
    return exp.Paren(this=exp.Neg(this=number)) if is_negative else number


def _parsed(sql: str) -> exp.Expr:
    try:
        statements = [one for one in sqlglot.parse(sql, dialect=DIALECT) if one is not None]
    except (SqlglotError, RecursionError):
        raise ProgrammingError("the statement is not SQL that can be read, so its parameters cannot be set") from None
    if len(statements) != 1:
        raise ProgrammingError("one statement at a time")
    return statements[0]
