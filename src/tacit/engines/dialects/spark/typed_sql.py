"""Pieces of Spark's SQL with their types; names, texts, and values that are used several times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from tacit.engines.quoting import digest
from tacit.privacy.tables import Kind


class SparkType(StrEnum):
    """The type of a value; HUGE holds whole numbers of up to 38 digits, such as sums of BIGINTs."""

    BOOLEAN = "BOOLEAN"
    INT = "INT"
    BIGINT = "BIGINT"
    HUGE = "DECIMAL(38, 0)"
    DOUBLE = "DOUBLE"
    TEXT = "STRING"
    DATE = "DATE"
    TIME = "TIMESTAMP_NTZ"


TYPES: Final = {
    Kind.BOOLEAN: SparkType.BOOLEAN,
    Kind.INTEGER: SparkType.BIGINT,
    Kind.REAL: SparkType.DOUBLE,
    Kind.TEXT: SparkType.TEXT,
    Kind.DATE: SparkType.DATE,
    Kind.TIME: SparkType.TIME,
}
"""The type in which each kind is shown."""

WHOLE: Final = (SparkType.INT, SparkType.BIGINT, SparkType.HUGE)
NUMBERS: Final = (*WHOLE, SparkType.DOUBLE)

REPEATED_MAX: Final = 120
"""Longer SQL is bound to a name and not repeated: nested repetitions grow exponentially."""

_ESCAPES: Final = {
    "\\": "\\\\",
    "'": "\\'",
    "\0": "\\u0000",
    "\n": "\\n",
    "\r": "\\r",
    "\x1a": "\\u001a",
    "$": "\\u0024",  # ${...} would be a variable of Spark
}


class Precedence(IntEnum):
    """Operator precedence; Spark's parser is slow on parentheses, so only the needed ones are written."""

    OR = 1
    AND = 2
    NOT = 3
    COMPARED = 4
    ADDED = 5
    MULTIPLIED = 6
    NEGATED = 7
    CLOSED = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """A value in Spark's SQL; its type is None where it is not known."""

    text: str
    type: SparkType | None = None
    level: Precedence = Precedence.CLOSED

    def at(self, level: Precedence) -> str:
        """Return the text, in parentheses if its precedence is lower than `level`."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def closed(self) -> str:
        """The text, in parentheses unless it is a single term."""
        return self.at(Precedence.CLOSED)


def backquoted(name: str) -> str:
    """Return an identifier in backquotes."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: str) -> str:
    """Return a text constant, with whatever it holds escaped."""
    return "'" + "".join(_ESCAPES.get(one, one) for one in value) + "'"


def wider(*types: SparkType | None) -> SparkType | None:
    """Return the common type of values; NULL has none."""
    known = [one for one in types if one is not None]
    if any(one not in NUMBERS for one in known):
        return known[0]
    return max(known, key=NUMBERS.index, default=None)


def once(value: str, build: Callable[[str], str]) -> str:
    """Return `build(value)`, which may repeat its argument; a long value is bound to a name and computed once."""
    if len(value) <= REPEATED_MAX:
        return build(value)
    name = f"x{digest(value)[:12]}"  # deterministic, so that equal statements have equal texts
    return f"element_at(transform(array({value}), {name} -> {build(name)}), 1)"
