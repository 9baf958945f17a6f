"""A cap: a limit on the privacy loss, and the name of the filter that keeps it.

A cap is (epsilon, delta) under one neighbouring relation, with the name of its filter, all fixed when it is made: what
a filter promises it promises from the first charge on. Where delta is 0 only sums of pure epsilons can keep it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from tacit.privacy.errors import InvalidInput, LedgerCorrupt, OutOfRange, TacitError
from tacit.privacy.numbers import exact, not_negative, positive, rounded_down
from tacit.privacy.texts import exact_text
from tacit.privacy.units import Relation

FilterName: TypeAlias = Literal["pure", "zcdp", "renyi", "gdp"]

FILTERS: Final[Mapping[FilterName, str]] = {
    "pure": "the sum of pure epsilons; the only one where delta is 0",
    "zcdp": "the sum of rho, for mixed queries; the default where delta is above 0",
    "renyi": "the Rényi divergence at one order that is fixed now, for training with sampled batches",
    "gdp": "the sum of mu squared, exact where all noise is Gaussian",
}

EPSILON_MAX: Final = 2.0**20
DELTA_MIN: Final = 1e-300
"""A smaller delta has too few digits to be shared among accounts; below 10^-30 it counts as 0 (`amounts`)."""
ORDER_MAX: Final = 4096.0
RELEASES_MAX: Final = 10_000
"""The default number of releases that a budget allows at most (`smallest_price`)."""


@dataclass(frozen=True, slots=True)
class Cap:
    """A limit on the privacy loss: epsilon at delta, counted by one filter, under one relation."""

    epsilon: float
    delta: float
    filter: FilterName
    order: float | None
    relation: Relation = field(hash=False)  # the hash of an enum's member is computed in Python, each time

    @classmethod
    def of(
        cls,
        epsilon: object,
        delta: object = 0.0,
        *,
        filter: str | None = None,
        order: object = None,
        relation: object = Relation.ADD_REMOVE,
    ) -> Cap:
        """Check arguments and return a cap; without `filter`, the filter follows from delta."""
        epsilon_max = rounded_down(positive("epsilon", epsilon))
        delta_max = rounded_down(not_negative("delta", delta)) + 0.0  # never -0.0
        if epsilon_max > EPSILON_MAX:
            raise OutOfRange(
                f"epsilon must be at most {EPSILON_MAX:g}, and is {epsilon_max:g}", name="epsilon", value=epsilon
            )
        if delta_max >= 1:
            raise OutOfRange(f"delta must be below 1, and is {delta_max:g}", name="delta", value=delta)
        if 0 < delta_max < DELTA_MIN:
            raise OutOfRange(
                f"delta must be 0 or at least {DELTA_MIN:g}, and is {delta_max:g}", name="delta", value=delta
            )
        named = _filter_named(filter, delta_max)
        at_order = _order(order, named)
        return cls(epsilon_max, delta_max, named, at_order, Relation.of(relation))

    @property
    def checked(self) -> Cap:
        """The same cap with its fields checked: the constructor does not check them."""
        return Cap.of(self.epsilon, self.delta, filter=self.filter, order=self.order, relation=self.relation)

    def is_within(self, whole: Cap) -> bool:
        """Whether `whole` allows all that this cap allows."""
        return self.relation is whole.relation and self.epsilon <= whole.epsilon and self.delta <= whole.delta

    def to_dict(self) -> dict[str, Any]:
        """Return the written form as plain objects."""
        return {
            "delta": self.delta,
            "epsilon": self.epsilon,
            "filter": self.filter,
            "order": self.order,
            "relation": self.relation.value,
        }

    @classmethod
    def from_dict(cls, record: object) -> Cap:
        """Read the written form; raise LedgerCorrupt for anything that `to_dict` does not return."""
        try:
            cap = cls.of(**cast("dict[str, Any]", record))
        except (TypeError, TacitError):
            raise LedgerCorrupt(f"{record!r} is not a cap that the ledger wrote", differs="cap") from None
        if cap.to_dict() != record:
            raise LedgerCorrupt(f"{record!r} is not a cap that the ledger wrote", differs="cap")
        return cap


def smallest_price(cap: Cap, epsilon_min: object = None) -> float:
    """Return the least epsilon that a release costs: `epsilon_min`, or a ten-thousandth of the cap's epsilon."""
    if epsilon_min is None:
        return cap.epsilon / RELEASES_MAX
    least = rounded_down(not_negative("epsilon_min", epsilon_min)) + 0.0
    if least > cap.epsilon:
        raise OutOfRange(
            f"epsilon_min must be at most the budget's epsilon {cap.epsilon:g}, and is {least:g}",
            name="epsilon_min",
            value=epsilon_min,
        )
    return least


def _filter_named(name: object, delta: float) -> FilterName:
    if name is None:
        return "zcdp" if delta > 0 else "pure"
    if not isinstance(name, str) or (name := exact_text(name)) not in FILTERS:
        raise InvalidInput(f"a filter is one of {', '.join(FILTERS)}, not {name!r}", name="filter", value=name)
    if (name == "pure") != (delta == 0):
        fitting = "pure" if delta == 0 else "zcdp, renyi or gdp"
        raise InvalidInput(f"a budget with delta {delta:g} needs the filter {fitting}", name="filter", value=name)
    return cast(FilterName, name)


def _order(value: object, filter_name: FilterName) -> float | None:
    if filter_name != "renyi":
        if value is not None:
            raise InvalidInput("order= is for the filter renyi only", name="order", value=value)
        return None
    if value is None:
        raise InvalidInput("the filter renyi needs its order, for example order=16", name="order")
    order = float(exact("order", value))
    if not 1 < order <= ORDER_MAX:
        raise OutOfRange(f"order must be above 1 and at most {ORDER_MAX:g}", name="order", value=value)
    return order
