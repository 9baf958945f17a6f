"""Interfaces that answer counts: functions of subsets, and curators, clients and functions of SQL.

A target says how a count is asked and what may be spent; an opened interface asks, and knows what was refused. The
secrets that the caller hands over serve scoring alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tacit.attack.targets import Bits, DoesNotFit, Mask, Numbers
from tacit.privacy.errors import (
    BudgetExceeded,
    EmptyInput,
    InvalidInput,
    OutOfRange,
    QueryRefused,
    TacitError,
    WrongType,
)
from tacit.privacy.numbers import exact, not_negative, positive, whole

PEOPLE_MAX: Final = 100_000
ANSWER_MAX: Final = 1e100
"""The greatest answer that is taken for a count; squares of greater ones leave the range of doubles."""
PURPOSE: Final = "attack"
"""The purpose of every query to a curator or a client."""


@dataclass(frozen=True, slots=True)
class Question:
    """One count: of which people, and the SQL condition that selects them where the interface takes SQL."""

    people: Mask
    condition: str = ""
    is_written: bool = False
    """Whether the condition is written although it selects everybody."""


class QueryInterface:
    """An interface that answers how many people of a subset have a secret.

    Either `ask` is a function of a mask over the people that returns a number; or it is a curator, a client or a
    function of SQL, and `table`, `unit` (the column with the ids of people), `ids` and `secret` (a condition of SQL)
    say how a count is written. `truth` holds the secrets, for scoring. `epsilon` is what the attacker may spend in
    all; each question gets an even part, and at least `epsilon_min`, the least that the interface takes.

    The table may hold other people, too, whom no query counts, unless `whole_table` says that these are all.

    With `make` instead of `ask` the secrets are drawn by the attack, independent and uniform, and `make(secrets)`
    returns the interface over them: the lower bound then rests on no assumption about the data.
    """

    def __init__(
        self,
        ask: Any = None,
        *,
        people: int | None = None,
        truth: Bits | None = None,
        make: Callable[[Mask], Any] | None = None,
        table: str | None = None,
        unit: str | None = None,
        ids: Sequence[Any] | None = None,
        secret: str | None = None,
        epsilon: float | None = None,
        epsilon_min: float = 0.0,
        analyst: str | None = None,
        whole_table: bool | None = None,
    ) -> None:
        if (ask is None) == (make is None):
            raise InvalidInput("state either ask, an interface, or make, a function that makes one", name="ask")
        if not (callable(ask) or hasattr(ask, "sql") or callable(make)):
            raise WrongType("an interface must be a function, a curator or a client", name="ask")
        self.source, self.make = ask, make
        self.table, self.unit, self.secret, self.analyst = table, unit, secret, analyst
        self.ids = None if ids is None else _different(ids)
        self.whole_table = make is not None if whole_table is None else bool(whole_table)
        self.epsilon = None if epsilon is None else float(positive("epsilon", epsilon))
        self.epsilon_min = float(not_negative("epsilon_min", epsilon_min))
        self.truth = None if truth is None else np.asarray([bool(one) for one in truth])
        self.progress: Callable[[int, int], None] | None = None
        """Called after each query of an attack that asks several, with their number so far and in all."""
        counted = [len(one) for one in (self.truth, self.ids) if one is not None]
        counted += [] if people is None else [whole("people", people, at_least=1)]
        if not counted:
            raise EmptyInput("state how many people there are: people, ids or truth", name="people")
        if len(set(counted)) > 1:
            raise InvalidInput("people, ids and truth must be as many", name="people")
        if counted[0] > PEOPLE_MAX:
            raise OutOfRange(f"at most {PEOPLE_MAX:,} people are attacked at once", name="people", value=counted[0])
        self.people = counted[0]
        self.is_sql = table is not None
        if self.is_sql and (unit is None or secret is None):
            raise InvalidInput("an interface that takes SQL needs table, unit and secret", name="table")
        if self.is_sql and self.ids is None:
            self.ids = list(range(self.people))

    def divided(self, attacks: int) -> QueryInterface:
        """Return the interface with an even part of its epsilon, if all attacks ask the same one."""
        if self.epsilon is None or self.make is not None:
            return self
        part = copy(self)
        part.epsilon = self.epsilon / attacks
        return part

    def open(self, random: np.random.Generator, questions: int, least: int = 1) -> Interface:
        """Return the interface, for a number of queries among which the attacker's epsilon is divided.

        Raises DoesNotFit, before anything is asked, if epsilon does not suffice for the `least` number of queries.
        """
        if self.epsilon is not None and self.epsilon_min and self.epsilon / self.epsilon_min < min(least, questions):
            raise DoesNotFit(
                f"the attack needs at least {min(least, questions):,} queries, and epsilon suffices for "
                f"{int(self.epsilon / self.epsilon_min):,}",
                name="epsilon",
            )
        if self.make is not None:
            truth = random.integers(0, 2, self.people).astype(bool)
            made = self.make(truth)
            if not (callable(made) or hasattr(made, "sql")):
                raise WrongType(f"make must return an interface, not {type(made).__name__}", name="make")
            return Interface(self, made, truth, questions, is_drawn=True)
        if self.truth is None:
            raise InvalidInput("the attack needs truth, the secrets, to score its guesses", name="truth")
        return Interface(self, self.source, self.truth, questions, is_drawn=False)

    def sql_of(self, question: Question) -> str:
        """Return a count as SQL."""
        where = f"({self.secret})"
        if question.is_written or not question.people.all():
            where += f" AND ({question.condition or self._listed(question.people)})"
        if not self.whole_table:
            where += f" AND ({self._listed(np.ones(self.people, dtype=bool), is_short=True)})"
        return f"SELECT COUNT(DISTINCT {self.unit}) AS n FROM {self.table} WHERE {where}"

    @staticmethod
    def literal(value: Any) -> str:
        """Return an id as SQL."""
        if isinstance(value, bool | int | float | np.number):
            return repr(value.item() if isinstance(value, np.generic) else value)
        return "'" + str(value).replace("'", "''") + "'"

    def _listed(self, people: Mask, *, is_short: bool | None = None) -> str:
        """Return the condition that selects people, by their ids or by those of the others if these are fewer."""
        assert self.ids is not None
        is_short = bool(people.sum() <= len(people) / 2) if is_short is None else is_short
        listed = [self.literal(one) for one, inside in zip(self.ids, people, strict=True) if inside == is_short]
        if not listed:
            return "FALSE"
        return f"{self.unit} {'IN' if is_short else 'NOT IN'} ({', '.join(listed)})"


class Interface:
    """An opened query interface: the secrets behind it, and what was asked of it."""

    def __init__(self, target: QueryInterface, source: Any, truth: Mask, questions: int, *, is_drawn: bool) -> None:
        self.target, self.source, self.truth, self.is_drawn = target, source, truth, is_drawn
        self.asked = 0
        self._attempts = 0
        self.refused: TacitError | None = None
        """The last refusal of a question."""
        self.ends_at_refusal = True
        """Whether nothing is asked after a question that was refused."""
        self.is_exhausted = False
        """Whether no further question can be asked, whatever it is."""
        self.epsilon_each, self._affordable = None, math.inf
        self._planned = questions
        if target.epsilon is not None:
            self.epsilon_each = max(target.epsilon / questions, target.epsilon_min)
            self._affordable = max(questions, 1)
            if self.epsilon_each > target.epsilon / questions:
                self._affordable = int(target.epsilon / self.epsilon_each)
            self._planned = min(questions, self._affordable)

    @property
    def refusal(self) -> str:
        """What the interface said when it refused a question; nothing if it refused none."""
        return "" if self.refused is None else self.refused.message

    def count(self, question: Question) -> float | None:
        """Return the answer of a count; None if it is refused for privacy, or one was before."""
        if self._attempts >= self._affordable:
            self.refused = self.refused or BudgetExceeded("the epsilon of the attack is spent")
            self.is_exhausted = True
        if self.is_exhausted or (self.ends_at_refusal and self.refused is not None):
            return None
        self._attempts += 1  # one that fails may have been charged
        try:
            found = self._ask(question)
        except (BudgetExceeded, QueryRefused) as refusal:
            self.refused, self.is_exhausted = refusal, isinstance(refusal, BudgetExceeded)
            return None
        self.asked += 1
        if self.target.progress is not None and self._planned > 1:
            self.target.progress(self.asked, self._planned)
        try:
            answer = float(exact("answer", found))
        except InvalidInput:
            answer = math.nan
        if not abs(answer) <= ANSWER_MAX:
            raise DoesNotFit(f"the interface must answer with finite numbers of at most {ANSWER_MAX:g}", name="target")
        return answer

    def counts(self, questions: Iterable[Question]) -> Numbers:
        """Return the answers of counts, up to the first that is refused."""
        answers: list[float] = []
        for question in questions:
            answer = self.count(question)
            if answer is None:
                break
            answers.append(answer)
        return np.array(answers, dtype=np.float64)

    def _ask(self, question: Question) -> Any:
        if not self.target.is_sql:
            return self.source(question.people)
        sql = self.target.sql_of(question)
        if not hasattr(self.source, "sql"):
            return self.source(sql)
        options = {} if self.target.analyst is None else {"analyst": self.target.analyst}
        # by default the ledger records the query, which names people
        released = self.source.sql(sql, self.epsilon_each, purpose=PURPOSE, **options)
        return released.rows[0]["n"]


def _different(ids: Sequence[Any]) -> list[Any]:
    """Return ids of people, or raise InvalidInput unless each of them names somebody else."""
    found = [one.item() if isinstance(one, np.generic) else one for one in ids]
    if any(one is None or one != one for one in found):
        raise InvalidInput("ids must not be missing", name="ids")
    if len({one if isinstance(one, int | float) else str(one) for one in found}) < len(found):
        raise InvalidInput("ids must be unique: one for each person", name="ids")
    return found
