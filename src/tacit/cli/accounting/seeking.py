"""The event with a `?` in it, and the parameter that is shown in its place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tacit.accounting import Meaning, meaning
from tacit.privacy import notation
from tacit.privacy.errors import NotationError
from tacit.privacy.events import Event
from tacit.privacy.figures import at_least, at_most
from tacit.privacy.relations import Relation


def maker(text: str, relation: str | None) -> Callable[[float], Event]:
    """Return the function that makes the event from the parameter that is sought, having tried it once."""
    make = partial(_make, text, None if relation is None else Relation(relation))
    make(1.0)
    return make


def shown_parameter(
    make: Callable[[float], Event], found: float, epsilon: float, delta: float
) -> tuple[float, Meaning]:
    """Return the parameter in a few digits, rounded to the side on which the target is kept, and what it costs there.

    Noise is rounded up and an epsilon down; where neither keeps the target, all digits are shown.
    """
    for figure in (at_most(found), at_least(found)):
        rounded = float(figure)
        worth = meaning(make(rounded), delta)
        if worth.epsilon.upper <= epsilon:
            return rounded, worth
    return found, meaning(make(found), delta)


def _make(text: str, relation: Relation | None, parameter: float) -> Event:
    try:
        return notation.parse(text, relation=relation, hole=parameter)
    except NotationError as error:
        if text[error.position : error.position + 1] != "?" or error.__cause__ is None:
            raise
        sentence = f"{error.message}; ? is looked for among all numbers above 0"
        raise NotationError(sentence, text=text, position=error.position) from error
