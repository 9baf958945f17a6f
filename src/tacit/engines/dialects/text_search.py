"""The limit on the length of a text that is searched for in another one.

Databases compare the searched text at every position of the other, which in the worst case takes time proportional to
the product of both lengths; an analyst can construct that case for the rows of one person. With a limit on the searched
text, time grows with the length of the other text only. The limit is the same on every engine, so that all of them find
the same.
"""

from __future__ import annotations

from typing import Final, TypeVar

from sqlglot import exp

from tacit.privacy.errors import EngineFailed

PART_MAX: Final = 255
"""How many characters of a text are searched for, from its beginning; the rest is not compared."""

Tree = TypeVar("Tree", bound=exp.Expr)


def limit_searches(tree: Tree) -> Tree:
    """Return a statement in which STRPOS and CONTAINS search for the first `PART_MAX` characters of a text."""
    if tree.find(exp.StrPosition, exp.Contains) is None:
        return tree
    limited = tree.copy()
    for node in list(limited.find_all(exp.StrPosition, exp.Contains)):
        name = "substr" if isinstance(node, exp.StrPosition) else "expression"
        node.set(name, _prefix(node.args[name]))
    return limited


def _prefix(part: exp.Expr) -> exp.Expr:
    if isinstance(part, exp.Literal):
        return part if len(part.name) <= PART_MAX else exp.Literal.string(part.name[:PART_MAX])
    one, most = exp.Literal.number(1), exp.Literal.number(PART_MAX)
    return exp.Substring(this=part.copy(), start=one, length=most)


def check_pattern(pattern: str) -> None:
    """Raise EngineFailed if a part of a LIKE pattern between two % is longer than `PART_MAX`.

    What stands before the first % and after the last is compared at one position only.
    """
    parts = pattern.split("%")[1:-1]
    if any(len(part) > PART_MAX for part in parts):
        raise EngineFailed(
            f"at most {PART_MAX} characters are allowed between two % of a pattern; use a shorter pattern"
        )
