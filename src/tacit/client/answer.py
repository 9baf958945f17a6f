"""The answer of a statistic that a server computed, with the surface of `tacit.stats.Answer`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, cast

import numpy as np

from tacit.accounting.bounds import Cost
from tacit.client.failures import understood
from tacit.client.release import RemotePermit
from tacit.client.tables import RemoteColumn
from tacit.client.values import cell_of, cost_of, costs_of
from tacit.ledger import Permit
from tacit.mechanisms.mechanism import Interval
from tacit.privacy.errors import InvalidInput, Unavailable
from tacit.privacy.tables import Kind
from tacit.stats.answer import Answer
from tacit.stats.plan import Noisy, Plan
from tacit.stats.plots import PICTURES

ABOUT: Final = "values"
"""Under which name, besides its own, the column stands that a statistic is about."""

OF_THE_COLUMN: Final = ("bounds", "box_plot", "median", "mode", "quantile", "quantiles")
"""The statistics whose values are of the kind of their column."""


@dataclass(frozen=True)
class Answered(Plan):
    """What a server answered, in the place of the plan that it followed."""

    shown: Any
    span: Interval | None
    level: float
    cells: list[tuple[Any, ...]] | None = None
    cell_names: tuple[str, ...] = ()
    drawn_as: str = "points"

    @property
    def event(self) -> NoReturn:
        raise Unavailable("what was charged is in the ledger of the server; here is its permit")

    @property
    def lines(self) -> tuple[str, ...]:
        return ()

    @property
    def keys(self) -> list[tuple[Any, ...]] | None:
        return self.cells

    @property
    def key_names(self) -> tuple[str, ...]:
        return self.cell_names

    @property
    def picture(self) -> str:
        return self.drawn_as

    def measure(self, *_: Any, **__: Any) -> NoReturn:
        raise Unavailable("the rows are with the server")

    def value(self, noisy: Noisy) -> Any:
        return self.shown

    def interval(self, noisy: Noisy, level: float) -> Interval | None:
        if level != self.level:
            raise InvalidInput(
                f"this answer came with its interval at {self.level:g}; ask for another with level={level:g}, which "
                "costs nothing while the data are the same",
                name="level",
                value=level,
            )
        return self.span


class RemoteAnswer(Answer):
    """What a server released of a statistic, and what it cost."""

    def __init__(self, function: str, document: Mapping[str, Any], columns: Mapping[str, RemoteColumn]) -> None:
        with understood("the answer"):
            plan = _plan(function, document, columns)
            permit = None if document["permit"] is None else RemotePermit(str(document["permit"]))
            cost, told = cost_of(document["cost"]), str(document["card"])
            doubts = tuple(map(str, document.get("warnings") or ()))
            self.remaining: Final[dict[str, Cost]] = costs_of(document["remaining"])
            """What was left of the data set after it, for whoever asked."""
            self.facts: Final[dict[str, Any]] = dict(document["facts"])
            """What else a statistic has: of a test its p-value, statistic and estimate."""
        super().__init__(plan, (), cost, cast("Permit | None", permit), "")
        self._card: Final = told
        self._warnings: Final = doubts

    def interval(self, level: float | None = None) -> Interval | None:
        """Return where the value without noise lies with probability `level`; without one, the level that came.

        Another level is asked for anew, with `level=`: were the data changed meanwhile, that would be a new answer and
        would be charged, so it is not done here without being said.
        """
        assert isinstance(self.plan, Answered)
        return super().interval(self.plan.level if level is None else level)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes the value unreliable, as far as what was released tells."""
        return self._warnings

    @property
    def card(self) -> str:
        """What was released, in plain language."""
        return self._card


def _plan(function: str, document: Mapping[str, Any], columns: Mapping[str, RemoteColumn]) -> Answered:
    about = columns.get(ABOUT)
    kind = about.declared.kind if about is not None and function in OF_THE_COLUMN else None
    cells, names = document["keys"], tuple(map(str, document["key_names"]))
    kinds = [_kind(name, columns) for name in names]
    keys = None
    if cells is not None:
        keys = [tuple(cell_of(one, part) for one, part in zip(cell, kinds, strict=True)) for cell in cells]
    span = document["interval"]
    return Answered(
        str(document["label"]),
        _numbers(document["value"], kind),
        None if span is None else Interval(_numbers(span[0], kind), _numbers(span[1], kind)),
        float(document["level"]),
        keys,
        names,
        picture if (picture := str(document["picture"])) in PICTURES else "points",
    )


def _kind(name: str, columns: Mapping[str, RemoteColumn]) -> Kind | None:
    """Return the kind of a part of a key: that of the column whose name it has, or whose bins it bounds."""
    for ending in ("", " from", " to"):
        if name.endswith(ending) and (column := columns.get(name.removesuffix(ending))) is not None:
            found = column.declared.kind
            return found if found in (Kind.DATE, Kind.TIME) else None
    return None


def _numbers(value: Any, kind: Kind | None) -> Any:
    """Return a value as the statistics have it: one by itself, several as an array; what is null is NaN in there."""
    if not isinstance(value, list):
        return cell_of(value, kind if kind in (Kind.DATE, Kind.TIME) else None)
    if kind in (Kind.DATE, Kind.TIME):
        return np.array([cell_of(one, kind) for one in value], dtype=object)
    flat = np.array(value, dtype=object).ravel().tolist()
    if any(isinstance(one, str | bool) for one in flat):
        return np.array(value, dtype=object)
    return np.array(value, dtype=np.float64) if None in flat else np.array(value)
