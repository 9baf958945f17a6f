"""An answer that came over the wire, with the surface of `tacit.query.Release`.

Intervals at another level than the one that came are asked of the server again, as a question that was released before,
at no cost; if the data changed meanwhile, the same question would be a new one, and that is refused instead of paid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from tacit.accounting.bounds import Cost
from tacit.client.failures import understood
from tacit.client.values import cell_of, cost_of, costs_of, interval_of
from tacit.mechanisms.mechanism import Interval
from tacit.privacy.errors import InvalidInput, QueryRefused
from tacit.privacy.figures import at_most
from tacit.privacy.numbers import level_of
from tacit.privacy.tables import Kind
from tacit.query.explain import Line
from tacit.query.release import Preview, module, rows_html

if TYPE_CHECKING:
    from tacit.stats.plots import Plot

LEVEL: Final = 0.95

Again = Callable[[float], Mapping[str, Any]]
"""Asks the same question once more, for its intervals at another level; charges nothing."""
Spans = list[dict[str, Interval | None]]


@dataclass(frozen=True, slots=True)
class RemotePermit:
    """The ledger's permit, of which its number is known here; all else about it is in the server's ledger."""

    id: str

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True, eq=False)
class RemotePreview(Preview):
    """A preview, with what would be left of each data set and how many more questions of this price that pays."""

    remaining: Mapping[str, Cost] = field(default_factory=dict)
    more_like_this: int | None = None

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> RemotePreview:
        """Read what the server answered."""
        with understood("the preview"):
            cost, more = cost_of(document["cost"]), document.get("more_like_this")
            widths = {str(name): None if one is None else float(one) for name, one in document["widths"].items()}
            return cls(
                cost.epsilon,
                cost.delta,
                cost.rho,
                widths,
                bool(document["is_released"]),
                lines_of(document["lines"]),
                costs_of(document.get("remaining") or {}),
                None if more is None else int(more),
            )


def lines_of(documents: list[Mapping[str, str]]) -> tuple[Line, ...]:
    """Read what a plan would do, pass by pass."""
    return tuple(Line(str(one["label"]), str(one["text"])) for one in documents)


class RemoteRelease:
    """An answer: `rows`, `intervals(0.95)`, `cost`, `card` and `permit`."""

    def __init__(self, document: Mapping[str, Any], again: Again | None = None) -> None:
        self._again: Final = again
        self._lock: Final = Lock()
        with understood("the answer"):
            self.kinds: Final = {str(one["name"]): Kind(one["kind"]) for one in document["columns"]}
            """The kind of each column's values."""
            self.columns: Final = list(self.kinds)
            """The names of the columns."""
            self.rows: Final = self._rows(document)
            """The rows of the answer, in their order."""
            self.level: Final = float(document["level"])
            """The level of the intervals that came along."""
            self.cost: Final = cost_of(document["cost"])
            """What was charged for it; nothing, if the same question had been answered before."""
            self.remaining: Final = costs_of(document["remaining"])
            """What was left of each data set after it, for whoever asked."""
            self.permits: Final = tuple(RemotePermit(str(one)) for one in document["permits"])
            self.datasets: Final = tuple(map(str, document["datasets"]))
            """The budgets that paid."""
            self.counted: Final = str(document["counted"])
            """How much of each unit is counted, in words; what a unit has beyond that is left out."""
            self.warnings: Final = tuple(map(str, document.get("warnings") or ()))
            """What makes numbers of the answer unreliable, as far as what was released tells."""
            self.card: Final = str(document["card"])
            """What was released, in plain language."""
            self.simulated: Final = bool(document["simulated"])
            """Whether the noise can be replayed, so that the answer protects nobody."""
            self._spans: Final = {self.level: self._intervals(document)}

    @property
    def permit(self) -> RemotePermit | None:
        """The ledger's permit; None if the answer had been released before."""
        return self.permits[0] if self.permits else None

    def intervals(self, level: float | None = None) -> Spans:
        """Return, for each row and each noisy number, where the number without noise lies with probability `level`.

        Without a level, at the one that came with the answer. None where no interval is known.
        """
        share = self.level if level is None else level_of(level)
        with self._lock:
            if share not in self._spans:
                self._spans[share] = self._asked_again(share)
            return self._spans[share]

    def _asked_again(self, level: float) -> Spans:
        if self._again is None:
            raise InvalidInput(f"this answer came with intervals at {self.level:g} alone", name="level", value=level)
        document = self._again(level)
        with understood("the answer"):
            if self._rows(document) != self.rows:
                raise QueryRefused("the data were changed, and the same question has another answer now")
            return self._intervals(document)

    def _rows(self, document: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [{name: cell_of(row[name], kind) for name, kind in self.kinds.items()} for row in document["rows"]]

    def _intervals(self, document: Mapping[str, Any]) -> Spans:
        return [
            {str(name): interval_of(ends, self.kinds[name]) for name, ends in row.items()}
            for row in document["intervals"]
        ]

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        return module("pandas").DataFrame(self.rows, columns=self.columns)

    def to_polars(self) -> Any:
        """Return the rows as a polars DataFrame."""
        return module("polars").DataFrame(self._by_column())

    def to_arrow(self) -> Any:
        """Return the rows as an Arrow table."""
        return module("pyarrow").table(self._by_column())

    def _by_column(self) -> dict[str, list[Any]]:
        return {name: [row[name] for row in self.rows] for name in self.columns}

    def plot(self, column: str | None = None) -> Plot:
        """Return a noisy column, the first unless another is named, as a plot over the columns that are its keys."""
        from tacit.stats.plots import plot_of

        noisy = [name for name in self.columns if any(span.get(name) is not None for span in self.intervals())]
        chosen = column if column is not None else next(iter(noisy), None)
        if chosen is None or chosen not in self.columns:
            raise InvalidInput(
                f"say which column is drawn: column=, one of {', '.join(noisy or self.columns)}", name="column"
            )
        keys = [name for name in self.columns if name != chosen and name not in noisy]
        rows = []
        for row, span in zip(self.rows, self.intervals(), strict=True):
            ends = span.get(chosen) or Interval(None, None)
            rows.append({**{key: row[key] for key in keys}, "value": row[chosen], "low": ends.low, "high": ends.high})
        return plot_of(chosen, keys, rows, self.card)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        cost = f"epsilon {at_most(self.cost.epsilon)}" if self.cost.epsilon else "nothing"
        return f"<Release of {len(self)} rows for {cost}: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        """The rows as a table, each noisy number with the half-width of its interval."""
        return rows_html(self.columns, self.rows, self.intervals(), self.card)
