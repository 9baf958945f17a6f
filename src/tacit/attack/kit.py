"""The attacks by name, and how one or all of those that fit a target are run and judged.

An attack is a function of a target and a `Setting` that returns an `Outcome`, registered with `attack`. What an attack
measures is its own; claim, confidence, verdict, seed and time are added here, the same for all.

A suite runs every attack that fits, each at a confidence of 1 - 0.05 / number of attacks (Bonferroni), so that a suite
over sound mechanisms reports any violation in at most 1 of 20 cases.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from tacit.attack.confidence import CONFIDENCE, clopper_pearson
from tacit.attack.finding import EPSILON, Claim, Finding, Measurement, Power, RocPoint, Series, ThreatModel, judge
from tacit.privacy.errors import InvalidInput, OutOfRange, UnknownName
from tacit.privacy.numbers import inside_unit_interval, whole
from tacit.privacy.texts import did_you_mean

EFFORTS: Final = ("ci", "nightly", "full")
MODULES: Final = (
    "linkage",
    "attribute_linkage",
    "sparse_linkage",
    "decoding",
    "table_reconstruction",
    "differencing",
    "tracing",
    "channels",
    "floating_point",
    "mechanism_audit",
    "canary_audit",
)
"""The modules that register attacks."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What an attack is given beside its target."""

    claim: Claim | None
    confidence: float
    effort: str
    prior: float | None
    """The attacker's belief beforehand that a secret is 1; None for no knowledge."""
    random: np.random.Generator

    def scaled(self, ci: int, nightly: int, full: int) -> int:
        """Return a number of trials or questions by effort."""
        return dict(zip(EFFORTS, (ci, nightly, full), strict=True))[self.effort]

    @property
    def delta(self) -> float:
        """The delta at which lower bounds on epsilon are computed."""
        return 0.0 if self.claim is None else self.claim.delta

    def refutes(self, lower_bound: float) -> bool:
        """Return whether a lower bound on epsilon contradicts the claim."""
        return self.claim is not None and self.claim.epsilon is not None and lower_bound > self.claim.epsilon


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attack measured."""

    threat_model: ThreatModel
    measurements: tuple[Measurement, ...]
    lower_bound: float | None = None
    method: str = ""
    power: Power | None = None
    roc: tuple[RocPoint, ...] = ()
    series: tuple[Series, ...] = ()
    worst: tuple[Mapping[str, Any], ...] = ()
    assumptions: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    bounds: str = EPSILON
    """What `lower_bound` bounds, in words: epsilon, or a share of people."""


T = TypeVar("T")
Run: TypeAlias = Callable[[Any, Setting], Outcome]


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack on one kind of target."""

    name: str
    target: type
    paper: str
    summary: str
    run: Run
    needs: tuple[str, ...] = ()
    """Attributes of the target without which the attack does not fit."""
    only_asked: bool = False
    """Whether suites leave it out, because it takes long or answers another question."""

    def missing(self, target: object) -> list[str]:
        """Return the attributes that the attack needs and the target does not have."""
        return [name for name in self.needs if getattr(target, name) is None]


def power_of_share(planted: str, people: int, setting: Setting) -> Power:
    """Return the power of an attack that bounds a share of people: what it shows if all of them are found, or none."""
    error = (1 - setting.confidence) / 2
    everybody, nobody = clopper_pearson(people, people, error)[0], clopper_pearson(0, people, error)[0]
    risk = None if setting.claim is None else setting.claim.risk
    return Power(planted, everybody, nobody, is_noticed=risk is not None and everybody > risk)


_ATTACKS: Final[list[Attack]] = []


def stated(value: T | None, name: str) -> T:
    """Return an attribute of a target that an attack needs, or raise InvalidInput."""
    if value is None:
        raise InvalidInput(f"the attack needs {name} of its target; state it", name=name)
    return value


def attack(
    name: str, target: type, *, paper: str, summary: str, needs: Iterable[str] = (), only_asked: bool = False
) -> Callable[[Run], Run]:
    """Register a function as an attack."""

    def register(run: Run) -> Run:
        _ATTACKS.append(Attack(name, target, paper, summary, run, tuple(needs), only_asked))
        return run

    return register


def attacks() -> tuple[Attack, ...]:
    """Return all attacks, in the order of their modules."""
    for module in MODULES:
        import_module(f"tacit.attack.{module}")
    return tuple(_ATTACKS)


def run(
    attack: str,
    target: object,
    promise: object = None,
    prior: float | None = None,
    effort: str = "ci",
    seed: int | None = None,
    *,
    delta: float | None = None,
) -> Finding:
    """Attack a target and judge what is found against a promise.

    `promise` is a cost, a release, an event, a pair (epsilon, delta), an epsilon, or a Claim of a risk; `delta` is that
    at which an event is judged. `prior` is the attacker's belief that a secret is 1. The attacker's own choices follow
    from `seed`.
    """
    named = [one for one in attacks() if one.name == attack]
    if not named:
        known = sorted({one.name for one in attacks()})
        hint = did_you_mean(str(attack), known, f"use {', '.join(known)}")
        raise UnknownName(f"there is no attack {attack!r}; {hint}", name="attack")
    fitting = [one for one in named if isinstance(target, one.target)]
    if not fitting:
        wanted = " or ".join(sorted({one.target.__name__ for one in named}))
        raise InvalidInput(
            f"the attack {attack} fits a target of type {wanted}, not {type(target).__name__}", name="target"
        )
    complete = [one for one in fitting if not one.missing(target)]
    if not complete:
        raise InvalidInput(
            f"the attack {attack} needs {' and '.join(fitting[0].missing(target))} of its target; state it",
            name="target",
        )
    return _run(complete[0], target, _checked(promise, delta, prior, effort), CONFIDENCE, "", seed)


def suite(
    target: object,
    promise: object = None,
    prior: float | None = None,
    effort: str = "ci",
    seed: int | None = None,
    *,
    delta: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[Finding]:
    """Run every attack that fits a target; the confidence of each is corrected for their number."""
    checked = _checked(promise, delta, prior, effort)
    fitting = [one for one in attacks() if isinstance(target, one.target) and not one.missing(target)]
    fitting = [one for one in fitting if not one.only_asked or effort == "full"]
    if not fitting:
        raise InvalidInput(f"no attack fits a target of type {type(target).__name__} as it stands", name="target")
    confidence = 1 - (1 - CONFIDENCE) / len(fitting)
    correction = f"Bonferroni over {len(fitting)} attacks" if len(fitting) > 1 else ""
    found = []
    for index, one in enumerate(fitting):
        found.append(_run(one, target, checked, confidence, correction, seed))
        if progress is not None:
            progress((index + 1) / len(fitting))
    return found


_Checked: TypeAlias = tuple[Claim | None, float | None, str]


def _checked(promise: object, delta: float | None, prior: float | None, effort: str) -> _Checked:
    if effort not in EFFORTS:
        raise OutOfRange(f"effort must be one of {', '.join(EFFORTS)}, not {effort!r}", name="effort", value=effort)
    belief = None if prior is None else float(inside_unit_interval("prior", prior))
    return Claim.of(promise, delta), belief, effort


def _run(
    one: Attack, target: object, checked: _Checked, confidence: float, correction: str, seed: int | None
) -> Finding:
    claim, prior, effort = checked
    random = np.random.default_rng(None if seed is None else whole("seed", seed, at_least=0))
    begun_s = time.perf_counter()
    outcome = one.run(target, Setting(claim, confidence, effort, prior, random))
    verdict, reason = judge(claim, outcome.lower_bound, outcome.power, what=outcome.bounds)
    return Finding(
        one.name,
        one.paper,
        outcome.threat_model,
        outcome.measurements,
        verdict,
        reason,
        claimed=claim,
        lower_bound=outcome.lower_bound,
        method=outcome.method,
        confidence=confidence,
        correction=correction,
        power=outcome.power,
        roc=outcome.roc,
        series=outcome.series,
        worst=outcome.worst,
        assumptions=outcome.assumptions,
        seed=seed,
        seconds=time.perf_counter() - begun_s,
        details=outcome.details,
    )
