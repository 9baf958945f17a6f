"""Columns of arrays and frames as numpy arrays of one kind.

Promise: the kind of a column never depends on its values. A type of numpy, pandas, polars or Arrow declares it; Python
lists, arrays of objects and pandas categories (whose type follows from the values in them) declare none, and get theirs
from an argument (`stated_kinds`). Each value is read by itself: one that does not fit the kind, or fails when it is
read, is missing, whatever the other rows hold, so that no row changes how another one is read.

Values of each kind: BOOLEAN bool; INTEGER int64 (beyond 64 bits: missing); REAL float64 (NaN: missing); TEXT objects
that are str; DATE and TIME datetime64[us] in UTC (beyond the years 1 to 9999: the first or the last moment of these, as
in engines).
"""

from __future__ import annotations

import array
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any, Final, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.values import refuse_masked
from tacit.privacy.errors import WrongKind, WrongType
from tacit.privacy.tables import INTEGER_MAX, INTEGER_MIN, Kind
from tacit.stats.stated_kinds import kind_of_datetimes

T = TypeVar("T")

NESTED_MAX: Final = 8
"""How deep tuples that are units may be nested."""

MODULES: Final = ("pandas", "polars", "pyarrow")
"""Packages whose columns have types of their own."""

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
_TIMES: Final = frozenset({Kind.DATE, Kind.TIME})
_CASTS: Final = {
    Kind.BOOLEAN: frozenset({Kind.BOOLEAN}) | _NUMBERS,
    Kind.INTEGER: _NUMBERS,
    Kind.REAL: _NUMBERS,
    Kind.TEXT: frozenset({Kind.TEXT}),
    Kind.DATE: _TIMES,
    Kind.TIME: _TIMES,
}
"""The kinds that a column can be cast to, by the kind that its type declares."""

_FILLERS: Final[Mapping[Kind, tuple[Any, Any]]] = {
    Kind.BOOLEAN: (np.bool_, False),
    Kind.INTEGER: (np.int64, 0),
    Kind.REAL: (np.float64, 0.0),
    Kind.TEXT: (object, ""),
    Kind.DATE: ("datetime64[us]", datetime(1970, 1, 1)),
    Kind.TIME: ("datetime64[us]", datetime(1970, 1, 1)),
}
_FINER: Final = ("ns", "ps", "fs", "as")
"""Units finer than microseconds; numpy cannot convert some of them to years."""
_EPOCH: Final = np.datetime64("1970-01-01")
_FIRST: Final = np.datetime64(datetime.min, "us")
_LAST: Final = np.datetime64(datetime.max, "us")


@dataclass(frozen=True)
class RawColumn:
    """A column as it was given; `kind` is what its type declares, None if it declares nothing."""

    kind: Kind | None
    values: NDArray[Any]
    missing: NDArray[np.bool_]

    @property
    def has_objects(self) -> bool:
        """Whether the values are Python objects."""
        return self.values.dtype == object


def read_column(name: str, values: Any) -> RawColumn:
    """Return what was given as a column, or raise WrongType, which depends on its type alone."""
    module = type(values).__module__.partition(".")[0]
    if isinstance(values, str | bytes | Mapping | set | frozenset) or not hasattr(values, "__len__"):
        raise WrongType(f"{name} must be a list or an array of values, not a {type(values).__name__}", name=name)
    if hasattr(values, "shape") and len(values.shape) != 1:
        raise WrongType(f"{name} must be one column: a list of values, one for each row", name=name)
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
        raise WrongType(f"{name} must be one column, not a table; name the column", name=name)
    if isinstance(values, np.ma.MaskedArray):
        refuse_masked(values)
    if isinstance(values, array.array | memoryview) or hasattr(values, "__array__"):
        found = np.asarray(values)
        if found.ndim != 1:
            raise WrongType(f"{name} must be one column: a list of values, one for each row", name=name)
        return _from_numpy(name, found)
    return _from_objects(list(values))


def cast_column(name: str, column: RawColumn, kind: Kind) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of a column as a kind, and where they are missing or do not fit the kind."""
    if column.kind is not None and kind not in _CASTS[column.kind]:
        raise WrongKind(f"{name} holds {column.kind} values, which are not read as {kind} values")
    if column.has_objects:
        return _cast_objects(column, kind)
    values, missing = column.values, column.missing
    if kind is Kind.REAL:
        with np.errstate(over="ignore"):
            found = values.astype(np.float64)
        missing = missing | np.isnan(found)
        return np.where(missing, 0.0, found) + 0.0, missing  # -0.0 is 0.0
    if kind is Kind.INTEGER:
        return _cast_integers(values, missing)
    if kind in _TIMES:
        return _cast_times(values, missing, kind)
    return values, missing


def unit_codes(column: RawColumn) -> NDArray[np.int64]:
    """Return a number for each row, equal for rows of one unit, and -1 for rows without a unit.

    Units are compared exactly. Objects are the same unit if they are equal and of one type: 1, 1.0, True and "1" are
    four units. Objects whose equality is not reliable (anything but numbers, texts, bytes, dates, times, UUIDs and
    tuples of those, at most NESTED_MAX in one another) are no unit, nor are objects that fail when they are read.
    """
    if not column.has_objects:
        codes = np.unique(column.values, return_inverse=True)[1].astype(np.int64)
        return np.where(column.missing, -1, codes)
    seen: dict[Any, int] = {}
    found = np.full(len(column.values), -1, dtype=np.int64)
    for place, value in enumerate(column.values):
        identity = _read_or_none(_identity, value)
        if identity is not None:
            found[place] = seen.setdefault(identity, len(seen))
    return found


def _from_numpy(name: str, values: NDArray[Any]) -> RawColumn:
    code = values.dtype.kind
    if code == "M":
        return RawColumn(kind_of_datetimes(values.dtype), values, np.isnat(values))
    if code not in _NUMPY:
        raise WrongType(
            f"{name} is a list of numbers, booleans, texts, dates or times, all of one kind, not of type "
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
        made[place] = value  # one by one: numpy would make lists of lists two-dimensional
    missing = np.fromiter((_read_or_none(is_missing, value) is not False for value in made), bool, count=len(made))
    return RawColumn(kind, made, missing)


def _from_pandas(name: str, values: Any) -> RawColumn:
    dtype = values.dtype
    if isinstance(dtype, np.dtype):
        return _from_numpy(name, values.to_numpy())
    match type(dtype).__name__:
        case "StringDtype":
            if dtype.storage == "pyarrow":
                return _from_arrow(name, import_module("pyarrow").array(values.array))
            return _from_objects(values.to_numpy(dtype=object, na_value=None), Kind.TEXT)
        case "DatetimeTZDtype":
            return _from_numpy(name, values.to_numpy(dtype=f"datetime64[{dtype.unit}]"))
        case "CategoricalDtype":
            column = getattr(values, "array", values)
            categories = list(column.categories)  # as an array, one missing value would convert integers to doubles
            return _from_objects([None if code < 0 else categories[code] for code in column.codes])
        case "SparseDtype":
            return _from_numpy(name, np.asarray(values))
        case "ArrowDtype":
            return _from_arrow(name, import_module("pyarrow").array(values.array))
    if getattr(dtype, "kind", "") in ("b", "i", "u", "f"):
        missing = np.asarray(values.isna(), dtype=bool)
        filled = values.to_numpy(dtype=dtype.numpy_dtype, na_value=False if dtype.kind == "b" else 0)
        column = _from_numpy(name, filled)
        return RawColumn(column.kind, column.values, column.missing | missing)
    raise _unsupported_type(name, dtype)


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
    raise _unsupported_type(name, values.dtype)


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
        days = values.cast(pyarrow.int64()).cast(pyarrow.timestamp("ms")).to_numpy(zero_copy_only=False)
        return RawColumn(Kind.DATE, days, np.isnat(days))  # a cast to date32 fails for a moment within a day
    if types.is_string(of) or types.is_large_string(of) or types.is_string_view(of):
        written = values.cast(pyarrow.large_binary()).to_pylist()  # Arrow does not check that texts are UTF-8
        return _from_objects([_decode(one) for one in written], Kind.TEXT)
    if types.is_decimal(of):
        return _from_objects(values.to_pylist(), Kind.REAL)
    if types.is_null(of):
        return _from_objects([None] * len(values))
    raise _unsupported_type(name, of)


def _unsupported_type(name: str, dtype: object) -> WrongType:
    return WrongType(f"{name} is of type {dtype}; columns are of numbers, booleans, texts, dates or times", name=name)


def _decode(written: bytes | None) -> str | None:
    try:
        return None if written is None else written.decode()
    except UnicodeDecodeError:
        return None


def is_missing(value: Any) -> bool:
    """Return whether an object stands for no value: None, NaN, NaT, NA, or a masked entry."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return type(value).__module__.partition(".")[0] == "pandas" and type(value).__name__ in ("NAType", "NaTType")


def _cast_integers(values: NDArray[Any], missing: NDArray[np.bool_]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    if values.dtype.kind == "u":
        missing = missing | (values > np.uint64(INTEGER_MAX))
    elif values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            missing = missing | ~((np.abs(values) < 2.0**63) & (np.trunc(values) == values))
    return np.where(missing, np.zeros(1, dtype=values.dtype), values).astype(np.int64), missing


def _cast_times(values: NDArray[Any], missing: NDArray[np.bool_], kind: Kind) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    if np.datetime_data(values.dtype)[0] in _FINER:
        values = values.astype("datetime64[us]")
    years = np.where(missing, _EPOCH.astype("datetime64[Y]"), values.astype("datetime64[Y]")).astype(np.int64) + 1970
    is_early, is_late = years < 1, years > 9999
    near = np.where(missing | is_early | is_late, _EPOCH.astype(values.dtype), values).astype("datetime64[us]")
    found = np.where(is_early, _FIRST, np.where(is_late, _LAST, near))
    if kind is Kind.DATE:
        found = found.astype("datetime64[D]").astype("datetime64[us]")
    return found, missing


def _cast_objects(column: RawColumn, kind: Kind) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    read = _READERS[kind]
    found = [
        None if lacking else _read_or_none(read, value)
        for value, lacking in zip(column.values, column.missing, strict=True)
    ]
    missing = np.fromiter((one is None for one in found), dtype=bool, count=len(found))
    dtype, filler = _FILLERS[kind]
    made = np.empty(len(found), dtype=object)
    made[:] = [filler if one is None else one for one in found]
    return made.astype(dtype), missing


def _read_or_none(read: Callable[[Any], T], value: Any) -> T | None:
    """Return what a reader makes of an object, None where it fails: the object's own code may raise anything."""
    try:
        return read(value)
    except Exception:
        return None


def _boolean(value: Any) -> bool | None:
    return bool(value) if isinstance(value, bool | np.bool_) else None


def _number(value: Any) -> int | float | Fraction | None:
    """Return a number of any type exactly; a span of time is none, although numpy derives its type from integers."""
    if isinstance(value, np.timedelta64):
        return None
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return int.__int__(value) if isinstance(value, int) else int(value)
    if isinstance(value, float | np.floating):
        return float.__float__(value) if isinstance(value, float) else float(value)
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
        (found,), (lacking,) = _cast_times(np.array([value]), np.zeros(1, dtype=bool), Kind.TIME)
        return None if lacking else found.item()
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else value.astimezone(UTC)
        return datetime(*moment.timetuple()[:6], moment.microsecond)
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else None


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


def _identity(value: Any, depth: int = 0) -> Any:
    """Return a key of built-in values that is equal for the same unit only, or None for what is no unit.

    Keys of built-in values can be hashed and compared without the code of an object, which could fail for two rows that
    neither fails for alone.
    """
    if is_missing(value) or isinstance(value, np.timedelta64):
        return None
    if isinstance(value, bool | np.bool_):
        return "truth", bool(value)
    if isinstance(value, int | np.integer):
        return "whole", _number(value)
    if isinstance(value, float):
        return "real", _number(value)
    if isinstance(value, np.floating):
        return type(value).__name__, value
    if isinstance(value, Decimal):
        return type(value).__name__, Decimal(value)
    if isinstance(value, Fraction):
        return type(value).__name__, int(value.numerator), int(value.denominator)
    if isinstance(value, str):
        return "text", str.__str__(value)
    if isinstance(value, bytes):
        return "bytes", bytes(value)
    if isinstance(value, tuple):
        parts = [_identity(part, depth + 1) for part in tuple.__iter__(value)] if depth < NESTED_MAX else [None]
        return None if None in parts else ("tuple", tuple(parts))
    if isinstance(value, np.datetime64):
        return value.dtype.str, int(value.astype(np.int64))
    if isinstance(value, datetime):
        return type(value).__name__, *_moment(value)
    if isinstance(value, date):
        return type(value).__name__, date(value.year, value.month, value.day)
    return ("UUID", int(value.int)) if isinstance(value, UUID) else None


def _moment(value: datetime) -> tuple[bool, timedelta, int]:
    """Return whether a time has a zone, the time since the year 1 (in UTC if it has one), and its nanoseconds."""
    clock = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    offset = value.utcoffset()
    since = clock - datetime.min - (offset or timedelta())
    return offset is not None, since, int(getattr(value, "nanosecond", 0))
