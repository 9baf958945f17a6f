"""Ranges picked out of an answer that holds all of them: the same release shows any of them, at no further cost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tacit.cli.statistics.rows import key
from tacit.mechanisms.mechanism import Interval
from tacit.stats import Answer
from tacit.stats.funds import LEVEL
from tacit.stats.plots import Plot, plot_of
from tacit.stats.workloads import Counted, WorkloadAnswer


class Picked(WorkloadAnswer):
    """An answer about ranges of one column, of which only some are shown."""

    picks: tuple[tuple[Any, Any], ...] = ()
    column: str = ""

    @classmethod
    def out_of(cls, answer: Answer, column: str, picks: Sequence[tuple[Any, Any]]) -> Picked:
        """Show some ranges of an answer, each from one edge to another."""
        made = cls.of(answer)
        assert isinstance(made, Picked)
        made.column, made.picks = column, tuple(picks)
        return made

    @property
    def key_names(self) -> tuple[str, ...]:
        return f"{self.column} from", f"{self.column} to"

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        return list(self.picks)

    @cached_property
    def value(self) -> Any:
        """The counts, in the order of the picked ranges."""
        return np.array([one.value for one in self._counted])

    def interval(self, level: float = LEVEL) -> Interval:
        """Return where each count without noise lies with probability `level`, each by itself."""
        spans = [one.interval(level) for one in self._counted]
        return Interval(*(np.array([span[end] for span in spans]) for end in (0, 1)))

    def plot(self) -> Plot:
        """Return the picked ranges as bars."""
        named = [f"{key(low)} to {key(high)}" for low, high in self.picks]
        rows = [
            {self.column: name, "value": row["value"], "low": row["low"], "high": row["high"]}
            for name, row in zip(named, self.rows, strict=True)
        ]
        return plot_of(self.label, (self.column,), rows, self.card, "bars")

    @cached_property
    def _counted(self) -> list[Counted]:
        return [self.range(low, high) for low, high in self.picks]
