"""The passes of private SQL, in their order: a query becomes a priced plan, without touching data.

`ask` reads the SQL, `plan_of` decides how it is answered and what that costs, on the terms of its data set's budget.
Each line of `ask`, `plan_of` and `_Planner.groups` is one pass:

    parse           text                       one SELECT of bounded size
    question        SELECT, schema             keys and aggregates, over rows that belong to one unit each (`resolve`)
    postprocess     question                   proof that what is computed after the noise can be evaluated
    keys            question, stated keys      public values of the keys, or none
    learned_bounds  question                   values without a range, and a stand-in for each range
    measures        aggregates                 whole numbers with known ranges, and private choices
    contribution    question, limits           how far one unit moves each measure
    allocation      sensitivities, target      noise of each measure and choice, one event
    rewrite         all of it                  statements for the engine
    _require_runnable                          proof that the plan can be run for any data

Promise: whatever would fail for any data fails here, before anything is charged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from sqlglot import exp

from tacit.ledger.answer_storage import require_storable
from tacit.measuring.allocation import BudgetTerms
from tacit.privacy.errors import NotAllowed, NotSQL, TooLarge, TooWide
from tacit.privacy.numbers import DEFAULT_LEVEL
from tacit.privacy.tables import Limits, Schema
from tacit.query import postprocess, rewrite
from tacit.query.allocation import (
    QueryPrice,
    ReleaseItems,
    Target,
    allocate,
    group_counts,
    is_better_apart,
)
from tacit.query.contribution import Bounding, bound_contribution
from tacit.query.keys import Domain, public_domains
from tacit.query.learned_bounds import UNKNOWN, WIDEST, unbounded_values, with_ranges
from tacit.query.measures import AnswerSource, How, QueryMeasures, measure
from tacit.query.parse import Text, parse, refuse_deep_nesting
from tacit.query.plan import Plan, PlanSettings
from tacit.query.question import Question, read_question
from tacit.query.row_limits import require_bounded_work
from tacit.query.scalars.trees import depth
from tacit.query.whole_numbers import require_exact

GROUPS_MAX: Final = 1_000_000
CELLS_MAX: Final = 20_000_000
"""How many candidates all private choices of an answer have at most, over all groups."""

DEPTH_MAX: Final = 160
"""Maximum nesting depth of a statement: writing it takes up to five calls per level, and Python's limit is 1,000."""


@refuse_deep_nesting
def ask(sql: object, schema: Schema) -> Question:
    """Read SQL into a question, without touching data."""
    text = Text(sql)
    return read_question(parse(text), schema, text)


@refuse_deep_nesting
def plan_of(question: Question, schema: Schema, target: Target, terms: BudgetTerms, settings: PlanSettings) -> Plan:
    """Turn a question into a priced plan that can be run for any data."""
    _require_shallow(_trees(question))
    postprocess.require_evaluable(question)
    domains = public_domains(question, settings.keys or {})
    planner = _Planner(question, domains, _owner_limits(question, schema), target, terms, settings)
    plan = planner.grouping_sets() if question.sets else planner.groups()
    _require_runnable(plan)
    if plan.missing:
        _require_runnable(plan.ranged([WIDEST] * len(plan.missing)))
    return plan


@dataclass(frozen=True, slots=True)
class _Planner:
    """The passes from a question with its keys to a plan."""

    question: Question
    domains: tuple[Domain, ...] | None
    owner: Limits
    target: Target
    terms: BudgetTerms
    settings: PlanSettings

    def groups(self) -> Plan:
        """Measure the groups by all keys; totals of grouping sets, if there are any, are sums of them."""
        groups = self._group_count()
        missing = unbounded_values(self.question)
        question = with_ranges(self.question, {one.key: UNKNOWN for one in missing})
        measured = measure(question.aggregates)
        bounding = self._bounding(groups)
        self._require_answerable(measured, bounding, groups)
        items = ReleaseItems(
            measured.measures, measured.weights, measured.choices, self.domains is None, bounding, len(missing)
        )
        level = question.row_level(groups, DEFAULT_LEVEL) or DEFAULT_LEVEL
        return Plan(
            question=question,
            domains=self.domains,
            measures=measured.measures,
            choices=measured.choices,
            answers=measured.answers,
            bounding=bounding,
            price=self._price(items, measured.answers, level),
            statements=tuple(rewrite.statements(question, self.domains, measured, bounding)),
            learning=tuple(rewrite.learning_statements(self.question, self.domains, missing, bounding)),
            missing=missing,
            asked=self.question,
            is_ranged=not missing,
        )

    def grouping_sets(self) -> Plan:
        """Measure the finest groups and add them up, or each grouping set by itself: whichever has the lower error.

        Both are priced, and no data are touched. The error is the mean variance over all numbers that are shown,
        relative to each measure's. Where there are too many finest groups, or none is public, only one of the two is
        left.
        """
        together: Plan | None = None
        too_wide: TooWide | None = None
        try:
            together = self.groups()
        except TooWide as error:
            too_wide = error
        apart = self._sets_apart(together)
        if apart is None and together is None:
            raise too_wide  # type: ignore[misc]  # one of the two is there
        return apart or together  # type: ignore[return-value]

    def _sets_apart(self, together: Plan | None) -> Plan | None:
        """Measure each grouping set by itself; None if that is not possible, or `together` has the lower error."""
        question, domains = self.question, self.domains
        if domains is None or unbounded_values(question) or (together is not None and self.target.error is not None):
            return None
        cells = group_counts(domains, question.sets)
        if sum(cells) > GROUPS_MAX:
            return None
        measured = measure(question.aggregates)
        _require_sums(measured)
        bounding = self._bounding(max(cells))
        items = ReleaseItems(measured.measures, measured.weights, (), False, bounding, times=len(question.sets))
        price = self._price(items, measured.answers)
        if together is not None and not is_better_apart(price, together.price, domains, question.sets):
            return None
        return Plan(
            question=question,
            domains=domains,
            measures=measured.measures,
            choices=(),
            answers=measured.answers,
            bounding=bounding,
            price=price,
            statements=tuple(rewrite.set_statements(question, domains, measured.measures, bounding)),
            learning=(),
            missing=(),
            asked=question,
            sets_apart=True,
        )

    def _group_count(self) -> int | None:
        """Return how many groups the answer has, if that is public; raise TooWide if they are too many."""
        if self.domains is None:
            return None
        groups = math.prod(len(domain.values) for domain in self.domains)
        if groups > GROUPS_MAX:
            raise TooWide(
                f"the answer would have {groups:,} groups, and at most {GROUPS_MAX:,} are answered",
                accepted="group by fewer or coarser keys",
            )
        return groups

    def _bounding(self, groups: int | None) -> Bounding:
        limits, relation = self.settings.limits, self.terms.relation
        bounding = bound_contribution(self.question, groups, self.owner, limits, relation)
        return replace(bounding, merges_rest=True) if self.settings.other and self.domains is None else bounding

    def _require_answerable(self, measured: QueryMeasures, bounding: Bounding, groups: int | None) -> None:
        """Raise for combinations of keys, aggregates and grouping sets that have no answer."""
        if self.question.sets and self.domains is None:
            raise NotAllowed("ROLLUP, CUBE and GROUPING SETS need public keys", accepted="declare the keys' categories")
        if self.question.sets or bounding.merges_rest:
            _require_sums(measured)
        if (groups or 1) * sum(one.cells.count for one in measured.choices) > CELLS_MAX:
            raise TooWide(
                f"too many groups for quantiles and modes; the limit is {CELLS_MAX:,} candidates",
                accepted="use fewer groups",
            )
        if not (measured.measures or measured.choices or self.domains is None):
            raise NotAllowed(
                "the query returns public keys only and computes no aggregate",
                accepted="add an aggregate such as COUNT(*)",
            )

    def _price(self, items: ReleaseItems, answers: Sequence[AnswerSource], level: float = DEFAULT_LEVEL) -> QueryPrice:
        def width(price: QueryPrice) -> float:
            if items.learned:
                raise NotAllowed(
                    "error= needs declared bounds, and those of this query are learnt", accepted="use epsilon="
                )
            return _half_width(price, answers, level)

        return allocate(items, self.target, self.terms, width)


def _half_width(price: QueryPrice, answers: Sequence[AnswerSource], level: float) -> float:
    """Return the half-width of the interval of the first answer that is one measure."""
    for answer in answers:
        estimate = answer.estimate
        if estimate is not None and len(estimate.measures) == 1:
            step = estimate.grids[0].step if estimate.grids else Fraction(1)
            return price.half_width(estimate.measures[0], level) * float(step)
    raise NotAllowed(
        "error= needs a COUNT or SUM in the query: the width of other intervals depends on the data",
        accepted="use epsilon= instead",
    )


def _owner_limits(question: Question, schema: Schema) -> Limits:
    """Return the owner's limits: of several private tables, the least of each."""
    tables = [schema.table(name) for name in sorted(question.scope.tables)]
    private = [table.limits for table in tables if table.is_private]

    def least(name: str) -> int | None:
        stated = [value for limits in private if (value := getattr(limits, name)) is not None]
        return min(stated) if stated else None

    return Limits(groups_per_unit=least("groups_per_unit"), rows_per_group=least("rows_per_group"))


def _require_sums(measured: QueryMeasures) -> None:
    """Raise NotAllowed for what does not add up over groups."""
    if measured.choices or any(one.how in (How.UNITS, How.VALUES) for one in measured.measures):
        raise NotAllowed(
            "quantiles, modes and COUNT(DISTINCT ...) do not add up over groups",
            accepted="ask for them in a separate query",
        )


def _require_runnable(plan: Plan) -> None:
    """Raise unless the statements are exact and can be written, the noise can be drawn, and the answer be stored."""
    require_exact(plan.measures, plan.bounding)
    require_bounded_work(plan.work, plan.steps, plan.question.unit_rows)
    require_storable(plan.answer_bytes)
    _require_shallow([statement.tree for statement in (*plan.learning, *plan.statements)])
    try:
        for noise in (*plan.price.noises, *(one.noise for one in plan.price.bounds)):
            noise.interval(DEFAULT_LEVEL, np.zeros(1, dtype=np.int64))  # prepares the sampler
        _ = plan.price.selection and plan.price.selection.threshold
    except TooLarge as error:
        raise TooWide(
            f"the noise scale is too large to sample: {error.message}",
            accepted="ask for a greater epsilon, or count fewer rows and groups of each unit",
        ) from None


def _trees(question: Question) -> list[exp.Expr]:
    """Return the trees of a question that are written in SQL, in an engine or after the noise."""
    having = [question.having.tree] if question.having is not None else []
    shown = [*(one.value.tree for one in question.outputs), *having, *question.order]
    return [question.scope.tree, *shown, *(one.tree for one in question.after)]


def _require_shallow(trees: Sequence[exp.Expr]) -> None:
    """Raise NotSQL for trees so deep that writing them could exceed the limit on recursion, here or in a server."""
    if max(map(depth, trees), default=0) > DEPTH_MAX:
        raise NotSQL("the query is nested too deeply; name its parts with WITH, or simplify it")
