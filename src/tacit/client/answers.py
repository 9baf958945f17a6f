"""Answers that came over the wire: `RemoteRelease` of SQL, `RemoteAnswer` of a statistic, and previews.

They have the surfaces of `tacit.query.Release` and `tacit.stats.Answer`. Intervals of SQL at another level than the one
that came are asked of the server again, as a question that was released before, at no cost; if the data changed
meanwhile, the same question would be a new one, and that is refused instead of paid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import numpy as np

from tacit.accounting.conversions import Cost
from tacit.client.errors import understood
from tacit.client.resources import RemoteColumn
from tacit.ledger import Permit
from tacit.mechanisms.mechanism import Interval
from tacit.privacy.errors import InvalidInput, QueryRefused, Unavailable
from tacit.privacy.extras import import_extra
from tacit.privacy.figures import at_most
from tacit.privacy.numbers import level_of
from tacit.privacy.tables import Kind
from tacit.query.explain import Line
from tacit.query.release import Preview, rows_html
from tacit.stats.answer import Answer
from tacit.stats.hypotheses import TestAnswer
from tacit.stats.null_distributions import Outcome
from tacit.stats.plots import PICTURES
from tacit.stats.statistic import Noisy, StatisticPlan
from tacit.wire.responses import PlanLine, PreviewResponse, ReleaseResponse, StatisticResponse, costs_of
from tacit.wire.values import MOMENTS, decode_cell, decode_interval

if TYPE_CHECKING:
    from tacit.stats.plots import Plot

Again = Callable[[float], ReleaseResponse]
"""Asks the same question once more, for its intervals at another level; charges nothing."""
Spans = list[dict[str, Interval | None]]

ABOUT: Final = "values"
"""Under which name, besides its own, the column stands that a statistic is about."""

OF_THE_COLUMN: Final = ("bounds", "box_plot", "median", "mode", "quantile", "quantiles")
"""The statistics whose values are of the kind of their column."""


@dataclass(frozen=True, slots=True)
class RemotePermit:
    """The ledger's permit, of which its number is known here; all else about it is in the server's ledger."""

    id: str

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True, eq=False)
class RemotePreview(Preview):
    """A preview, with how many more questions of this price are paid by what is left."""

    more_like_this: int | None = None

    @classmethod
    def read(cls, response: PreviewResponse) -> RemotePreview:
        """Return the preview that a server answered."""
        cost = response.cost.cost
        return cls(
            *(cost.epsilon, cost.delta, cost.rho),
            is_released=response.is_released,
            remaining=costs_of(response.remaining),
            refusal=response.refusal,
            widths=response.widths,
            lines=tuple(map(line_of, response.lines)),
            more_like_this=response.more_like_this,
        )


def line_of(line: PlanLine) -> Line:
    """Return one fact about a plan."""
    return Line(line.label, line.text)


class RemoteRelease:
    """An answer: `rows`, `intervals(0.95)`, `cost`, `card` and `permit`."""

    def __init__(self, response: ReleaseResponse, again: Again | None = None) -> None:
        self._again: Final = again
        self._lock: Final = Lock()
        self.kinds: Final = {one.name: one.kind for one in response.columns}
        """The kind of each column's values."""
        self.columns: Final = list(self.kinds)
        """The names of the columns."""
        self.level: Final = response.level
        """The level of the intervals that came along."""
        self.cost: Final = response.cost.cost
        """What was charged for it; nothing, if the same question had been answered before."""
        self.remaining: Final = costs_of(response.remaining)
        """What was left of each data set after it, for whoever asked."""
        self.permits: Final = tuple(map(RemotePermit, response.permits))
        self.datasets: Final = tuple(response.datasets)
        """The budgets that paid."""
        self.counted: Final = response.counted
        """How much of each unit is counted, in words; further rows are left out."""
        self.warnings: Final = tuple(response.warnings)
        """What makes numbers of the answer unreliable, as far as what was released tells."""
        self.card: Final = response.card
        """What was released, in plain language."""
        self.simulated: Final = response.simulated
        """Whether the noise can be replayed, so that the answer protects nobody."""
        with understood("the answer"):
            self.rows: Final = self._rows(response)
            """The rows of the answer, in their order."""
            self._spans: Final = {self.level: self._intervals(response)}

    @property
    def permit(self) -> RemotePermit | None:
        """The ledger's permit; None if the answer had been released before."""
        return self.permits[0] if self.permits else None

    def intervals(self, level: float | None = None) -> Spans:
        """Return, for each row and each noisy number, where the number without noise lies with probability `level`.

        Without a level, at the one that came with the answer. None where no interval is known.
        """
        share = self.level if level is None else level_of(level)
        with self._lock:
            if share not in self._spans:
                self._spans[share] = self._asked_again(share)
            return self._spans[share]

    def _asked_again(self, level: float) -> Spans:
        if self._again is None:
            raise InvalidInput(f"this answer came with intervals at {self.level:g} alone", name="level", value=level)
        response = self._again(level)
        with understood("the answer"):
            if self._rows(response) != self.rows:
                raise QueryRefused("the data were changed, and the same question has another answer now")
            return self._intervals(response)

    def _rows(self, response: ReleaseResponse) -> list[dict[str, Any]]:
        return [{name: decode_cell(row[name], kind) for name, kind in self.kinds.items()} for row in response.rows]

    def _intervals(self, response: ReleaseResponse) -> Spans:
        return [
            {name: decode_interval(ends, self.kinds[name]) for name, ends in row.items()} for row in response.intervals
        ]

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return import_extra("pandas", extra="frames", purpose="to_pandas").DataFrame(self.rows, columns=self.columns)

    def to_polars(self) -> Any:
        """Return the rows as a polars DataFrame."""
        return import_extra("polars", extra="frames", purpose="to_polars").DataFrame(self._by_column())

    def to_arrow(self) -> Any:
        """Return the rows as an Arrow table."""
        return import_extra("pyarrow", extra="frames", purpose="to_arrow").table(self._by_column())

    def _by_column(self) -> dict[str, list[Any]]:
        return {name: [row[name] for row in self.rows] for name in self.columns}

    def plot(self, column: str | None = None) -> Plot:
        """Return a noisy column, the first unless another is named, as a plot over the columns that are its keys."""
        from tacit.stats.plots import plot_of

        noisy = [name for name in self.columns if any(span.get(name) is not None for span in self.intervals())]
        chosen = column if column is not None else next(iter(noisy), None)
        if chosen is None or chosen not in self.columns:
            raise InvalidInput(
                f"say which column is drawn: column=, one of {', '.join(noisy or self.columns)}", name="column"
            )
        keys = [name for name in self.columns if name != chosen and name not in noisy]
        rows = []
        for row, span in zip(self.rows, self.intervals(), strict=True):
            ends = span.get(chosen) or Interval(None, None)
            rows.append({**{key: row[key] for key in keys}, "value": row[chosen], "low": ends.low, "high": ends.high})
        return plot_of(chosen, keys, rows, self.card)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        cost = f"epsilon {at_most(self.cost.epsilon)}" if self.cost.epsilon else "nothing"
        return f"<Release of {len(self)} rows for {cost}: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        """The rows as a table, each noisy number with the half-width of its interval."""
        return rows_html(self.columns, self.rows, self.intervals(), self.card)


@dataclass(frozen=True)
class Answered(StatisticPlan):
    """What a server answered, in the place of the plan that it followed."""

    shown: Any
    span: Interval | None
    level: float
    cells: list[tuple[Any, ...]] | None = None
    cell_names: tuple[str, ...] = ()
    drawn_as: str = "points"

    @property
    def event(self) -> NoReturn:
        raise Unavailable("what was charged is in the ledger of the server; here is its permit")

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
        raise Unavailable("the rows are with the server")

    def value(self, noisy: Noisy) -> Any:
        return self.shown

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        if level != self.level:
            raise InvalidInput(
                f"this answer came with its interval at {self.level:g}; ask for another with level={level:g}, which "
                "costs nothing while the data are the same",
                name="level",
                value=level,
            )
        return self.span


class RemoteAnswer(Answer):
    """What a server released of a statistic, and what it cost."""

    def __init__(self, function: str, response: StatisticResponse, columns: Mapping[str, RemoteColumn]) -> None:
        with understood("the answer"):
            plan = _plan(function, response, columns)
        permit = None if response.permit is None else RemotePermit(response.permit)
        super().__init__(plan, (), response.cost.cost, cast("Permit | None", permit), "")
        self.remaining: Final[dict[str, Cost]] = costs_of(response.remaining)
        """What was left of the data set after it, for whoever asked."""
        self.facts: Final = response.facts
        """What else a statistic has: of a test its p-value, statistic and estimate."""
        self._card: Final = response.card
        self._warnings: Final = tuple(response.warnings)
        self._coverage: Final = tuple(response.coverage)

    def interval(self, level: float | None = None) -> Interval | None:
        """Return where the value without noise lies with probability `level`; without one, the level that came.

        Another level is asked for anew, with `level=`: were the data changed meanwhile, that would be a new answer and
        would be charged, so it is not done here without being said.
        """
        assert isinstance(self.plan, Answered)
        return super().interval(self.plan.level if level is None else level)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes the value unreliable, as far as what was released tells."""
        return self._warnings

    @property
    def coverage(self) -> tuple[str, ...]:
        """Which rows are in no cell or group."""
        return self._coverage

    @property
    def hypothesis(self) -> str | None:
        """The null hypothesis of a test, in words; None for other statistics."""
        return self.facts.get("hypothesis")

    @property
    def learnt_bounds(self) -> dict[str, list[float]]:
        """The bounds that were learnt along with the answer, by column."""
        return dict(self.facts.get("bounds", {}))

    @property
    def card(self) -> str:
        """What was released, in plain language."""
        return self._card


class RemoteTestAnswer(RemoteAnswer, TestAnswer):
    """What a server released of a test."""

    @cached_property
    def _outcome(self) -> Outcome:
        return Outcome(self.facts["statistic"], self.facts["pvalue"], self.facts["estimate"])


def answer_of(function: str, response: StatisticResponse, columns: Mapping[str, RemoteColumn]) -> RemoteAnswer:
    """Return the answer of a statistic that a server sent."""
    kind = RemoteTestAnswer if "pvalue" in response.facts else RemoteAnswer
    return kind(function, response, columns)


def _plan(function: str, response: StatisticResponse, columns: Mapping[str, RemoteColumn]) -> Answered:
    about = columns.get(ABOUT)
    kind = about.declared.kind if about is not None and function in OF_THE_COLUMN else None
    kinds = [_kind(name, columns) for name in response.key_names]
    keys = None
    if response.keys is not None:
        keys = [tuple(decode_cell(one, part) for one, part in zip(cell, kinds, strict=True)) for cell in response.keys]
    span = response.interval
    return Answered(
        response.label,
        _numbers(response.value, kind),
        None if span is None else Interval(_numbers(span[0], kind), _numbers(span[1], kind)),
        response.level,
        keys,
        tuple(response.key_names),
        response.picture if response.picture in PICTURES else "points",
    )


def _kind(name: str, columns: Mapping[str, RemoteColumn]) -> Kind | None:
    """Return the kind of a part of a key: that of the column whose name it has, or whose bins it bounds."""
    for ending in ("", " from", " to"):
        if name.endswith(ending) and (column := columns.get(name.removesuffix(ending))) is not None:
            found = column.declared.kind
            return found if found in MOMENTS else None
    return None


def _numbers(value: Any, kind: Kind | None) -> Any:
    """Return a value as the statistics have it: one by itself, several as an array; what is null is NaN in there."""
    if not isinstance(value, list):
        return decode_cell(value, kind if kind in MOMENTS else None)
    if kind in MOMENTS:
        return np.array([decode_cell(one, kind) for one in value], dtype=object)
    flat = np.array(value, dtype=object).ravel().tolist()
    if any(isinstance(one, str | bool) for one in flat):
        return np.array(value, dtype=object)
    return np.array(value, dtype=np.float64) if None in flat else np.array(value)
