"""The one road of a release: plan, price, reserve, run, noise, commit.

Promise: nothing that depends on data happens before the ledger has charged the plan's event; what a preview says is
what is charged; a question whose answer was released before on the same data is answered with it, at no cost. An answer
is kept for that only if the data had the same version before and after the run, so answers about different rows do not
mix. If the engine fails after the charge, the charge stands, and the ledger says why. An idempotency key is bound to
the plan and the version of the data before the data are touched, and its permit lets one answer leave.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tacit.accounting.bounds import Cost
from tacit.curator.plans import Made, Plans, key_of
from tacit.engines.protocol import Engine, Progress
from tacit.ledger import Ledger, Permit, Scope
from tacit.ledger.accounts import Sum
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.privacy.errors import AlreadySettled, MixedRelations, TacitError
from tacit.privacy.tables import Schema
from tacit.query import Noisy, Plan, Preview, Question, Release, Settings, Target, Tariff, ask, plan_of, run
from tacit.query.parse import named_tables

PURPOSE_MAX: Final = 500
NOTHING: Final = Cost(0.0, 0.0, 0.0)


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


@dataclass(frozen=True, slots=True)
class Road:
    """What a release passes through; `ready` opens the engine and shows the named tables in it."""

    schema: Schema
    ledger: Ledger
    ready: Callable[[tuple[str, ...]], Engine]
    salt: int
    plans: Plans = field(default_factory=Plans)
    among: Schema | None = None
    """The tables that whoever asks may ask about, if not all; for her there are no others."""

    def plan(self, asked: Asked) -> Plan:
        """Return the priced plan of a question, without touching data."""
        key = key_of(asked.sql, asked.target, asked.settings)
        made = self.plans.known(key, self.schema)
        if made is None and self.among is not None:  # names of other tables are not to be found out by an error
            for name in named_tables(asked.sql):
                self.among.table(name)
        question = made.plan.question if made is not None else ask(asked.sql, self.schema)
        if self.among is not None:
            for name in question.tables:
                self.among.table(name)
        tariff = self._tariff(question)
        if made is not None and made.tariff == tariff:
            return made.plan
        plan = plan_of(question, self.schema, asked.target, tariff, asked.settings)
        return self.plans.keep(key, Made(self.schema, tariff, plan))

    def preview(self, asked: Asked, plan: Plan | None = None) -> Preview:
        """Return exactly what asking would be charged now."""
        plan = plan or self.plan(asked)
        engine = self.ready(plan.tables)
        known = self.ledger.released(plan.canonical, _version(engine, plan)) is not None
        cost = self._cost(plan, asked)
        return Preview.of(plan, NOTHING if known else cost, engine.write, is_released=known)

    def kept(self, asked: Asked, plan: Plan) -> bytes | None:
        """Return what was released before for a planned question, to be shown at no cost; nothing is run."""
        engine = self.ready(plan.tables)
        self._cost(plan, asked)
        return self.ledger.released(plan.canonical, _version(engine, plan))

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
        plan = plan or self.plan(asked)
        engine = self.ready(plan.tables)
        digest, version, cost = plan.canonical, _version(engine, plan), self._cost(plan, asked)
        if not source.simulated and (kept := self.ledger.released(digest, version)) is not None:
            return self.shown(plan, kept)
        for statement in (*plan.learning, *plan.statements):  # what the engine cannot say is refused at no charge
            statement.sql(engine.write)
        try:
            permits = self._reserve(plan, asked, version)
        except AlreadySettled:  # its key was answered since the look at what was released
            if (kept := self.ledger.released(digest, version)) is None:
                raise
            return self.shown(plan, kept)
        try:
            noisy = run(plan, engine, self.salt, timeout_s=timeout_s, progress=progress, source=source)
        except TacitError as error:
            for permit in permits:
                self.ledger.annotate(permit, f"the run failed: {error.code}")
            raise
        again = not source.simulated and _version(engine, plan) == version
        try:
            for permit in permits:
                self.ledger.commit(permit, noisy.to_bytes(), *((digest, version) if again else (None, None)))
        except AlreadySettled:  # with a key, somebody else answered for the same permit: only that answer leaves
            if (kept := self.ledger.released(digest, version)) is None:
                raise
            noisy = Noisy.from_bytes(kept)
        return Release(plan, noisy, cost, permits)

    def _tariff(self, question: Question) -> Tariff:
        """Return what the budgets of the tables in a question allow; of several, the least."""
        caps = [self.ledger.row_of(Scope(name)).cap for name in sorted(question.datasets)]
        relations = {cap.relation for cap in caps}
        if len(relations) > 1:
            raise MixedRelations("the budgets of these tables count under different relations, and do not go together")
        return Tariff(relations.pop(), min(Sum.of(cap).slice for cap in caps))

    def _cost(self, plan: Plan, asked: Asked) -> Cost:
        """Return what the ledger would charge, in the budget that it weighs most on; who may not ask is refused."""
        costs = [self.ledger.preview(name, plan.event, analyst=asked.analyst) for name in plan.datasets]
        return max(costs, key=lambda cost: (cost.epsilon, cost.delta))

    def _reserve(self, plan: Plan, asked: Asked, version: str) -> tuple[Permit, ...]:
        """Charge every budget that the question touches, or none."""
        purpose = asked.purpose or _on_one_line(asked.sql)[:PURPOSE_MAX]
        return self.ledger.reserve_all(
            plan.datasets,
            plan.event,
            analyst=asked.analyst,
            purpose=purpose,
            key=asked.key,
            question=plan.canonical,
            data_version=version,
        )


def _on_one_line(sql: str) -> str:
    """Return a question as the ledger notes it: lines and whatever else does not print become spaces."""
    return " ".join("".join(one if one.isprintable() else " " for one in sql).split())


def _version(engine: Engine, plan: Plan) -> str:
    """Return a digest that changes with the rows of any table that a plan reads."""
    text = "\n".join(f"{name} {engine.version(name)}" for name in plan.tables)
    return hashlib.sha256(text.encode()).hexdigest()
