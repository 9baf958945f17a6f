"""The answer of a statistic for people at a terminal, for pipes, and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.kit import Fact, Screen
from tacit.cli.questions.showing import cost_in_words, cost_object
from tacit.cli.statistics.picking import Picked
from tacit.cli.statistics.rows import Row, field, plain, rows_of
from tacit.privacy.figures import at_least
from tacit.stats import Answer, TestAnswer, WorkloadAnswer
from tacit.stats.learnt import Learnt
from tacit.stats.nulls import Hypothesis

if TYPE_CHECKING:
    from tacit.accounting import Cost


@dataclass(frozen=True)
class Shown:
    """All that is said of one answer."""

    answer: Answer
    level: float
    table: str
    columns: tuple[str, ...]
    counted: str
    protected: str
    remaining: dict[str, Cost]
    advice: str
    """For a file: that nothing remembers the charge."""
    as_bars: bool
    plot: Path | None = None
    """Where the answer is drawn, too."""

    def show(self, screen: Screen) -> None:
        """Write the answer: a table with its cost on a terminal, keys, value, low and high with tabs in a pipe."""
        if screen.as_json:
            screen.show_object(self.object())
        elif screen.console.is_terminal:
            self._show_table(screen)
            screen.show_facts(self.facts())
        else:
            for fields in self._fields():
                click.echo("\t".join(map(field, fields)))
            for sentence in (*self.answer.warnings, *([self.advice] if self.advice else [])):
                click.echo(f"tacit: warning: {sentence}", err=True)

    def object(self) -> dict[str, Any]:
        """Return the answer for programs."""
        answer = self.answer
        return {
            "label": answer.label,
            "table": self.table,
            "columns": list(self.columns),
            "value": plain(answer.value),
            "rows": self._row_objects(),
            "level": self.level,
            **({"bounds": learnt} if (learnt := self._learnt()) else {}),
            **({"hypothesis": answer.plan.claim} if isinstance(answer.plan, Hypothesis) else {}),
            "cost": cost_object(answer.cost),
            "remaining": {name: cost_object(cost) for name, cost in self.remaining.items()},
            "permit": answer.permit.id if answer.permit is not None and not self.advice else None,
            "remembered": not self.advice,
            "protected": self.protected,
            "counted": self.counted,
            "warnings": list(answer.warnings),
            "card": answer.card,
            "simulated": answer.simulated,
            **({} if self.plot is None else {"plot": str(self.plot)}),
        }

    def facts(self) -> list[Fact]:
        """Return what is said below an answer: who is protected, what it cost and what is left."""
        plan = self.answer.plan
        facts = [Fact("tested", f"whether {plan.claim}")] if isinstance(plan, Hypothesis) else []
        facts += [
            Fact("bounds", f"{name}: {low:g} to {high:g}, learnt") for name, (low, high) in self._learnt().items()
        ]
        facts += [Fact("warning", one) for one in self.answer.warnings]
        facts.append(Fact("protected", self.protected))
        facts += [Fact("counted", self.counted)] if self.counted else []
        facts.append(Fact("cost", cost_in_words(self.answer.cost), True))
        facts += [Fact("left", f"ε {at_least(cost.epsilon)} on {name}") for name, cost in self.remaining.items()]
        return [*facts, *([Fact("not kept", self.advice)] if self.advice else [])]

    def _row_objects(self) -> list[dict[str, Any]]:
        if isinstance(self.answer, TestAnswer):
            low, high = self.answer.interval(self.level) or (None, None)
            (row,) = self.answer.rows
            return [
                {name: plain(value) for name, value in (row | {"estimate_low": low, "estimate_high": high}).items()}
            ]
        is_many = isinstance(self.answer, WorkloadAnswer) and not isinstance(self.answer, Picked)
        return [
            {
                **({"table": label} if is_many else {}),
                "keys": dict(zip(names, map(plain, row.keys), strict=True)),
                "value": plain(row.value),
                "low": plain(row.span.low) if row.span else None,
                "high": plain(row.span.high) if row.span else None,
            }
            for names, label, rows in self._tables()
            for row in rows
        ]

    def _fields(self) -> list[tuple[Any, ...]]:
        """Return what stands in each line of a pipe; a test has its p-value, statistic, estimate, and its ends."""
        if isinstance(self.answer, TestAnswer):
            return [tuple(row.values()) for row in self._row_objects()]
        return [(*row.keys, row.value, *(row.span or ("", ""))) for row in rows_of(self.answer, self.level)]

    def _learnt(self) -> dict[str, list[float]]:
        """Return the bounds that were learnt, by column."""
        plan = self.answer.plan
        if not isinstance(plan, Learnt):
            return {}
        return {part.column: list(span) for part, span in zip(plan.parts, plan.found, strict=True)}

    def _show_table(self, screen: Screen) -> None:
        from tacit.cli.statistics import tables

        answer, width = self.answer, screen.console.width
        if isinstance(answer, TestAnswer):
            screen.console.print(tables.tested(answer, self.level))
            return
        picture = answer.plan.picture
        as_bars = self.as_bars or picture == "bars"
        for names, label, rows in self._tables():
            is_crossed = len(names) == 2 and (picture == "heat" or isinstance(answer, WorkloadAnswer))
            table = tables.crossed(names, rows, width) if is_crossed and not isinstance(answer, Picked) else None
            screen.console.print(table or tables.listed(names, label, rows, self.level, width, as_bars=as_bars))
            if (more := len(rows) - tables.ROWS_SHOWN) > 0:
                screen.console.print(f" and {more:,} more rows, which a pipe or --json shows", style="dim")
        if picture == "word" and answer.value is None:
            screen.console.print("  none leads by enough to be shown", style="dim")

    def _tables(self) -> Iterator[tuple[tuple[str, ...], str, list[Row]]]:
        """Yield what the parts of keys are called, what is counted, and rows: once, or for each table of many."""
        answer = self.answer
        if not isinstance(answer, WorkloadAnswer) or isinstance(answer, Picked):
            yield answer.key_names, answer.label, rows_of(answer, self.level)
            return
        for name, table in answer.tables.items():
            yield table.columns, "rows" if name in table.columns else name, rows_of(table, self.level)
