"""What `tacit account` reads and shows: events from arguments and files, and answers for people and programs.

Upper bounds are shown rounded up and lower bounds rounded down; objects hold the numbers as they were computed, with
null where no finite bound is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import click

from tacit.accounting import Bound, Meaning, meaning
from tacit.cli.output import Fact
from tacit.privacy import events, notation
from tacit.privacy.errors import EmptyInput, InvalidInput, MixedRelations, NotationError, TooLarge
from tacit.privacy.events import Event
from tacit.privacy.figures import at_least, at_most, exactly
from tacit.privacy.notation import write
from tacit.privacy.units import Relation


def read_events(text: str | None, file: Path | None, relation: str | None) -> Event:
    """Read the event that a command is about from its argument, or from the lines of a file, composed."""
    stated = None if relation is None else Relation(relation)
    if text is not None and file is None:
        return read_event(text, stated)
    if file is not None and text is None:
        return _composed(_lines(file), stated)
    raise click.UsageError("Name an event or a --file, one of the two.", click.get_current_context(silent=True))


def read_event(text: str, relation: Relation | None) -> Event:
    """Read one event, whose JSON form starts with a brace and states its relation itself."""
    if not text.lstrip().startswith("{"):
        return notation.parse(text, relation=relation)
    event = events.from_json(text)
    if relation is not None and event.relation is not relation:
        raise MixedRelations(f"the event is written under {event.relation}, and --relation says {relation}")
    return event


def _composed(lines: list[str], relation: Relation | None) -> Event:
    read = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                read.append(read_event(line, relation))
            except InvalidInput as error:
                raise type(error)(f"line {number}: {error.message}") from error
    if not read:
        raise EmptyInput("the file holds no event; write one a line", name="file")
    return read[0] if len(read) == 1 else events.Composed(tuple(read))


def _lines(file: Path) -> list[str]:
    try:
        with click.open_file(str(file), "rb") as stream:
            content: bytes = stream.read(events.EVENT_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}", name="file", value=file) from error
    if len(content) > events.EVENT_BYTES_MAX:
        raise TooLarge(f"a file of events takes at most {events.EVENT_BYTES_MAX:,} bytes", name="file", value=file)
    try:
        return content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not a text in UTF-8", name="file", value=file) from None


def event_template(text: str, relation: str | None) -> Callable[[float], Event]:
    """Return the function that makes the event from the parameter that is sought, having tried it once."""
    make = partial(_make, text, None if relation is None else Relation(relation))
    make(1.0)
    return make


def rounded_parameter(
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


EVENT_LENGTH_MAX: Final = 400
FALSE_POSITIVE_RATES: Final = (0.001, 0.01, 0.1)


class Answer(Protocol):
    """What a command found out."""

    def facts(self) -> Iterator[Fact]:
        """Yield it for people."""

    def to_dict(self) -> dict[str, Any]:
        """Return it for programs."""


@dataclass(frozen=True, slots=True)
class CostAnswer:
    """One of epsilon and delta, at a given value of the other."""

    given_name: str
    given: float
    bound_name: str
    bound: Bound
    meaning: Meaning

    def facts(self) -> Iterator[Fact]:
        yield from _plan_facts(self.meaning.event)
        yield Fact(self.given_name, exactly(self.given))
        yield from _bound_facts(self.bound_name, self.bound)
        yield Fact("meaning", self.meaning.sentence)

    def to_dict(self) -> dict[str, Any]:
        return {
            **plan_object(self.meaning.event),
            self.given_name: self.given,
            self.bound_name: bound_object(self.bound),
            "meaning": self.meaning.sentence,
        }


@dataclass(frozen=True, slots=True)
class CalibrationAnswer:
    """A parameter at which an event keeps a target, and what it costs there."""

    sought: str
    parameter: float
    target_epsilon: float
    meaning: Meaning

    def facts(self) -> Iterator[Fact]:
        yield from _plan_facts(self.meaning.event)
        yield Fact("target", f"epsilon {exactly(self.target_epsilon)} at delta {exactly(self.meaning.delta)}")
        yield Fact("?", exactly(self.parameter), is_answer=True)
        yield from _bound_facts("epsilon", self.meaning.epsilon)
        yield Fact("meaning", self.meaning.sentence)

    def to_dict(self) -> dict[str, Any]:
        return {
            "sought": self.sought,
            "parameter": self.parameter,
            **plan_object(self.meaning.event),
            "target": {"epsilon": self.target_epsilon, "delta": self.meaning.delta},
            "epsilon": bound_object(self.meaning.epsilon),
            "meaning": self.meaning.sentence,
        }


@dataclass(frozen=True, slots=True)
class MeaningAnswer:
    """What an attacker can gain, at most."""

    meaning: Meaning
    priors: Sequence[float]

    def facts(self) -> Iterator[Fact]:
        meaning = self.meaning
        yield from _plan_facts(meaning.event)
        yield Fact("delta", exactly(meaning.delta))
        yield from _bound_facts("epsilon", meaning.epsilon)
        for prior in self.priors:
            low, high = meaning.posterior(prior)
            always = f"becomes {at_least(low)} to {at_most(high)}" if high < 1 else "may become 0 or 1"
            mean = f"at most {at_most(meaning.expected_posterior(prior))} on average if it is true"
            yield Fact(f"prior {exactly(prior)}", f"{always}; {mean}")
        for rate in FALSE_POSITIVE_RATES:
            found = at_most(meaning.true_positive_rate(rate))
            yield Fact(f"FPR {exactly(rate)}", f"TPR at most {found}")
        yield Fact("advantage", f"at most {at_most(meaning.advantage)}, TPR less FPR of any attack")
        plus = f", plus {exactly(meaning.delta)}" if meaning.delta else ""
        yield Fact("risk factor", f"at most {at_most(meaning.risk_factor)}, by which any harm becomes likelier{plus}")
        if math.isfinite(meaning.posterior_factor):
            factor = at_most(meaning.posterior_factor)
            yield Fact("posterior factor", f"at most {factor}, between beliefs with and without a person's data")
        yield Fact("meaning", meaning.sentence)

    def to_dict(self) -> dict[str, Any]:
        meaning = self.meaning
        posteriors = [(prior, *meaning.posterior(prior), meaning.expected_posterior(prior)) for prior in self.priors]
        found = [(rate, meaning.true_positive_rate(rate)) for rate in FALSE_POSITIVE_RATES]
        return {
            **plan_object(meaning.event),
            "delta": meaning.delta,
            "epsilon": bound_object(meaning.epsilon),
            "posteriors": [
                {"prior": prior, "lower": low, "upper": high, "expected": expected}
                for prior, low, high, expected in posteriors
            ],
            "true_positive_rates": [{"false_positive_rate": rate, "upper": upper} for rate, upper in found],
            "advantage": meaning.advantage,
            "risk_factor": _finite(meaning.risk_factor),
            "posterior_factor": _finite(meaning.posterior_factor),
            "curve": [{"epsilon": epsilon, "delta": delta} for epsilon, delta in meaning.curve],
            "meaning": meaning.sentence,
        }


def _plan_facts(event: Event) -> Iterator[Fact]:
    text = write(event)
    yield Fact("event", text if len(text) <= EVENT_LENGTH_MAX else f"{text[:EVENT_LENGTH_MAX]}…")
    yield Fact("neighbours", f"{event.relation}: {event.relation.in_words}")


def _bound_facts(name: str, bound: Bound) -> Iterator[Fact]:
    if math.isinf(bound.upper):
        yield Fact(name, "no finite bound is known", is_answer=True)
        return
    low, high = at_least(bound.lower), at_most(bound.upper)
    yield Fact(name, high if low == high else f"between {low} and {high}", is_answer=True)
    yield Fact("method", bound.method)


def plan_object(event: Event) -> dict[str, Any]:
    """Return an event for programs: in the notation, as it is written down, and its relation."""
    return {"event": write(event), "written": event.to_dict(), "relation": event.relation.value}


def bound_object(bound: Bound) -> dict[str, Any]:
    """Return both ends of a number for programs, and how they were found."""
    return {"lower": _finite(bound.lower), "upper": _finite(bound.upper), "method": bound.method}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
