"""Previews and releases: what a question costs, its rows and intervals, and a description in plain language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, Final, Protocol

import numpy as np

from tacit.accounting.conversions import Cost
from tacit.engines.dialects import write_duckdb
from tacit.ledger import Permit
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SIMULATED
from tacit.pipeline import Quote
from tacit.privacy.extras import import_extra
from tacit.privacy.figures import at_most, grouped, in_one_cell
from tacit.privacy.numbers import DEFAULT_LEVEL, level_of
from tacit.query.answer_intervals import intervals, without_interval
from tacit.query.estimates import answer_groups, answer_rows
from tacit.query.explain import Line, about_intervals, choice_in_words, clamped_columns, explain, noise_in_words
from tacit.query.plan import Plan
from tacit.query.private_choices import WEIGHT
from tacit.query.question import reads_noise
from tacit.query.rewrite import Write
from tacit.query.run import Noisy

ROWS_SHOWN: Final = 50
GROUPS_NAMED: Final = 5


@dataclass(frozen=True, slots=True, eq=False)
class Preview(Quote):
    """What a question would be charged, exactly, and how wide its intervals would be; a Cost, and nothing is spent."""

    widths: Mapping[str, float | None] = field(default_factory=dict)
    """For each noisy column with intervals the half-width at 95 %, None where it depends on the data."""
    lines: tuple[Line, ...] = ()

    @classmethod
    def of(cls, plan: Plan, quote: Quote, write: Write) -> Preview:
        """Return the preview of a plan."""
        return cls(**quote.facts, widths=widths_of(plan), lines=tuple(explain(plan, write)))


def widths_of(plan: Plan) -> dict[str, float | None]:
    """Return the half-width of each noisy column that has intervals; None where it depends on the data."""
    found: dict[str, float | None] = {}
    level, unknown = plan.question.row_level(plan.groups, DEFAULT_LEVEL), without_interval(plan)
    if plan.question.after or plan.question.distinct:
        return {}
    for output in plan.question.outputs:
        if output.name in unknown or not reads_noise(output.value.tree):
            continue
        if output.column is None:
            found[output.name] = None
            continue
        estimate = plan.answers[int(output.column[1:])].estimate
        if estimate is None or len(estimate.measures) != 1 or plan.question.sets or plan.missing or not level:
            found[output.name] = None
        else:
            step = float(estimate.grids[0].step) if estimate.grids else 1.0
            found[output.name] = plan.price.half_width(estimate.measures[0], level) * step
    return found


class ReleasedRows(Protocol):
    """An answer of SQL: a `Release`, or the `RemoteRelease` of a server."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the answer, in their order."""

    @property
    def cost(self) -> Cost:
        """What was charged."""

    @property
    def counted(self) -> str:
        """How much each unit contributes at most, in words."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons why numbers may be unreliable."""

    @property
    def card(self) -> str:
        """What was released, in plain language."""

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets that were charged."""

    @property
    def permit(self) -> Any:
        """The ledger's permit; None for a repeated answer."""

    def intervals(self, level: float = DEFAULT_LEVEL) -> list[dict[str, Interval | None]]:
        """Return the intervals of each row at a level."""


class RowConversions:
    """Conversions of released rows to data frames, iterators and HTML."""

    def to_pandas(self: ReleasedRows) -> Any:
        """Return the rows as a pandas DataFrame."""
        return import_extra("pandas", extra="frames", purpose="to_pandas").DataFrame(self.rows, columns=self.columns)

    def to_polars(self: ReleasedRows) -> Any:
        """Return the rows as a polars DataFrame."""
        return import_extra("polars", extra="frames", purpose="to_polars").DataFrame(_by_column(self))

    def to_arrow(self: ReleasedRows) -> Any:
        """Return the rows as an Arrow table."""
        return import_extra("pyarrow", extra="frames", purpose="to_arrow").table(_by_column(self))

    def __iter__(self: ReleasedRows) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self: ReleasedRows) -> int:
        return len(self.rows)

    def __repr__(self: ReleasedRows) -> str:
        cost = f"epsilon {at_most(self.cost.epsilon)}" if self.cost.epsilon else "nothing"
        return f"<Release of {len(self.rows)} rows for {cost}: {', '.join(self.columns)}>"

    def _repr_html_(self: ReleasedRows) -> str:
        """The rows as a table, each noisy number with the half-width of its interval."""
        return rows_html(self.columns, self.rows, self.intervals(), self.card)


def _by_column(release: ReleasedRows) -> dict[str, list[Any]]:
    return {name: [row[name] for row in release.rows] for name in release.columns}


class Release(RowConversions):
    """An answer: `rows`, `intervals(0.95)`, `cost`, `card` and `permit`."""

    def __init__(self, plan: Plan, noisy: Noisy, cost: Cost, permits: tuple[Permit, ...]) -> None:
        self._plan: Final = plan.ranged(noisy.ranges) if noisy.ranges else plan
        self._noisy: Final = noisy
        self.cost: Final = cost
        """What was charged for it; nothing, if the same question had been answered before."""
        self.permits: Final = permits

    @property
    def permit(self) -> Permit | None:
        """The ledger's permit; None if the answer had been released before."""
        return self.permits[0] if self.permits else None

    @property
    def simulated(self) -> bool:
        """Whether the noise is reproducible, so that the answer gives no privacy."""
        return self._noisy.simulated

    @cached_property
    def _finished(self) -> tuple[list[dict[str, Any]], list[int]]:
        return answer_rows(self._plan, self._noisy)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the answer, in their order."""
        return self._finished[0]

    @property
    def datasets(self) -> tuple[str, ...]:
        """The budgets that paid."""
        return self._plan.datasets

    @property
    def counted(self) -> str:
        """How much of each unit is counted, in words; further rows are left out."""
        return self._plan.bounding.in_words

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._plan.question.columns

    def intervals(self, level: float = DEFAULT_LEVEL) -> list[dict[str, Interval | None]]:
        """Return, for each row and each noisy number, where the number without noise lies with probability `level`.

        Without noise, but with each unit bounded as the card says. None where no interval is known.
        """
        share = level_of(level)
        if not self._finished[1]:
            return [{} for _ in self.rows]
        return intervals(self._plan, self._noisy, self._finished[1], share)

    @property
    def card(self) -> str:
        """What was released, in plain language."""
        return card(self._plan, self.cost, self.warnings, simulated=self.simulated, is_cut=self._noisy.is_cut)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes numbers of the answer unreliable, derived from what was released."""
        guessed = self._noisy.guessed or (False,) * len(self._noisy.ranges)
        found = zip(self._plan.missing, self._plan.price.bounds, self._noisy.ranges, guessed, strict=True)
        bounds = [
            mechanism.warning(one.label, range_.lower, range_.upper, is_guess=is_guess, unit_weight=WEIGHT)
            for one, mechanism, range_, is_guess in found
        ]
        return (*bounds, *_few_rows(self._plan, self._noisy))

    def explain(self, write: Write = write_duckdb) -> list[Line]:
        """Return the facts about the plan, in the order of the passes."""
        return explain(self._plan, write)


def rows_html(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    spans: Sequence[Mapping[str, Interval | None]],
    card: str,
) -> str:
    """Return an answer as a table for notebooks, with the half-widths of its intervals and its card."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(row[name], span.get(name))}</td>" for name in columns) + "</tr>"
        for row, span in zip(rows[:ROWS_SHOWN], spans, strict=False)
    )
    more = f"<p>… {len(rows) - ROWS_SHOWN:,} more rows</p>" if len(rows) > ROWS_SHOWN else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}<p>{escape(card)}</p>"


def _few_rows(plan: Plan, noisy: Noisy) -> list[str]:
    """Return a warning for averages and spreads whose noisy number of rows is within its noise of 0."""
    groups, found = answer_groups(plan, noisy), list[str]()
    for aggregate, answer in zip(plan.question.aggregates, plan.answers, strict=True):
        estimate = answer.estimate
        if estimate is None or estimate.function in ("count", "units", "distinct", "sum"):
            continue
        rows, width = estimate.measures[0], plan.price.half_width(estimate.measures[0])
        few = np.flatnonzero(groups.measures[rows] <= width * np.sqrt(groups.added)).tolist()
        if few:
            named = ["; ".join(", ".join(str(key[place]) for key in groups.keys) for place in few[:GROUPS_NAMED])]
            named += [f"{len(few) - GROUPS_NAMED:,} more"] if len(few) > GROUPS_NAMED else []
            where = f" for {' and '.join(named)}" if groups.keys else ""
            found.append(
                f"{aggregate.label}: there may be no rows at all{where}, as their noisy number is within its noise of "
                "0, and the value may be noise alone"
            )
    return found


def card(plan: Plan, cost: Cost, warnings: Sequence[str] = (), *, simulated: bool = False, is_cut: bool = False) -> str:
    """Return in plain language what an answer protects, how, and what it cost."""
    sentences = [
        f"Protects each unit of {' and '.join(plan.datasets)}, with all of its rows. Neighbouring data: "
        f"{plan.bounding.relation.in_words}.",
        f"Contribution bound: at most {plan.bounding.in_words}; further rows are left out.",
        *(f"{cut[0].upper()}{cut[1:]}; the rest is left out." for cut in plan.question.cuts),
    ]
    rules = dict.fromkeys(table.unit_rule for table in plan.question.records)
    sentences += [f"{one[0].upper()}{one[1:]}." for one in (*rules, clamped_columns(plan)) if one]
    for index, measure in enumerate(plan.measures):
        sentences.append(f"{measure.label} has {noise_in_words(plan, index)}.")
    for choice, mechanism in zip(plan.choices, plan.price.choices, strict=True):
        text = f"{choice.label} is chosen at random among {choice.cells.count:,} values, near the right one"
        sentences.append(f"{text}: {choice_in_words(plan, choice, mechanism)}.")
    sentences += [f"{one[0].upper()}{one[1:]}." for one in about_intervals(plan)]
    sentences += [f"Warning: {one}." for one in warnings]
    if plan.domains is None and plan.price.selection is not None:
        least = plan.price.selection.threshold
        rest = ", and added up in one row" if plan.bounding.merges_rest else "; their number is not released"
        sentences.append(f"Groups with fewer than about {least:,} units are hidden, because keys are not public{rest}.")
    if is_cut:
        sentences.append("The answer is truncated: only the first groups in key order fit.")
    if plan.left_out:
        sentences.append(
            f"Rows in which {', or '.join(plan.left_out)} are left out; None among the categories or keys makes "
            "missing values a group."
        )
    sentences.append(
        f"It cost {cost.in_words(plan.bounding.relation)}."
        if cost.epsilon
        else "It cost nothing: the same answer was released before."
    )
    if simulated:
        sentences.append(SIMULATED)
    return " ".join(sentences)


def _cell(value: Any, span: Interval | None) -> str:
    if span is not None:
        return in_one_cell(value, *span)
    return escape(grouped(value) if isinstance(value, int | float) else str(value))
