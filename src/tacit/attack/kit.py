"""The attacks by name, and how one or all of those that fit a target are run and judged.

An attack is a function of a target and a `Setting` that returns an `Outcome`, registered with `attack`. What an attack
measures is its own; claim, confidence, verdict, seed and time are added here, the same for all.

A suite runs every attack that fits, each at a confidence of 1 - 0.05 / number of attacks (Bonferroni), so that a suite
over sound mechanisms reports any violation in at most 1 of 20 cases.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from tacit.attack.finding import (
    EPSILON,
    Claim,
    Finding,
    Measurement,
    Power,
    RocPoint,
    Series,
    ThreatModel,
    Verdict,
    judge,
)
from tacit.attack.query_interface import QueryInterface
from tacit.attack.targets import DoesNotFit
from tacit.privacy.arguments import instances
from tacit.privacy.errors import Cancelled, InvalidInput, OutOfRange, UnknownName
from tacit.privacy.numbers import DEFAULT_LEVEL, inside_unit_interval, whole
from tacit.privacy.texts import did_you_mean

EFFORTS: Final = ("ci", "nightly", "full")
MODULES: Final = (
    "linkage",
    "attribute_linkage",
    "sparse_linkage",
    "single_counts",
    "linear_reconstruction",
    "table_reconstruction",
    "differencing",
    "tracing",
    "side_channels",
    "floating_point",
    "mechanism_audit",
    "canary_audit",
    "update_audit",
    "closest_record",
)
"""The modules of tacit that register attacks; other modules may do so, too."""


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

    def ceiling(self, secrets: int, guesses: int, share: float = 0.5, positive: float = 0.5) -> float | None:
        """Return the greatest share of right guesses that the claim allows; None without one.

        `share` is that of secrets that are 1, `positive` that of guesses that say so.
        """
        if self.claim is None or self.claim.epsilon is None:
            return None
        return self.claim.accuracy_of_guesses(secrets, guesses, share, positive)

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
    unbounded: str = ""
    """Why there is no lower bound, in one sentence, where a target of this kind could have one."""


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
    needs_delta: bool = False
    """Whether the claim must have a delta above 0."""
    noise: str = ""
    """The only noise about which it can refute a claim; suites run it where the claim or the target states it."""
    uses_prior: bool = False
    """Whether a belief beforehand changes what it finds."""

    def missing(self, target: object) -> list[str]:
        """Return the attributes that the attack needs and the target does not have."""
        return [name for name in self.needs if getattr(target, name) is None]


def power_of_share(planted: str, setting: Setting) -> Power:
    """Return the power of an attack on everybody, whose share is exact: what it shows if all are found, or none."""
    risk = None if setting.claim is None else setting.claim.risk
    return Power(planted, 1.0, 0.0, is_noticed=risk is not None and risk < 1)


_ATTACKS: Final[list[Attack]] = []


def stated(value: T | None, name: str) -> T:
    """Return an attribute of a target that an attack needs, or raise InvalidInput."""
    if value is None:
        raise InvalidInput(f"the attack needs {name} of its target; state it", name=name)
    return value


def attack(
    name: str,
    target: type,
    *,
    paper: str,
    summary: str,
    needs: Iterable[str] = (),
    only_asked: bool = False,
    needs_delta: bool = False,
    noise: str = "",
    uses_prior: bool = False,
) -> Callable[[Run], Run]:
    """Register a function as an attack."""

    def register(run: Run) -> Run:
        _ATTACKS.append(
            Attack(name, target, paper, summary, run, tuple(needs), only_asked, needs_delta, noise, uses_prior)
        )
        return run

    return register


def attacks() -> tuple[Attack, ...]:
    """Return all attacks: those of tacit in the order of their modules, then others as they were registered."""
    places = {import_module(f"tacit.attack.{module}").__name__: place for place, module in enumerate(MODULES)}
    return tuple(sorted(_ATTACKS, key=lambda one: places.get(one.run.__module__, len(places))))


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
    at which an event is judged. `prior` is the attacker's belief that a secret is 1, for attacks that use one. The
    attacker's own choices follow from `seed`.
    """
    _require_known(attack)
    named = [one for one in attacks() if one.name == attack]
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
    checked = _checked(promise, delta, prior, effort)
    if prior is not None and not complete[0].uses_prior:
        raise InvalidInput(f"the attack {attack} does not use a prior; leave it out", name="prior")
    if complete[0].needs_delta and (checked[0] is None or not checked[0].delta):
        raise InvalidInput(f"the attack {attack} needs a claim with a delta above 0", name="promise")
    return _run(complete[0], target, checked, DEFAULT_LEVEL, "", seed)


def _require_known(name: str) -> None:
    """Raise UnknownName unless there is an attack of that name."""
    known = sorted({one.name for one in attacks()})
    if name not in known:
        hint = did_you_mean(str(name), known, f"use {', '.join(known)}")
        raise UnknownName(f"there is no attack {name!r}; {hint}", name="attack")


def suite(
    target: object,
    promise: object = None,
    prior: float | None = None,
    effort: str = "ci",
    seed: int | None = None,
    *,
    delta: float | None = None,
    among: int | None = None,
    done: Collection[str] = (),
    report: Callable[[Finding], None] | None = None,
    failed: Callable[[str, Exception], None] | None = None,
) -> list[Finding]:
    """Run every attack that fits a target; the confidence of each is corrected for their number.

    `among` is that number where several targets are attacked together. Attacks named in `done` are not run again.
    `report` is called with each finding. An interface with an epsilon is asked by all attacks, so each gets an even
    part of it. An attack that the target is too small for is not applicable (`DoesNotFit`); of any other error
    `failed`, if it is given, is told the name of the attack, and the other attacks are run.
    """
    checked = _checked(promise, delta, prior, effort)
    seed = None if seed is None else whole("seed", seed, at_least=0)
    for name in instances("done", done, str, "a list of names of attacks"):
        _require_known(name)
    fitting = attacks_on(target, checked[0], effort)
    if not fitting:
        raise InvalidInput(f"no attack fits a target of type {type(target).__name__} as it stands", name="target")
    number = len(fitting) if among is None else whole("among", among, at_least=len(fitting))
    correction = f"Bonferroni over {number} attacks" if number > 1 else ""
    attacked = target.divided(len(fitting)) if isinstance(target, QueryInterface) else target
    found = []
    for one in fitting:
        if one.name not in done:
            try:
                found.append(_run(one, attacked, checked, 1 - (1 - DEFAULT_LEVEL) / number, correction, seed))
            except DoesNotFit as error:
                found.append(_not_run(one, checked, error, seed))
            except Exception as error:
                if failed is None or isinstance(error, Cancelled):
                    raise
                failed(one.name, error)
                continue
            if report is not None:
                report(found[-1])
    return found


def _not_run(one: Attack, checked: _Checked, error: DoesNotFit, seed: int | None) -> Finding:
    return Finding(
        one.name,
        one.paper,
        ThreatModel("none", "nothing", 0),
        (),
        Verdict.NOT_APPLICABLE,
        f"The attack could not be run: {error.sentence}.",
        claimed=checked[0],
        effort=checked[2],
        seed=seed,
        details={"refusal": error.refusal},
    )


def attacks_on(target: object, claim: Claim | None = None, effort: str = "ci") -> list[Attack]:
    """Return the attacks that a suite runs on a target."""
    has_delta = claim is not None and claim.delta > 0
    stated_noise = {"", getattr(target, "noise", ""), "" if claim is None else claim.noise}
    return [
        one
        for one in attacks()
        if isinstance(target, one.target)
        and not one.missing(target)
        and (not one.only_asked or effort == "full")
        and (has_delta or not one.needs_delta)
        and one.noise in stated_noise
    ]


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
    seed = None if seed is None else whole("seed", seed, at_least=0)
    random = np.random.default_rng(seed)
    begun_s = time.perf_counter()
    outcome = one.run(target, Setting(claim, confidence, effort, prior, random))
    without: dict[str, Any] = {"without": outcome.unbounded} if outcome.unbounded else {}
    verdict, reason = judge(claim, outcome.lower_bound, outcome.power, what=outcome.bounds, **without)
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
        effort=effort,
        seed=seed,
        seconds=time.perf_counter() - begun_s,
        details=outcome.details,
        bounds=outcome.bounds,
    )
