"""A question in SQL as a kind of release: what the pipeline charges, runs and keeps (`pipeline.ReleasePlan`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tacit.engines.protocol import Engine
from tacit.pipeline import Data, ReleaseOptions, Work
from tacit.privacy.events import Event
from tacit.privacy.tables import Table
from tacit.query.plan import Plan
from tacit.query.row_limits import limiting_steps, reading_steps
from tacit.query.run import Noisy, run

LABEL_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class QueryRelease:
    """A priced plan, bound to the tables that it was made for."""

    plan: Plan
    sql: str
    engine: Engine
    salt: int
    data: Data
    tables: tuple[Table, ...] = ()
    """The records that the plan was made for."""

    @property
    def event(self) -> Event:
        """The event of all that the plan releases."""
        return self.plan.event

    @property
    def digest(self) -> str:
        """Equal for plans that release the same measures."""
        return self.plan.canonical

    @property
    def label(self) -> str:
        """The SQL on one line; whatever does not print becomes a space."""
        return " ".join("".join(one if one.isprintable() else " " for one in self.sql).split())[:LABEL_MAX]

    @property
    def answer_bytes(self) -> int | None:
        """An upper bound on the noisy measures as JSON."""
        return self.plan.answer_bytes

    @property
    def work(self) -> Work:
        """Statements count once for each table that they may read."""
        trees = [one.tree for one in (*self.plan.learning, *self.plan.statements)]
        read = sum(limiting_steps(table) + reading_steps(table, trees) for table in self.tables)
        return Work(len(trees) * max(1, len(self.plan.tables)), self.plan.work + read)

    def check(self) -> None:
        """Raise for statements that the engine cannot express."""
        for statement in (*self.plan.learning, *self.plan.statements):
            statement.sql(self.engine.write)

    def run(self, options: ReleaseOptions) -> Noisy:
        """Run the statements and add noise."""
        return run(
            self.plan,
            self.engine,
            self.salt,
            timeout_s=options.timeout_s,
            progress=options.progress,
            source=options.source,
        )

    def encode(self, answer: Noisy) -> bytes:
        """Return the noisy measures as JSON."""
        return answer.to_bytes()

    def decode(self, kept: bytes) -> Noisy:
        """Return the noisy measures that `encode` wrote."""
        return Noisy.from_bytes(kept)
