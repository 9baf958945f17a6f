"""What an attack found: claim, measurement, power and verdict, as a record that is written as JSON and as a page.

Verdicts, of which none is "safe":

violates         the measured lower bound is above what was claimed
consistent       it is not, though the same attack refutes the claim on a twin with a planted leak, and with
                 probability 90 % an epsilon that is ten times the claim, or 0.1, or less
underpowered     it is not, and the attack would not have noticed that either
not applicable   there is no claim that the attack could refute, or it accuses a release that says nothing as well;
                 the measurement is shown all the same

The schema has a version; a reader refuses a newer one, fields of other types or out of their range, and a verdict that
does not follow from claim, bound and power, by today's rules or by those under which the schema began
(`attack/finding_json.py` writes and reads values). An infinite least epsilon is written as the text "inf".

People: records of people, their ids and secrets are in `worst`, and in texts, lists and objects of `details`, which may
quote a question about a person. All other fields hold figures, names of columns and statistics, and fixed sentences.
`without_people` drops the former.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from numbers import Real
from typing import Any, Final, cast

import numpy as np

from tacit.accounting import Bound, Cost, epsilon
from tacit.attack.finding_json import UNREADABLE, plain, read_as, writable
from tacit.privacy import strict_json
from tacit.privacy.arguments import instance, mapping
from tacit.privacy.errors import InvalidInput, OutOfRange, UnknownName, WrongType
from tacit.privacy.events import Composed, Event, Gaussian, Repeated
from tacit.privacy.numbers import DEFAULT_LEVEL, not_negative

SCHEMA_VERSION: Final = 1
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""Names of details."""
EPSILON: Final = "epsilon"
"""What the lower bounds of attacks on private releases bound; those on tables bound a share of people."""
GAUSSIAN: Final = "gaussian"
UNDERPOWERED_FROM: Final = 10.0
"""An attack is underpowered if it refutes no epsilon up to so many times the claim."""
NOTICED_AT_LEAST: Final = 0.1
"""The epsilon that an attack must refute to be consistent with a claim below a tenth of it, such as epsilon 0."""
INFINITE: Final = "inf"
"""How an infinite `least_epsilon` is written as JSON, where null means that it is not known."""


class Verdict(StrEnum):
    """What a finding says about a claim."""

    VIOLATES = "violates"
    CONSISTENT = "consistent"
    UNDERPOWERED = "underpowered"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Claim:
    """What was promised: (epsilon, delta), or for tables without noise the greatest share of people at risk."""

    epsilon: float | None = None
    delta: float = 0.0
    risk: float | None = None
    permit: str = ""
    """The entry of the ledger that paid for what is attacked."""
    noise: str = ""
    """`GAUSSIAN` if all noise is: the trade-off curve of what was promised is then that of one Gaussian release."""

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", float(not_negative("epsilon", self.epsilon)))
        object.__setattr__(self, "delta", float(not_negative("delta", self.delta)))
        if self.delta >= 1:
            raise OutOfRange("delta must be below 1", name="delta", value=self.delta)
        if self.risk is not None:
            object.__setattr__(self, "risk", float(not_negative("risk", self.risk)))
            if self.risk > 1:
                raise OutOfRange("risk must be at most 1", name="risk", value=self.risk)
        instance("permit", self.permit, str, "a text")
        if self.noise not in ("", GAUSSIAN):
            raise OutOfRange(f'noise must be "{GAUSSIAN}" where it is stated', name="noise", value=self.noise)

    @classmethod
    def of(cls, promise: object, delta: float | None = None) -> Claim | None:
        """Return the claim of a cost, release, permit of the ledger, event, pair (epsilon, delta) or epsilon.

        None is no claim. An event needs the delta at which it is judged, unless it is purely private; whatever states
        its own delta takes no other.
        """
        stated = getattr(promise, "cost", None)
        if delta is not None and isinstance(promise, Claim | Cost | tuple | list) | isinstance(stated, Cost):
            raise InvalidInput("the promise states its delta; state no other beside it", name="delta")
        match promise:
            case None | Claim():
                return promise
            case Event():
                at = 0.0 if delta is None else float(not_negative("delta", delta))
                upper = epsilon(promise, at).upper
                if math.isinf(upper):
                    raise InvalidInput(
                        "this event has no finite epsilon at delta 0; state a delta above 0", name="delta"
                    )
                return cls(upper, at, noise=GAUSSIAN if _is_gaussian(promise) else "")
            case Cost():
                return cls(promise.epsilon, promise.delta)
            case Bound():
                if delta is None:
                    raise InvalidInput("state the delta at which this bound on epsilon was computed", name="delta")
                return cls(promise.upper, delta)
            case (first, second):
                return cls(*_numbers(first, second))
            case int() | float() | np.number():
                return cls(*_numbers(promise, 0.0 if delta is None else delta))
        if isinstance(stated, Cost):  # a release or an answer, embedded or from a server
            if not stated.epsilon:
                raise InvalidInput(
                    "this answer was released before and cost nothing now; state what its first release cost, or its "
                    "permit",
                    name="promise",
                )
            permit = getattr(promise, "permit", promise)  # a permit of the ledger is its own
            return cls(stated.epsilon, stated.delta, permit=str(getattr(permit, "id", permit) or ""))
        raise WrongType(
            "promise must be a cost, a release, an event, a pair of epsilon and delta, or an epsilon, not "
            f"{type(promise).__name__}",
            name="promise",
        )

    @property
    def accuracy(self) -> float:
        """The greatest probability of a right guess of one of two equally likely values.

        It is (e^epsilon + delta) / (e^epsilon + 1).
        """
        assert self.epsilon is not None
        less = math.exp(-self.epsilon)
        return (1 + self.delta * less) / (1 + less)

    def accuracy_of_guesses(self, secrets: int, guesses: int, share: float = 0.5, positive: float = 0.5) -> float:
        """Return the greatest expected share of right guesses where the attacker chooses about whom to guess.

        `share` is the prior of a secret that is 1, `positive` the share of guesses that say so. With prior p, let a and
        b be the probabilities of the guess 1 about a secret that is 1, and that is 0: a <= e^epsilon b + delta. So of
        the probability p a + (1 - p) b of this guess a part r = p / (p + (1 - p) e^-epsilon) at most is right, but for
        r (1 - p) e^-epsilon delta; likewise for the guess 0. The terms in delta of all secrets may go to those guessed.
        """
        assert self.epsilon is not None
        less, found, extra = math.exp(-self.epsilon), 0.0, 0.0
        for prior, part in ((share, positive), (1 - share, 1 - positive)):
            right = prior / (prior + (1 - prior) * less) if prior else 0.0
            found += part * right
            extra += right * (1 - prior) * less
        return min(1.0, found + extra * self.delta * secrets / guesses)

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """Return the greatest rate of right accusations that the claim allows at a rate of wrong ones."""
        assert self.epsilon is not None
        factor = math.exp(min(self.epsilon, 700.0))
        return max(
            0.0,
            min(1.0, factor * false_positive_rate + self.delta, 1 - (1 - self.delta - false_positive_rate) / factor),
        )

    @property
    def words(self) -> str:
        """The claim in words."""
        if self.epsilon is None:
            return "no claim" if self.risk is None else f"at most {_percent(self.risk)} of people at risk"
        return f"epsilon {self.epsilon:.6g}" + (f" at delta {self.delta:.3g}" if self.delta else "")


def _numbers(first: Any, second: Any) -> tuple[float, float]:
    return float(not_negative("epsilon", first)), float(not_negative("delta", second))


@dataclass(frozen=True, slots=True)
class ThreatModel:
    """What the attacker has: access, side knowledge, and the number of queries."""

    access: str
    knowledge: str
    queries: int

    def __post_init__(self) -> None:
        _require(self.queries >= 0, "queries must not be negative")


@dataclass(frozen=True, slots=True)
class RocPoint:
    """Rates of right and of wrong accusations at one threshold, with bounds, and the ceiling of the claim."""

    false_positive_rate: float
    true_positive_rate: float
    false_positive_bounds: tuple[float, float]
    true_positive_bounds: tuple[float, float]
    ceiling: float | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure of an attack beside what it is compared with."""

    name: str
    """The figure in words: "secrets guessed right"."""
    value: float
    """NaN where it has none."""
    bounds: tuple[float, float] | None = None
    """A confidence interval at the level of the finding."""
    baseline: float | None = None
    """The figure without the release."""
    predicted: float | None = None
    """The figure that theory predicts."""
    ceiling: float | None = None
    """The greatest expected figure that the claim allows."""
    is_stopped: bool = False
    """Whether a search stopped at its limit, so that the figure is at least the value."""
    key: str = ""
    """A stable name for programs (`Finding.measured`); documents that were written before there were keys have none."""

    def __post_init__(self) -> None:
        _require(not self.key or NAME.fullmatch(self.key) is not None, "the key of a measurement is no identifier")


@dataclass(frozen=True, slots=True)
class Series:
    """Points of a plot: how a figure changes with one quantity."""

    title: str
    x: str
    y: str
    points: tuple[tuple[str | float, float], ...]
    reference: tuple[tuple[str | float, float], ...] = ()
    reference_label: str = ""


@dataclass(frozen=True, slots=True)
class Power:
    """The same attack on two twins of its target: one with a planted leak, and one that says nothing."""

    planted: str
    """The leak that was planted, in words."""
    planted_value: float
    null_value: float
    is_noticed: bool
    """Whether the planted leak would have been called a violation of the claim."""
    doubt: str = ""
    """Why the twin does not stand for the target; a leak of the target would then not have been noticed."""
    least_epsilon: float | None = None
    """The least epsilon that the attack would have refuted with probability 90 %.

    Infinite if it would have refuted none, and None if that is not known.
    """


@dataclass(frozen=True, slots=True)
class Finding:
    """What an attack reports."""

    attack: str
    paper: str
    threat_model: ThreatModel
    measurements: tuple[Measurement, ...]
    verdict: Verdict
    reason: str
    """Why the verdict is what it is, in one sentence."""
    claimed: Claim | None = None
    lower_bound: float | None = None
    """Epsilon is at least this with the stated confidence; for claims of risk, the share of people at risk is."""
    method: str = ""
    confidence: float = DEFAULT_LEVEL
    correction: str = ""
    """How the confidence was corrected for several attacks."""
    power: Power | None = None
    roc: tuple[RocPoint, ...] = ()
    series: tuple[Series, ...] = ()
    worst: tuple[Mapping[str, Any], ...] = ()
    """The records at the greatest risk, with what was found about them."""
    assumptions: tuple[str, ...] = ()
    target: str = ""
    """What was attacked, by the name that the caller gave it."""
    target_digest: str = ""
    """A digest of what was attacked and how, by which the caller recognises a finding of the same run."""
    effort: str = "ci"
    seed: int | None = None
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further figures and texts by names that are identifiers."""
    bounds: str = EPSILON
    """What `lower_bound` bounds, in words: epsilon, or a share of people."""

    def __post_init__(self) -> None:
        _require(all(NAME.fullmatch(str(one)) for one in self.details), "details have other names")
        _require(0 < self.confidence < 1, "confidence must lie between 0 and 1")
        _require(self.seconds >= 0, "seconds must not be negative")
        _require(self.lower_bound is None or self.lower_bound >= 0, "lower_bound must not be negative")

    def __str__(self) -> str:
        target = f" of {self.target}" if self.target else ""
        return f"{self.attack}{target}: {self.verdict}. {self.reason}"

    @property
    def is_violation(self) -> bool:
        """Whether the claim is refuted."""
        return self.verdict is Verdict.VIOLATES

    @property
    def permit(self) -> str | None:
        """The permit of the claim, if it names one."""
        return None if self.claimed is None else self.claimed.permit or None

    def measured(self, key: str) -> Measurement:
        """Return the measurement of a key, or raise UnknownName."""
        for one in self.measurements:
            if one.key == key:
                return one
        known = ", ".join(one.key for one in self.measurements)
        raise UnknownName(f"the finding has no measurement {key}; it has {known}", name="key", value=key)

    def without_people(self) -> Finding:
        """Return the finding without `worst`, and of `details` with the numbers alone: the form that can be kept.

        Names of details are identifiers, which quote nobody.
        """
        figures = {name: value for name, value in self.details.items() if isinstance(value, Real)}
        return replace(self, worst=(), details=figures)

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as values of JSON."""
        found: dict[str, Any] = {"schema_version": SCHEMA_VERSION, **asdict(self)}
        found["verdict"] = str(self.verdict)
        written: dict[str, Any] = writable(json.loads(json.dumps(found, default=plain)))
        if self.power is not None and self.power.least_epsilon == math.inf:
            written["power"]["least_epsilon"] = INFINITE
        return written

    def to_json(self) -> str:
        """Return the finding as a JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Finding:
        """Return the finding of values of JSON; raise InvalidInput for another schema, or one that is contradictory."""
        fields = dict(mapping("finding", document, "an object of JSON"))
        if fields.pop("schema_version", None) != SCHEMA_VERSION:
            raise InvalidInput(f"the document is no finding of schema version {SCHEMA_VERSION}", name="finding")
        power = fields.get("power")
        is_blind = isinstance(power, dict) and power.get("least_epsilon") == INFINITE
        if is_blind:
            fields["power"] = {**cast(dict[str, Any], power), "least_epsilon": None}
        try:
            found: Finding = read_as(cls, fields)
        except UNREADABLE:
            raise InvalidInput(
                "the document is no finding: a field is missing, unknown, of another type or out of its range",
                name="finding",
            ) from None
        if is_blind and found.power is not None:
            found = replace(found, power=replace(found.power, least_epsilon=math.inf))
        judged, _ = judge(found.claimed, found.lower_bound, found.power, what=found.bounds)
        if found.verdict not in (judged, _judged_before(found)):
            raise InvalidInput(
                f"the document is no finding: its figures mean {judged}, and its verdict is {found.verdict}",
                name="finding",
            )
        return found

    @classmethod
    def from_json(cls, text: str | bytes) -> Finding:
        """Return the finding of a JSON text; raise InvalidInput for another schema."""
        return cls.from_dict(strict_json.loads(text))

    def to_html(self) -> str:
        """Return a page of its own, with plots."""
        from tacit.attack.html_report import page

        return page([self])

    def _repr_html_(self) -> str:
        from tacit.attack.html_report import section

        return section(self)


def _is_gaussian(event: Event) -> bool:
    """Return whether an event is Gaussian noise, or several with Gaussian noise each, which are as good as one."""
    return isinstance(event, Gaussian) or (
        isinstance(event, Composed | Repeated) and all(map(_is_gaussian, event.parts))
    )


def judge(
    claimed: Claim | None,
    lower_bound: float | None,
    power: Power | None,
    *,
    what: str = EPSILON,
    without: str = "The attack measures what no claim speaks about; its figures are shown.",
    at_least: float = NOTICED_AT_LEAST,
) -> tuple[Verdict, str]:
    """Return the verdict about a claim, and its reason.

    `what` says what the lower bound bounds, and `without` why there is none. `at_least` is the epsilon that is enough
    to refute, however small the claim is.
    """
    limit = None if claimed is None else claimed.epsilon if what == EPSILON else claimed.risk
    if lower_bound is None:
        return Verdict.NOT_APPLICABLE, without
    found = _in_words(lower_bound, what)
    if claimed is None or limit is None:
        return Verdict.NOT_APPLICABLE, f"{found}; no claim was given by which this could be judged."
    allows = f"the claim allows {claimed.words if what == EPSILON else _percent(limit)}"
    if lower_bound > limit and power is not None and power.null_value > limit:
        return (
            Verdict.NOT_APPLICABLE,
            f"{found}, but {power.null_value:.3g} of a twin that says nothing: here it accuses whatever was released.",
        )
    if lower_bound > limit:
        return Verdict.VIOLATES, f"{found}; {allows}."
    if power is not None and power.doubt:
        return Verdict.UNDERPOWERED, f"{found}; {power.doubt}: this says nothing."
    if power is None or not power.is_noticed:
        leak = "" if power is None else f" ({power.planted})"
        return (
            Verdict.UNDERPOWERED,
            f"{found}; {allows}, which would not have been refuted even on a planted leak{leak}: this says nothing.",
        )
    least = power.least_epsilon
    if least is None:
        noticed = ""
    elif math.isinf(least):
        noticed = "it refutes the claim with probability 90 % for no epsilon"
    else:
        noticed = f"it refutes the claim with probability 90 % from epsilon {least:.3g} on"
    if least is not None and 0 < max(UNDERPOWERED_FROM * limit, at_least) < least:
        alone = "" if math.isinf(least) else " alone"
        return Verdict.UNDERPOWERED, f"{found}; {noticed}{alone}: this says little about {claimed.words}."
    return (
        Verdict.CONSISTENT,
        f"{found}; {allows}, which is refuted on a planted leak ({power.planted}){noticed and f'; {noticed}'}.",
    )


def _judged_before(found: Finding) -> Verdict:
    """Return the verdict by the first rules of this schema, under which older documents were written.

    They did not look at the twin that says nothing, and had no least epsilon for claims near 0.
    """
    power = None if found.power is None else replace(found.power, null_value=0.0)
    return judge(found.claimed, found.lower_bound, power, what=found.bounds, at_least=0.0)[0]


def _in_words(lower_bound: float, what: str) -> str:
    """Return a lower bound as a sentence without its full stop."""
    if what == EPSILON:
        return f"The attack shows epsilon of at least {lower_bound:.3g}"
    if what == "a share of people identified":
        return f"The attack identifies at least {_percent(lower_bound)} of people"
    return f"The {what.removeprefix('a ')} is at least {_percent(lower_bound)}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise InvalidInput(sentence, name="finding")
