"""How much of a text is searched for in another one.

Databases look for a text at every place of another, which in the worst case takes time with the product of both
lengths; an analyst can write that case for the rows of one person. With a limit on what is searched for, time grows
with the length of the other text only. The limit is the same on every engine, so that all find the same.
"""

from __future__ import annotations

from typing import Final, TypeVar

from sqlglot import exp

from tacit.privacy.errors import EngineFailed

PART_MAX: Final = 255
"""How many characters of a text are searched for, from its beginning; what follows them is not compared."""

Tree = TypeVar("Tree", bound=exp.Expr)


def limited(tree: Tree) -> Tree:
    """Return a statement in which STRPOS and CONTAINS search for the first `PART_MAX` characters of a text."""
    if tree.find(exp.StrPosition, exp.Contains) is None:
        return tree
    made = tree.copy()
    for node in list(made.find_all(exp.StrPosition, exp.Contains)):
        name = "substr" if isinstance(node, exp.StrPosition) else "expression"
        node.set(name, _beginning(node.args[name]))
    return made


def _beginning(part: exp.Expr) -> exp.Expr:
    if isinstance(part, exp.Literal):
        return part if len(part.name) <= PART_MAX else exp.Literal.string(part.name[:PART_MAX])
    one, most = exp.Literal.number(1), exp.Literal.number(PART_MAX)
    return exp.Substring(this=part.copy(), start=one, length=most)


def check_pattern(pattern: str) -> None:
    """Refuse a pattern of LIKE one of whose parts is searched for and too long; its beginning and end are not."""
    parts = pattern.split("%")[1:-1]
    if any(len(part) > PART_MAX for part in parts):
        raise EngineFailed(f"between two % of a pattern stand at most {PART_MAX} characters; use a shorter pattern")
