"""The 22 queries, one file each: the SQL, its limits and keys, and the expected outcome.

A file begins with lines such as

    -- Q3: shipping priority
    -- customer: changed: orders are of one customer each, so ...
    -- supplier: refused: T202 the query reads public tables only; ...
    -- limits of a customer: 2 groups, 7 rows
    -- keys: o_orderdate: 1994-11-14 to 1995-03-14

and the statement. Where that is not the text of the specification (with its validation parameters), the text follows
after a semicolon, with lines of its own that say what tacit says to it. A line that begins with three spaces goes on.

| verdict | meaning |
| --- | --- |
| as written | answered, word for word |
| changed | answered after a change, which is stated |
| empty | accepted, but its groups are not public and nearly all of one unit each, so that none is shown |
| refused | refused, with the sentence of tacit itself |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from tacit import TacitError
from tacit.privacy import Limits, Schema
from tacit.privacy.bounds import Category
from tacit.query import BudgetTerms, Plan, PlanSettings, Target, ask, plan_of

FOLDER: Final = Path(__file__).parent / "queries"
ANSWERED: Final = ("as written", "changed")
VERDICTS: Final = (*ANSWERED, "empty", "refused")
DELTA: Final = 1e-6
"""The delta of a query whose keys are not public."""

PublicKeys = Callable[[str], Sequence[Category]]
"""A function from a SELECT of public tables to the keys of a query."""

_PLACE: Final = re.compile(r"^at \d+:\d+: ")
_LIMITS: Final = re.compile(r"(\d+) groups?, (\d+) rows?")
_SPAN: Final = re.compile(r"(\S+) to (\S+)")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a statement, with the reason."""

    kind: str
    reason: str = ""

    @property
    def is_answered(self) -> bool:
        """Whether there is an answer to measure."""
        return self.kind in ANSWERED


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with its outcome by unit."""

    sql: str
    verdicts: Mapping[str, Verdict]


@dataclass(frozen=True, slots=True)
class Query:
    """One of the 22 queries: the SQL, and the text of the specification, which is often the same."""

    number: int
    title: str
    asked: Statement
    written: Statement
    limits: Mapping[str, Limits]
    keys: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of the query in results."""
        return f"q{self.number:02d}"

    def settings(self, unit: str, public: PublicKeys) -> PlanSettings:
        """Return the limits and keys of the query."""
        keys = {name: listed(text, public) for name, text in self.keys.items()}
        return PlanSettings(self.limits.get(unit, Limits()), keys or None)


def queries() -> list[Query]:
    """Return all queries."""
    return [read(path) for path in sorted(FOLDER.glob("q*.sql"))]


def read(path: Path) -> Query:
    """Return the query of one file."""
    parts = [part for part in path.read_text(encoding="utf-8").split(";\n") if part.strip()]
    facts, statements = _parted(parts[0])
    asked = Statement(statements, _verdicts(facts))
    written = asked
    if len(parts) > 1:
        others, text = _parted(parts[1])
        written = Statement(text, _verdicts(others))
    limits = {
        unit: Limits(groups_per_unit=int(found[1]), rows_per_group=int(found[2]))
        for unit in asked.verdicts
        if (found := _LIMITS.fullmatch(facts.get(f"limits of a {unit}", ""))) is not None
    }
    keys = dict(one.split(": ", 1) for one in facts.get("keys", "").split("; ") if one)
    number = int(path.stem.removeprefix("q"))
    return Query(number, facts[f"Q{number}"], asked, written, limits, keys)


def listed(text: str, public: PublicKeys) -> list[Category]:
    """Return the keys that a line names: a SELECT about public tables, a span of numbers or days, or values."""
    if text.startswith("SELECT "):
        return list(public(text))
    if (span := _SPAN.fullmatch(text)) is not None:
        if "-" not in text:
            return list(range(int(span[1]), int(span[2]) + 1))
        first, last = date.fromisoformat(span[1]), date.fromisoformat(span[2])
        return [first + timedelta(days=day) for day in range((last - first).days + 1)]
    values = text.split(", ")
    return [int(one) for one in values] if all(map(str.isdigit, values)) else [one.strip("'") for one in values]


def planned(
    sql: str, schema: Schema, settings: PlanSettings, epsilon: float = 1.0, terms: BudgetTerms | None = None
) -> Plan | str:
    """Return the plan of a statement, or its refusal without the position in the text."""
    try:
        return plan_of(ask(sql, schema), schema, Target(epsilon=epsilon), terms or BudgetTerms(delta=DELTA), settings)
    except TacitError as error:
        return f"{error.code} {_PLACE.sub('', str(error))}"


def judged(statement: Statement, schema: Schema, settings: PlanSettings) -> Verdict:
    """Return the current outcome of a statement: refused with the message, empty, or answered."""
    plan = planned(statement.sql, schema, settings)
    if isinstance(plan, str):
        return Verdict("refused", plan)
    return Verdict("empty" if plan.domains is None else "as written")


def _parted(text: str) -> tuple[dict[str, str], str]:
    """Split a text into the facts of its comment lines and the statement."""
    lines, facts, last = text.strip("\n").splitlines(), dict[str, str](), ""
    while lines and lines[0].startswith("--"):
        line = lines.pop(0).removeprefix("-- ")
        if line.startswith("   "):
            facts[last] += f" {line.strip()}"
        else:
            last, _, rest = line.partition(": ")
            facts[last] = rest
    return facts, "\n".join(lines).strip()


def _verdicts(facts: Mapping[str, str]) -> dict[str, Verdict]:
    found = {}
    for unit in ("customer", "supplier"):
        kind, _, reason = facts[unit].partition(": ")
        found[unit] = Verdict(kind, reason)
    return found
