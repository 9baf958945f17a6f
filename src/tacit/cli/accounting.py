"""Input and output of `tacit account`: events from arguments and files, answers as facts and JSON objects.

Facts show upper bounds rounded up and lower bounds rounded down; objects hold all digits, and null for an infinite
bound.
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
    """Return the event of an argument, or the composition of the events in a file."""
    stated = None if relation is None else Relation(relation)
    if text is not None and file is None:
        return read_event(text, stated)
    if file is not None and text is None:
        return _compose(_lines(file), stated)
    raise click.UsageError("give either an event or --file", click.get_current_context(silent=True))


def read_event(text: str, relation: Relation | None) -> Event:
    """Return one event from the notation, or from JSON, which states its own relation."""
    if not text.lstrip().startswith("{"):
        return notation.parse(text, relation=relation)
    event = events.from_json(text)
    if relation is not None and event.relation is not relation:
        raise MixedRelations(f"the relation of the event is {event.relation}, but --relation is {relation}")
    return event


def _compose(lines: list[str], relation: Relation | None) -> Event:
    read = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                read.append(read_event(line, relation))
            except InvalidInput as error:
                raise type(error)(f"line {number}: {error.message}") from error
    if not read:
        raise EmptyInput("the file contains no event; write one per line", name="file")
    return events.composed(read)


def _lines(file: Path) -> list[str]:
    try:
        with click.open_file(str(file), "rb") as stream:
            content: bytes = stream.read(events.EVENT_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}", name="file", value=file) from error
    if len(content) > events.EVENT_BYTES_MAX:
        raise TooLarge(f"a file of events may have at most {events.EVENT_BYTES_MAX:,} bytes", name="file", value=file)
    try:
        return content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not UTF-8 text", name="file", value=file) from None


def event_template(text: str, relation: str | None) -> Callable[[float], Event]:
    """Return a function from the value of ? to the event; raise at once if the notation is wrong."""
    make = partial(_make, text, None if relation is None else Relation(relation))
    make(1.0)
    return make


def rounded_parameter(
    make: Callable[[float], Event], found: float, epsilon: float, delta: float
) -> tuple[float, Meaning]:
    """Return the parameter rounded so that the target still holds, and the meaning of its event.

    A noise scale is rounded up and an epsilon down; if neither meets the target, all digits are kept.
    """
    for figure in (at_most(found), at_least(found)):
        rounded = float(figure)
        worth = meaning(make(rounded), delta)
        if worth.epsilon.upper <= epsilon:
            return rounded, worth
    return found, meaning(make(found), delta)


def _make(text: str, relation: Relation | None, parameter: float) -> Event:
    try:
        return notation.parse(text, relation=relation, placeholder=parameter)
    except NotationError as error:
        if text[error.position : error.position + 1] != "?" or error.__cause__ is None:
            raise
        sentence = f"{error.message}; ? may be any number above 0"
        raise NotationError(sentence, text=text, position=error.position) from error


EVENT_LENGTH_MAX: Final = 400
FALSE_POSITIVE_RATES: Final = (0.001, 0.01, 0.1)


class AccountAnswer(Protocol):
    """The answer of a `tacit account` command."""

    def facts(self) -> Iterator[Fact]:
        """Yield the answer as facts."""

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as a JSON object."""


@dataclass(frozen=True, slots=True)
class CostAnswer:
    """Epsilon at a given delta, or delta at a given epsilon."""

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
    """The parameter at which an event meets a target, and its cost there."""

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
    """Upper bounds on what an attacker can gain."""

    meaning: Meaning
    priors: Sequence[float]

    @property
    def sentence(self) -> str:
        """The meaning in words, for a prior of 50 % if that is among the given ones, else for the first."""
        return self.meaning.sentence_for(0.5 if 0.5 in self.priors else self.priors[0])

    def facts(self) -> Iterator[Fact]:
        meaning = self.meaning
        yield from _plan_facts(meaning.event)
        yield Fact("delta", exactly(meaning.delta))
        yield from _bound_facts("epsilon", meaning.epsilon)
        for prior in self.priors:
            low, high = meaning.posterior(prior)
            posterior = f"posterior {at_least(low)} to {at_most(high)}" if high < 1 else "posterior may be 0 or 1"
            mean = f"on average at most {at_most(meaning.expected_posterior(prior))} if the belief is true"
            yield Fact(f"prior {exactly(prior)}", f"{posterior}; {mean}")
        for rate in FALSE_POSITIVE_RATES:
            found = at_most(meaning.true_positive_rate(rate))
            yield Fact(f"FPR {exactly(rate)}", f"TPR at most {found}")
        yield Fact("advantage", f"at most {at_most(meaning.advantage)} (TPR minus FPR of any attack)")
        plus = f", plus {exactly(meaning.delta)}" if meaning.delta else ""
        yield Fact(
            "risk factor",
            f"at most {at_most(meaning.risk_factor)}, by which any harm to a person becomes likelier{plus}",
        )
        if math.isfinite(meaning.posterior_factor):
            factor = at_most(meaning.posterior_factor)
            yield Fact("posterior factor", f"at most {factor} between posteriors with and without a person's data")
        yield Fact("meaning", self.sentence)

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
            "meaning": self.sentence,
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
    """Return an event as a JSON object: in the notation, in its stored form, and its relation."""
    return {"event": write(event), "written": event.to_dict(), "relation": event.relation.value}


def bound_object(bound: Bound) -> dict[str, Any]:
    """Return a bound as a JSON object."""
    return {"lower": _finite(bound.lower), "upper": _finite(bound.upper), "method": bound.method}


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
