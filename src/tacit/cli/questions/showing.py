"""An answer on the screen: noisy numbers with their intervals, and what was paid for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Protocol

from tacit.cli.kit import Fact
from tacit.privacy.figures import at_most

if TYPE_CHECKING:
    from tacit.accounting import Cost
    from tacit.mechanisms.mechanism import Interval
    from tacit.query.explain import Line

ROWS_SHOWN: Final = 1000


class Answer(Protocol):
    """What is shown of an answer; `tacit.query.Release` is one, and so is what a client of a server gets."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows, in their order."""

    @property
    def cost(self) -> Cost:
        """What was charged."""

    @property
    def counted(self) -> str:
        """How much of each unit is counted, in words."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes numbers unreliable."""

    @property
    def card(self) -> str:
        """What was released, in plain language."""

    @property
    def datasets(self) -> tuple[str, ...]:
        """The budgets that paid."""

    @property
    def permit(self) -> Any:
        """The ledger's permit; None if the answer had been released before."""

    def intervals(self, level: float) -> list[dict[str, Interval | None]]:
        """Return where the numbers without noise lie."""


def cost_in_words(cost: Cost) -> str:
    """Return a cost for people."""
    if not cost.epsilon:
        return "nothing: the same answer was released before"
    return f"ε {at_most(cost.epsilon)}" + (f", δ {at_most(cost.delta)}" if cost.delta else "")


def cost_object(cost: Cost) -> dict[str, float | None]:
    """Return a cost for programs; a rho that is not known is null."""
    return {
        "epsilon": cost.epsilon,
        "delta": cost.delta,
        "rho": cost.rho if cost.rho != float("inf") else None,
    }


def row_object(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for programs: dates as texts, intervals as pairs."""
    return {name: plain(value) for name, value in row.items()}


def answer_object(release: Answer, remaining: Mapping[str, Cost], level: float) -> dict[str, Any]:
    """Return an answer for programs."""
    return {
        "rows": [row_object(row) for row in release.rows],
        "intervals": [row_object(row) for row in release.intervals(level)],
        "level": level,
        "cost": cost_object(release.cost),
        "remaining": {name: cost_object(cost) for name, cost in remaining.items()},
        "permit": release.permit.id if release.permit is not None else None,
        "counted": release.counted,
        "warnings": list(release.warnings),
        "card": release.card,
    }


def plain(value: Any) -> Any:
    """Return a value that JSON has."""
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and value != value:
        return None
    return value.isoformat() if isinstance(value, date) else value


def table_rows(release: Answer, level: float) -> list[tuple[str, ...]]:
    """Return the rows of an answer as text, noisy numbers with their intervals."""
    spans = release.intervals(level)
    return [
        tuple(cell(row[name], span.get(name)) for name in release.columns)
        for row, span in zip(release.rows[:ROWS_SHOWN], spans, strict=False)
    ]


def cell(value: Any, span: Any = None) -> str:
    """Return one value as text; what does not print is written as an escape, so that no value steers a terminal."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        shown = str(value).lower()
    elif isinstance(value, int):
        shown = f"{value:,}"
    elif isinstance(value, float):
        shown = f"{value:,.6g}"
    else:
        text = str(value)
        shown = text if text.isprintable() else repr(text)[1:-1]
    if span is None:
        return shown
    from tacit.query.release import spread

    return f"{shown} {spread(value, span)}"


def counted_in_words(release: Answer) -> str:
    """Return how much of each unit an answer is about; its intervals do not tell what is left out."""
    return (
        f"at most {release.counted}; what a unit has beyond that is left out, and intervals are about the noise only "
        "(to count more: --rows-per-group, --groups-per-unit, or rows_per_unit of the table)"
    )


def plan_facts(lines: Iterable[Line]) -> list[Fact]:
    """Return what is public about how a question would be answered: what is counted, and which groups are shown."""
    lines = list(lines)
    (first, *cuts) = [line.text for line in lines if line.label == "bounds"]
    facts = [Fact("counted", f"at most {first}"), *(Fact("counted", f"{cut}; the rest is left out") for cut in cuts)]
    return [*facts, *caveats(lines)]


def caveats(lines: Iterable[Line]) -> list[Fact]:
    """Return what whoever reads an answer must know: which groups and rows are not in it, which intervals there are."""
    kept = [line for line in lines if line.label in ("keys", "spans") and not line.text.startswith("public")]
    return [Fact("keys" if line.label == "keys" else "intervals", line.text) for line in kept]


def selections(lines: Iterable[Line]) -> list[str]:
    """Return below how many units a group is hidden, where the keys of a question are not public."""
    return [line.text for line in lines if line.label == "keys" and line.text.startswith("not public")]


def why_empty(lines: Iterable[Line]) -> str:
    """Say why an answer has no rows, and what would show some."""
    found = selections(lines)
    if not found:
        return "the answer has no rows"
    return (
        f"no group is shown: keys are {found[0]}; state them with --keys COLUMN=A,B or as categories of the column, "
        "or pay more"
    )


def contents(release: Answer, lines: Iterable[Line]) -> list[Fact]:
    """Return what an answer is about, what is not in it, and what makes it unreliable."""
    warnings = [Fact("warning", one) for one in release.warnings]
    return [Fact("counted", counted_in_words(release)), *caveats(lines), *warnings]


def after(release: Answer, remaining: Mapping[str, Cost], lines: Iterable[Line]) -> list[Fact]:
    """Return what is said below an answer: what is in it, what it cost and what is left."""
    facts = [*contents(release, lines), Fact("cost", cost_in_words(release.cost), True)]
    facts += [Fact("left", f"ε {at_most(cost.epsilon)} on {name}") for name, cost in remaining.items()]
    return facts
