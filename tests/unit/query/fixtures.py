"""The text form of cases for the query engine: SQL, what may be said beside it, and what becomes of it.

    -- schema clinic                             the first block of a file: what holds for all of its cases
    -- epsilon 1

    -- the title of a case
    -- limits groups_per_unit=2                  what holds for this case alone
    -- unlike the database: ...                  why the answer differs from that of the database, noise aside
    SELECT ...
    >> bounds  ...                               what is expected, in the words of a preview

Cases are apart by an empty line. In a case about equal questions, several queries follow one another, each after a line
== (releases the same as the first one) or <> (does not).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from sqlglot import exp

from tacit.privacy.errors import TacitError
from tacit.privacy.tables import Limits, Schema
from tacit.privacy.units import Relation
from tacit.query import BudgetTerms, Plan, PlanSettings, Target
from tacit.query.explain import explain
from tacit.query.outer_select import OuterSelect
from tacit.query.question import Question
from tests.support.plans import plan_sql

FOLDER: Final = Path(__file__).parents[2] / "fixtures" / "query"
MARK: Final = ">> "
DIFFERS: Final = "-- unlike the database: "
_SETTING: Final = re.compile(r"-- (schema|epsilon|rho|error|delta|limits|keys|relation)\b ?(.*)")
_BETWEEN: Final = re.compile(r"^(==|<>)$", re.MULTILINE)


@dataclass(frozen=True)
class Setup:
    """What stands beside a question: which tables, at what price, with which limits and keys."""

    schema: str = ""
    target: Target = field(default_factory=lambda: Target(epsilon=1.0))
    terms: BudgetTerms = field(default_factory=BudgetTerms)
    limits: Limits = field(default_factory=Limits)
    keys: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def having(self, name: str, text: str) -> Setup:
        """Return the same with one setting changed, as it is written."""
        if name == "schema":
            return replace(self, schema=text)
        if name in ("epsilon", "rho", "error"):
            return replace(self, target=Target(**{name: float(text)}))
        if name == "delta":
            return replace(self, terms=replace(self.terms, delta=float(text)))
        if name == "relation":
            return replace(self, terms=replace(self.terms, relation=Relation(text)))
        if name == "limits":
            pairs = (pair.split("=") for pair in text.split())
            return replace(self, limits=Limits(**{one: int(number) for one, number in pairs}))
        column, _, listed = text.partition("=")
        values = tuple(_value(one.strip()) for one in listed.split(","))
        return replace(self, keys=(*self.keys, (column.strip(), values)))

    def almost_without_noise(self) -> Setup:
        """Return the same with a cost and limits that leave everybody's rows as they are, almost without noise."""
        delta = self.terms.delta and 1e-3
        return replace(
            self, target=Target(epsilon=1e10), terms=replace(self.terms, delta=delta), limits=Limits(None, 64, 64)
        )

    def plan(self, sql: str, schema: Schema) -> Plan:
        """Plan a question."""
        settings = PlanSettings(self.limits, dict(self.keys) or None)
        return plan_sql(sql, schema, self.target, self.terms, settings)


@dataclass(frozen=True)
class Case:
    """One case: where it stands, its lines above the SQL, the SQL, and the lines that are expected."""

    file: Path
    head: tuple[str, ...]
    sql: str
    expected: tuple[str, ...]
    setup: Setup

    @property
    def title(self) -> str:
        """What the case shows."""
        return self.head[0].removeprefix("-- ")

    @property
    def name(self) -> str:
        """The name of the test."""
        return f"{self.file.stem}: {self.title}"

    @property
    def differs(self) -> bool:
        """Whether the case says that its answer is another one than that of the database, and why."""
        return any(line.startswith(DIFFERS) for line in self.head)

    @property
    def queries(self) -> list[tuple[str, str]]:
        """The queries of a case about equal questions, each after its sign; the first one has none."""
        signs = ["", *_BETWEEN.findall(self.sql)]
        return list(zip(signs, (one.strip("\n") for one in _BETWEEN.split(self.sql)[::2]), strict=True))

    def text(self, expected: list[str]) -> str:
        """Return the case as it stands in its file."""
        return "\n".join([*self.head, self.sql, *expected])


def cases(path: Path) -> tuple[str, list[Case]]:
    """Return the first block of a file, and its cases."""
    blocks = re.split(r"\n\s*\n", path.read_text(encoding="utf-8").strip("\n"))
    setup = _settled(Setup(), blocks[0].splitlines())
    return blocks[0], [_case(path, block.splitlines(), setup) for block in blocks[1:]]


def write(path: Path, first: str, blocks: list[str]) -> None:
    """Write a file again."""
    path.write_text("\n\n".join([first, *blocks]) + "\n", encoding="utf-8")


def outcome(case: Case, schema: Schema) -> tuple[list[str], Plan | None]:
    """Return what becomes of a case, as lines, and its plan if it has one."""
    try:
        plan = case.setup.plan(case.sql, schema)
    except TacitError as error:
        return [f"{MARK}refused {error.code} {error}"], None
    usual = plan.bounding.relation is Relation.ADD_REMOVE and len(plan.datasets) == 1
    lines = [f"{MARK}{line}" for line in explain(plan) if line.label != "units" or not usual]
    if not plan.question.shows_all:
        lines.append(f"{MARK}answer  {_answer(plan.question)}")
    lines += [f"{MARK}after   {_after(one, earlier)}" for one, earlier in _steps(plan.question)]
    return lines, plan


def _answer(question: Question) -> str:
    """Return what is done with the noisy columns, as SQL."""
    shown = [exp.alias_(one.value.tree.copy(), one.name, quoted=True) for one in question.outputs]
    tree = exp.select(*shown).from_("noisy")
    tree = tree.distinct() if question.distinct else tree
    tree = tree.where(question.having.tree.copy()) if question.having is not None else tree
    tree = tree.order_by(*(one.copy() for one in question.order)) if question.order else tree
    tree = tree.limit(question.limit) if question.limit is not None else tree
    return (tree.offset(question.offset) if question.offset else tree).sql(dialect="duckdb")


def _steps(question: Question) -> list[tuple[OuterSelect, list[str]]]:
    """Return the SELECTs over the answer, each with the names of the columns that it reads."""
    names = [
        [output.name for output in question.outputs],
        *([one.name for one in step.fields] for step in question.after),
    ]
    return list(zip(question.after, names[:-1], strict=True))


def _after(step: OuterSelect, names: list[str]) -> str:
    """Return a SELECT over the answer, with the names of the answer instead of o0, o1, ..."""
    tree = step.tree.copy().from_("answer")
    for column in list(tree.find_all(exp.Column)):
        column.replace(exp.column(names[int(column.name[1:])], quoted=True))
    for item, one in zip(tree.expressions, step.fields, strict=True):
        item.set("alias", exp.to_identifier(one.name, quoted=True))
    return tree.sql(dialect="duckdb")


def _case(path: Path, lines: list[str], setup: Setup) -> Case:
    heads = 0
    while heads < len(lines) and lines[heads].startswith("--"):
        heads += 1
    expected = tuple(line for line in lines[heads:] if line.startswith(MARK))
    sql = "\n".join(line for line in lines[heads:] if not line.startswith(MARK))
    return Case(path, tuple(lines[:heads]), sql, expected, _settled(setup, lines[1:heads]))


def _settled(setup: Setup, lines: list[str]) -> Setup:
    for line in lines:
        if (found := _SETTING.fullmatch(line)) is not None:
            setup = setup.having(found[1], found[2])
    return setup


def _value(text: str) -> Any:
    if text == "NULL":
        return None
    return int(text) if re.fullmatch(r"-?\d+", text) else text
