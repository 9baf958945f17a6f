"""The table of all functions that a query may apply to a row, and the refusals of those without a rule.

Promise: a node that no rule names is refused with its name, its place and what to write instead; so is an argument that
a rule does not read, and a constant that a rule computes and Python cannot hold. Results are limited in size, as guards
repeat what they guard.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Final

from sqlglot import exp

from tacit.privacy.errors import NotAllowed, Place, TooWide, WrongKind
from tacit.query.expressions import Expression
from tacit.query.parse import function_name
from tacit.query.scalars import arithmetic, casts, comparisons, conditionals, dates, logic, numbers, texts, trees
from tacit.query.scalars.facts import Bind, Locate, Rule

NEAR: Final = 0.75
"""The least similarity of two names for one to be suggested instead of the other."""

NODES_MAX: Final = 20_000
"""How many nodes the tree of one expression has at most."""

_CHANGES: Final = ("its value changes with each call", "leave it out; noise is added to the answer")
_NOW: Final = ("its value depends on the time of the query", "write the date itself, as DATE '2024-01-31'")
_SINGLES_OUT: Final = ("it would single out values", "use the value itself")
_GROWS: Final = ("its result can be of any length", "compare the text as it is, or use SUBSTRING, LOWER and TRIM")
_SLOW: Final = ("its running time is unbounded", "use LIKE, STARTS_WITH, ENDS_WITH or CONTAINS")
_NESTED: Final = ("rows hold plain values only", "store its parts as columns of their own")
_OPEN: Final = ("queries have no parameters", "write the value itself")
_FORMAT: Final = ("it writes dates as text", "use DATE_TRUNC, EXTRACT, YEAR or MONTH")
_BITS: Final = ("bitwise operators are not supported", "use // and %")

_REASONS: Final[dict[str, tuple[str, str]]] = {
    name: reason
    for names, reason in (
        ("RANDOM RAND UUID GEN_RANDOM_UUID SETSEED NEXTVAL", _CHANGES),
        ("CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP NOW TODAY GET_CURRENT_TIMESTAMP", _NOW),
        ("HASH MD5 SHA1 SHA256 SHA SHA2", _SINGLES_OUT),
        ("REPEAT LPAD RPAD REPLACE PAD TRANSLATE FORMAT PRINTF", _GROWS),
        ("REGEXP_LIKE REGEXP_I_LIKE REGEXP_MATCHES REGEXP_REPLACE REGEXP_EXTRACT SIMILARTO", _SLOW),
        ("ARRAY BRACKET DOT STRUCT LIST_TRANSFORM TRANSFORM JSON_EXTRACT JSON_EXTRACT_SCALAR MAP UNNEST", _NESTED),
        ("PLACEHOLDER PARAMETER SESSION_PARAMETER", _OPEN),
        ("STRFTIME TIME_TO_STR TO_CHAR DATE_FORMAT", _FORMAT),
        ("BITWISEAND BITWISEOR BITWISEXOR BITWISENOT BITWISELEFTSHIFT BITWISERIGHTSHIFT", _BITS),
        ("HISTOGRAM", ("its result is a map", "GROUP BY the value and ask for COUNT(*)")),
        ("PRODUCT", ("one unit can change it without limit", "EXP(SUM(LN(x))) is a product")),
        ("COLLATE", ("texts are compared as they are", "compare LOWER(text)")),
        ("COLUMNS", ("it names columns that are not written", "write the columns one by one")),
    )
    for name in names.split()
}
_SIGNS: Final = {
    "BRACKET": "[ ]",
    "DOT": "a dot after a value",
    "SIMILARTO": "SIMILAR TO",
    "PLACEHOLDER": "a parameter",
    "PARAMETER": "a parameter",
    "SESSION_PARAMETER": "a parameter",
    "BITWISEAND": "&",
    "BITWISEOR": "|",
    "BITWISEXOR": "^",
    "BITWISENOT": "~",
    "BITWISELEFTSHIFT": "<<",
    "BITWISERIGHTSHIFT": ">>",
}


def refusal(node: exp.Expression, known: Collection[str]) -> NotAllowed:
    """Return the error for a node that no rule names; `known` are the names of functions that have a rule."""
    name, other = function_name(node), node.sql_name() if isinstance(node, exp.Func) else str(node.key).upper()
    reason = _REASONS.get(name) or _REASONS.get(other)
    if reason is not None:
        return NotAllowed(f"{_SIGNS.get(name, name)} is not allowed, because {reason[0]}", accepted=reason[1])
    near = get_close_matches(name, known, n=3, cutoff=NEAR)
    accepted = f"similar names are {' and '.join(near)}" if near else "the SQL reference lists the functions that are"
    return NotAllowed(f"{name} is not supported for values of a row", accepted=accepted)


SCALARS: Final[Mapping[type[exp.Expression], Rule]] = {
    **arithmetic.RULES,
    **casts.RULES,
    **comparisons.RULES,
    **conditionals.RULES,
    **dates.RULES,
    **logic.RULES,
    **numbers.RULES,
    **texts.RULES,
}
"""The rule of each class of node; functions for which the parser has no class are in `NAMED`."""

NAMED: Final[Mapping[str, Rule]] = {**dates.NAMED, **texts.NAMED}

FUNCTION_NAMES: Final = tuple(sorted({name for one in (*SCALARS.values(), *NAMED.values()) for name in one.names}))
"""The names of all functions and operators, for documentation and suggestions."""

_HARMLESS: Final = frozenset({"safe", "coalesce", "ignore_nulls", "date_part_boundary", "typed", "is_string"})
"""Arguments by which the parser records DuckDB's meaning of a function, which the rules follow anyway."""


def scalar(node: exp.Expression, bind: Bind, locate: Locate) -> Expression:
    """Return the expression for one node of an analyst's SQL; `bind` resolves the nodes below it."""
    try:
        rule = _rule(node)
        _check_arguments(node, rule)
        expression = rule.build(node, bind)
    except (WrongKind, NotAllowed, TooWide) as error:
        raise error if error.place is not None else _placed(error, locate(node)) from None
    except OverflowError:
        message = f"{function_name(node)} would compute a number or date that is out of range"
        raise NotAllowed(message, accepted="write smaller constants", place=locate(node)) from None
    if trees.node_count(expression.tree) > NODES_MAX:
        raise TooWide("the expression is too large", accepted="write a shorter one", place=locate(node))
    return expression


def _rule(node: exp.Expression) -> Rule:
    rule = NAMED.get(node.name.upper()) if isinstance(node, exp.Anonymous) else SCALARS.get(type(node))
    if rule is None:
        raise refusal(node, FUNCTION_NAMES)
    return rule


def _check_arguments(node: exp.Expression, rule: Rule) -> None:
    if isinstance(node, exp.Anonymous | exp.Literal | exp.Boolean):
        return
    for name, value in node.args.items():
        if value and name not in rule.takes and name not in _HARMLESS:
            raise NotAllowed(
                f"{function_name(node)} does not take {name.replace('_', ' ')} here", accepted="leave it out"
            )


def _placed(error: WrongKind | NotAllowed | TooWide, place: Place | None) -> WrongKind | NotAllowed | TooWide:
    if isinstance(error, WrongKind):
        return WrongKind(error.message, place=place)
    message = error.message.removesuffix(f"; {error.accepted}") if error.accepted else error.message
    return type(error)(message, accepted=error.accepted, place=place)
