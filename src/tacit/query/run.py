"""Running a plan: exact whole numbers from the engine, noise in this process, nothing exact handed on.

Promise: what `run` returns was made by the mechanisms of the plan's price and by nothing else. It is called after the
ledger has admitted the plan's event. What happens here does not depend on data except through the mechanisms: groups
that are missing in the engine's result are zeros, a value that is not listed is left out, and nothing raises for what
the data hold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.engines.protocol import SALT, Columns, Engine, Progress
from tacit.ledger.answer_storage import count_fitting
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import is_simulated
from tacit.privacy.tables import Kind
from tacit.query.expressions import Range
from tacit.query.learned_bounds import learn_range
from tacit.query.plan import Plan, json_value, key_bytes
from tacit.query.rewrite import UNITS, Statement
from tacit.query.whole_numbers import group_sums

OTHER: Final = "other"
"""The key of the row for all groups that are not shown, where keys are texts; other keys are NULL there."""


@dataclass(frozen=True, slots=True)
class Noisy:
    """What was released: the keys of the groups, a noisy whole number a measure and group, and what was chosen."""

    keys: tuple[list[Any], ...]
    measures: tuple[NDArray[np.int64], ...]
    choices: tuple[list[Any], ...]
    simulated: bool = False
    """Whether the noise can be replayed, so that it protects no unit."""
    ranges: tuple[Range, ...] = ()
    """The bounds that were learnt."""
    guessed: tuple[bool, ...] = ()
    """Which of these are a guess, as no part of the values stands out from the noise."""
    is_cut: bool = False
    """Whether more groups passed the selection than an answer can hold: the first in order of their keys are there."""

    @property
    def groups(self) -> int:
        """How many groups there are."""
        columns: list[Any] = [*self.keys, *self.measures, *self.choices]
        return len(columns[0]) if columns else 0

    def to_bytes(self) -> bytes:
        """Return the answer as JSON, the form in which the ledger stores it."""
        record = {
            "keys": [[json_value(value) for value in column] for column in self.keys],
            "measures": [column.tolist() for column in self.measures],
            "choices": [[json_value(value) for value in column] for column in self.choices],
            "simulated": self.simulated,
            "ranges": [[str(one.lower), str(one.upper)] for one in self.ranges],
            "guessed": list(self.guessed),
            "cut": self.is_cut,
        }
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, kept: bytes) -> Noisy:
        """Return the answer that `to_bytes` wrote."""
        record = json.loads(kept)
        return cls(
            tuple([_read(value) for value in column] for column in record["keys"]),
            tuple(np.array(column, dtype=np.int64) for column in record["measures"]),
            tuple([_read(value) for value in column] for column in record["choices"]),
            record["simulated"],
            tuple(Range(Fraction(low), Fraction(high)) for low, high in record["ranges"]),
            tuple(record.get("guessed", ())),
            record.get("cut", False),
        )


def run(
    plan: Plan,
    engine: Engine,
    salt: int,
    *,
    timeout_s: float | None = None,
    progress: Progress | None = None,
    source: RandomSource = SYSTEM,
) -> Noisy:
    """Run the statements of a plan and release their results with noise."""

    def found(statements: Sequence[Statement]) -> list[Columns]:
        return [
            engine.run(
                statement.sql(engine.write),
                {SALT: salt} if statement.is_salted else None,
                timeout_s=timeout_s,
                progress=progress,
            )
            for statement in statements
        ]

    bounds = [
        learn_range(mechanism, columns, source)
        for mechanism, columns in zip(plan.price.bounds, found(plan.learning), strict=True)
    ]
    ranges = tuple(range_ for range_, _ in bounds)
    ranged = plan.ranged(ranges) if ranges else plan
    guessed = tuple(is_guess for _, is_guess in bounds)
    return replace(add_noise(ranged, found(ranged.statements), source), ranges=ranges, guessed=guessed)


def add_noise(plan: Plan, found: Sequence[Columns], source: RandomSource = SYSTEM) -> Noisy:
    """Add noise to the results of a plan's statements."""
    if plan.sets_apart:
        return _add_noise_to_sets(plan, found, source)
    places, keys, is_cut = _groups(plan, found, source)
    measures: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)] * len(plan.measures)
    choices: list[list[Any]] = [[]] * len(plan.choices)
    for statement, columns in zip(plan.statements, found, strict=True):
        at = places.of(columns)
        for place, index in enumerate(statement.measures):
            exact = group_sums(places.count, at, columns[f"m{place}"])
            measures[index] = _noisy_measure(plan, index, exact, source)
        if statement.choice is not None:
            choices[statement.choice] = _choose(plan, statement.choice, columns, at, places.count, source)
    released = tuple(measures)
    simulated = source.simulated or any(map(is_simulated, released))
    return Noisy(keys, tuple(np.asarray(one) for one in released), tuple(choices), simulated, is_cut=is_cut)


def _add_noise_to_sets(plan: Plan, found: Sequence[Columns], source: RandomSource) -> Noisy:
    """Add noise to each grouping set; its groups stand one after another, keys that it drops being NULL."""
    keys: list[list[Any]] = [[] for _ in plan.question.keys]
    measures: list[list[NDArray[np.int64]]] = [[] for _ in plan.measures]
    for statement, columns in zip(plan.statements, found, strict=True):
        kept = statement.kept or ()
        places = _PublicPlaces([plan.domains[index].values for index in kept] if plan.domains else [])
        shown = dict(zip(kept, places.keys(), strict=True))
        for index, column in enumerate(keys):
            column += shown.get(index, [None] * places.count)
        at = places.of(columns)
        for place, index in enumerate(statement.measures):
            exact = group_sums(places.count, at, columns[f"m{place}"])
            measures[index].append(_noisy_measure(plan, index, exact, source))
    simulated = source.simulated or any(is_simulated(part) for parts in measures for part in parts)
    released = tuple(np.concatenate([np.asarray(part) for part in parts]) for parts in measures)
    return Noisy(tuple(keys), released, (), simulated)


class _GroupPlaces:
    """The index of each group in the answer."""

    def __init__(self, names: Sequence[str], count: int, positions: Mapping[Any, int], rest: int = -1) -> None:
        self.names, self.count, self._positions, self._rest = names, count, positions, rest

    def of(self, columns: Columns) -> NDArray[np.int64]:
        """Return the place of each row's group; for those that are not shown that of the rest, or -1."""
        if not self.names:
            return np.zeros(_length(columns), dtype=np.int64)
        found = (self._positions.get(key, self._rest) for key in _tuples(columns, self.names))
        return np.fromiter(found, dtype=np.int64, count=_length(columns))


class _PublicPlaces(_GroupPlaces):
    """The indices of groups in the product of public domains, computed column by column."""

    def __init__(self, domains: Sequence[Sequence[Any]]) -> None:
        self._domains = domains
        names = [f"k{index}" for index in range(len(domains))]
        super().__init__(names, math.prod(map(len, domains)), {})
        self._of_value = [{value: index for index, value in enumerate(one)} for one in self._domains]

    def of(self, columns: Columns) -> NDArray[np.int64]:
        """Return the place of each row's group, -1 for values that are not listed."""
        rows = _length(columns)
        places, missing = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=bool)
        for name, positions in zip(self.names, self._of_value, strict=True):
            values = columns[name]
            index = np.fromiter((positions.get(value, -1) for value in _as_list(values)), dtype=np.int64, count=rows)
            missing |= index < 0
            places = places * len(positions) + index
        places[missing] = -1
        return places

    def keys(self) -> tuple[list[Any], ...]:
        """Return the key columns of all groups, in order."""
        columns, repeat = [], self.count
        for values in self._domains:
            repeat //= len(values)
            block = [value for value in values for _ in range(repeat)]
            columns.append(block * (self.count // len(block)))
        return tuple(columns)


def _groups(
    plan: Plan, found: Sequence[Columns], source: RandomSource
) -> tuple[_GroupPlaces, tuple[list[Any], ...], bool]:
    """Return the places and keys of the groups that are shown, and whether some did not fit into an answer.

    Shown are all public groups, or those that pass the selection; which of these fit follows from their keys alone.
    """
    if plan.domains is not None:
        public = _PublicPlaces([domain.values for domain in plan.domains])
        return public, public.keys(), False
    assert plan.price.selection is not None
    names = [f"k{index}" for index in range(len(plan.question.keys))]
    columns = found[0]
    keys = list(_tuples(columns, names))
    mask = plan.price.selection.release(np.asarray(columns[UNITS], dtype=np.int64), source=source)
    passed = sorted((key for key, kept in zip(keys, mask, strict=True) if kept), key=_order)
    shown = passed[: count_fitting(key_bytes(key) + plan.group_bytes for key in passed)]
    is_cut = len(shown) < len(passed)
    positions = {key: index for index, key in enumerate(shown)}
    columns_shown = tuple([key[at] for key in shown] for at in range(len(names)))
    if not plan.bounding.merges_rest:
        return _GroupPlaces(names, len(shown), positions), columns_shown, is_cut
    for key, column in zip(plan.question.keys, columns_shown, strict=True):
        column.append(OTHER if key.kind is Kind.TEXT else None)
    return _GroupPlaces(names, len(shown) + 1, positions, rest=len(shown)), columns_shown, is_cut


def _noisy_measure(plan: Plan, index: int, values: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
    if not values.size:
        return values
    released: NDArray[np.int64] = plan.price.noises[index].release(values, source=source)
    return released


def _choose(
    plan: Plan, index: int, columns: Columns, at: NDArray[np.int64], groups: int, source: RandomSource
) -> list[Any]:
    """Make one private choice a group."""
    choice, mechanism = plan.choices[index], plan.price.choices[index]
    cells, weights = columns["cell"], np.asarray(columns["w"], dtype=np.int64)
    rows: list[list[int]] = [[] for _ in range(groups)]
    for row, place in enumerate(at.tolist()):
        if place >= 0 and cells[row] is not None:
            rows[place].append(row)
    return [
        choice.choose([cells[row] for row in some], weights[some] if some else np.zeros(0, np.int64), mechanism, source)
        for some in rows
    ]


def _tuples(columns: Columns, names: Sequence[str]) -> list[tuple[Any, ...]]:
    if not names:
        return [()] * _length(columns)
    return list(zip(*(_as_list(columns[name]) for name in names), strict=True))


def _as_list(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _order(key: tuple[Any, ...]) -> tuple[tuple[bool, Any], ...]:
    return tuple((value is None, "" if value is None else value) for value in key)


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return datetime.fromisoformat(value["time"]) if "time" in value else date.fromisoformat(value["date"])
    return value
