"""Columns of arrays and frames as numpy arrays, in the kind that is declared for them.

Kinds of columns from what is stated about them: bounds, edges and keys are public, values are not.

Numbers as bounds or edges state REAL, also if they are whole: bounds=(0, 10) is written for 2.5 as well as for 2, and
no row may be lost for that. Who wants lists to be whole numbers says kind="integer", or gives an array of that type.
Keys state the kind that all of them have.

Promise: the kind of a column never depends on its values. A type of numpy, pandas, polars or Arrow declares it; Python
lists, arrays of objects and pandas categories (whose type follows from the values in them) declare none, and get theirs
from a stated fact (`kind_of_bounds`). Each value is read by itself: one that does not fit the kind is missing, whatever
the other rows hold, so that no row changes how another one is read.

Values of each kind: BOOLEAN bool; INTEGER int64 (beyond 64 bits: missing); REAL float64 (NaN: missing); TEXT objects
that are str; DATE and TIME datetime64[us] in UTC (beyond the years 1 to 9999: the first or the last moment of these, as
in engines).
"""

from __future__ import annotations

import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.values import refuse_masked
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, TacitError, WrongKind, WrongType
from tacit.privacy.tables import INTEGER_MAX, INTEGER_MIN, Kind

LEARN: Final = "learn"
_KEYS: Final = {"b": Kind.BOOLEAN, "i": Kind.INTEGER, "u": Kind.INTEGER, "U": Kind.TEXT, "T": Kind.TEXT}


def kind_of_bounds(stated: Any) -> Kind | None:
    """Return the kind that bounds state; None if they are none (and are refused where they are used)."""
    if isinstance(stated, str) and stated == LEARN:
        return Kind.REAL
    if isinstance(stated, Bounds):
        return _kind_of_end(stated.lower)
    if isinstance(stated, str) or not isinstance(stated, Sequence) or len(stated) != 2:
        return None
    return kind_of_edges(stated)


def kind_of_edges(stated: Any) -> Kind | None:
    """Return the kind that edges state."""
    if isinstance(stated, np.ndarray):
        if stated.dtype.kind == "M":
            return Kind.DATE if np.datetime_data(stated.dtype)[0] in ("Y", "M", "W", "D") else Kind.TIME
        return Kind.REAL if stated.dtype.kind in "iuf" else None
    if isinstance(stated, str | Mapping | Iterator) or not isinstance(stated, Iterable):
        return None
    try:
        found = {_kind_of_end(Bounds(one, one).lower) for one in stated}
    except TacitError:
        return None
    return Kind.TIME if found == {Kind.DATE, Kind.TIME} else found.pop() if len(found) == 1 else None


def kind_of_keys(stated: Any) -> Kind | None:
    """Return the kind that all of some keys have."""
    if isinstance(stated, np.ndarray):
        return kind_of_edges(stated) if stated.dtype.kind == "M" else _KEYS.get(stated.dtype.kind)
    listed = stated.values if isinstance(stated, Categories) else stated
    if isinstance(listed, str | Mapping | Iterator) or not isinstance(listed, Iterable):
        return None
    found = {_kind_of_key(one) for one in listed if one is not None}
    return found.pop() if len(found) == 1 else None


def kinds_of_groups(by: Mapping[str, Any], keys: Any) -> dict[str, Kind | None]:
    """Return the kinds of columns to group by: `keys` is a list for one column, a list each for several."""
    names = list(by)
    if len(names) == 1:
        return {names[0]: kind_of_keys(keys)}
    listed = list(keys) if isinstance(keys, Iterable) and not isinstance(keys, str | Mapping | Iterator) else []
    return {name: kind_of_keys(one) for name, one in zip(names, listed, strict=False)}


def declared_kind(stated: object) -> Kind:
    """Return a kind by its name."""
    try:
        return Kind(stated)  # type: ignore[arg-type]
    except ValueError:
        names = ", ".join(kind.value for kind in Kind)
        raise InvalidInput(f"kind is one of {names}", name="kind", value=stated) from None


def _kind_of_end(end: object) -> Kind:
    if isinstance(end, datetime):
        return Kind.TIME
    return Kind.DATE if isinstance(end, date) else Kind.REAL


def _kind_of_key(key: object) -> Kind | None:
    match key:
        case bool():
            return Kind.BOOLEAN
        case int():
            return Kind.INTEGER
        case str():
            return Kind.TEXT
        case datetime():
            return Kind.TIME
        case date():
            return Kind.DATE
    return None


MODULES: Final = ("pandas", "polars", "pyarrow")
"""Whose columns have types of their own."""

_NUMPY: Final = {
    "b": Kind.BOOLEAN,
    "i": Kind.INTEGER,
    "u": Kind.INTEGER,
    "f": Kind.REAL,
    "U": Kind.TEXT,
    "T": Kind.TEXT,
    "O": None,
}
_NUMBERS: Final = frozenset({Kind.INTEGER, Kind.REAL})
_MOMENTS: Final = frozenset({Kind.DATE, Kind.TIME})
_READ_AS: Final = {
    Kind.BOOLEAN: frozenset({Kind.BOOLEAN}) | _NUMBERS,
    Kind.INTEGER: _NUMBERS,
    Kind.REAL: _NUMBERS,
    Kind.TEXT: frozenset({Kind.TEXT}),
    Kind.DATE: _MOMENTS,
    Kind.TIME: _MOMENTS,
}
"""As what kinds a column can be declared whose type declares another one."""

_FILLERS: Final[Mapping[Kind, tuple[Any, Any]]] = {
    Kind.BOOLEAN: (np.bool_, False),
    Kind.INTEGER: (np.int64, 0),
    Kind.REAL: (np.float64, 0.0),
    Kind.TEXT: (object, ""),
    Kind.DATE: ("datetime64[us]", datetime(1970, 1, 1)),
    Kind.TIME: ("datetime64[us]", datetime(1970, 1, 1)),
}
_EPOCH: Final = np.datetime64("1970-01-01")
_FIRST: Final = np.datetime64(datetime.min, "us")
_LAST: Final = np.datetime64(datetime.max, "us")


@dataclass(frozen=True)
class RawColumn:
    """A column before its kind is settled; `kind` is what its type declares, None where that declares nothing."""

    kind: Kind | None
    values: NDArray[Any]
    missing: NDArray[np.bool_]

    @property
    def has_objects(self) -> bool:
        """Whether the values are Python objects."""
        return self.values.dtype == object


def read_column(name: str, values: Any) -> RawColumn:
    """Return a column of whatever was given, or raise WrongType for what is none, by its type alone."""
    module = type(values).__module__.partition(".")[0]
    if isinstance(values, str | bytes | Mapping | set | frozenset) or not hasattr(values, "__len__"):
        raise WrongType(f"{name} is a list or an array of values, not a {type(values).__name__}", name=name)
    if hasattr(values, "shape") and len(values.shape) != 1:
        raise WrongType(f"{name} is one column: a list of values, one a row", name=name)
    try:
        if module == "pandas" and hasattr(values, "dtype"):
            return _from_pandas(name, values)
        if module == "polars" and hasattr(values, "dtype"):
            return _from_polars(name, values)
        if module == "pyarrow" and hasattr(values, "type"):
            return _from_arrow(name, values)
    except WrongType:
        raise
    except Exception:  # whatever a frame's own code may raise; it may quote values
        raise WrongType(f"{name} cannot be read as a column of one type", name=name) from None
    if module in MODULES:
        raise WrongType(f"{name} is one column, not a table; name the column", name=name)
    if isinstance(values, np.ma.MaskedArray):
        refuse_masked(values)
    if isinstance(values, array.array | memoryview) or hasattr(values, "__array__"):
        found = np.asarray(values)
        if found.ndim != 1:
            raise WrongType(f"{name} is one column: a list of values, one a row", name=name)
        return _from_numpy(name, found)
    return _from_objects(list(values))


def fitted_column(name: str, column: RawColumn, kind: Kind) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of a column as a kind, and where they are missing or do not fit it."""
    if column.kind is not None and kind not in _READ_AS[column.kind]:
        raise WrongKind(f"{name} holds {column.kind} values, which are not read as {kind} values")
    if column.has_objects:
        return _fitted_objects(column, kind)
    values, missing = column.values, column.missing
    if kind is Kind.REAL:
        with np.errstate(over="ignore"):
            found = values.astype(np.float64)
        missing = missing | np.isnan(found)
        return np.where(missing, 0.0, found) + 0.0, missing  # -0.0 is 0.0
    if kind is Kind.INTEGER:
        return _fitted_integers(values, missing)
    if kind in _MOMENTS:
        return _fitted_moments(values, missing, kind)
    return values, missing


def unit_codes(column: RawColumn) -> NDArray[np.int64]:
    """Return a number for each row that is the same for the same unit, and -1 for rows without one.

    Units are compared exactly. Objects are the same unit if they are equal and of one type: 1, 1.0, True and "1" are
    four units. Objects that cannot be told apart for certain (anything but numbers, texts, bytes, dates, times, UUIDs
    and tuples of those) are no unit.
    """
    if not column.has_objects:
        codes = np.unique(column.values, return_inverse=True)[1].astype(np.int64)
        return np.where(column.missing, -1, codes)
    seen: dict[Any, int] = {}
    found = np.full(len(column.values), -1, dtype=np.int64)
    for place, value in enumerate(column.values):
        identity = _identity(value)
        if identity is not None:
            found[place] = seen.setdefault(identity, len(seen))
    return found


def _from_numpy(name: str, values: NDArray[Any]) -> RawColumn:
    code = values.dtype.kind
    if code == "M":
        is_day = np.datetime_data(values.dtype)[0] in ("Y", "M", "W", "D")
        return RawColumn(Kind.DATE if is_day else Kind.TIME, values, np.isnat(values))
    if code not in _NUMPY:
        raise WrongType(
            f"{name} is a list of numbers, truth values, texts, dates or times, all of one kind, not of type "
            f"{values.dtype}",
            name=name,
        )
    if code in "UTO":
        return _from_objects(values.astype(object), _NUMPY[code])
    nothing = np.isnan(values) if code == "f" else np.zeros(len(values), dtype=bool)
    return RawColumn(_NUMPY[code], values, nothing)


def _from_objects(values: Sequence[Any] | NDArray[Any], kind: Kind | None = None) -> RawColumn:
    made = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        made[place] = value  # one by one, for numpy takes lists of lists apart
    missing = np.fromiter((is_missing(value) for value in made), dtype=bool, count=len(made))
    return RawColumn(kind, made, missing)


def _from_pandas(name: str, values: Any) -> RawColumn:
    dtype = values.dtype
    if isinstance(dtype, np.dtype):
        return _from_numpy(name, values.to_numpy())
    match type(dtype).__name__:
        case "StringDtype":
            return _from_objects(values.to_numpy(dtype=object, na_value=None), Kind.TEXT)
        case "DatetimeTZDtype":
            return _from_numpy(name, values.to_numpy(dtype=f"datetime64[{dtype.unit}]"))
        case "CategoricalDtype":
            return _from_objects(np.asarray(values, dtype=object))
        case "SparseDtype":
            return _from_numpy(name, np.asarray(values))
        case "ArrowDtype":
            import pyarrow

            return _from_arrow(name, pyarrow.array(values.array))
    if getattr(dtype, "kind", "") in ("b", "i", "u", "f"):
        missing = np.asarray(values.isna(), dtype=bool)
        filled = values.to_numpy(dtype=dtype.numpy_dtype, na_value=False if dtype.kind == "b" else 0)
        column = _from_numpy(name, filled)
        return RawColumn(column.kind, column.values, column.missing | missing)
    raise _no_kind(name, dtype)


def _from_polars(name: str, values: Any) -> RawColumn:
    dtype = str(values.dtype.base_type())
    if dtype in ("Int128", "UInt128"):
        return _from_objects(values.to_list(), Kind.INTEGER)
    if dtype.startswith(("Int", "UInt")) and dtype.endswith(("8", "16", "32", "64")):
        return RawColumn(Kind.INTEGER, values.fill_null(0).to_numpy(), values.is_null().to_numpy())
    match dtype:
        case "Boolean":
            return RawColumn(Kind.BOOLEAN, values.fill_null(False).to_numpy(), values.is_null().to_numpy())
        case "Float32" | "Float64" | "Date" | "Datetime":
            return _from_numpy(name, values.to_numpy())
        case "String" | "Categorical" | "Enum":
            return _from_objects(values.to_list(), Kind.TEXT)
        case "Decimal":
            return _from_objects(values.to_list(), Kind.REAL)
        case "Null" | "Object":
            return _from_objects(values.to_list())
    raise _no_kind(name, values.dtype)


def _from_arrow(name: str, values: Any) -> RawColumn:
    import pyarrow
    from pyarrow import types

    of = values.type
    if types.is_dictionary(of):
        return _from_arrow(name, values.cast(of.value_type))
    if types.is_integer(of) or types.is_boolean(of):
        filled = values.fill_null(False if types.is_boolean(of) else 0).to_numpy(zero_copy_only=False)
        missing = values.is_null().to_numpy(zero_copy_only=False)
        return RawColumn(Kind.BOOLEAN if types.is_boolean(of) else Kind.INTEGER, filled, missing)
    if types.is_floating(of) or types.is_timestamp(of) or types.is_date32(of):
        return _from_numpy(name, values.to_numpy(zero_copy_only=False))
    if types.is_date64(of):
        return _from_arrow(name, values.cast(pyarrow.date32()))
    if types.is_string(of) or types.is_large_string(of) or types.is_string_view(of):
        written = values.cast(pyarrow.large_binary()).to_pylist()  # not every text is checked to be one
        return _from_objects([_decoded(one) for one in written], Kind.TEXT)
    if types.is_decimal(of):
        return _from_objects(values.to_pylist(), Kind.REAL)
    if types.is_null(of):
        return _from_objects([None] * len(values))
    raise _no_kind(name, of)


def _no_kind(name: str, dtype: object) -> WrongType:
    return WrongType(
        f"{name} is of type {dtype}; columns are of numbers, truth values, texts, dates or times", name=name
    )


def _decoded(written: bytes | None) -> str | None:
    try:
        return None if written is None else written.decode()
    except UnicodeDecodeError:
        return None


def is_missing(value: Any) -> bool:
    """Whether an object stands for no value: None, NaN, NaT, NA, or a masked entry."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return type(value).__module__.partition(".")[0] == "pandas" and type(value).__name__ in ("NAType", "NaTType")


def _fitted_integers(values: NDArray[Any], missing: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    if values.dtype.kind == "u":
        missing = missing | (values > np.uint64(INTEGER_MAX))
    elif values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            missing = missing | ~((np.abs(values) < 2.0**63) & (np.trunc(values) == values))
    return np.where(missing, np.zeros(1, dtype=values.dtype), values).astype(np.int64), missing


def _fitted_moments(
    values: NDArray[Any], missing: NDArray[np.bool_], kind: Kind
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    years = np.where(missing, _EPOCH.astype("datetime64[Y]"), values.astype("datetime64[Y]")).astype(np.int64) + 1970
    is_early, is_late = years < 1, years > 9999
    near = np.where(missing | is_early | is_late, _EPOCH.astype(values.dtype), values).astype("datetime64[us]")
    found = np.where(is_early, _FIRST, np.where(is_late, _LAST, near))
    if kind is Kind.DATE:
        found = found.astype("datetime64[D]").astype("datetime64[us]")
    return found, missing


def _fitted_objects(column: RawColumn, kind: Kind) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    read = _READERS[kind]
    found = [None if lacking else read(value) for value, lacking in zip(column.values, column.missing, strict=True)]
    missing = np.fromiter((one is None for one in found), dtype=bool, count=len(found))
    dtype, filler = _FILLERS[kind]
    made = np.empty(len(found), dtype=object)
    made[:] = [filler if one is None else one for one in found]
    return made.astype(dtype), missing


def _boolean(value: Any) -> bool | None:
    return bool(value) if isinstance(value, bool | np.bool_) else None


def _number(value: Any) -> int | float | Fraction | None:
    """Return a number of any type exactly."""
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() and abs(value.adjusted()) < 400 else float(value)
    return value if isinstance(value, Fraction) else None


def _integer(value: Any) -> int | None:
    number = _number(value)
    if number is None or (isinstance(number, float) and not number.is_integer()):
        return None
    if isinstance(number, Fraction) and number.denominator != 1:
        return None
    whole = int(number)
    return whole if INTEGER_MIN <= whole <= INTEGER_MAX else None


def _real(value: Any) -> float | None:
    number = _number(value)
    try:
        return None if number is None else float(number) + 0.0  # -0.0 is 0.0
    except OverflowError:
        return None


def _text(value: Any) -> str | None:
    return str.__str__(value) if isinstance(value, str) else None


def _time(value: Any) -> datetime | None:
    if isinstance(value, np.datetime64):
        (found,), (lacking,) = _fitted_moments(np.array([value]), np.zeros(1, dtype=bool), Kind.TIME)
        return None if lacking else found.item()
    try:
        if isinstance(value, datetime):
            moment = value if value.tzinfo is None else value.astimezone(UTC)
            return datetime(*moment.timetuple()[:6], moment.microsecond)
        return datetime(value.year, value.month, value.day) if isinstance(value, date) else None
    except (OverflowError, ValueError):
        return None


def _date(value: Any) -> datetime | None:
    moment = _time(value)
    return None if moment is None else datetime(moment.year, moment.month, moment.day)


_READERS: Final[Mapping[Kind, Callable[[Any], Any]]] = {
    Kind.BOOLEAN: _boolean,
    Kind.INTEGER: _integer,
    Kind.REAL: _real,
    Kind.TEXT: _text,
    Kind.DATE: _date,
    Kind.TIME: _time,
}


def _identity(value: Any) -> Any:
    """Return what is equal for the same unit only, or None for what is no unit."""
    if is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return "truth", bool(value)
    if isinstance(value, int | np.integer):
        return "whole", int(value)
    if isinstance(value, float):
        return "real", float(value)
    if isinstance(value, np.floating | Decimal | Fraction):
        return type(value).__name__, value
    if isinstance(value, str):
        return "text", str.__str__(value)
    if isinstance(value, bytes):
        return "bytes", bytes(value)
    if isinstance(value, tuple):
        parts = tuple(_identity(part) for part in value)
        return None if None in parts else ("tuple", parts)
    if isinstance(value, np.datetime64):
        return value.dtype.str, int(value.astype(np.int64))
    if isinstance(value, date) or type(value).__name__ == "UUID":
        try:
            hash(value)
        except Exception:  # a zone's own code may fail
            return None
        return type(value).__name__, value
    return None
