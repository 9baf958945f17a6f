"""The same commands where a server has the data: a client that answers as a curator's folder does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.catalog.place import ServerAt, opened_client, opened_curator
from tacit.cli.prompt.answers import Answers, CuratorAnswers, Previewed
from tacit.cli.questions.showing import Answer

if TYPE_CHECKING:
    from tacit.accounting import Cost
    from tacit.client import Client
    from tacit.client.budget import BudgetState
    from tacit.engines.protocol import Progress
    from tacit.privacy.tables import Table
    from tacit.query.explain import Line


class ServerAnswers:
    """Answers of a server, with intervals at one level; who asks is said by the token."""

    def __init__(self, client: Client, level: float) -> None:
        self._client, self._level = client, level
        self._left: dict[str, Cost] = {}
        """What was left of each data set when the server last spoke of it."""

    @property
    def place(self) -> str:
        return self._client.url

    def tables(self) -> Sequence[Table]:
        return [one.table for one in self._client.tables()]

    def preview(self, sql: str, asked: Mapping[str, Any], analyst: str | None) -> Previewed:
        preview = self._client.preview(sql, **asked, analyst=analyst)
        self._left |= preview.remaining
        return Previewed(preview, preview.remaining)

    def explain(self, sql: str, asked: Mapping[str, Any]) -> Sequence[Line]:
        return self._client.explain(sql, **asked)

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
        release = self._client.sql(
            sql,
            **asked,
            analyst=analyst,
            purpose=purpose,
            timeout_s=timeout_s,
            progress=progress,
            level=self._level,
        )
        self._left |= release.remaining
        return release

    def remaining(self, datasets: Sequence[str], analyst: str | None) -> Mapping[str, Cost]:
        return {name: self._left[name] for name in datasets}

    def budgets(self) -> list[dict[str, Any]]:
        return budget_objects(self._client)

    def require_analyst(self, name: str) -> None:
        from tacit.privacy.errors import InvalidInput

        raise InvalidInput("who asks a server is said by the token, and cannot be another", name="analyst", value=name)

    def cancel(self, thread: int) -> None:
        self._client.cancel(thread)


@contextmanager
def opened_answers(folder: Path, server: ServerAt | None, level: float) -> Iterator[tuple[Any, Any]]:
    """Open a folder or a server; what comes is what can be cancelled, and what answers."""
    answers: Answers
    if server is None:
        with opened_curator(folder) as curator:
            answers = CuratorAnswers(curator)
            yield curator, answers
    else:
        with opened_client(server) as client:
            answers = ServerAnswers(client, level)
            yield client, answers


def budget_objects(client: Client, dataset: str | None = None) -> list[dict[str, Any]]:
    """Return the budgets that may be seen as `tacit budget show` has them; first the whole, then its parts."""
    found = [one for one in client.budgets() if dataset in (None, one.dataset)]
    return [_object(one) for one in sorted(found, key=lambda one: (one.dataset, _kind(one) != "dataset", _name(one)))]


def _object(budget: BudgetState) -> dict[str, Any]:
    return {
        "scope": budget.name,
        "dataset": budget.dataset,
        "kind": _kind(budget),
        "name": _name(budget) or budget.dataset,
        "filter": budget.cap.filter,
        "relation": budget.cap.relation.value,
        "epsilon": budget.cap.epsilon,
        "epsilon_min": budget.epsilon_min,
        "delta": budget.cap.delta,
        "epsilon_spent": budget.spent.epsilon if math.isfinite(budget.spent.epsilon) else None,
        "epsilon_left": budget.remaining.epsilon,
        "delta_left": budget.remaining.delta,
        "rho_left": budget.remaining.rho if math.isfinite(budget.remaining.rho) else None,
    }


def _kind(budget: BudgetState) -> str:
    return "analyst" if budget.analyst is not None else "epoch" if budget.epoch is not None else "dataset"


def _name(budget: BudgetState) -> str:
    return budget.analyst or budget.epoch or ""
