"""Pieces of Spark's SQL: a text and the type that it is known to have; names, texts and numbers as Spark reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from tacit.engines.quoting import digest
from tacit.privacy.tables import Kind


class Type(StrEnum):
    """What a value is held in; HUGE is a whole number of up to 38 digits, as a sum of BIGINTs is."""

    BOOLEAN = "BOOLEAN"
    INT = "INT"
    BIGINT = "BIGINT"
    HUGE = "DECIMAL(38, 0)"
    DOUBLE = "DOUBLE"
    TEXT = "STRING"
    DATE = "DATE"
    TIME = "TIMESTAMP_NTZ"


TYPES: Final = {
    Kind.BOOLEAN: Type.BOOLEAN,
    Kind.INTEGER: Type.BIGINT,
    Kind.REAL: Type.DOUBLE,
    Kind.TEXT: Type.TEXT,
    Kind.DATE: Type.DATE,
    Kind.TIME: Type.TIME,
}
"""The type in which each kind is shown."""

WHOLE: Final = (Type.INT, Type.BIGINT, Type.HUGE)
NUMBERS: Final = (*WHOLE, Type.DOUBLE)

REPEATED_MAX: Final = 120
"""How long a text is at most that is written several times; a longer one is given a name, or texts would explode."""

_ESCAPES: Final = {
    "\\": "\\\\",
    "'": "\\'",
    "\0": "\\u0000",
    "\n": "\\n",
    "\r": "\\r",
    "\x1a": "\\u001a",
    "$": "\\u0024",  # a text may look like a variable of Spark, ${...}
}


class Precedence(IntEnum):
    """How tightly a text holds together; Spark's parser takes long over parentheses, so none is written in vain."""

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
    type: Type | None = None
    level: Precedence = Precedence.CLOSED

    def at(self, level: Precedence) -> str:
        """Return the text as it stands where only what holds together as tightly may stand."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def closed(self) -> str:
        """The text as it can stand anywhere."""
        return self.at(Precedence.CLOSED)


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: str) -> str:
    """Return a text in quotes; whatever it holds, it stays one text."""
    return "'" + "".join(_ESCAPES.get(one, one) for one in value) + "'"


def wider(*types: Type | None) -> Type | None:
    """Return the type that values of several types become together; NULL has none."""
    known = [one for one in types if one is not None]
    if any(one not in NUMBERS for one in known):
        return known[0]
    return max(known, key=NUMBERS.index, default=None)


def once(value: str, build: Callable[[str], str]) -> str:
    """Return what `build` makes of a value, which it may repeat: a long one is computed once, under a name."""
    if len(value) <= REPEATED_MAX:
        return build(value)
    name = f"x{digest(value)[:12]}"  # the same statement has the same text every time
    return f"element_at(transform(array({value}), {name} -> {build(name)}), 1)"
