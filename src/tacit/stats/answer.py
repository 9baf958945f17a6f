"""The answer of a statistic: value, intervals, cost, card and permit; in notebooks a table and a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from tacit.accounting.conversions import Cost
from tacit.ledger import Permit
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SIMULATED
from tacit.mechanisms.simulation import is_simulated
from tacit.privacy.figures import at_most, grouped
from tacit.privacy.numbers import DEFAULT_LEVEL, level_of
from tacit.stats.plots import Plot, plot_of
from tacit.stats.statistic import Noisy, StatisticPlan

ROWS_SHOWN: Final = 50
NUMBERS: Final = ("value", "low", "high")
"""The fields of a row beside its key."""


class Answer:
    """The released numbers of a statistic, and what they cost."""

    def __init__(
        self, plan: StatisticPlan, noisy: Noisy, cost: Cost, permit: Permit | None, protected: str, clamped: str = ""
    ) -> None:
        self.plan: Final = plan.known(noisy).released()
        self.noisy: Final = tuple(np.asarray(one) for one in noisy)
        """The released numbers from which value and interval are computed."""
        self.cost: Final = cost
        """What was charged: nothing if the same statistic of the same data had been released before."""
        self.permit: Final = permit
        self.simulated: Final = any(map(is_simulated, noisy))
        """Whether the noise can be replayed, so that nothing is protected."""
        self._protected, self._clamped = protected, clamped

    @classmethod
    def of(cls, answer: Answer) -> Self:
        """Return the same answer, with the methods of this class."""
        made = cls.__new__(cls)
        vars(made).update(vars(answer))
        return made

    @property
    def label(self) -> str:
        """The statistic in words: "mean of age"."""
        return self.plan.label

    @cached_property
    def value(self) -> Any:
        """The answer: a number, or an array in the order of `keys`."""
        return self.plan.value(self.noisy)

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        """The key of each number of an array; None for a single number."""
        return self.plan.keys

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the parts of a key in `rows`, distinct from one another and from the other fields."""
        return distinct_names(self.plan.key_names)

    def interval(self, level: float = DEFAULT_LEVEL) -> Interval | None:
        """Return the interval that holds the value without noise with probability `level`, number by number.

        It covers the noise, but neither sampling error nor rows that were left out because a unit had too many. None
        where no interval is known.
        """
        return self.plan.interval(self.noisy, level_of(level))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The answer as rows: the parts of each key, `value`, and the ends `low` and `high` of its 95 % interval."""
        span = self.interval()
        keys = self.keys
        if keys is None:
            ends = {"low": None, "high": None} if span is None else {"low": span.low, "high": span.high}
            return [{"value": self.value, **ends}]
        values = np.asarray(self.value).ravel().tolist()
        lows, highs = [[None] * len(values)] * 2 if span is None else [np.asarray(end).ravel().tolist() for end in span]
        names = self.key_names
        return [
            {**dict(zip(names, key, strict=True)), "value": value, "low": low, "high": high}
            for key, value, low, high in zip(keys, values, lows, highs, strict=True)
        ]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about what makes the value unreliable, from released numbers alone."""
        return self.plan.warnings(self.noisy)

    @property
    def coverage(self) -> tuple[str, ...]:
        """Which rows are in no cell or group, and as what values beyond bounds and outer edges are counted."""
        return (*self.plan.coverage, *filter(None, [self._clamped]))

    @property
    def hypothesis(self) -> str | None:
        """The null hypothesis of a test, in words; None for other statistics."""
        return self.plan.hypothesis

    @property
    def learned_bounds(self) -> dict[str, list[float]]:
        """The bounds that were learnt, by column."""
        return self.plan.learned_bounds

    @property
    def card(self) -> str:
        """The release in plain language: statistic, protected unit, noise, warnings and cost."""
        sentences = [
            f"The {self.label}.",
            self._protected,
            *(f"{line[0].upper()}{line[1:]}." for line in (*self.plan.lines, *self.coverage)),
            *(f"Warning: {one}." for one in self.warnings),
            f"It cost {self.cost.in_words(self.plan.event.relation)}."
            if self.cost.epsilon
            else "It cost nothing: the same answer was released before.",
        ]
        if self.simulated:
            sentences.append(SIMULATED)
        return " ".join(sentences)

    def plot(self, path: Path | str | None = None) -> Plot:
        """Return the answer as a plot, which notebooks show; `path` or `save` writes it as .svg or .png."""
        return plot_of(self.label, self.key_names, self.rows, self.card, self.plan.picture).saved(path)

    def __repr__(self) -> str:
        shown = f"{len(self.keys)} numbers" if self.keys is not None else _cell(self.value)
        return f"<{self.label}: {shown} for epsilon {at_most(self.cost.epsilon)}>"

    def _repr_html_(self) -> str:
        rows = self.rows
        return f"{html_table(rows, list(rows[0]) if rows else ['value'])}<p>{escape(self.card)}</p>"


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of key parts, with a suffix where another field of a row has the same; the last one is kept."""
    found: list[str] = []
    for name in reversed(names):
        while name in (*NUMBERS, *found):
            name = f"{name} (key)"
        found.insert(0, name)
    return tuple(found)


def html_table(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Return the first rows as an HTML table."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(row[name]))}</td>" for name in names) + "</tr>"
        for row in rows[:ROWS_SHOWN]
    )
    more = f"<p>… {len(rows) - ROWS_SHOWN:,} more rows</p>" if len(rows) > ROWS_SHOWN else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    return grouped(value)
