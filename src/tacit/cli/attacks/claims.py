"""What was promised about a target, as options of a command or as the table `claim` of a file of targets."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from tacit.privacy.errors import InvalidInput, OutOfRange, UnknownName, WrongType
from tacit.privacy.texts import did_you_mean

if TYPE_CHECKING:
    from tacit.attack import Claim
    from tacit.cli.attacks.queries import Place

CLAIMS: Final = ("epsilon", "risk", "permit")
"""The claims of which a target has at most one."""
KEYS: Final = ("epsilon", "delta", "risk", "permit")


@dataclass(frozen=True, slots=True)
class ClaimSettings:
    """A claim as it was written; `claim` reads what the ledger charged for a permit."""

    epsilon: float | None = None
    delta: float | None = None
    risk: float | None = None
    permit: str | None = None

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "risk"):
            value = getattr(self, name)
            if value is not None:
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise WrongType(f"{name} of a claim must be a number", name=name, value=value)
                if not math.isfinite(value) or value < 0:
                    raise OutOfRange(f"{name} of a claim must be a finite number of at least 0", name=name, value=value)
        permit: Any = self.permit
        if permit is not None and not (isinstance(permit, str) and permit):
            raise WrongType("permit of a claim must be the id of a permit", name="permit", value=self.permit)
        if self.risk is not None and self.risk > 1:
            raise OutOfRange("risk of a claim is a share of people, from 0 to 1", name="risk", value=self.risk)
        stated = [name for name in CLAIMS if getattr(self, name) is not None]
        if len(stated) > 1:
            raise InvalidInput(f"give one claim: {stated[0]} or {stated[1]}", name="claim")
        if self.delta is not None and self.epsilon is None:
            raise InvalidInput("the delta of a claim needs its epsilon", name="delta")
        if self.delta is not None and self.delta >= 1:
            raise OutOfRange("delta of a claim must be below 1", name="delta", value=self.delta)

    @classmethod
    def of(cls, written: object, usable: Collection[str], kind: str) -> Self:
        """Return the claim of a table of a file, of which `usable` keys make sense for this kind of target."""
        if not isinstance(written, Mapping):
            raise WrongType("a claim must be a table: claim = {epsilon = 1.0}", name="claim", value=written)
        for key in written:
            if key not in KEYS:
                hint = did_you_mean(str(key), usable, f"use {', '.join(usable)}")
                raise UnknownName(f"a claim has no key {key}; {hint}", name=str(key))
            if key not in usable:
                raise InvalidInput(
                    f"a claim about a target of the kind {kind} has no {key}; use {', '.join(usable)}", name=key
                )
        return cls(**written)

    def claim(self, place: Place) -> Claim | None:
        """Return the claim, or None if nothing was claimed."""
        from tacit.attack import Claim

        if self.risk is not None:
            return Claim(risk=float(self.risk))
        if self.permit is not None:
            return Claim.of(place.permit(self.permit))
        return Claim.of(self.epsilon, self.delta)


def claim_of_options(values: Mapping[str, Any]) -> ClaimSettings:
    """Return the claim of the options of a command; those that it does not have are not claimed."""
    return ClaimSettings(**{name: values.get(name) for name in KEYS})
