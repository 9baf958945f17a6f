"""Events as people write them: `1000 x sampled(0.01, gaussian(1)) + laplace(0.1)`.

    plan        = repeated { "+" repeated }              several events on the same data
    repeated    = { whole number "x" } event             the event that often, with fresh randomness
    event       = name "(" argument { "," argument } ")" | "(" plan ")"
    argument    = [ parameter "=" ] ( number | "?" | "true" | "false" | plan )
    number      = decimal [ "/" decimal ]                sampled(256/60000, …)

Names, parameters, their order and their defaults are those of the dataclasses in `events.KINDS`, with underscores, so a
new kind can be written at once. A number means the double that is nearest to it, as in Python; whole numbers are exact.

Promise: `parse(write(event), relation=event.relation) == event`. A text is an event or refused at a position; length,
depth and numbers have limits. The relation is no part of the text: it is stated once for all of it, or each kind has
its usual one; mixed ones are refused.
Not here: the written form that is kept (`events.from_json`), which has versions.
"""

from __future__ import annotations

from collections.abc import Iterator

from tacit.privacy._forms import all_forms, form_of, plain_text
from tacit.privacy._parser import TEXT_LENGTH_MAX, Parser
from tacit.privacy.errors import TooLarge
from tacit.privacy.events import Composed, Event, Repeated
from tacit.privacy.relations import Relation

__all__ = ["TEXT_LENGTH_MAX", "parse", "signatures", "write"]


def parse(text: str, *, relation: Relation | None = None, hole: float | None = None) -> Event:
    """Read a plan, all of whose events stand under `relation`, or each kind under its usual one.

    A `?` stands for a number that is sought and is taken to be `hole`; without a hole it is refused, and so is a text
    that has no `?` when there is one.
    """
    if len(text) > TEXT_LENGTH_MAX:
        raise TooLarge(f"an event takes at most {TEXT_LENGTH_MAX:,} characters, not {len(text):,}", name="event")
    return Parser(text, relation, hole).read()


def write(event: Event) -> str:
    """Return the notation of an event, without its relation."""
    match event:
        case Composed(events=several) if len(several) > 1:
            return " + ".join(map(_operand, several))
        case Repeated(event=inner, count=count):
            return f"{count} x {_operand(inner)}"
        case _:
            return f"{form_of(type(event)).name}({', '.join(_arguments(event))})"


def signatures() -> list[tuple[str, str]]:
    """Return how each kind of event is written, with its parameters and their defaults, and what it means."""
    return [(form.signature, form.meaning) for form in all_forms()]


def _operand(event: Event) -> str:
    written = write(event)
    return f"({written})" if isinstance(event, Composed) and len(event.events) > 1 else written


def _arguments(event: Event) -> Iterator[str]:
    """Yield what an event was made with: what has no default by its place, the rest by name where it differs."""
    for parameter in form_of(type(event)).parameters:
        value = getattr(event, parameter.name)
        if parameter.is_list:
            yield from map(write, value)
        elif parameter.is_required:
            yield write(value) if isinstance(value, Event) else plain_text(value)
        elif value != parameter.default:
            yield f"{parameter.name}={plain_text(value)}"
