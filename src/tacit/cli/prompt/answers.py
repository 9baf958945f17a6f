"""Who answers the prompt's questions: a small protocol, and the curator of a folder behind it.

A client of a server can stand here as well: nothing else of the prompt knows where the data are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tacit.cli.questions.showing import Answer

if TYPE_CHECKING:
    from tacit.accounting import Cost
    from tacit.curator import Curator
    from tacit.engines.protocol import Progress
    from tacit.privacy.tables import Table
    from tacit.query import Preview
    from tacit.query.explain import Line


@dataclass(frozen=True, slots=True)
class Previewed:
    """What a question would cost, and what is left now of each budget that would pay."""

    preview: Preview
    remaining: Mapping[str, Cost]


class Answers(Protocol):
    """Whoever answers; `asked` holds epsilon, rho or error, and delta, limits, keys, other."""

    @property
    def place(self) -> str:
        """Where the data are, for people."""

    def tables(self) -> Sequence[Table]:
        """Return what is public about the tables."""

    def preview(self, sql: str, asked: Mapping[str, Any], analyst: str | None) -> Previewed:
        """Return what a question would cost; spends nothing."""

    def explain(self, sql: str, asked: Mapping[str, Any]) -> Sequence[Line]:
        """Return pass by pass what a question would do; spends nothing."""

    def sql(
        self,
        sql: str,
        asked: Mapping[str, Any],
        analyst: str | None,
        *,
        purpose: str = "",
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Answer a question and charge it."""

    def remaining(self, datasets: Sequence[str], analyst: str | None) -> Mapping[str, Cost]:
        """Return what is left of some budgets to whoever asks."""

    def budgets(self) -> list[dict[str, Any]]:
        """Return every budget that may be seen, as `tacit budget show` shows them."""

    def require_analyst(self, name: str) -> None:
        """Refuse a name that nobody has here."""

    def cancel(self, thread: int) -> None:
        """Stop the question that a thread waits for."""


class CuratorAnswers:
    """Answers of the curator of a folder."""

    def __init__(self, curator: Curator) -> None:
        self._curator = curator

    @property
    def place(self) -> str:
        return str(self._curator.folder)

    def tables(self) -> Sequence[Table]:
        return list(self._curator.catalog.tables.values())

    def preview(self, sql: str, asked: Mapping[str, Any], analyst: str | None) -> Previewed:
        preview = self._curator.preview(sql, **asked, analyst=analyst)
        return Previewed(preview, self.remaining(self._datasets(sql, asked), analyst))

    def explain(self, sql: str, asked: Mapping[str, Any]) -> Sequence[Line]:
        return self._curator.explain(sql, **asked)

    def sql(
        self,
        sql: str,
        asked: Mapping[str, Any],
        analyst: str | None,
        *,
        purpose: str = "",
        timeout_s: float | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        return self._curator.sql(sql, **asked, analyst=analyst, purpose=purpose, timeout_s=timeout_s, progress=progress)

    def remaining(self, datasets: Sequence[str], analyst: str | None) -> Mapping[str, Cost]:
        return {name: self._curator.budget(name, analyst).remaining() for name in datasets}

    def budgets(self) -> list[dict[str, Any]]:
        from tacit.cli.catalog.budgets import budget_objects

        return budget_objects(self._curator.ledger)

    def require_analyst(self, name: str) -> None:
        from tacit.privacy.errors import UnknownName

        known = sorted({scope.name for scope in self._curator.ledger.scopes() if scope.kind == "analyst"})
        if name not in known:
            names = f"known are {', '.join(known)}" if known else "tacit budget analyst adds one"
            raise UnknownName(f"nobody here is called {name}; {names}", name="analyst", value=name)

    def cancel(self, thread: int) -> None:
        self._curator.cancel(thread)

    def _datasets(self, sql: str, asked: Mapping[str, Any]) -> tuple[str, ...]:
        from tacit.curator.road import Asked
        from tacit.query import Settings, Target

        target = Target(*(asked[name] for name in ("epsilon", "rho", "error", "delta")))
        settings = Settings(asked["limits"], asked["keys"], asked["other"])
        return self._curator.road().plan(Asked(sql, target, settings)).datasets
