"""What a plan will do, in words and in the SQL of the engine; public, since a plan touches no data."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import exp

from tacit.engines.dialects import write_duckdb
from tacit.engines.protocol import ROWS, SCHEMA, UNIT
from tacit.mechanisms import Exponential, Laplace
from tacit.privacy import notation
from tacit.privacy.bounds import Bounds, clamping_in_words
from tacit.privacy.figures import at_most, grouped
from tacit.privacy.numbers import DEFAULT_LEVEL
from tacit.privacy.tables import Column
from tacit.query.answer_intervals import without_interval
from tacit.query.plan import Plan
from tacit.query.private_choices import CELLS_MAX, PrivateChoice
from tacit.query.rewrite import Write


class Line(NamedTuple):
    """One fact about a plan: its label and its text."""

    label: str
    text: str

    def __str__(self) -> str:
        return f"{self.label:8}{self.text}"


def explain(plan: Plan, write: Write = write_duckdb) -> list[Line]:
    """Return the facts about a plan, in the order of the passes."""
    return list(_lines(plan, write))


def _lines(plan: Plan, write: Write) -> Iterator[Line]:
    yield Line("units", f"{', '.join(plan.datasets)}: {plan.bounding.relation.in_words}")
    yield Line("bounds", plan.bounding.in_words)
    for cut in plan.question.cuts:
        yield Line("bounds", cut)
    if plan.question.keys:
        yield Line("keys", _keys(plan))
        if plan.left_out:
            yield Line("keys", f"rows in which {', or '.join(plan.left_out)} are left out")
    for one, mechanism in zip(plan.missing, plan.price.bounds, strict=True):
        text = f"{one.label}: bounds are learnt from {2 * mechanism.bins} bins"
        yield Line("learn", f"{text}, epsilon {at_most(float(mechanism.epsilon))}")
    if joined := _multiplying(plan):
        yield Line("joins", joined)
    if clamped := clamped_columns(plan):
        yield Line("clamped", clamped)
    waiting = plan.waiting
    for index, measure in enumerate(plan.measures):
        yield Line("noise", f"{measure.label}: {noise_in_words(plan, index, is_waiting=index in waiting)}")
    for choice, chooser in zip(plan.choices, plan.price.choices, strict=True):
        candidates = f"{choice.cells.count:,} candidates" if plan.is_ranged else "candidates within the bounds"
        text = f"{choice.label}: exponential mechanism over {candidates}"
        yield Line("choice", f"{text}, epsilon {at_most(float(chooser.epsilon))} a group")
        yield Line("spans", f"{choice.label}: {choice_in_words(plan, choice, chooser)}")
    for sentence in about_intervals(plan):
        yield Line("spans", sentence)
    yield Line("event", notation.write(plan.event, short=True))
    for statement in plan.learning:
        yield Line("engine", statement.sql(write))
    for statement in plan.statements:
        yield Line("engine" if plan.is_ranged else "then", statement.sql(write))


def _multiplying(plan: Plan) -> str:
    """Return how a join with public tables takes less noise, where nothing says what identifies their rows."""
    tables = [one.table for one in plan.question.scope.sources if one.table is not None]
    names = [one.name for one in tables if not one.is_private and not one.identified_by]
    if not names:
        return ""
    return (
        f"nothing says which columns identify a row of {' or '.join(names)}, so that a join may multiply the rows of a "
        f"unit; less noise: tacit table edit {shlex.quote(names[0])} --identified-by COLUMN, and its key columns as "
        "categories"
    )


def clamped_columns(plan: Plan) -> str:
    """Return which columns of the statements are clamped to declared bounds, in words; empty if none is."""
    tables = {table.name.lower(): table for table in plan.question.records}
    found = dict[tuple[str, str], Column]()
    for statement in (*plan.learning, *plan.statements):
        read = {one.alias: tables[one.name.lower()] for one in statement.tree.find_all(exp.Table) if one.db == SCHEMA}
        for one in statement.tree.find_all(exp.Column):
            if one.table in read and one.name not in (UNIT, ROWS):
                column = read[one.table].column(one.name)
                found[read[one.table].name, column.name] = column
    columns = [found[key] for key in sorted(found)]
    return clamping_in_words((one.name, one.facts) for one in columns if isinstance(one.facts, Bounds))


def noise_in_words(plan: Plan, index: int, *, is_waiting: bool = False) -> str:
    """Return the noise of a measure: law, scale and sensitivity; `is_waiting` where that depends on learnt bounds."""
    noise, measure = plan.price.noises[index], plan.measures[index]
    law = "Laplace" if isinstance(noise, Laplace) else "Gaussian"
    sensitivity = plan.bounding.l1(measure) if isinstance(noise, Laplace) else plan.bounding.l2(measure)
    step = measure.step
    if is_waiting:
        factor = _rounded_up(float(noise.scale / float(sensitivity)))
        return f"{law} noise of scale {factor} times its sensitivity, which depends on the bounds"
    scale = _rounded_up(float(noise.scale) * float(step))
    width = grouped(float(at_most(plan.price.half_width(index) * float(step))))
    moved = grouped(float(sensitivity * step))
    return f"{law} noise of scale {scale} (sensitivity {moved}), ±{width} at {DEFAULT_LEVEL:.0%}"


def _rounded_up(scale: float) -> str:
    """Return a scale rounded up, without what shares of epsilon are rounded by."""
    return grouped(float(at_most(float(f"{scale:.9g}"))))


def choice_in_words(plan: Plan, choice: PrivateChoice, mechanism: Exponential) -> str:
    """Return how far a private choice may lie from what it stands for, in rows, which does not depend on the data."""
    missed = choice.rows_missed(mechanism, DEFAULT_LEVEL, None if plan.is_ranged else CELLS_MAX)
    rows, side = f"{missed:,} row{'s' if missed != 1 else ''}", "above" if choice.function == "max" else "below"
    half = choice.cells.half_width if plan.is_ranged else f"half of a {CELLS_MAX:,}th of the bounds that are learnt"
    if choice.function == "mode":
        found = f"at most {rows} fewer have it than the most frequent value"
    elif choice.function == "quantile":
        found = f"{f'the rank of a value within {half} of it' if half else 'its rank'} is at most {rows} off"
    else:
        found = f"at most {rows} lie {f'more than {half} ' if half else ''}{side} it"
    tail = min(choice.share, 1 - choice.share) if choice.function == "quantile" else 1  # of the rows lie beyond it
    least = math.ceil(missed / tail) if tail else missed
    return f"{found} (at {DEFAULT_LEVEL:.0%}); for a group with fewer than {least:,} rows, or none, it is arbitrary"


def about_intervals(plan: Plan) -> list[str]:
    """Return notes on the intervals of an answer: columns without one and why, and selection by noise."""
    found = []
    reasons: dict[str, list[str]] = {}
    for name, reason in without_interval(plan).items():
        reasons.setdefault(reason, []).append(name)
    if plan.question.after:
        found.append("no intervals: the outer SELECT computes with noisy numbers of several rows")
    elif plan.question.distinct:
        found.append("no intervals: DISTINCT merges rows by their noisy numbers")
    else:
        found += [f"no interval for {', '.join(names)}: {reason}" for reason, names in reasons.items()]
        if plan.question.selects_by_noise:
            found.append(
                f"the rows were picked by noisy values, so intervals are widened until {DEFAULT_LEVEL:.0%} of those "
                "shown hold (or the level that is asked for), on average"
            )
    return found


def _keys(plan: Plan) -> str:
    if plan.sets_apart:
        return f"public, {plan.groups:,} shown in {len(plan.question.sets)} grouping sets, each measured by itself"
    if plan.domains is not None:
        sizes = " × ".join(f"{len(domain.values):,}" for domain in plan.domains)
        return f"public, {sizes} shown" if len(plan.domains) == 1 else f"public, {sizes} = {plan.groups:,} shown"
    assert plan.price.selection is not None
    rest = ", and added up in one row" if plan.bounding.merges_rest else ""
    return f"not public: groups with fewer than about {plan.price.selection.threshold:,} units are hidden{rest}"
