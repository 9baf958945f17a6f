"""Answers of a server: `RemoteRelease` of SQL, `RemoteAnswer` of a statistic, and previews.

They have the interfaces of `tacit.query.Release` and `tacit.stats.Answer`. Intervals of SQL at another level are
requested from the server at no cost; if the data have changed meanwhile, so that the query would be charged again, they
are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import numpy as np

from tacit.accounting.conversions import Cost
from tacit.client.errors import require_readable
from tacit.client.resources import RemoteColumn
from tacit.ledger import Permit
from tacit.mechanisms.mechanism import Interval
from tacit.privacy.errors import InvalidInput, QueryRefused, Unavailable
from tacit.privacy.numbers import level_of
from tacit.privacy.tables import Kind
from tacit.query.explain import Line
from tacit.query.release import Preview, RowConversions
from tacit.stats.answer import Answer
from tacit.stats.hypotheses import TestAnswer
from tacit.stats.null_distributions import Outcome
from tacit.stats.plots import PICTURES
from tacit.stats.statistic import Noisy, StatisticPlan
from tacit.wire.responses import PlanLine, PreviewResponse, ReleaseResponse, StatisticResponse, costs_of
from tacit.wire.values import MOMENTS, decode_cell, decode_interval

if TYPE_CHECKING:
    from tacit.stats.plots import Plot

AskAtLevel = Callable[[float], ReleaseResponse]
"""Repeats the query for its intervals at another level; charges nothing."""
Intervals = list[dict[str, Interval | None]]

VALUES: Final = "values"
"""The argument that names the column of a statistic."""

VALUES_OF_COLUMN: Final = ("bounds", "box_plot", "median", "mode", "quantile", "quantiles")
"""The statistics whose values have the kind of their column."""


@dataclass(frozen=True, slots=True)
class RemotePermit:
    """The id of a permit in the server's ledger."""

    id: str

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True, eq=False)
class RemotePreview(Preview):
    """A preview, with the number of further queries of this price that fit the budget."""

    more_like_this: int | None = None

    @classmethod
    def of_response(cls, response: PreviewResponse) -> RemotePreview:
        """Return the preview of a response."""
        cost = response.cost.cost
        return cls(
            *(cost.epsilon, cost.delta, cost.rho),
            is_released=response.is_released,
            remaining=costs_of(response.remaining),
            leaves=costs_of(response.leaves),
            analyst=response.analyst,
            refusal=response.refusal,
            widths=response.widths,
            lines=tuple(map(line_of, response.lines)),
            more_like_this=response.more_like_this,
        )


def line_of(line: PlanLine) -> Line:
    """Return one fact about a plan."""
    return Line(line.label, line.text)


class RemoteRelease(RowConversions):
    """An answer: `rows`, `intervals(0.95)`, `cost`, `card` and `permit`."""

    def __init__(self, response: ReleaseResponse, ask_at_level: AskAtLevel | None = None) -> None:
        self._ask_at_level: Final = ask_at_level
        self._lock: Final = Lock()
        self.kinds: Final = {one.name: one.kind for one in response.columns}
        """The kind of each column's values."""
        self.columns: Final = list(self.kinds)
        """The names of the columns."""
        self.level: Final = response.level
        """The level of the intervals that came along."""
        self.cost: Final = response.cost.cost
        """What was charged; nothing if the query had been answered before."""
        self.remaining: Final = costs_of(response.remaining)
        """What was left of each budget afterwards."""
        self.analyst: Final = response.analyst
        """Whose cap `remaining` takes into account; None if only the budget of the data set is charged."""
        self.permits: Final = tuple(map(RemotePermit, response.permits))
        self.datasets: Final = tuple(response.datasets)
        """The data sets that were charged."""
        self.counted: Final = response.counted
        """How much of each unit is counted, in words; further rows are left out."""
        self.warnings: Final = tuple(response.warnings)
        """What makes numbers of the answer unreliable, derived from what was released."""
        self.card: Final = response.card
        """What was released, in plain language."""
        self.simulated: Final = response.simulated
        """Whether the noise can be replayed, so that the answer protects no unit."""
        with require_readable("the answer"):
            self.rows: Final = self._rows(response)
            """The rows of the answer, in their order."""
            self._spans: Final = {self.level: self._intervals(response)}

    @property
    def permit(self) -> RemotePermit | None:
        """The ledger's permit; None if the answer had been released before."""
        return self.permits[0] if self.permits else None

    def intervals(self, level: float | None = None) -> Intervals:
        """Return, for each row and each noisy number, where the number without noise lies with probability `level`.

        The default is the level of the response. None where no interval is known.
        """
        share = self.level if level is None else level_of(level)
        with self._lock:
            if share not in self._spans:
                self._spans[share] = self._request_intervals(share)
            return self._spans[share]

    def _request_intervals(self, level: float) -> Intervals:
        if self._ask_at_level is None:
            raise InvalidInput(f"this answer has intervals at level {self.level:g} only", name="level", value=level)
        response = self._ask_at_level(level)
        with require_readable("the answer"):
            if self._rows(response) != self.rows:
                raise QueryRefused("the data have changed, and the query has another answer now")
            return self._intervals(response)

    def _rows(self, response: ReleaseResponse) -> list[dict[str, Any]]:
        return [{name: decode_cell(row[name], kind) for name, kind in self.kinds.items()} for row in response.rows]

    def _intervals(self, response: ReleaseResponse) -> Intervals:
        return [
            {name: decode_interval(ends, self.kinds[name]) for name, ends in row.items()} for row in response.intervals
        ]

    def plot(self, column: str | None = None) -> Plot:
        """Return a plot of a noisy column, by default the first, over the key columns."""
        from tacit.stats.plots import plot_of

        noisy = [name for name in self.columns if any(span.get(name) is not None for span in self.intervals())]
        chosen = column if column is not None else next(iter(noisy), None)
        if chosen is None or chosen not in self.columns:
            raise InvalidInput(
                f"name the column to draw: column=, one of {', '.join(noisy or self.columns)}", name="column"
            )
        keys = [name for name in self.columns if name != chosen and name not in noisy]
        rows = []
        for row, span in zip(self.rows, self.intervals(), strict=True):
            ends = span.get(chosen) or Interval(None, None)
            rows.append({**{key: row[key] for key in keys}, "value": row[chosen], "low": ends.low, "high": ends.high})
        return plot_of(chosen, keys, rows, self.card)


@dataclass(frozen=True)
class RemotePlan(StatisticPlan):
    """The answer of a server in place of the plan of a statistic."""

    shown: Any
    span: Interval | None
    level: float
    cells: list[tuple[Any, ...]] | None = None
    cell_names: tuple[str, ...] = ()
    drawn_as: str = "points"

    @property
    def event(self) -> NoReturn:
        raise Unavailable("the event is in the ledger of the server, under the permit")

    @property
    def lines(self) -> tuple[str, ...]:
        return ()

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        return self.cells

    @property
    def key_names(self) -> tuple[str, ...]:
        return self.cell_names

    @property
    def picture(self) -> str:
        return self.drawn_as

    def measure(self, *_: Any, **__: Any) -> NoReturn:
        raise Unavailable("a server computes this statistic")

    def value(self, noisy: Noisy) -> Any:
        return self.shown

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        if level != self.level:
            raise InvalidInput(
                f"this answer has its interval at level {self.level:g}; repeat it with level={level:g}, at no cost "
                "while the data are the same",
                name="level",
                value=level,
            )
        return self.span


class RemoteAnswer(Answer):
    """The answer of a statistic at a server."""

    def __init__(self, function: str, response: StatisticResponse, columns: Mapping[str, RemoteColumn]) -> None:
        with require_readable("the answer"):
            plan = _plan(function, response, columns)
        permit = None if response.permit is None else RemotePermit(response.permit)
        super().__init__(plan, (), response.cost.cost, cast("Permit | None", permit), "")
        self.remaining: Final[dict[str, Cost]] = costs_of(response.remaining)
        """What was left of the budget afterwards."""
        self.analyst: Final = response.analyst
        """Whose cap `remaining` takes into account; None if only the budget of the data set is charged."""
        self.facts: Final = response.facts
        """Further results: of a test, its p-value, statistic and estimate."""
        self._card: Final = response.card
        self._warnings: Final = tuple(response.warnings)
        self._coverage: Final = tuple(response.coverage)

    def interval(self, level: float | None = None) -> Interval | None:
        """Return where the value without noise lies with probability `level`, by default that of the response.

        For another level, repeat the statistic with `level=`: if the data have changed, that is charged, so it is not
        done implicitly.
        """
        assert isinstance(self.plan, RemotePlan)
        return super().interval(self.plan.level if level is None else level)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes the value unreliable, derived from what was released."""
        return self._warnings

    @property
    def coverage(self) -> tuple[str, ...]:
        """Which rows are left out."""
        return self._coverage

    @property
    def hypothesis(self) -> str | None:
        """The null hypothesis of a test, in words; None for other statistics."""
        return self.facts.get("hypothesis")

    @property
    def learned_bounds(self) -> dict[str, list[float]]:
        """The bounds that were learnt along with the answer, by column."""
        return dict(self.facts.get("bounds", {}))

    @property
    def card(self) -> str:
        """What was released, in plain language."""
        return self._card


class RemoteTestAnswer(RemoteAnswer, TestAnswer):
    """The answer of a hypothesis test at a server."""

    @cached_property
    def _outcome(self) -> Outcome:
        return Outcome(self.facts["statistic"], self.facts["pvalue"], self.facts["estimate"])


def answer_of(function: str, response: StatisticResponse, columns: Mapping[str, RemoteColumn]) -> RemoteAnswer:
    """Return the answer of a response to a statistic."""
    kind = RemoteTestAnswer if "pvalue" in response.facts else RemoteAnswer
    return kind(function, response, columns)


def _plan(function: str, response: StatisticResponse, columns: Mapping[str, RemoteColumn]) -> RemotePlan:
    about = columns.get(VALUES)
    kind = about.declared.kind if about is not None and function in VALUES_OF_COLUMN else None
    kinds = [_kind(name, columns) for name in response.key_names]
    keys = None
    if response.keys is not None:
        keys = [tuple(decode_cell(one, part) for one, part in zip(cell, kinds, strict=True)) for cell in response.keys]
    span = response.interval
    return RemotePlan(
        response.label,
        _decode_value(response.value, kind),
        None if span is None else Interval(_decode_value(span[0], kind), _decode_value(span[1], kind)),
        response.level,
        keys,
        tuple(response.key_names),
        response.picture if response.picture in PICTURES else "points",
    )


def _kind(name: str, columns: Mapping[str, RemoteColumn]) -> Kind | None:
    """Return the kind of a part of a key, if a date or time: that of its column, or of the column that it bins."""
    for ending in ("", " from", " to"):
        if name.endswith(ending) and (column := columns.get(name.removesuffix(ending))) is not None:
            found = column.declared.kind
            return found if found in MOMENTS else None
    return None


def _decode_value(value: Any, kind: Kind | None) -> Any:
    """Return a value as `tacit.stats` does: a scalar, or an array with NaN for null."""
    if not isinstance(value, list):
        return decode_cell(value, kind if kind in MOMENTS else None)
    if kind in MOMENTS:
        return np.array([decode_cell(one, kind) for one in value], dtype=object)
    flat = np.array(value, dtype=object).ravel().tolist()
    if any(isinstance(one, str | bool) for one in flat):
        return np.array(value, dtype=object)
    return np.array(value, dtype=np.float64) if None in flat else np.array(value)
