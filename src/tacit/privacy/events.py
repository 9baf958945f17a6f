"""Events: frozen records of what a mechanism did, the only thing that accountants read.

Compatibility: a kind is never removed and its meaning never changes; a new meaning is a new kind or a new version. A
record of an unknown kind or version is refused, never guessed. An event is stored as one JSON object with `kind`,
`version` and the parameters by name; nothing in it names code to be loaded.

Every event holds for one neighbouring relation. Simple events carry it; compound events take it from their parts and
refuse parts that differ. Parameters are floats that the maker of the event has rounded towards claiming less.

What an event costs is left to accounting, and whether it is admitted to the ledger.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias

from tacit.privacy import strict_json
from tacit.privacy.errors import (
    EmptyInput,
    InvalidInput,
    MixedRelations,
    OutOfRange,
    TacitError,
    TooLarge,
    UnknownEvent,
    WrongType,
)
from tacit.privacy.numbers import inside_unit_interval, not_negative, positive, truth_value, whole
from tacit.privacy.units import Relation

EVENT_DEPTH_MAX: Final = 32
EVENT_PARTS_MAX: Final = 1_000_000
EVENT_BYTES_MAX: Final = 64 * 2**20

Check: TypeAlias = Callable[[str, object], Fraction | int | bool]


def _checks(**checks: Check) -> Mapping[str, Check]:
    return MappingProxyType(checks)


def _below_one(name: str, value: object) -> Fraction:
    number = not_negative(name, value)
    if number >= 1:
        raise OutOfRange(f"{name} must be below 1, and is {float(number):g}", name=name, value=value)
    return number


def _rate(name: str, value: object) -> Fraction:
    number = positive(name, value)
    if number > 1:
        raise OutOfRange(f"{name} must be at most 1, and is {float(number):g}", name=name, value=value)
    return number


@dataclass(frozen=True, slots=True)
class Event(ABC):
    """A record of one release or of several, under one neighbouring relation."""

    kind: ClassVar[str] = ""
    version: ClassVar[int] = 1
    checks: ClassVar[Mapping[str, Check]] = _checks()
    """The check of each parameter; the value that it returns is stored, rationals as floats."""

    def __post_init__(self) -> None:
        for name, check in self.checks.items():
            value = check(name, getattr(self, name))
            object.__setattr__(self, name, float(value) if isinstance(value, Fraction) else value)

    @property
    @abstractmethod
    def relation(self) -> Relation:
        """Which data sets are neighbours for this event."""

    def to_json(self) -> str:
        """Return the event as JSON with its kind and version, keys sorted."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON form as plain objects."""
        written: dict[str, Any] = {"kind": self.kind, "version": self.version}
        for name, value in _parameters(self).items():
            if isinstance(value, Event):
                written[name] = value.to_dict()
            elif isinstance(value, tuple):
                written[name] = [part.to_dict() for part in value]
            else:
                written[name] = value
        return written


@dataclass(frozen=True, slots=True)
class SimpleEvent(Event):
    """An event without parts; it carries the relation itself."""

    under: Relation = field(default=Relation.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        object.__setattr__(self, "under", Relation.of(self.under))

    @property
    def relation(self) -> Relation:
        return self.under


@dataclass(frozen=True, slots=True)
class Pure(SimpleEvent):
    """Any epsilon-differentially private mechanism of which no more is known."""

    kind = "pure"
    checks = _checks(epsilon=not_negative)
    epsilon: float


@dataclass(frozen=True, slots=True)
class Approximate(SimpleEvent):
    """Any (epsilon, delta)-differentially private mechanism of which no more is known."""

    kind = "approximate"
    checks = _checks(epsilon=not_negative, delta=_below_one)
    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class Laplace(Pure):
    """Continuous Laplace noise, possibly rounded afterwards: L1 sensitivity over scale is epsilon."""

    kind = "laplace"


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(SimpleEvent):
    """Two-sided geometric noise on a lattice on which neighbours lie `steps` apart in L1, at epsilon for all steps.

    Its privacy curve joins `steps` + 1 points of the continuous Laplace curve by chords: with one step it is that
    of randomized response, with many it approaches the continuous one, and more steps in a multiple never cost more.
    """

    kind = "discrete-laplace"
    checks = _checks(epsilon=not_negative, steps=whole)
    epsilon: float
    steps: int = 1


@dataclass(frozen=True, slots=True)
class Gaussian(SimpleEvent):
    """Gaussian noise: `sigma` is its standard deviation over the L2 sensitivity."""

    kind = "gaussian"
    checks = _checks(sigma=positive)
    sigma: float


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(SimpleEvent):
    """Discrete Gaussian noise on the integers: `sigma` over the L2 sensitivity, which is `sensitivity` steps.

    With `scalar` set, one coordinate moves; otherwise the sensitivity may be spread over any number of coordinates.
    """

    kind = "discrete-gaussian"
    checks = _checks(sigma=positive, sensitivity=positive, scalar=truth_value)
    sigma: float
    sensitivity: float = 1.0
    scalar: bool = False


@dataclass(frozen=True, slots=True)
class Exponential(Pure):
    """The exponential mechanism, or any other whose log-ratios all lie in one interval of length epsilon."""

    kind = "exponential"


@dataclass(frozen=True, slots=True)
class RandomizedResponse(SimpleEvent):
    """Randomized response over `categories` answers, the truth e^epsilon times as likely as each other answer."""

    kind = "randomized-response"
    checks = _checks(epsilon=not_negative, categories=partial(whole, at_least=2))
    epsilon: float
    categories: int = 2


@dataclass(frozen=True, slots=True)
class ZeroConcentrated(SimpleEvent):
    """Any rho-zero-concentrated differentially private mechanism."""

    kind = "zero-concentrated"
    checks = _checks(rho=not_negative)
    rho: float


@dataclass(frozen=True, slots=True)
class Shuffled(SimpleEvent):
    """`count` reports of an epsilon-locally private randomizer, seen only after a uniform shuffle.

    The number of reports is public, so the relation is replace-one by default.
    """

    kind = "shuffled"
    checks = _checks(epsilon=not_negative, count=whole)
    epsilon: float
    count: int
    under: Relation = field(default=Relation.REPLACE_ONE, kw_only=True)


@dataclass(frozen=True, slots=True)
class NoisyMax(SimpleEvent):
    """The index of the greatest count after Gaussian noise of standard deviation `sigma`; one unit moves one vote."""

    kind = "noisy-max"
    checks = _checks(sigma=positive)
    sigma: float


@dataclass(frozen=True, slots=True)
class TreeAggregation(SimpleEvent):
    """Every node of a binary tree over `leaves` leaves, of which each unit touches one, with Gaussian noise.

    `sigma` is the standard deviation of one node's noise over the L2 sensitivity of one leaf: how far one unit moves it
    at most when it is added to the leaf, removed from it or, under replace-one, exchanged within it. A replaced unit
    may also leave one leaf for another.
    """

    kind = "tree-aggregation"
    checks = _checks(sigma=positive, leaves=whole)
    sigma: float
    leaves: int


@dataclass(frozen=True, slots=True)
class CompoundEvent(Event):
    """An event made from others; it takes the relation from them."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Event, ...]:
        """The events that this one is made from."""

    @property
    def relation(self) -> Relation:
        return self.parts[0].relation

    def __post_init__(self) -> None:
        Event.__post_init__(self)
        if not self.parts:
            raise EmptyInput(f"{self.kind} needs at least one event", name="events")
        if len(self.parts) > EVENT_PARTS_MAX:
            raise TooLarge(f"{self.kind} takes at most {EVENT_PARTS_MAX:,} events; use Repeated for equal ones")
        for part in self.parts:
            if not isinstance(part, Event):
                raise WrongType(f"{self.kind} is made from events, not from {describe_non_event(part)}", name="event")
        relations = {part.relation for part in self.parts}
        if len(relations) > 1:
            raise MixedRelations(
                f"{self.kind} mixes {' and '.join(sorted(relations))} events; state all of them under one relation"
            )
        if _depth(self) > EVENT_DEPTH_MAX:
            raise TooLarge(f"events can be nested {EVENT_DEPTH_MAX} deep at most", name="event")


@dataclass(frozen=True, slots=True)
class WrappedEvent(CompoundEvent):
    """An event made from one other event, the field `event` of every subclass."""

    @property
    def parts(self) -> tuple[Event, ...]:
        return (self.event,)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Sampled(WrappedEvent):
    """`event` on a Poisson sample: every unit takes part independently with probability `rate`."""

    kind = "sampled"
    checks = _checks(rate=_rate)
    rate: float
    event: Event


@dataclass(frozen=True, slots=True)
class SampledWithoutReplacement(WrappedEvent):
    """`event` on a uniform sample of exactly `size` of `population` units, whose number is public."""

    kind = "sampled-without-replacement"
    checks = _checks(size=whole, population=whole)
    size: int
    population: int
    event: Event

    def __post_init__(self) -> None:
        CompoundEvent.__post_init__(self)
        if self.size > self.population:
            raise OutOfRange(f"a sample of {self.size} cannot be drawn from {self.population}", name="size")


@dataclass(frozen=True, slots=True)
class Repeated(WrappedEvent):
    """`event` run `count` times on the same data, each time with fresh randomness."""

    kind = "repeated"
    checks = _checks(count=whole)
    event: Event
    count: int


@dataclass(frozen=True, slots=True)
class Grouped(WrappedEvent):
    """`event` as seen by any `size` units together (group privacy)."""

    kind = "grouped"
    checks = _checks(size=whole)
    event: Event
    size: int


@dataclass(frozen=True, slots=True)
class Selected(WrappedEvent):
    """The best of a random number of runs of `event`, by a score that each run releases with its output.

    The number of runs has the truncated negative binomial distribution of `shape` (1: geometric, 0: logarithmic) and
    stopping parameter `stop` (Papernot and Steinke 2022).
    """

    kind = "selected"
    checks = _checks(shape=not_negative, stop=inside_unit_interval)
    event: Event
    shape: float
    stop: float


@dataclass(frozen=True, slots=True)
class Converted(WrappedEvent):
    """`event` with the delta at which accounts that add up (epsilon, delta) count it, by its loss distribution.

    It costs what `event` costs. The parameters of `event` are fixed before it is run, as those of a training are.
    """

    kind = "converted"
    checks = _checks(delta=inside_unit_interval)
    event: Event
    delta: float


@dataclass(frozen=True, slots=True)
class ListedEvent(CompoundEvent):
    """An event made from several others."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.events, Iterable):
            raise WrongType(
                f"{self.kind} is made from a list of events, not {type(self.events).__name__}", name="events"
            )
        object.__setattr__(self, "events", tuple(self.events))
        CompoundEvent.__post_init__(self)

    @property
    def parts(self) -> tuple[Event, ...]:
        return self.events


@dataclass(frozen=True, slots=True)
class Composed(ListedEvent):
    """Several events on the same data, one after another."""

    kind = "composed"


@dataclass(frozen=True, slots=True)
class Disjoint(ListedEvent):
    """Several events on parts of the data that no unit shares (parallel composition)."""

    kind = "disjoint"


KINDS: Final[Mapping[str, type[Event]]] = {
    kind.kind: kind
    for kind in (
        Pure, Approximate, Laplace, DiscreteLaplace, Gaussian, DiscreteGaussian, Exponential, RandomizedResponse,
        ZeroConcentrated, Shuffled, NoisyMax, TreeAggregation, Sampled, SampledWithoutReplacement, Repeated, Grouped,
        Selected, Converted, Composed, Disjoint,
    )
}  # fmt: skip


def from_json(text: str | bytes) -> Event:
    """Return an event from its JSON form; raise unless kind, version and parameters are exactly as known."""
    if len(text) > EVENT_BYTES_MAX:
        raise TooLarge(f"a written event takes at most {EVENT_BYTES_MAX:,} bytes, not {len(text):,}")
    try:
        record = strict_json.loads(text)
    except InvalidInput as error:
        raise UnknownEvent(f"an event is one JSON object: {error.message}") from None
    return from_dict(record)


def from_dict(record: object, *, depth: int = 1) -> Event:
    """Return an event from the content of its JSON form, as `from_json` does."""
    if depth > EVENT_DEPTH_MAX:
        raise TooLarge(f"events can be nested {EVENT_DEPTH_MAX} deep at most", name="event")
    if not isinstance(record, dict):
        raise UnknownEvent(f"an event is one JSON object, not {type(record).__name__}")
    name, version = record.get("kind"), record.get("version")
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise UnknownEvent(f"unknown event kind {name!r}; a newer tacit may know it", name="kind", value=name)
    if type(version) is not int or version != kind.version:
        raise UnknownEvent(f"version {version!r} of {name} events is not supported", name="version", value=version)
    written = {key: value for key, value in record.items() if key not in ("kind", "version")}
    expected = {_written_name(field_.name) for field_ in fields(kind)}
    if set(written) != expected:
        raise UnknownEvent(f"a {name} event has the parameters {sorted(expected)}, not {sorted(written)}")
    return _build(kind, written, depth)


def canonical_event(event: Event) -> Event:
    """Return the event as its JSON form describes it: of a known class, with plain numbers.

    A caller's subclass could override anything, such as its relation or equality; it is replaced by the known class,
    and refused if its kind is unknown.
    """
    if _is_exact(event):
        return event
    try:
        written = event.to_dict()
    except TacitError:
        raise
    except Exception as error:
        raise UnknownEvent(f"an event of the class {type(event).__name__} cannot be written") from error
    return from_dict(written)


_FIELDS: Final = {id(kind): tuple(field_.name for field_ in fields(kind)) for kind in KINDS.values()}


def _is_exact(value: object) -> bool:
    """Return whether an event or a parameter, with all of its parts, is of a known type and not of a subclass."""
    if type(value) in (float, int, bool, Relation):
        return True
    if type(value) is tuple:
        return all(map(_is_exact, value))
    names = _FIELDS.get(id(type(value)))
    return names is not None and all(_is_exact(getattr(value, name)) for name in names)


def _build(kind: type[Event], written: dict[str, Any], depth: int) -> Event:
    arguments: dict[str, Any] = {}
    for key, value in written.items():
        if key == "event":
            arguments[key] = from_dict(value, depth=depth + 1)
        elif key == "events":
            if not isinstance(value, list):
                raise UnknownEvent("the parts of an event are a list", name="events", value=value)
            arguments[key] = tuple(from_dict(part, depth=depth + 1) for part in value)
        elif key == "relation":
            arguments["under"] = Relation.of(value)
        else:
            arguments[key] = value
    return kind(**arguments)


def _parameters(event: Event) -> dict[str, Any]:
    return {_written_name(field_.name): getattr(event, field_.name) for field_ in fields(event)}


def _written_name(field_name: str) -> str:
    return "relation" if field_name == "under" else field_name


def composed(events: Sequence[Event]) -> Event:
    """Return the composition of events; a single one as it is."""
    return events[0] if len(events) == 1 else Composed(tuple(events))


def describe_non_event(value: object) -> str:
    """Return the type of a value that is not an event for an error message, with a hint if it has an event."""
    name = type(value).__name__
    return f"{name}; pass its .event" if hasattr(type(value), "event") else name


def _depth(event: Event) -> int:
    level, depth = [event], 0
    while level:
        depth += 1
        level = [part for one in level if isinstance(one, CompoundEvent) for part in one.parts]
        if depth > EVENT_DEPTH_MAX:
            break
    return depth
