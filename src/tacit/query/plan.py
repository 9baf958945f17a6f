"""A priced plan: everything that is decided about a question before any data is touched.

A plan is public: what a preview shows is read off it. The passes that make it are in `planner`.

The size of an answer in JSON, from public facts: groups, keys, measures and choices.

The limit itself is in `ledger.answer_storage`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Final

from tacit.ledger.answer_storage import INTEGER_BYTES, json_bytes
from tacit.privacy.arguments import instance, mapping
from tacit.privacy.bounds import Category
from tacit.privacy.errors import InvalidInput
from tacit.privacy.events import Event
from tacit.privacy.numbers import truth_value
from tacit.privacy.tables import Limits
from tacit.query import rewrite
from tacit.query.allocation import QueryPrice, group_counts
from tacit.query.contribution import Bounding
from tacit.query.expressions import Range
from tacit.query.keys import Domain
from tacit.query.learned_bounds import UNKNOWN, UnboundedValue, with_ranges
from tacit.query.measures import AnswerSource, Measure, measure
from tacit.query.parse import refuse_deep_nesting
from tacit.query.private_choices import PrivateChoice
from tacit.query.question import Question
from tacit.query.rewrite import Statement
from tacit.query.row_limits import HELD_STEPS
from tacit.query.scalars import trees

CELL_BYTES: Final = 64
"""The longest number, date or time that a choice among cells shows."""
_NULL_BYTES: Final = len("null,")


def json_value(value: Any) -> Any:
    """Return a key or a chosen value as JSON; dates and times become objects."""
    if isinstance(value, datetime):
        return {"time": value.isoformat()}
    return {"date": value.isoformat()} if isinstance(value, date) else value


def answer_bytes(domains: Sequence[Domain], sets: Sequence[Sequence[int]], group: int) -> int:
    """Return the size of an answer with public keys; `sets` says which keys each measured grouping keeps.

    `group` is how many bytes a group takes beside its keys (`group_bytes`).
    """
    listed = [json_bytes([json_value(value) for value in domain.values]) for domain in domains]
    total = 0
    for kept in sets:
        groups = math.prod(len(domains[index].values) for index in kept)
        keys = sum(groups // len(domains[index].values) * listed[index] for index in kept)
        total += keys + groups * (group + _NULL_BYTES * (len(domains) - len(kept)))
    return total


def group_bytes(measures: int, choices: Sequence[PrivateChoice]) -> int:
    """Return how many bytes the numbers and choices of one group take at most."""
    return measures * INTEGER_BYTES + sum(_choice_bytes(one) for one in choices)


def key_bytes(key: Sequence[Any]) -> int:
    """Return how many bytes one value of each key takes."""
    return json_bytes([json_value(value) for value in key])


def _choice_bytes(choice: PrivateChoice) -> int:
    return max((key_bytes([value]) for value in choice.cells.values), default=CELL_BYTES)


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What the caller states beside the question.

    Limits on contributions, public values of keys by column, and whether groups that are not shown are added up in one
    more row.
    """

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
                "rows_per_unit is set when a table is registered; for a query use groups_per_unit and rows_per_group",
                name="limits",
            )


@dataclass(frozen=True, slots=True)
class Plan:
    """A question with its bounds, its noise and the statements to run."""

    question: Question
    domains: tuple[Domain, ...] | None
    """Every value of every key, if all are public; otherwise groups are selected."""
    measures: tuple[Measure, ...]
    choices: tuple[PrivateChoice, ...]
    answers: tuple[AnswerSource, ...]
    bounding: Bounding
    price: QueryPrice
    statements: tuple[Statement, ...]
    learning: tuple[Statement, ...]
    """The statements that run first, to learn the bounds of the values in `missing`."""
    missing: tuple[UnboundedValue, ...]
    asked: Question
    """The question before missing bounds were replaced."""
    sets_apart: bool = False
    """Whether each grouping set is measured by itself; otherwise the finest groups are, and totals are their sums."""
    is_ranged: bool = True
    """Whether all bounds are known; otherwise `ranged` replaces the stand-ins -1 and 1 by those that are learnt."""
    _canonical: list[str] = field(init=False, default_factory=list, compare=False, repr=False)
    """The digest, once it was computed; a changed copy of a plan begins without it."""

    @property
    def waiting(self) -> frozenset[int]:
        """The indices of the measures whose noise depends on bounds that are to be learnt."""
        if self.is_ranged:
            return frozenset()
        twice = Range(2 * UNKNOWN.lower, 2 * UNKNOWN.upper)
        wider = measure(with_ranges(self.asked, {one.key: twice for one in self.missing}).aggregates)
        pairs = zip(self.measures, wider.measures, strict=True)
        reaches = [(one.contribution(1) * one.step, other.contribution(1) * other.step) for one, other in pairs]
        return frozenset(index for index, (one, other) in enumerate(reaches) if one != other)

    def ranged(self, ranges: Sequence[Range]) -> Plan:
        """Return the plan with the learnt ranges: the same event, noise and statements to fit them."""
        named = {one.key: range_ for one, range_ in zip(self.missing, ranges, strict=True)}
        question = with_ranges(self.asked, named)
        measured = measure(question.aggregates)
        return replace(
            self,
            question=question,
            measures=measured.measures,
            choices=measured.choices,
            answers=measured.answers,
            price=self.price.rescale(measured, self.bounding),
            statements=tuple(rewrite.statements(question, self.domains, measured, self.bounding)),
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
            return sum(group_counts(self.domains, self.question.sets))
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
        if not self._canonical:  # statements are slow to write
            self._canonical.append(self._compute_digest())
        return self._canonical[0]

    @refuse_deep_nesting
    def _compute_digest(self) -> str:
        written: dict[str, Any] = {
            "statements": [
                [one.sql(), one.measures, one.choice, one.kept] for one in (*self.learning, *self.statements)
            ],
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
