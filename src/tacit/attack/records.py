"""Records that a caller hands over, as columns: frames of pandas, polars and Arrow, mappings, and lists of mappings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.errors import EmptyInput, InvalidInput, NotInCatalog, WrongType
from tacit.privacy.texts import did_you_mean


class Records:
    """Columns of equal length, by name; values stay Python objects, and missing ones (NaN, NaT, NA) are None.

    Names are texts, as are those of columns that are numbers. A cell is a single value: one that cannot be hashed (a
    list, a set, an array) is refused.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.columns = {str(name): _objects(str(name), values) for name, values in columns.items()}
        lengths = {len(values) for values in self.columns.values()}
        if len(lengths) > 1:
            raise InvalidInput("the columns of records must have the same length", name="records")
        self.size = lengths.pop() if lengths else 0
        if not self.size:
            raise EmptyInput("there are no records to attack", name="records")

    @classmethod
    def of(cls, data: object) -> Self:
        """Return the records of a frame, a mapping of columns or a list of mappings."""
        if isinstance(data, cls):
            return data
        if isinstance(data, Mapping):
            return cls(data)
        if isinstance(data, Sequence) and not isinstance(data, str | bytes):
            if not all(isinstance(row, Mapping) for row in data):
                raise WrongType("a list of records must hold mappings from names to values", name="records")
            names = dict.fromkeys(name for row in data for name in row)
            return cls({name: [row.get(name) for row in data] for name in names})
        if hasattr(data, "to_pydict"):  # Arrow
            return cls(data.to_pydict())
        if hasattr(data, "columns") and hasattr(data, "__getitem__"):  # pandas, polars
            return cls({str(name): data[name].to_list() for name in data.columns})
        raise WrongType(
            f"records must be a frame, a mapping of columns or a list of mappings, not {type(data).__name__}",
            name="records",
        )

    def require(self, names: Sequence[str]) -> None:
        """Raise NotInCatalog unless there is a column of each name."""
        for name in names:
            if name not in self.columns:
                hint = did_you_mean(str(name), self.columns, f"there are {', '.join(self.columns)}")
                raise NotInCatalog(f"the records have no column {name!r}; {hint}")

    def __getitem__(self, name: str) -> NDArray[np.object_]:
        self.require([name])
        return self.columns[name]

    def rows(self, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the values of some columns, a tuple for each record."""
        self.require(names)
        return list(zip(*(self.columns[name].tolist() for name in names), strict=True))


def _objects(name: str, values: Any) -> NDArray[np.object_]:
    found = np.empty(len(values), dtype=object)
    for place, one in enumerate(values.tolist() if isinstance(values, np.ndarray) else values):
        found[place] = _or_none(one)
    require_single(name, found)
    return found


def require_single(name: str, values: Iterable[Any]) -> None:
    """Raise WrongType for a value that cannot be hashed, as a list or a set."""
    for one in values:
        try:
            hash(one)
        except TypeError:
            raise WrongType(
                f"{name} must hold single values, such as texts and numbers, not {type(one).__name__}", name=name
            ) from None


def _or_none(value: Any) -> Any:
    """Return a value, or None for one that does not equal itself: NaN, and what frames write for missing values."""
    try:
        return value if value == value else None
    except TypeError:  # pandas.NA has no truth value
        return None
    except ValueError:  # an array
        return value
