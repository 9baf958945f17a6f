"""Values of a row: the analyst's SQL becomes expressions that cannot fail, with public facts about them.

Promise: only what `SCALARS` names is understood, and each rule builds a new tree for the engine: total, deterministic,
a function of one row, written in one form for all equal ways to write it. Names of columns and tables are resolved by
the caller's `bind`; aggregates, and limits on the text and depth of a query, are left to the passes.
"""

from tacit.query.scalars.casts import convert
from tacit.query.scalars.comparisons import is_missing, one_of
from tacit.query.scalars.dispatch import FUNCTION_NAMES, SCALARS, scalar
from tacit.query.scalars.facts import Bind, Locate, Rule, clamp, grid_steps, literal
from tacit.query.scalars.logic import conjunction, disjunction, negate

__all__ = [
    "FUNCTION_NAMES",
    "SCALARS",
    "Bind",
    "Locate",
    "Rule",
    "clamp",
    "conjunction",
    "convert",
    "disjunction",
    "grid_steps",
    "is_missing",
    "literal",
    "negate",
    "one_of",
    "scalar",
]
