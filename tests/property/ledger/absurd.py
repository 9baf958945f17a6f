"""Events with parameters of any size: doubles from the least to the greatest, counts to 10^300, nested.

Drawn from a seed and not by hypothesis, which takes longer to draw such an event than the ledger to price it.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from tacit.privacy import events
from tacit.privacy.errors import TacitError
from tacit.privacy.events import KINDS, Event
from tacit.privacy.units import Relation

COUNT_MAX: Final = 10**300
DEPTH_MAX: Final = 4
_DOUBLES: Final = (5e-324, 2.3e-308, 1e-160, 1e-17, 0.1, 1.0, 700.0, 701.0, 745.0, 1e154, 1.7976931348623157e308)
_COUNTS: Final = (1, 2, 1000, 2**53, 10**18, 10**299, COUNT_MAX)
_SHARES: Final = (5e-324, 1e-300, 0.5, 1 - 2**-53)


def double(chance: random.Random) -> float:
    """Return a positive double, every order of magnitude as likely as every other."""
    return chance.choice(_DOUBLES) if chance.random() < 0.3 else 10 ** chance.uniform(-323, 308)


def count(chance: random.Random) -> int:
    """Return a count from 1 to 10^300."""
    return chance.choice(_COUNTS) if chance.random() < 0.3 else chance.randint(1, 10 ** chance.randint(1, 300))


def share(chance: random.Random) -> float:
    """Return a double above 0 and below 1."""
    return chance.choice((*_SHARES, chance.uniform(0.001, 0.999), 10 ** chance.uniform(-323, -1)))


def _or_nothing(chance: random.Random) -> float:
    return 0.0 if chance.random() < 0.1 else double(chance)


_PARAMETERS: Final[Mapping[str, Callable[[random.Random], Any]]] = {
    "epsilon": _or_nothing,
    "rho": _or_nothing,
    "shape": _or_nothing,
    "delta": lambda chance: 0.0 if chance.random() < 0.1 else share(chance),
    "sigma": double,
    "sensitivity": double,
    "rate": lambda chance: 1.0 if chance.random() < 0.1 else share(chance),
    "stop": share,
    "scalar": lambda chance: chance.random() < 0.5,
    "categories": lambda chance: 1 + count(chance),
}
"""By name; every other parameter is a count."""


def event(chance: random.Random, relation: Relation, *, kinds: tuple[str, ...] = (), depth: int = 1) -> Event:
    """Return an event of any kind, or of one of `kinds`, with any parameters that it takes."""
    compound = {name for name, kind in KINDS.items() if issubclass(kind, events.CompoundEvent)}
    names = kinds or tuple(sorted(set(KINDS) - compound if depth >= DEPTH_MAX or chance.random() < 0.4 else compound))
    kind = KINDS[chance.choice(names)]
    parameters: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        match field.name:
            case "under":
                parameters["under"] = relation
            case "event":
                parameters["event"] = event(chance, relation, depth=depth + 1)
            case "events":
                several = [event(chance, relation, depth=depth + 1) for _ in range(chance.randint(1, 3))]
                parameters["events"] = tuple(several)
            case name:
                parameters[name] = _PARAMETERS.get(name, count)(chance)
    try:
        return kind(**parameters)
    except TacitError:  # a sample larger than its population, say
        return event(chance, relation, kinds=kinds, depth=depth)
