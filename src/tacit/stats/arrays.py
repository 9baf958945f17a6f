"""Sums over arrays: lists, numpy arrays, and columns of pandas, polars and Arrow.

Without units every row is a person. With them, `per_unit` rows of each unit are chosen uniformly at random, with the
operating system's randomness: each row draws a number of its own, and the unit's rows with the least numbers stay, so
that who else is in the data decides nothing.
Missing values are None, NaN and NaT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.randomness import SYSTEM, Source, words
from tacit.mechanisms.values import refuse_masked
from tacit.privacy.errors import WrongKind, WrongType
from tacit.privacy.tables import Kind
from tacit.stats.rows import Cut, Scale, Term, saturated

_MODULES: Final = ("pandas", "polars", "pyarrow")
NAME_LENGTH_MAX: Final = 80


class Array:
    """A column in memory: what kind of values it has, the values, and where one is missing."""

    def __init__(self, name: str, values: Any) -> None:
        self.name: Final = name
        kind, filled, missing = _read(name, _raw(name, values))
        self.kind: Final[Kind] = kind
        self.values: Final[NDArray[Any]] = filled
        self.missing: Final[NDArray[np.bool_]] = missing

    def __len__(self) -> int:
        return len(self.values)

    def steps(self, scale: Scale) -> NDArray[np.int64]:
        """Return the values as whole numbers of a scale; missing ones as 0."""
        if self.kind not in (Kind.INTEGER, Kind.REAL, Kind.BOOLEAN):
            raise WrongKind(f"{self.name} is computed with as a number, and holds {self.kind} values")
        numbers = np.where(self.missing, 0.0, self.values.astype(np.float64))
        scaled = np.clip(numbers, scale.lower, scale.upper) * float(1 / scale.step)
        counted = np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64) - scale.shift
        return np.clip(counted, scale.low, scale.high)

    def cells(self, cut: Cut) -> NDArray[np.int64]:
        """Return the cell of each value, -1 for those in none."""
        if cut.values:
            return self._listed(cut.values)
        values, edges = self.values, np.array(cut.edges)
        if self.kind in (Kind.DATE, Kind.TIME):
            edges = np.array(cut.edges, dtype="datetime64[us]")
        elif self.kind is Kind.TEXT:
            raise WrongKind(f"{self.name} holds texts, which no edges lie between; list its values instead")
        else:
            values, edges = values.astype(np.float64), edges.astype(np.float64)
        found = np.searchsorted(edges, values, side="right") - 1
        return np.where(self.missing, -1, np.clip(found, 0, len(edges) - 2))

    def _listed(self, values: Sequence[Any]) -> NDArray[np.int64]:
        places = {_plain(value): index for index, value in enumerate(values) if value is not None}
        empty = list(values).index(None) if None in values else -1
        if self.kind is Kind.TEXT:
            found = np.fromiter(
                (places.get(value, -1) for value in self.values), dtype=np.int64, count=len(self.values)
            )
        else:
            different, inverse = np.unique(self.values, return_inverse=True)
            known = [places.get(_plain(value), -1) for value in different.tolist()]
            found = np.array([*known, -1], dtype=np.int64)[inverse]
        return np.where(self.missing, empty, found)


class ArrayRows:
    """Columns of one length, and whose rows they are."""

    def __init__(
        self,
        columns: Mapping[str, Array],
        unit: Array | None = None,
        per_unit: int = 1,
        *,
        source: Source = SYSTEM,
    ) -> None:
        self._columns, self._unit, self._per_unit, self._source = columns, unit, per_unit, source
        self._length = len(next(iter(columns.values())))
        owners = None
        if unit is not None:
            names = unit.values.astype(str) if unit.kind is Kind.TEXT else unit.values
            owners = np.unique(names, return_inverse=True)[1]
        self._owners = owners

    @property
    def per_unit(self) -> int:
        """How many rows of a unit are added up at most."""
        return self._per_unit

    def column(self, name: str) -> Array:
        """Return a column, for mechanisms that look at sorted values; what they then see is exact and private."""
        return self._columns[name]

    def kept(self, needs: Sequence[str]) -> NDArray[np.bool_]:
        """Return which rows are added up: those with all values, at most `per_unit` of each unit."""
        here = np.ones(self._length, dtype=bool)
        for name in needs:
            here &= ~self._columns[name].missing
        if self._unit is None or self._owners is None:
            return here
        here &= ~self._unit.missing
        places = np.flatnonzero(here)
        owners = self._owners[places]
        order = np.lexsort((words(self._source, len(places), 8), owners))
        ordered = owners[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, np.int64)
        rank = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)]))
        chosen = np.zeros(self._length, dtype=bool)
        chosen[places[order[rank < self._per_unit]]] = True
        return chosen

    def sums(self, terms: Sequence[Term], by: Sequence[Cut] = (), needs: Sequence[str] = ()) -> NDArray[np.int64]:
        """Return each term added up in each cell."""
        wanted = dict.fromkeys([*needs, *(name for term in terms for name in term.columns)])
        kept = self.kept(list(wanted))
        shape = tuple(cut.cells for cut in by)
        cell = np.zeros(self._length, dtype=np.int64)
        for cut in by:
            at = self._columns[cut.column].cells(cut)
            kept &= at >= 0
            cell = cell * cut.cells + at
        count = int(np.prod(shape, dtype=np.int64)) if shape else 1
        found = np.stack([_added(self._numbers(term)[kept], cell[kept], count) for term in terms])
        return found.reshape(len(terms), *shape)

    def units(self, column: str) -> Mapping[Any, int]:
        """Return for each value that occurs the number of units with it, a unit for `per_unit` values at most."""
        array, kept = self._columns[column], self.kept([column])
        values = array.values[kept]
        listed = values.tolist()
        if self._owners is not None:
            listed = [value for _, value in set(zip(self._owners[kept].tolist(), listed, strict=True))]
        counts: dict[Any, int] = {}
        for value in listed:
            counts[value] = counts.get(value, 0) + 1
        return counts

    def _numbers(self, term: Term) -> NDArray[np.int64]:
        product = np.ones(self._length, dtype=np.int64)
        for factor in term.factors:
            product = product * self._columns[factor.column].steps(factor)
        return product - term.offset


def name_of(values: Any) -> str | None:
    """Return the name that a column of a frame has of its own."""
    name = getattr(values, "name", None) if type(values).__module__.partition(".")[0] in _MODULES else None
    return name[:NAME_LENGTH_MAX] if isinstance(name, str) and name.strip() else None


def arrays(columns: Mapping[str, Any], unit: Any = None) -> tuple[dict[str, Array], Array | None]:
    """Read columns of one length, and perhaps the column of units."""
    read = {name: Array(name, values) for name, values in columns.items()}
    owner = None if unit is None else Array("unit", unit)
    lengths = {len(one) for one in (*read.values(), *([owner] if owner else []))}
    if len(lengths) > 1:
        raise WrongType("all columns of one statistic must have one value a row: their lengths differ", name="values")
    return read, owner


def _added(numbers: NDArray[np.int64], cells: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Add up whole numbers by cell, exactly: in two halves, for doubles hold only 53 bits."""
    if count == 1:
        return saturated(np.array([int(numbers.sum(dtype=np.int64))]))
    high, low = numbers >> 20, numbers & (2**20 - 1)
    parts = [np.bincount(cells, weights=half.astype(np.float64), minlength=count) for half in (high, low)]
    return saturated((parts[0].astype(np.int64) << 20) + parts[1].astype(np.int64))


def _raw(name: str, values: Any) -> NDArray[Any]:
    """Return a one-dimensional array of whatever was given."""
    module = type(values).__module__.partition(".")[0]
    if module in _MODULES:
        if hasattr(values, "to_numpy"):
            try:
                values = values.to_numpy(zero_copy_only=False) if module == "pyarrow" else values.to_numpy()
            except Exception:  # whatever a frame's own code may raise; it may quote values
                raise WrongType(f"{name} cannot be read as a column of one type", name=name) from None
        if hasattr(values, "ndim") and values.ndim != 1:
            raise WrongType(f"{name} is one column, not a table; name the column", name=name)
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
        raise WrongType(f"{name} is a list or an array of values, not a {type(values).__name__}", name=name)
    refuse_masked(values)
    try:
        raw = np.asarray(values)
        if raw.dtype.kind in "UO" and not isinstance(values, np.ndarray):
            raw = np.asarray(values, dtype=object)
    except ValueError:
        raise WrongType(f"{name} is a list of single values of one type", name=name) from None
    if raw.ndim != 1:
        raise WrongType(f"{name} is one column: a list of values, one a row", name=name)
    return raw


def _read(name: str, raw: NDArray[Any]) -> tuple[Kind, NDArray[Any], NDArray[np.bool_]]:
    """Return the kind of a column, its values, and where one is missing."""
    nothing: NDArray[np.bool_] = np.zeros(len(raw), dtype=bool)
    match raw.dtype.kind:
        case "b":
            return Kind.BOOLEAN, raw, nothing
        case "i" | "u":
            return Kind.INTEGER, raw, nothing
        case "f":
            return Kind.REAL, raw.astype(np.float64), np.isnan(raw)
        case "M":
            is_day = raw.dtype == np.dtype("datetime64[D]")
            return Kind.DATE if is_day else Kind.TIME, raw.astype("datetime64[us]"), np.isnat(raw)
        case "U" | "T":
            return Kind.TEXT, raw.astype(object), nothing
    return _objects(name, raw)


def _objects(name: str, raw: NDArray[Any]) -> tuple[Kind, NDArray[Any], NDArray[np.bool_]]:
    """Read a column of Python objects: the kind of those that are not missing."""
    missing = np.array([value is None or (isinstance(value, float) and value != value) for value in raw], dtype=bool)
    present = raw[~missing]
    kinds = {_kind(value) for value in present}
    if kinds == {Kind.INTEGER, Kind.REAL} or kinds == {Kind.BOOLEAN, Kind.INTEGER}:
        kinds = {Kind.REAL}
    if len(kinds) > 1 or None in kinds:
        raise WrongType(f"{name} is a list of numbers, truth values, texts, dates or times, all of one kind", name=name)
    kind = kinds.pop() if kinds else Kind.REAL
    assert kind is not None
    types: dict[Kind, Any] = {
        Kind.BOOLEAN: (bool, False),
        Kind.INTEGER: (np.float64, 0),
        Kind.REAL: (np.float64, 0.0),
        Kind.TEXT: (object, ""),
        Kind.DATE: ("datetime64[us]", np.datetime64("NaT")),
        Kind.TIME: ("datetime64[us]", np.datetime64("NaT")),
    }
    dtype, filler = types[kind]
    filled = raw.copy()
    filled[missing] = filler
    return kind, filled.astype(dtype), missing


def _kind(value: object) -> Kind | None:
    if isinstance(value, bool | np.bool_):
        return Kind.BOOLEAN
    if isinstance(value, int | np.integer):
        return Kind.INTEGER
    if isinstance(value, float | np.floating):
        return Kind.REAL
    if isinstance(value, str):
        return Kind.TEXT
    if isinstance(value, date):
        return Kind.TIME if hasattr(value, "hour") else Kind.DATE
    return None


def _plain(value: Any) -> Any:
    """Return a value as lists of arrays have it, so that equal ones meet."""
    if isinstance(value, date):
        return np.datetime64(value, "us").item()
    return value
