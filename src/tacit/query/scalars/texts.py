"""Functions of texts: case, length, substrings, concatenation and patterns.

Promise: a result is never longer than the texts that it is made of, its `length` says so in characters, and patterns
are known and simple, so that no row takes much longer than another; functions that look at each character are weighed
by the length of their texts (`trees.add_work`), so that `row_limits` can bound the work of one unit. Engines change the
case of letters one by one, so that UPPER and LOWER keep lengths. Results over known texts are listed where every engine
agrees, which is in ASCII.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from tacit.engines.dialects.text_search import PART_MAX
from tacit.privacy.errors import NotAllowed, WrongKind
from tacit.privacy.tables import Kind
from tacit.query.expressions import Constant, Expression, Range
from tacit.query.scalars import trees
from tacit.query.scalars.comparisons import compare
from tacit.query.scalars.conditionals import coalesce
from tacit.query.scalars.facts import (
    TEXT_MAX,
    Bind,
    Rule,
    derive,
    is_known,
    is_null,
    literal,
    null,
    require_kind,
    value_of,
    whole_literal,
)
from tacit.query.scalars.logic import negate
from tacit.query.scalars.trees import CHARACTERS_COPIED, Tree

WILDCARDS_MAX: Final = 4
PART_COMPARED: Final = 8
"""How many characters of a part without wildcards are compared in one step."""
CASE_STEPS: Final = 6
"""How many steps it takes to change the case of a character: Spark looks up each of them in a table, twice."""
TRIM_STEPS: Final = 3
"""How many steps it takes to take off a character: PostgreSQL looks up each of them among the spaces of Unicode."""
CALL_STEPS: Final = 16
"""How many steps it takes to call a function of a text that has a few characters."""
_DOMAIN_MAX: Final = 10_000


def _map_text(
    a: Expression, function: Callable[[str], str], build: Callable[[Tree], Tree], steps: int, most: int | None = None
) -> Expression:
    """Return a function of one text, folded over ASCII constants and domains; `most` limits its length further."""
    if is_null(a):
        return null(Kind.TEXT)
    domain = _images(a.domain, function)
    if is_known(a) and domain is not None:
        return literal(domain[0])
    length = a.length if most is None else min(a.length, most)
    return derive(trees.add_work(build(a.tree), steps), Kind.TEXT, (a,), domain=domain, length=length)


def _images(domain: tuple[Constant, ...] | None, function: Callable[[str], str]) -> tuple[Constant, ...] | None:
    if domain is None or not all(isinstance(value, str) and value.isascii() for value in domain):
        return None
    return tuple(dict.fromkeys(function(str(value)) for value in domain))


def _change_case(kind: type[Tree], name: str, function: Callable[[str], str]) -> Rule:
    def build(node: Tree, bind: Bind) -> Expression:
        a = require_kind(bind(node.this), Kind.TEXT, name)
        return _map_text(a, function, lambda tree: trees.call(kind, tree), CALL_STEPS + CASE_STEPS * a.length)

    return Rule(build, (name,), ("this",))


def trim(node: Tree, bind: Bind) -> Expression:
    """TRIM, LTRIM and RTRIM of spaces."""
    if node.args.get("expression") is not None:
        spaces = bind(node.expression)
        if not is_known(spaces) or value_of(spaces) != " ":
            raise NotAllowed("TRIM removes spaces only", accepted="leave the characters out")
    a = require_kind(bind(node.this), Kind.TEXT, "TRIM")
    side = str(node.args.get("position") or "").upper()
    strip: dict[str, Callable[[str], str]] = {"LEADING": lambda t: t.lstrip(" "), "TRAILING": lambda t: t.rstrip(" ")}
    options = {"position": side} if side in strip else {}
    function = strip.get(side, lambda t: t.strip(" "))
    return _map_text(a, function, lambda tree: trees.call(exp.Trim, tree, **options), TRIM_STEPS * a.length)


def substring(node: Tree, bind: Bind) -> Expression:
    """SUBSTRING(text, start, length), both known, counted from 1."""
    a = require_kind(bind(node.this), Kind.TEXT, "SUBSTRING")
    start = whole_literal(bind(node.args["start"]), "SUBSTRING starts at a known place", 1, TEXT_MAX)
    if node.args.get("length") is None:
        return _map_text(
            a,
            lambda text: text[start - 1 :],
            lambda tree: trees.call(exp.Substring, tree, start=trees.constant(start)),
            a.length // CHARACTERS_COPIED,
            max(a.length - start + 1, 0),
        )
    length = whole_literal(bind(node.args["length"]), "SUBSTRING has a known length", 0, TEXT_MAX)
    return _map_text(
        a,
        lambda text: text[start - 1 : start - 1 + length],
        lambda tree: trees.call(exp.Substring, tree, start=trees.constant(start), length=trees.constant(length)),
        min(a.length, start + length) // CHARACTERS_COPIED,
        length,
    )


def left(node: Tree, bind: Bind) -> Expression:
    """LEFT(text, n), which is SUBSTRING(text, 1, n)."""
    a = require_kind(bind(node.this), Kind.TEXT, "LEFT")
    count = whole_literal(bind(node.expression), "LEFT takes a known number of characters", 0, TEXT_MAX)
    return _map_text(
        a,
        lambda text: text[:count],
        lambda tree: trees.call(exp.Substring, tree, start=trees.constant(1), length=trees.constant(count)),
        min(a.length, count) // CHARACTERS_COPIED,
        count,
    )


def right(node: Tree, bind: Bind) -> Expression:
    """RIGHT(text, n)."""
    a = require_kind(bind(node.this), Kind.TEXT, "RIGHT")
    count = whole_literal(bind(node.expression), "RIGHT takes a known number of characters", 0, TEXT_MAX)
    return _map_text(
        a,
        lambda text: text[len(text) - min(count, len(text)) :],
        lambda tree: trees.call(exp.Right, tree, expression=trees.constant(count)),
        a.length // CHARACTERS_COPIED,
        count,
    )


def length(node: Tree, bind: Bind) -> Expression:
    """LENGTH(text) in characters."""
    a = require_kind(bind(node.this), Kind.TEXT, "LENGTH")
    if is_null(a):
        return null(Kind.INTEGER)
    lengths = [len(str(text)) for text in _images(a.domain, lambda text: text) or ()]
    if is_known(a) and lengths:
        return literal(lengths[0])
    range_ = Range.of(min(lengths), max(lengths)) if lengths else Range.of(0, a.length)
    counted = trees.add_work(trees.call(exp.Length, a.tree), a.length // CHARACTERS_COPIED)
    return derive(counted, Kind.INTEGER, (a,), range=range_)


def position(node: Tree, bind: Bind) -> Expression:
    """STRPOS(text, part): where a part begins, counted from 1, or 0."""
    a, b = (
        require_kind(bind(node.this), Kind.TEXT, "STRPOS"),
        require_kind(bind(node.args["substr"]), Kind.TEXT, "STRPOS"),
    )
    if is_null(a) or is_null(b):
        return null(Kind.INTEGER)
    tree = trees.add_work(trees.call(exp.StrPosition, a.tree, substr=b.tree.copy()), _search_steps(a, b))
    return derive(tree, Kind.INTEGER, (a, b), range=Range.of(0, max(a.length, 1)))  # '' begins at 1 in any text


def concatenate(a: Expression, b: Expression) -> Expression:
    """Return a || b, NULL where one of them is."""
    if is_null(a) or is_null(b):
        return null(Kind.TEXT)
    if is_known(a) and is_known(b):
        return literal(f"{value_of(a)}{value_of(b)}")
    domain = None
    if a.domain is not None and b.domain is not None and len(a.domain) * len(b.domain) <= _DOMAIN_MAX:
        domain = tuple(dict.fromkeys(f"{x}{y}" for x in a.domain for y in b.domain))
    tree = exp.DPipe(this=_piece(a.tree), expression=trees.operand(b.tree), safe=True)
    return derive(trees.add_work(tree, (a.length + b.length) // CHARACTERS_COPIED), Kind.TEXT, (a, b), domain=domain)


def _piece(tree: Tree) -> Tree:
    return tree.copy() if isinstance(tree, exp.DPipe) else trees.operand(tree)


def pipes(node: Tree, bind: Bind) -> Expression:
    """a || b."""
    return concatenate(
        require_kind(bind(node.this), Kind.TEXT, "||"), require_kind(bind(node.expression), Kind.TEXT, "||")
    )


def concat(node: Tree, bind: Bind) -> Expression:
    """CONCAT(a, b, ...), in which NULL counts as an empty text."""
    result = literal("")
    for one in node.expressions:
        present = coalesce([require_kind(bind(one), Kind.TEXT, "CONCAT"), literal("")])
        result = present if is_known(result) and value_of(result) == "" else concatenate(result, present)
    return result


def like(node: Tree, bind: Bind) -> Expression:
    """LIKE and ILIKE with a known pattern."""
    kind = type(node)
    name = "ILIKE" if kind is exp.ILike else "LIKE"
    a, known = require_kind(bind(node.this), Kind.TEXT, name), bind(node.expression)
    pattern = value_of(known) if is_known(known) else None
    if not isinstance(pattern, str) or "\\" in pattern:
        raise NotAllowed(f"{name} takes a known pattern without escapes", accepted="write it as 'abc%'")
    while "%%" in pattern:
        pattern = pattern.replace("%%", "%")
    if pattern.count("%") > WILDCARDS_MAX:
        raise NotAllowed(f"{name} takes at most {WILDCARDS_MAX} % in a pattern", accepted="use fewer")
    searched = pattern.split("%")[1:-1]
    if any(len(part) > PART_MAX for part in searched):
        raise NotAllowed(f"at most {PART_MAX} characters are allowed between two %", accepted="use a shorter pattern")
    if is_null(a):
        return null(Kind.BOOLEAN)
    if kind is exp.Like and "%" not in pattern and "_" not in pattern:
        matches = compare(exp.EQ, a, literal(pattern))
    else:
        tree = kind(this=trees.operand(a.tree), expression=trees.constant(pattern))
        each = max(map(_part_steps, searched), default=1) + CASE_STEPS * (kind is exp.ILike)
        matches = derive(trees.add_work(tree, a.length * each), Kind.BOOLEAN, (a,))
    return negate(matches) if node.args.get("negate") else matches


def _part_steps(part: str) -> int:
    """Return how many steps a part of a pattern takes at each place of a text: one for each character if it has a _."""
    return len(part) if "_" in part else 1 + len(part) // PART_COMPARED


def _search_steps(a: Expression, b: Expression) -> int:
    """Return how many steps a search for `b` in `a` takes: a part that nearly fits is compared at every place."""
    longest = max((len(str(one)) for one in b.domain), default=0) if b.domain is not None else b.length
    return a.length * (1 + min(longest, PART_MAX) // PART_COMPARED)


def _affix(kind: type[Tree], name: str, before: str, after: str) -> Rule:
    """Return a rule for STARTS_WITH and its kin; plain texts are written as patterns of LIKE."""

    def build(node: Tree, bind: Bind) -> Expression:
        arguments = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.expression]
        if len(arguments) != 2:
            raise WrongKind(f"{name} takes two texts")
        a, b = (require_kind(bind(one), Kind.TEXT, name) for one in arguments)
        if is_null(a) or is_null(b):
            return null(Kind.BOOLEAN)
        part = str(value_of(b)) if is_known(b) else None
        if part is None or any(sign in part for sign in "%_\\") or part == "":
            searched = trees.call(kind, a.tree, expression=b.tree.copy())
        else:
            searched = exp.Like(this=trees.operand(a.tree), expression=trees.constant(f"{before}{part}{after}"))
        return derive(trees.add_work(searched, _search_steps(a, b)), Kind.BOOLEAN, (a, b))

    return Rule(build, (name,))


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Upper: _change_case(exp.Upper, "UPPER", str.upper),
    exp.Lower: _change_case(exp.Lower, "LOWER", str.lower),
    exp.Trim: Rule(trim, ("TRIM", "LTRIM", "RTRIM"), ("this", "expression", "position")),
    exp.Substring: Rule(substring, ("SUBSTRING", "SUBSTR"), ("this", "start", "length")),
    exp.Left: Rule(left, ("LEFT",)),
    exp.Right: Rule(right, ("RIGHT",)),
    exp.Length: Rule(length, ("LENGTH", "LEN", "CHAR_LENGTH"), ("this",)),
    exp.StrPosition: Rule(position, ("STRPOS", "POSITION", "INSTR"), ("this", "substr")),
    exp.DPipe: Rule(pipes, ("||",)),
    exp.Concat: Rule(concat, ("CONCAT",), ("expressions",)),
    exp.Like: Rule(like, ("LIKE",), ("this", "expression", "negate")),
    exp.ILike: Rule(like, ("ILIKE",), ("this", "expression", "negate")),
    exp.StartsWith: _affix(exp.StartsWith, "STARTS_WITH", "", "%"),
    exp.EndsWith: _affix(exp.EndsWith, "ENDS_WITH", "%", ""),
    exp.Contains: _affix(exp.Contains, "CONTAINS", "%", "%"),
}
NAMED: Final = {
    "PREFIX": _affix(exp.StartsWith, "PREFIX", "", "%"),
    "SUFFIX": _affix(exp.EndsWith, "SUFFIX", "%", ""),
}
