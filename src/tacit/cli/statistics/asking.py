"""One statistic, asked: opens the table, states what was said of its columns, pays, and shows the answer.

Nothing is charged before everything that was typed has been read, the columns have been found, and the place of the
plot has been looked at. The answer is shown before it is drawn, so that a full disk costs nobody an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.kit import Fact, Screen
from tacit.cli.statistics.entries import Statistic
from tacit.cli.statistics.places import Funding, Place, Where, opened_place
from tacit.cli.statistics.showing import Shown
from tacit.cli.statistics.stating import LEARN, stated
from tacit.cli.statistics.waiting import spun
from tacit.cli.statistics.wording import in_options

if TYPE_CHECKING:
    from tacit.stats import Answer, Column


@dataclass(frozen=True)
class Question:
    """A statistic as it was typed."""

    statistic: Statistic
    table: str
    columns: tuple[str, ...]
    folder: Path
    unit: str | None
    each_row: bool
    rows_per_unit: int | None
    epsilon: float | None
    rho: float | None
    delta: float | None
    by: tuple[str, ...]
    keys: tuple[str, ...]
    bounds: tuple[str, ...]
    analyst: str | None
    purpose: str
    timeout: float | None
    level: float
    card: bool
    plot: Path | None
    own: dict[str, Any]

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise click.UsageError("say what the answer may cost: --epsilon or --rho")
        if self.each_row and self.rows_per_unit is not None:
            raise click.UsageError("with --each-row a person has one row; leave --rows-per-unit out")

    @property
    def where(self) -> Where:
        """Which table is meant."""
        funding = Funding(self.epsilon, self.rho, self.delta or 0.0)
        columns = tuple(dict.fromkeys([*self.columns, *self.by]))
        return Where(self.table, self.folder, self.unit, self.each_row, columns, funding)

    @property
    def per_unit(self) -> int | None:
        """How many rows of a unit are counted, if that is said; a test takes one."""
        return 1 if self.rows_per_unit is None and self.statistic.is_test else self.rows_per_unit

    @property
    def asked(self) -> dict[str, Any]:
        """What every statistic can be told."""
        said = {
            "epsilon": self.epsilon,
            "rho": self.rho,
            "rows_per_unit": self.per_unit,
            "analyst": self.analyst,
            "purpose": self.purpose or None,
            "timeout_s": self.timeout,
        }
        return {name: value for name, value in said.items() if value is not None}


def ask(screen: Screen, question: Question) -> None:
    """Ask a statistic and show its answer."""
    with opened_place(question.where) as place:
        _check(question, place)
        answer = spun(screen, place.curator, lambda: _answered(question, place))
        _shown(question, place, answer).show(screen)
        if question.plot is not None:
            answer.plot().save(question.plot)
            if not screen.as_json and screen.console.is_terminal:
                screen.show_facts([Fact("plot", str(question.plot))])
    if question.card and not screen.as_json:
        click.echo(answer.card, err=not screen.console.is_terminal)


def _check(question: Question, place: Place) -> None:
    """Refuse what is said of a file that only a ledger can keep, and of a table what its budget decides."""
    if place.is_remembered:
        if question.delta is not None:
            raise click.UsageError("the budget of a registered table has its own delta; leave --delta out")
        return
    for name, value in (("--analyst", question.analyst), ("--purpose", question.purpose)):
        if value:
            raise click.UsageError(f"no ledger keeps questions about a file; leave {name} out, or register the table")


def _answered(question: Question, place: Place) -> Answer:
    """State what was said of the columns, and ask."""
    entry, table = question.statistic, place.table
    with in_options():
        table.table, learnt = stated(table.table, question.columns, question.by, question.bounds, question.keys)
        columns, groups = [table[name] for name in question.columns], [table[name] for name in question.by]
        own = {name: value for name, value in question.own.items() if value is not None}
        asked = {**own, **_learning(entry, columns, learnt), **question.asked}
        if groups:
            asked["by"] = groups[0] if len(groups) == 1 else groups
        return entry.ask(entry, columns, asked)


def _learning(entry: Statistic, columns: Sequence[Column], learnt: Sequence[str]) -> dict[str, str]:
    """Return the keywords that ask for bounds to be learnt."""
    if learnt and not entry.learns:
        raise click.UsageError(f"{entry.name} does not learn bounds; learn them first: tacit stats bounds")
    keywords = dict(zip((column.declared.name for column in columns), entry.bounds, strict=False))
    for name in learnt:
        if name not in keywords:
            raise click.UsageError(f"{name} is grouped by: it has keys, and no bounds that could be learnt")
    return {keywords[name]: LEARN for name in learnt}


def _shown(question: Question, place: Place, answer: Answer) -> Shown:
    table = place.table.table
    unit = table.unit.column if table.unit is not None else ""
    rows = question.per_unit or table.limits.rows_per_unit
    limit = "1 row" if rows == 1 else f"{rows:,} rows"
    counted = f"at most {limit} of each {unit}; what a unit has beyond that is left out"
    remaining = (
        {table.dataset: place.curator.budget(table.dataset, question.analyst).remaining()}
        if place.is_remembered
        else {}
    )
    return Shown(
        answer,
        question.level,
        question.table,
        question.columns,
        counted="" if place.each_row else counted,
        protected="each row by itself: every row is taken for a person" if place.each_row else f"each {unit}",
        remaining=remaining,
        advice=place.advice,
        as_bars=question.statistic.as_bars,
        plot=question.plot,
    )
