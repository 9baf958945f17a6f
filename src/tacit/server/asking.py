"""From a request's question to the road of releases: which tables there are for the caller, and who pays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Header

from tacit.accounting.bounds import Cost
from tacit.curator.plans import key_of
from tacit.curator.road import Asked, Road
from tacit.ledger.permits import cost_to_dict
from tacit.privacy.errors import NotInCatalog, TacitError
from tacit.privacy.tables import Limits
from tacit.query import Plan, Preview, Release, Settings, Target
from tacit.query.parse import named_tables
from tacit.server.access import Action
from tacit.server.documents import LimitsAsked, QuestionAsked, StatisticAsked
from tacit.server.place import Caller, of_table
from tacit.server.releases import release_document, require_shown
from tacit.server.wire import read

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=180,
        pattern=r"^[ -~]+$",
        description="The same key with the same question or statistic on the same data is charged once.",
    ),
]


def sameness(caller: Caller, asked: QuestionAsked | StatisticAsked) -> Hashable:
    """Return what is equal for requests of one person that ask the same of the same versions of the data."""
    versions = tuple(sorted(caller.server.curator.engines.versions().items()))
    return caller.name, type(asked).__name__, json.dumps(asked.model_dump(exclude={"wait_s"}), default=repr), versions


def own_key(caller: Caller, key: str | None) -> str | None:
    """Return a caller's key as the ledger knows it: different callers may use the same text."""
    return None if key is None else f"{caller.name}/{key}"


@dataclass(frozen=True, slots=True)
class Planned:
    """A question of a caller, planned; no data were touched."""

    caller: Caller
    road: Road
    asked: Asked
    plan: Plan

    @classmethod
    def of(cls, caller: Caller, question: QuestionAsked, action: Action, key: str | None = None) -> Planned:
        """Plan a question among the tables that are there for the caller, or refuse it and record that."""
        caller.require(Action.SERVER_READ)
        visible = {table.name for table in caller.tables(Action.CATALOG_READ)}
        road = caller.server.curator.road(among=visible)
        keys = None if question.keys is None else {name: read(values) for name, values in question.keys.items()}
        settings = Settings(limits_of(question.limits), keys, question.other)
        target = Target(question.epsilon, question.rho, question.error, question.delta)
        asked = Asked(question.sql, target, settings, None, question.purpose, own_key(caller, key))
        try:
            plan = road.plan(asked)
        except NotInCatalog:
            _record_unseen(caller, question.sql, visible, action)
            raise
        for name in plan.tables:
            caller.require(action, of_table(road.schema.table(name)))
        require_shown(plan, caller.server.settings.limits.rows)
        analyst = caller.payer(plan.datasets)
        return cls(caller, road, replace(asked, analyst=analyst), plan)

    def preview(self) -> Preview:
        """Return what asking would cost."""
        return self.road.preview(self.asked, self.plan)

    def kept(self, level: float) -> dict[str, Any] | None:
        """Return the answer as a document if it was released before; the same one is made once."""
        answer = self.road.kept(self.asked, self.plan)
        if answer is None:
            return None
        server = self.caller.server
        key = (key_of(self.asked.sql, self.asked.target, self.asked.settings), hashlib.sha256(answer).digest(), level)
        document = server.shown.get(key)
        if document is None:
            release = self.road.shown(self.plan, answer)
            document = release_document(release, level, {}, server.settings.limits.rows)
            server.shown.put(key, document)
        return document | {"remaining": {name: cost_to_dict(cost) for name, cost in self.remaining().items()}}

    def release(self, timeout_s: float) -> Release:
        """Answer the question."""
        return self.road.release(self.asked, self.plan, timeout_s=timeout_s)

    def remaining(self) -> dict[str, Cost]:
        """Return what is left of each budget that pays."""
        return remaining(self.caller, self.plan.datasets)


def remaining(caller: Caller, datasets: Iterable[str]) -> dict[str, Cost]:
    """Return what a caller can still spend on data sets."""
    names = tuple(datasets)
    analyst = caller.payer(names)
    return {name: caller.server.curator.budget(name, analyst).remaining() for name in names}


def limits_of(asked: LimitsAsked) -> Limits:
    """Return limits on contributions as the catalog has them."""
    return Limits(**asked.model_dump())


def more_like_this(cost: Cost, left: dict[str, Cost]) -> int | None:
    """Return how many more questions of this cost fit, by plain sums of epsilon; None for one that costs nothing."""
    if not cost.epsilon:
        return None
    return int(min((one.epsilon / cost.epsilon for one in left.values()), default=0.0))


def _record_unseen(caller: Caller, sql: str, visible: set[str], action: Action) -> None:
    """Record which tables a question names that are hidden from the caller or absent."""
    try:
        named = {name.lower() for name in named_tables(sql)}
    except TacitError:
        return
    caller.record_tables(action, named - {name.lower() for name in visible})
