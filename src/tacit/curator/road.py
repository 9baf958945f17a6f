"""The one road of a release: plan, price, reserve, run, noise, commit.

Promise: nothing that depends on data happens before the ledger has charged the plan's event (`pipeline`); what a
preview says is what is charged; a question whose answer was released before on the same version of the data is
answered with it, at no cost. Versions move by the owner's refreshes alone, so neither previews nor questions look at
rows for that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from shlex import quote
from typing import Final

from tacit.accounting.bounds import Cost
from tacit.curator.engine_registry import Bound, EngineRegistry
from tacit.curator.pipeline import NOTHING, Charge, release
from tacit.curator.plans import Made, Plans, key_of
from tacit.curator.statements import linked
from tacit.engines.protocol import Progress
from tacit.ledger import Ledger, Scope
from tacit.ledger.accounts import Sum
from tacit.ledger.answer_size import NAMES_BYTES
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.privacy import texts
from tacit.privacy.arguments import require_progress
from tacit.privacy.errors import NotAllowed
from tacit.privacy.numbers import time_limit
from tacit.privacy.tables import Schema, Table
from tacit.query import Noisy, Plan, Preview, Question, Release, Settings, Target, Tariff, ask, plan_of, run
from tacit.query.parse import Text, named_tables

PURPOSE_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as somebody asks it: who, what for, at what price, with which limits."""

    sql: str
    target: Target
    settings: Settings
    analyst: str | None = None
    purpose: str = ""
    key: str | None = None
    """The same key with the same question on the same data is charged once, however often it is asked."""

    def __post_init__(self) -> None:
        Text(self.sql)
        texts.note("purpose", self.purpose)


@dataclass(frozen=True, slots=True)
class Road:
    """What a release passes through; `schema` is what its plans are made for and run against."""

    schema: Schema
    ledger: Ledger
    engines: EngineRegistry
    salt: int
    plans: Plans = field(default_factory=Plans)
    among: Schema | None = None
    """The tables that whoever asks may ask about, if not all; for her there are no others."""

    def plan(self, asked: Asked) -> Plan:
        """Return the priced plan of a question, without touching data."""
        key = key_of(asked.sql, asked.target, asked.settings)
        made = self.plans.known(key, self.schema)
        if made is not None and not self._sees(made.plan.question):
            made = None  # it was made for somebody else: the refusal is that of a table that does not exist
        if made is None:
            for name in named_tables(asked.sql) if self.among is not None else ():
                self._resolved_among.table(name)
        question = made.plan.question if made is not None else ask(asked.sql, self._resolved_among)
        tariff = self._tariff(question)
        if made is not None and made.tariff == tariff:
            return made.plan
        plan = plan_of(question, self.schema, asked.target, tariff, asked.settings)
        return self.plans.keep(key, Made(self.schema, tariff, plan))

    def preview(self, asked: Asked, plan: Plan | None = None) -> Preview:
        """Return exactly what asking would be charged now; looks at no row."""
        plan = plan or self.plan(asked)
        bound = self.bound(plan)
        known = self.ledger.released(plan.canonical, bound.data_version) is not None
        cost = self._cost(plan, asked)
        return Preview.of(plan, NOTHING if known else cost, bound.engine.write, is_released=known)

    def bound(self, plan: Plan) -> Bound:
        """Return the tables of a plan in their engine, as the plan was made for them."""
        return self.engines.bind(self.schema.table(name) for name in plan.tables)

    def kept(self, asked: Asked, plan: Plan) -> bytes | None:
        """Return what was released before for a planned question, to be shown at no cost; nothing is run."""
        self._cost(plan, asked)
        return self.ledger.released(plan.canonical, self.bound(plan).data_version)

    def shown(self, plan: Plan, kept: bytes) -> Release:
        """Return an answer from what was released before."""
        return Release(plan, Noisy.from_bytes(kept), NOTHING, ())

    def release(
        self,
        asked: Asked,
        plan: Plan | None = None,
        *,
        timeout_s: float | None = None,
        progress: Progress | None = None,
        source: Source = SYSTEM,
    ) -> Release:
        """Answer a question, or raise and charge nothing; `plan` is its plan if it was made before.

        `source` is for simulations.
        """
        limit_s = time_limit(timeout_s)
        require_progress(progress)
        plan = plan or self.plan(asked)
        bound, cost = self.bound(plan), self._cost(plan, asked)
        for statement in (*plan.learning, *plan.statements):  # what the engine cannot say is refused at no charge
            statement.sql(bound.engine.write)

        fresh: dict[bytes, Noisy] = {}  # spares reading it again, unless another answer was kept before

        def work() -> bytes:
            noisy = run(plan, bound.engine, self.salt, timeout_s=limit_s, progress=progress, source=source)
            written = noisy.to_bytes()
            fresh[written] = noisy
            return written

        purpose = asked.purpose or _on_one_line(asked.sql)[:PURPOSE_MAX]
        charge = Charge(
            *(self._dataset(plan.question), plan.event, plan.canonical, asked.analyst, purpose, asked.key),
            answer_bytes=plan.answer_bytes + NAMES_BYTES,
        )
        answer, permit = release(self.ledger, self.engines, bound, charge, work, is_simulated=source.simulated)
        if permit is None:
            return self.shown(plan, answer)
        return Release(plan, fresh.get(answer) or Noisy.from_bytes(answer), cost, (permit,))

    def _sees(self, question: Question) -> bool:
        """Return whether whoever asks may ask about all tables of a question."""
        return self.among is None or all(name.lower() in self.among.tables for name in question.tables)

    @property
    def _resolved_among(self) -> Schema:
        """The schema that a question is resolved in: names find only the tables that whoever asks may ask about."""
        return self.schema if self.among is None else _Named(self.schema, self.among)

    def _dataset(self, question: Question) -> str:
        """Return the data set that a question is about; tables of several are not asked about together.

        A unit is removed from all tables of a data set at once, and the noise is for that. If it could leave one of
        two joined tables alone, an outer join, NOT IN or UNION ALL would move its rows from one group to another.
        """
        first, *others = sorted(question.datasets)
        if others:
            private = sorted(name for name in question.tables if self.schema.table(name).is_private)
            shown = " and ".join(f"{name} (data set {self.schema.table(name).dataset})" for name in private)
            raise NotAllowed(
                f"a question is about the tables of one data set, and here are {shown}",
                accepted=f"put them into one: {' && '.join(self._moves(private, first))}",
            )
        return first

    def _moves(self, private: Iterable[str], dataset: str) -> list[str]:
        """Return the commands that move tables into a data set; each moves all that are linked to the named one."""
        commands: dict[str, str] = {}
        for name in private:
            table = self.schema.table(name)
            if table.dataset != dataset:
                family = linked(table, self.schema.tables)[0].name
                commands.setdefault(family, f"tacit table edit {quote(table.name)} --dataset {quote(dataset)}")
        return list(commands.values())

    def _tariff(self, question: Question) -> Tariff:
        """Return what the budget of a question allows."""
        cap = self.ledger.row_of(Scope(self._dataset(question))).cap
        return Tariff(cap.relation, Sum.of(cap).slice)

    def _cost(self, plan: Plan, asked: Asked) -> Cost:
        """Return what the ledger would charge; who may not ask is refused."""
        return self.ledger.preview(self._dataset(plan.question), plan.event, analyst=asked.analyst)


class _Named(Schema):
    """All tables of a schema, of which only some are found by their names.

    The others still say which columns identify rows, so that plans are the same for everybody.
    """

    def __init__(self, schema: Schema, among: Schema) -> None:
        super().__init__(schema.tables.values())
        self._among = among

    def table(self, name: str) -> Table:
        """Return a table that may be asked about."""
        return self._among.table(name)


def _on_one_line(sql: str) -> str:
    """Return a question as the ledger notes it: lines and whatever else does not print become spaces."""
    return " ".join("".join(one if one.isprintable() else " " for one in sql).split())
