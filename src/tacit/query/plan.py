"""A priced plan: everything that is decided about a question before any data is touched.

The passes, in their order, each one file: `parse` and `resolve` (names, units, allowed functions), `question` (keys,
aggregates), `measures` (whole numbers with known ranges), `bound` (contributions), `price` (shares, noise, event),
`rewrite` (the engine's statements). `compile_` is their composition; what a preview shows is read off a plan, and so is
public.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from sqlglot import exp

from tacit.privacy.bounds import Category
from tacit.privacy.errors import NotAllowed, TooWide
from tacit.privacy.events import Event
from tacit.privacy.tables import Limits, Schema
from tacit.query import rewrite
from tacit.query.aggregates import RANKED
from tacit.query.bound import Bounding, bound
from tacit.query.expressions import Constant, Expression
from tacit.query.keys import Domain, domains
from tacit.query.measures import Estimate, How, Measure, Measures
from tacit.query.price import Choice, Items, Price, Target, Tariff, priced
from tacit.query.question import Question, ask
from tacit.query.ranked import Ranked, ranked
from tacit.query.rewrite import Grouping

GROUPS_MAX: Final = 1_000_000
CELLS_MAX: Final = 20_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """What the caller may say beside the question: limits on contributions, and public values of keys by column."""

    limits: Limits = field(default_factory=Limits)
    keys: Mapping[str, Sequence[Category]] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Where an aggregate's answer comes from: an estimate from measures, or a private choice by its place."""

    estimate: Estimate | None = None
    choice: int | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """One SELECT for the engine: its purpose, its tree, and which measures or which choice it serves."""

    purpose: str
    tree: exp.Select
    measures: tuple[int, ...] = ()
    choice: int | None = None

    def sql(self, dialect: str) -> str:
        """Return the statement in an engine's dialect."""
        return self.tree.sql(dialect=dialect)


@dataclass(frozen=True, slots=True)
class Plan:
    """A question with its bounds, its noise and the statements to run."""

    question: Question
    domains: tuple[Domain, ...] | None
    """Every value of every key, if all are public; otherwise groups are selected."""
    measures: tuple[Measure, ...]
    choices: tuple[Ranked, ...]
    answers: tuple[Answer, ...]
    bounding: Bounding
    price: Price
    statements: tuple[Statement, ...]

    @property
    def event(self) -> Event:
        """What is charged."""
        return self.price.event

    @property
    def datasets(self) -> tuple[str, ...]:
        """The budgets that pay, in order."""
        return tuple(sorted(self.question.scope.datasets))

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are read, in order."""
        return tuple(sorted(self.question.scope.tables))

    @property
    def groups(self) -> int | None:
        """How many groups the answer has, if that is public."""
        return math.prod(len(domain.values) for domain in self.domains) if self.domains is not None else None

    @property
    def canonical(self) -> str:
        """A digest of the plan: equal for questions that release the same, however they were written."""
        written: dict[str, Any] = {
            "statements": [statement.sql("duckdb") for statement in self.statements],
            "keys": None
            if self.domains is None
            else [[_written(value) for value in one.values] for one in self.domains],
            "noise": [[type(noise).__name__, str(noise.sensitivity), str(noise.scale)] for noise in self.price.noises],
            "choices": [one.key for one in self.choices],
            "event": self.event.to_dict(),
        }
        text = json.dumps(written, sort_keys=True, separators=(",", ":"))
        return f"plan {hashlib.sha256(text.encode()).hexdigest()}"


def compile_(sql: object, schema: Schema, target: Target, tariff: Tariff, settings: Settings | None = None) -> Plan:
    """Turn SQL into a priced plan, without touching data."""
    return plan_of(ask(sql, schema), schema, target, tariff, settings or Settings())


def plan_of(question: Question, schema: Schema, target: Target, tariff: Tariff, settings: Settings) -> Plan:
    """Turn a question into a priced plan."""
    known = domains(question.keys, settings.keys or {})
    groups = math.prod(len(domain.values) for domain in known) if known is not None else None
    if groups is not None and groups > GROUPS_MAX:
        raise TooWide(
            f"the answer would have {groups:,} groups, and at most {GROUPS_MAX:,} are answered",
            accepted="group by fewer or coarser keys",
        )
    bounding = bound(question, groups, _owners(question, schema), settings.limits, tariff.relation)
    measures, choices, answers, weights = _answers(question)
    if question.sets:
        _require_additive(known, measures, choices)
    if choices and (groups or 1) * sum(one.cells.count for one in choices) > CELLS_MAX:
        raise TooWide("quantiles and modes of so many groups are not answered at once", accepted="use fewer groups")
    rows = bounding.rows if bounding.whole_rows is None else bounding.whole_rows
    items = Items(
        measures,
        weights,
        tuple(Choice(one.label, one.sensitivity(rows)) for one in choices),
        known is None,
        bounding,
    )
    if not (measures or choices or known is None):
        raise NotAllowed("this shows public keys alone and asks nothing of the data")
    price = priced(items, target, tariff, lambda one: _width(one, answers))
    statements = tuple(_statements(question, known, measures, choices, bounding))
    return Plan(question, known, measures, choices, answers, bounding, price, statements)


def _owners(question: Question, schema: Schema) -> Limits:
    """Return the owner's limits: of several private tables, the least of each."""
    tables = [schema.table(name) for name in sorted(question.scope.tables)]
    private = [table.limits for table in tables if table.is_private]

    def least(name: str) -> int | None:
        stated = [value for limits in private if (value := getattr(limits, name)) is not None]
        return min(stated) if stated else None

    return Limits(groups_per_unit=least("groups_per_unit"), rows_per_group=least("rows_per_group"))


def _answers(
    question: Question,
) -> tuple[tuple[Measure, ...], tuple[Ranked, ...], tuple[Answer, ...], tuple[float, ...]]:
    """Return what is measured and chosen, how each aggregate follows from it, and the weights of the measures."""
    collected, choices, answers = Measures(question.aggregates), dict[str, Ranked](), []
    for aggregate in question.aggregates:
        if aggregate.function in RANKED or aggregate.function == "mode":
            choice = ranked(aggregate)
            choices.setdefault(choice.key, choice)
            answers.append(Answer(choice=list(choices).index(choice.key)))
        else:
            answers.append(Answer(collected.estimate(aggregate)))
    weights = [0.0] * len(collected.list)
    for answer in answers:
        if answer.estimate is not None:
            for place, weight in zip(answer.estimate.measures, answer.estimate.weights, strict=True):
                weights[place] = max(weights[place], weight)
    return tuple(collected.list), tuple(choices.values()), tuple(answers), tuple(weights)


def _require_additive(known: tuple[Domain, ...] | None, measures: Sequence[Measure], choices: Sequence[Ranked]) -> None:
    """Totals of grouping sets are sums of what is shown, so all of it has to be public keys and sums."""
    if known is None:
        raise NotAllowed("ROLLUP, CUBE and GROUPING SETS need public keys", accepted="declare the keys' categories")
    if choices or any(measure.how in (How.UNITS, How.VALUES) for measure in measures):
        raise NotAllowed(
            "quantiles, modes and COUNT(DISTINCT ...) do not add up over groups",
            accepted="ask for them in a question of their own",
        )


def _width(price: Price, answers: Sequence[Answer]) -> float:
    """Return the half-width of the first answer that is a measure by itself."""
    for answer in answers:
        estimate = answer.estimate
        if estimate is not None and len(estimate.measures) == 1:
            step = estimate.grids[0].step if estimate.grids else Fraction(1)
            return price.half_width(estimate.measures[0]) * float(step)
    raise NotAllowed(
        "error= is about a COUNT or a SUM, whose interval does not depend on the data", accepted="use epsilon= instead"
    )


def _statements(
    question: Question,
    known: tuple[Domain, ...] | None,
    measures: Sequence[Measure],
    choices: Sequence[Ranked],
    bounding: Bounding,
) -> list[Statement]:
    scope = question.scope
    for key, domain in zip(question.keys, known or (), strict=False):
        if None not in domain.values and (key.nullable or domain.restricts):
            scope = scope.where(_listed(key, domain))
    grouping = Grouping(scope, question.keys, bounding)
    sums = [index for index, measure in enumerate(measures) if measure.how is not How.VALUES]
    found = []
    if sums or known is None:
        tree = rewrite.additive(grouping, [measures[index] for index in sums], units=known is None)
        found.append(Statement("sums", tree, tuple(sums)))
    for index, measure in enumerate(measures):
        if measure.how is How.VALUES:
            found.append(Statement("values", rewrite.distinct(grouping, measure), (index,)))
    for index, choice in enumerate(choices):
        found.append(Statement("cells", rewrite.cells(grouping, choice), choice=index))
    return found


def _listed(key: Expression, domain: Domain) -> Expression:
    """Return the condition that keeps the rows of the listed groups."""
    from tacit.query.scalars import literal, negate, scalar

    def bind(node: exp.Expression) -> Expression:
        return key if isinstance(node, exp.Column) else literal(domain.values[int(node.name)])

    if domain.restricts:
        items = [exp.to_identifier(str(index)) for index in range(len(domain.values))]
        return scalar(exp.In(this=exp.column("x"), expressions=items), bind, lambda _node: None)
    return negate(scalar(exp.Is(this=exp.column("x"), expression=exp.null()), bind, lambda _node: None))


def _written(value: Constant) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)
