"""A priced plan: everything that is decided about a question before any data is touched.

The passes, in their order, each one file: `parse` and `resolve` (names, units, allowed functions), `question` (keys,
aggregates), `measures` (whole numbers with known ranges), `contribution` (how far one unit moves them), `allocation`
(shares, noise, event), `rewrite` (the engine's statements); then the plan is proven to run for any data
(`whole_numbers`, `postprocess`, `answer_size`, `row_limits`). `compile_` is their composition; what a preview shows is
read off a plan, and so is public.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from sqlglot import exp

from tacit.engines.dialects import duckdb
from tacit.ledger.permits import require_keepable
from tacit.privacy.arguments import instance, mapping
from tacit.privacy.bounds import Category
from tacit.privacy.errors import InvalidInput, NotAllowed, NotSQL, TooLarge, TooWide
from tacit.privacy.events import Event
from tacit.privacy.numbers import DEFAULT_LEVEL, truth_value
from tacit.privacy.tables import Limits, Schema
from tacit.query import grouping_sets, postprocess, rewrite
from tacit.query.aggregates import RANKED
from tacit.query.allocation import Choice, Items, QueryPrice, Target, Tariff, priced
from tacit.query.answer_size import answer_bytes, group_bytes
from tacit.query.contribution import Bounding, bound
from tacit.query.expressions import Expression, Range
from tacit.query.keys import Domain, domains
from tacit.query.learned_bounds import UNKNOWN, WIDEST, UnboundedValue, unbounded, with_ranges
from tacit.query.measures import Estimate, How, Measure, Measures
from tacit.query.parse import guarded
from tacit.query.question import Question, ask
from tacit.query.ranked import Ranked, ranked
from tacit.query.rewrite import Grouping
from tacit.query.row_limits import HELD_STEPS, require_little_work
from tacit.query.scalars import disjunction, literal, scalar, trees
from tacit.query.scalars.trees import depth
from tacit.query.whole_numbers import require_exact

GROUPS_MAX: Final = 1_000_000
CELLS_MAX: Final = 20_000_000
DEPTH_MAX: Final = 160
"""How many levels a statement has at most: writing takes up to five calls for each, and Python allows 1,000."""


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What the caller may say beside the question: limits on contributions, public values of keys by column, and
    whether the groups that are not shown are added up in one more row."""

    limits: Limits = field(default_factory=Limits)
    keys: Mapping[str, Sequence[Category]] | None = None
    other: bool = False

    def __post_init__(self) -> None:
        truth_value("other", self.other)
        instance("limits", self.limits, Limits, "Limits")
        if self.keys is not None:
            mapping("keys", self.keys, "a list of values for each key")
        if self.limits.rows_per_unit is not None:
            raise InvalidInput(
                "rows_per_unit is set when a table is registered; "
                "for a question use groups_per_unit and rows_per_group",
                name="limits",
            )


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """Where an aggregate's answer comes from: an estimate from measures, or a private choice by its place."""

    estimate: Estimate | None = None
    choice: int | None = None


Write: TypeAlias = Callable[[exp.Query], str]
"""How an engine writes a statement."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One SELECT for the engine: its purpose, its tree, and which measures or which choice it serves."""

    purpose: str
    tree: exp.Select
    measures: tuple[int, ...] = ()
    choice: int | None = None
    kept: tuple[int, ...] | None = None
    """The grouping set that is measured: which keys it keeps; None for all of them."""

    @property
    def is_salted(self) -> bool:
        """Whether the salt is a parameter of the statement."""
        return self.tree.find(exp.Parameter) is not None

    @guarded
    def sql(self, write: Write = duckdb) -> str:
        """Return the statement as an engine writes it."""
        return write(self.tree)


@dataclass(frozen=True, slots=True)
class Plan:
    """A question with its bounds, its noise and the statements to run."""

    question: Question
    domains: tuple[Domain, ...] | None
    """Every value of every key, if all are public; otherwise groups are selected."""
    measures: tuple[Measure, ...]
    choices: tuple[Ranked, ...]
    answers: tuple[AnswerSource, ...]
    bounding: Bounding
    price: QueryPrice
    statements: tuple[Statement, ...]
    learning: tuple[Statement, ...]
    """What is run first, to learn the bounds of the values in `missing`; the statements then have to wait for them."""
    missing: tuple[UnboundedValue, ...]
    asked: Question
    """The question before bounds were put in the place of missing ones."""
    sets_apart: bool = False
    """Whether each grouping set is measured by itself; otherwise the finest groups are, and totals are their sums."""
    is_ranged: bool = True
    """Whether all bounds are known; otherwise `ranged` has to put those that are learnt in the place of -1 and 1."""
    _canonical: list[str] = field(init=False, default_factory=list, compare=False, repr=False)
    """The digest, once it was made; a changed copy of a plan begins without it."""

    @property
    def waiting(self) -> frozenset[int]:
        """The measures whose noise is known only when bounds have been learnt."""
        if self.is_ranged:
            return frozenset()
        twice = Range(2 * UNKNOWN.lower, 2 * UNKNOWN.upper)
        wider, *_ = _answers(with_ranges(self.asked, {one.key: twice for one in self.missing}))
        pairs = zip(self.measures, wider, strict=True)
        reaches = [(one.contribution(1) * one.step, other.contribution(1) * other.step) for one, other in pairs]
        return frozenset(index for index, (one, other) in enumerate(reaches) if one != other)

    def ranged(self, ranges: Sequence[Range]) -> Plan:
        """Return the plan with the learnt ranges: the same event, noise and statements to fit them."""
        named = {one.key: range_ for one, range_ in zip(self.missing, ranges, strict=True)}
        question = with_ranges(self.asked, named)
        measures, choices, answers, _ = _answers(question)
        return replace(
            self,
            question=question,
            measures=measures,
            choices=choices,
            answers=answers,
            price=self.price.scaled(measures, _choices(choices, self.bounding), self.bounding),
            statements=tuple(_statements(question, self.domains, measures, choices, self.bounding)),
            is_ranged=True,
        )

    @property
    def event(self) -> Event:
        """What is charged."""
        return self.price.event

    @property
    def datasets(self) -> tuple[str, ...]:
        """The budgets that pay, in order."""
        return tuple(sorted(self.question.datasets))

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are read, in order."""
        return tuple(table.name for table in self.question.records)

    @property
    def left_out(self) -> list[str]:
        """Which rows are in none of the public groups and so not counted, by key: "sex is missing or not listed"."""
        found = []
        for index, (key, domain) in enumerate(zip(self.question.keys, self.domains or (), strict=False)):
            why = ["missing"] if key.nullable and None not in domain.values else []
            why += ["not listed"] if domain.is_listed else []
            if why and not domain.restricts:
                name = min(self.question.names_of_key(index), default=key.text)
                found.append(f"{name} is {' or '.join(why)}")
        return found

    @property
    def groups(self) -> int | None:
        """How many groups are measured, if that is public."""
        if self.domains is None:
            return None
        if self.sets_apart:
            return sum(grouping_sets.sizes(self.domains, self.question.sets))
        return math.prod(len(domain.values) for domain in self.domains)

    @property
    def work(self) -> int:
        """How many steps the statements take for one unit at most (`row_limits`)."""
        return self.question.unit_rows * self.steps + HELD_STEPS * self.question.held

    @property
    def steps(self) -> int:
        """How many steps the statements take for one row."""
        return sum(trees.work(statement.tree) for statement in (*self.learning, *self.statements))

    @property
    def answer_bytes(self) -> int | None:
        """How many bytes the answer takes at most beside its frame; None where keys are selected."""
        sets = self.question.sets if self.sets_apart else [range(len(self.domains or ()))]
        return None if self.domains is None else answer_bytes(self.domains, sets, self.group_bytes)

    @property
    def group_bytes(self) -> int:
        """How many bytes the released numbers of a group take at most."""
        return group_bytes(len(self.measures), self.choices)

    @property
    def canonical(self) -> str:
        """A digest of the plan: equal for questions that release the same, however they were written."""
        if not self._canonical:  # statements are slow to write, and a plan may be asked for often
            self._canonical.append(self._digested())
        return self._canonical[0]

    @guarded
    def _digested(self) -> str:
        written: dict[str, Any] = {
            "statements": [statement.sql() for statement in (*self.learning, *self.statements)],
            "keys": None
            if self.domains is None
            else [one.digest(key.kind) for one, key in zip(self.domains, self.question.keys, strict=True)],
            "noise": [[type(noise).__name__, str(noise.sensitivity), str(noise.scale)] for noise in self.price.noises],
            "choices": [one.key for one in self.choices],
            "bounding": repr(self.bounding),
            "event": self.event.to_dict(),
        }
        text = json.dumps(written, sort_keys=True, separators=(",", ":"))
        return f"plan {hashlib.sha256(text.encode()).hexdigest()}"


def compile_(sql: object, schema: Schema, target: Target, tariff: Tariff, settings: PlanSettings | None = None) -> Plan:
    """Turn SQL into a priced plan, without touching data."""
    return plan_of(ask(sql, schema), schema, target, tariff, settings or PlanSettings())


@guarded
def plan_of(question: Question, schema: Schema, target: Target, tariff: Tariff, settings: PlanSettings) -> Plan:
    """Turn a question into a priced plan that can be run: whatever would fail later for any data is refused here."""
    having = [question.having.tree] if question.having is not None else []
    shown: list[exp.Expr] = [*(one.value.tree for one in question.outputs), *having, *question.order]
    _require_shallow([question.scope.tree, *shown, *(one.tree for one in question.after)])
    postprocess.check(question)
    made = _of_sets if question.sets else _of_groups
    plan = made(question, schema, target, tariff, settings)
    for one in (plan, plan.ranged([WIDEST] * len(plan.missing))) if plan.missing else (plan,):
        _require_runnable(one)
    return plan


def _require_runnable(plan: Plan) -> None:
    """Raise unless the statements are exact and can be written, the noise can be drawn, and the answer be kept."""
    require_exact(plan.measures, plan.bounding)
    require_little_work(plan.work, plan.steps, plan.question.unit_rows)
    require_keepable(plan.answer_bytes)
    _require_shallow([statement.tree for statement in (*plan.learning, *plan.statements)])
    try:
        for noise in (*plan.price.noises, *(one.noise for one in plan.price.bounds)):
            noise.interval(DEFAULT_LEVEL, np.zeros(1, dtype=np.int64))  # prepares the sampler
        _ = plan.price.selection and plan.price.selection.threshold
    except TooLarge as error:
        raise TooWide(
            f"the noise of this question is too wide to be drawn: {error.message}",
            accepted="ask for a greater epsilon, or count fewer rows and groups of each unit",
        ) from None


def _require_shallow(found: Sequence[exp.Expr]) -> None:
    """Raise NotSQL for trees so deep that writing them could exceed the limit on recursion, here or in a server."""
    if max(map(depth, found), default=0) > DEPTH_MAX:
        raise NotSQL("the query is nested too deeply; give its parts names with WITH, or ask for less")


def _of_groups(question: Question, schema: Schema, target: Target, tariff: Tariff, settings: PlanSettings) -> Plan:
    """Measure the groups by all keys; totals of grouping sets, if there are any, are sums of them."""
    known = domains(question, settings.keys or {})
    groups = math.prod(len(domain.values) for domain in known) if known is not None else None
    if groups is not None and groups > GROUPS_MAX:
        raise TooWide(
            f"the answer would have {groups:,} groups, and at most {GROUPS_MAX:,} are answered",
            accepted="group by fewer or coarser keys",
        )
    bounding = bound(question, groups, _owners(question, schema), settings.limits, tariff.relation)
    if settings.other and known is None:
        bounding = replace(bounding, merges_rest=True)
    missing = unbounded(question)
    ranged = with_ranges(question, {one.key: UNKNOWN for one in missing})
    measures, choices, answers, weights = _answers(ranged)
    if question.sets:
        _require_additive(known, measures, choices)
    if bounding.merges_rest:
        _require_sums(measures, choices)
    if (groups or 1) * sum(one.cells.count for one in choices) > CELLS_MAX:
        raise TooWide("quantiles and modes of so many groups are not answered at once", accepted="use fewer groups")
    items = Items(measures, weights, _choices(choices, bounding), known is None, bounding, len(missing))
    if not (measures or choices or known is None):
        raise NotAllowed(
            "this shows public keys alone and asks nothing of the data", accepted="add an aggregate such as COUNT(*)"
        )
    level = question.row_level(groups, DEFAULT_LEVEL) or DEFAULT_LEVEL
    price = priced(items, target, tariff, lambda one: _width(one, answers, missing, level))
    statements = tuple(_statements(ranged, known, measures, choices, bounding))
    first = tuple(_learning(question, known, missing, bounding))
    return Plan(
        ranged,
        known,
        measures,
        choices,
        answers,
        bounding,
        price,
        statements,
        first,
        missing,
        question,
        is_ranged=not missing,
    )


def _of_sets(question: Question, schema: Schema, target: Target, tariff: Tariff, settings: PlanSettings) -> Plan:
    """Measure the finest groups and add them up, or each grouping set by itself: whichever has the lower error.

    Both are priced, and no data are touched. The error is the mean variance over all numbers that are shown, relative
    to each measure's. Where there are too many finest groups, or none is public, only one of the two is left.
    """
    known = domains(question, settings.keys or {})
    together: Plan | None = None
    wide: TooWide | None = None
    try:
        together = _of_groups(question, schema, target, tariff, settings)
    except TooWide as error:
        wide = error
    cells = grouping_sets.sizes(known, question.sets) if known is not None and not unbounded(question) else []
    if not cells or sum(cells) > GROUPS_MAX or (together is not None and target.error is not None):
        if together is None:
            raise wide  # type: ignore[misc]  # one of the two is there
        return together
    assert known is not None
    bounding = bound(question, max(cells), _owners(question, schema), settings.limits, tariff.relation)
    measures, choices, answers, weights = _answers(question)
    _require_additive(known, measures, choices)
    items = Items(measures, weights, (), False, bounding, times=len(question.sets))
    price = priced(items, target, tariff, lambda one: _width(one, answers, ()))
    if together is not None and not grouping_sets.is_better(price, together.price, known, question.sets):
        return together
    grouping = _grouping(question, known, bounding)
    every = tuple(range(len(measures)))
    statements = tuple(
        Statement("sums", rewrite.additive(grouping_sets.part(grouping, kept), measures, units=False), every, kept=kept)
        for kept in question.sets
    )
    return Plan(
        question,
        known,
        measures,
        (),
        answers,
        bounding,
        price,
        statements,
        (),
        (),
        question,
        sets_apart=True,
    )


def _choices(choices: Sequence[Ranked], bounding: Bounding) -> tuple[Choice, ...]:
    rows = bounding.rows if bounding.whole_rows is None else bounding.whole_rows
    return tuple(Choice(one.label, one.sensitivity(rows)) for one in choices)


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
) -> tuple[tuple[Measure, ...], tuple[Ranked, ...], tuple[AnswerSource, ...], tuple[float, ...]]:
    """Return what is measured and chosen, how each aggregate follows from it, and the weights of the measures."""
    collected, choices, answers = Measures(question.aggregates), dict[str, Ranked](), []
    for aggregate in question.aggregates:
        if aggregate.function in RANKED or aggregate.function == "mode":
            choice = ranked(aggregate)
            choices.setdefault(choice.key, choice)
            answers.append(AnswerSource(choice=list(choices).index(choice.key)))
        else:
            answers.append(AnswerSource(collected.estimate(aggregate)))
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
    _require_sums(measures, choices)


def _require_sums(measures: Sequence[Measure], choices: Sequence[Ranked]) -> None:
    """Refuse what does not add up over groups."""
    if choices or any(measure.how in (How.UNITS, How.VALUES) for measure in measures):
        raise NotAllowed(
            "quantiles, modes and COUNT(DISTINCT ...) do not add up over groups",
            accepted="ask for them in a question of their own",
        )


def _width(
    price: QueryPrice, answers: Sequence[AnswerSource], missing: Sequence[UnboundedValue], level: float = DEFAULT_LEVEL
) -> float:
    """Return the half-width of the first answer that is a measure by itself."""
    if missing:
        raise NotAllowed("error= needs declared bounds, and those of this question are learnt", accepted="use epsilon=")
    for answer in answers:
        estimate = answer.estimate
        if estimate is not None and len(estimate.measures) == 1:
            step = estimate.grids[0].step if estimate.grids else Fraction(1)
            return price.half_width(estimate.measures[0], level) * float(step)
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
    grouping = _grouping(question, known, bounding)
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


def _learning(
    question: Question, known: tuple[Domain, ...] | None, missing: Sequence[UnboundedValue], bounding: Bounding
) -> Iterator[Statement]:
    if missing:
        grouping = _grouping(question, known, bounding)
        yield from (Statement("bins", rewrite.bins(grouping, value)) for value in missing)


def _grouping(question: Question, known: tuple[Domain, ...] | None, bounding: Bounding) -> Grouping:
    """Return the rows and keys of a question, rows of groups that are not listed left out."""
    scope, listed = question.scope, []
    for index, (key, domain) in enumerate(zip(question.keys, known or (), strict=False)):
        if domain.restricts:
            scope = scope.where(_listed(key, domain))
        if None not in domain.values and key.nullable:
            listed.append(index)
    return Grouping(scope, question.keys, bounding, tuple(listed))


def _listed(key: Expression, domain: Domain) -> Expression:
    """Return the condition that keeps the rows of the listed groups."""

    def bind(node: exp.Expression) -> Expression:
        return key if isinstance(node, exp.Column) else literal(domain.values[int(node.name)])

    missing = scalar(exp.Is(this=exp.column("x"), expression=exp.null()), bind, lambda _node: None)
    items = [exp.to_identifier(str(index)) for index, value in enumerate(domain.values) if value is not None]
    inside = scalar(exp.In(this=exp.column("x"), expressions=items), bind, lambda _node: None) if items else missing
    return disjunction([inside, missing]) if None in domain.values else inside
