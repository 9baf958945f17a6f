"""What is said of a function that has no rule: why it has none, and what to write instead."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

from sqlglot import exp

from tacit.privacy.errors import NotAllowed
from tacit.query.parse import called

NEAR: Final = 0.75
"""How alike two names are at least, for one to be taken for a slip of the other."""

_CHANGES: Final = ("its value is another one each time", "leave it out, noise is added to the answer")
_NOW: Final = ("its value depends on when it is asked", "write the date itself, as DATE '2024-01-31'")
_SINGLES_OUT: Final = ("it would single out values", "use the value itself")
_GROWS: Final = ("its result can be of any length", "compare the text as it is, or use SUBSTRING, LOWER and TRIM")
_SLOW: Final = ("it can take any time", "use LIKE, STARTS_WITH, ENDS_WITH or CONTAINS")
_NESTED: Final = ("rows hold plain values only", "store its parts as columns of their own")
_OPEN: Final = ("a query is complete as it stands", "write the value itself")
_FORMAT: Final = ("texts of dates are for people", "use DATE_TRUNC, EXTRACT, YEAR or MONTH")
_BITS: Final = ("bits are not numbers of people", "use // and %")

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
        ("HISTOGRAM", ("a map is no column", "GROUP BY the value and ask for COUNT(*)")),
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


def refused(node: exp.Expression, known: Collection[str]) -> NotAllowed:
    """Return the refusal of a node that no rule names; `known` are the names of functions that have one."""
    name, other = called(node), node.sql_name() if isinstance(node, exp.Func) else str(node.key).upper()
    reason = _REASONS.get(name) or _REASONS.get(other)
    if reason is not None:
        return NotAllowed(f"{_SIGNS.get(name, name)} is not allowed, because {reason[0]}", accepted=reason[1])
    near = get_close_matches(name, known, n=3, cutoff=NEAR)
    accepted = f"near to it there is {' and '.join(near)}" if near else "the reference of SQL lists what has"
    return NotAllowed(f"{name} has no meaning for the value of a row", accepted=accepted)
