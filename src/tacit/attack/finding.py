"""What an attack found: claim, measurement, power and verdict, as a record that is written as JSON and as a page.

Verdicts, of which none is "safe":

violates         the measured lower bound is above what was claimed
consistent       it is not, though the same attack refutes the claim on a twin with a planted leak
underpowered     it is not, and the attack would not have noticed the planted leak either
not applicable   there is no claim that the attack could refute; the measurement is shown all the same

The schema has a version; a reader refuses a newer one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from tacit.accounting import Bound, Cost, epsilon
from tacit.privacy import strict_json
from tacit.privacy.errors import InvalidInput, OutOfRange, WrongType
from tacit.privacy.events import Event
from tacit.privacy.numbers import not_negative

SCHEMA_VERSION: Final = 1
EPSILON: Final = "epsilon"
"""What the lower bounds of attacks on private releases bound; those on tables bound a share of people."""


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

    @classmethod
    def of(cls, promise: object, delta: float | None = None) -> Claim | None:
        """Return the claim of a Cost, an event, a pair (epsilon, delta) or an epsilon; None for None.

        An event needs the delta at which it is judged, unless it is purely private.
        """
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
                return cls(upper, at)
            case Cost():
                return cls._checked(promise.epsilon, promise.delta)
            case Bound():
                return cls._checked(promise.upper, 0.0 if delta is None else delta)
            case (first, second):
                return cls._checked(first, second)
            case int() | float():
                return cls._checked(promise, 0.0 if delta is None else delta)
        stated = getattr(promise, "cost", None)
        if isinstance(stated, Cost):  # a release or an answer, embedded or from a server
            permit = getattr(promise, "permit", None)
            return replace(cls._checked(stated.epsilon, stated.delta), permit=str(getattr(permit, "id", permit) or ""))
        raise WrongType(
            "promise must be a cost, a release, an event, a pair of epsilon and delta, or an epsilon, not "
            f"{type(promise).__name__}",
            name="promise",
        )

    @classmethod
    def _checked(cls, first: Any, second: Any) -> Claim:
        claimed, at = float(not_negative("epsilon", first)), float(not_negative("delta", second))
        if at >= 1:
            raise OutOfRange("delta must be below 1", name="delta", value=second)
        return cls(claimed, at)

    @property
    def accuracy(self) -> float:
        """The greatest probability of a right guess of one of two equally likely values."""
        assert self.epsilon is not None
        return min(1.0, 1 / (1 + math.exp(-self.epsilon)) + self.delta)

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
            return "no claim" if self.risk is None else f"at most {self.risk:.3g} of the people at risk"
        return f"epsilon {self.epsilon:.6g}" + (f" at delta {self.delta:.3g}" if self.delta else "")


@dataclass(frozen=True, slots=True)
class ThreatModel:
    """What the attacker has: access, side knowledge, and the number of questions."""

    access: str
    knowledge: str
    questions: int


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
    bounds: tuple[float, float] | None = None
    """A confidence interval at the level of the finding."""
    baseline: float | None = None
    """The figure without the release."""
    predicted: float | None = None
    """The figure that theory predicts."""
    ceiling: float | None = None
    """The greatest expected figure that the claim allows."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of a plot: how a figure changes with one quantity."""

    title: str
    x: str
    y: str
    points: tuple[tuple[Any, float], ...]
    reference: tuple[tuple[Any, float], ...] = ()
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
    confidence: float = 0.95
    correction: str = ""
    """How the confidence was corrected for several attacks."""
    power: Power | None = None
    roc: tuple[RocPoint, ...] = ()
    series: tuple[Series, ...] = ()
    worst: tuple[Mapping[str, Any], ...] = ()
    """The records at the greatest risk, with what was found about them."""
    assumptions: tuple[str, ...] = ()
    seed: int | None = None
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_violation(self) -> bool:
        """Whether the claim is refuted."""
        return self.verdict is Verdict.VIOLATES

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as values of JSON."""
        found: dict[str, Any] = {"schema_version": SCHEMA_VERSION, **asdict(self)}
        found["verdict"] = str(self.verdict)
        plain: dict[str, Any] = json.loads(json.dumps(found, default=_plain))
        return plain

    def to_json(self) -> str:
        """Return the finding as a JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Finding:
        """Return the finding of a JSON text; raise InvalidInput for another schema."""
        found = strict_json.loads(text)
        if not isinstance(found, dict) or found.pop("schema_version", None) != SCHEMA_VERSION:
            raise InvalidInput(f"the text is no finding of schema version {SCHEMA_VERSION}", name="finding")
        try:
            return cls(
                **found
                | {
                    "threat_model": ThreatModel(**found["threat_model"]),
                    "measurements": tuple(Measurement(**_pairs(one)) for one in found["measurements"]),
                    "verdict": Verdict(found["verdict"]),
                    "claimed": None if found["claimed"] is None else Claim(**found["claimed"]),
                    "power": None if found["power"] is None else Power(**found["power"]),
                    "roc": tuple(RocPoint(**_pairs(one)) for one in found["roc"]),
                    "series": tuple(_series(one) for one in found["series"]),
                    "worst": tuple(found["worst"]),
                    "assumptions": tuple(found["assumptions"]),
                }
            )
        except (KeyError, TypeError, ValueError):
            raise InvalidInput("the text is no finding: a field is missing, unknown or of another type") from None

    def to_html(self) -> str:
        """Return a page of its own, with plots."""
        from tacit.attack.pages import page

        return page([self])

    def _repr_html_(self) -> str:
        from tacit.attack.pages import section

        return section(self)


def judge(
    claimed: Claim | None, lower_bound: float | None, power: Power | None, *, what: str = EPSILON
) -> tuple[Verdict, str]:
    """Return the verdict about a claim, and its reason; `what` says what the lower bound bounds."""
    limit = None if claimed is None else claimed.epsilon if what == EPSILON else claimed.risk
    if claimed is None or limit is None or lower_bound is None:
        return Verdict.NOT_APPLICABLE, "No claim was given that this attack could refute."
    found = f"The attack shows {what} of at least {lower_bound:.3g}"
    if lower_bound > limit:
        return Verdict.VIOLATES, f"{found}, and {claimed.words} was claimed."
    if power is None or not power.is_noticed:
        leak = "" if power is None else f" ({power.planted})"
        return (
            Verdict.UNDERPOWERED,
            f"{found}; it would not have refuted {claimed.words} even on a planted leak{leak}: this says nothing.",
        )
    return (
        Verdict.CONSISTENT,
        f"{found}, which {claimed.words} allows; on a planted leak ({power.planted}) it refutes the claim.",
    )


def _plain(value: Any) -> Any:
    """Return a value of numpy, or a date, as JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def _pairs(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def _series(fields: Mapping[str, Any]) -> Series:
    points = {name: tuple((x, y) for x, y in fields[name]) for name in ("points", "reference")}
    return Series(**{**fields, **points})
