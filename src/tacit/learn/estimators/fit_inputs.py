"""The inputs of a fit: columns with bounds of the transformers that made them, and the delta that the fit takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tacit.learn.estimators.frames import BoundedRows
from tacit.learn.estimators.parameters import UNBOUNDED
from tacit.measuring.allocation import Allocation
from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import NotBounded
from tacit.stats.preparation import StatisticInputs


class ModelColumns(NamedTuple):
    """The names of the columns of a model, by which its plan asks `StatisticInputs` for them."""

    features: tuple[str, ...]
    target: str | None


class FitInputs(StatisticInputs):
    """The inputs of a fit, which takes `delta` of its budget, or none (0)."""

    def __init__(self, columns: Mapping[str, Any], *given: Any, delta: float) -> None:
        self._delta = delta
        self._transformed = {name: one.bounds for name, one in columns.items() if isinstance(one, BoundedRows)}
        super().__init__(columns, *given)

    def bounds(self, column: str, stated: object) -> Bounds:
        """Return the bounds of a column: stated, those of the transformer that made it, or registered ones."""
        found = self._transformed.get(column) if stated is None else None
        try:
            return super().bounds(column, found[0] if found else stated)
        except NotBounded:
            if self.is_registered or stated is not None:
                raise
            raise NotBounded(f"{self.name(column)} has no declared bounds", accepted=UNBOUNDED) from None

    @property
    def allocation(self) -> Allocation:
        """What the estimator may spend: all, less the share that learns its bounds."""
        return replace(super().allocation, delta=self._delta)
