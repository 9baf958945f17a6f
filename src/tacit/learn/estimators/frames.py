"""X and y as callers of scikit-learn pass them: frames, mappings and arrays, as named columns.

Nothing is read off the values here; a wrong shape is told with the words that scikit-learn's contract asks for.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning

from tacit.privacy.errors import WrongType
from tacit.stats.column_reader import MODULES


class WrongFeatures(WrongType, ValueError):
    """X or y has the wrong shape; also a ValueError, as scikit-learn's contract asks."""


class BoundedRows(np.ndarray[Any, np.dtype[np.float64]]):
    """What a fitted transformer returned, with the bounds of its columns, which follow from its release.

    The estimator that is fitted on it next takes them where it states none. Views, copies and computed arrays have
    none, except for a column of `columns_of`, which has its own.
    """

    bounds: Sequence[tuple[float, float]] = ()

    @classmethod
    def of(cls, values: NDArray[np.float64], bounds: Iterable[tuple[float, float]]) -> Self:
        """Return an array with the bounds of its columns."""
        found = values.view(cls)
        found.bounds = tuple(bounds)
        return found

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return what is computed from the rows as a plain array or number."""
        return array[()] if return_scalar else np.asarray(array)


def columns_of(X: Any) -> dict[str, Any]:
    """Return the columns of a frame, a mapping or a two-dimensional array by name; those of arrays are x0, x1, ..."""
    if issparse(X):
        raise WrongFeatures("sparse rows are not supported; pass X.toarray()", name="X")
    module = type(X).__module__.partition(".")[0]
    if module == "pandas" and hasattr(X, "iloc") and X.ndim == 2:
        names, columns = list(X.columns), [X.iloc[:, place] for place in range(X.shape[1])]
    elif module in MODULES and hasattr(X, "columns") and not hasattr(X, "dtype"):
        names = list(X.column_names if module == "pyarrow" else X.columns)
        columns = [X[name] for name in names]
    elif isinstance(X, Mapping):
        names, columns = list(X), list(X.values())
        if len(set(map(len, columns))) > 1:
            raise WrongFeatures("the columns of X must have the same number of values", name="X")
    else:
        array = _array_of(X)
        if array.ndim != 2:
            raise WrongFeatures(
                f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: one row each", name="X"
            )
        names, columns = [None] * array.shape[1], [array[:, place] for place in range(array.shape[1])]
        if isinstance(array, BoundedRows):
            for column, bounds in zip(columns, array.bounds, strict=False):
                column.bounds = (bounds,)
    if not columns:
        raise WrongFeatures(f"0 feature(s) (shape={X.shape}) while a minimum of 1 is required.", name="X")
    shown = [name if isinstance(name, str) else f"x{place}" for place, name in enumerate(names)]
    found = dict(zip(shown, columns, strict=True))
    if len(found) < len(columns):
        raise WrongFeatures("the columns of X must have distinct names", name="X")
    return found


def _array_of(X: Any) -> NDArray[Any]:
    """Return X as an array; lists as one of objects, so that their values decide no kind."""
    found = X if isinstance(X, np.ndarray) else None
    if found is None:
        found = np.asarray(X) if hasattr(X, "__array__") else np.array(X, dtype=object)
    if found.dtype.kind == "c":
        raise WrongFeatures("Complex data not supported", name="X")
    return found


def names_in(X: Any) -> list[str] | None:
    """Return the names of the columns of a frame; None for an array."""
    if isinstance(X, Mapping):
        return list(X)
    if type(X).__module__.partition(".")[0] not in MODULES:
        return None
    names = list(X.column_names if hasattr(X, "column_names") else X.columns)
    return names if all(isinstance(name, str) for name in names) else None


def one_column(y: Any) -> Any:
    """Return y as one column; an array of shape (n, 1) is one."""
    if hasattr(y, "__array__") and type(y).__module__.partition(".")[0] not in MODULES:
        y = y if isinstance(y, np.ndarray) else np.asarray(y)
    shape: tuple[int, ...] = getattr(y, "shape", (0,))
    if len(shape) == 2 and shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected", DataConversionWarning, stacklevel=4)
        return np.asarray(y)[:, 0]
    if getattr(getattr(y, "dtype", None), "kind", "") == "c":
        raise WrongFeatures("Complex data not supported", name="y")
    if len(shape) != 1:
        raise WrongFeatures("y should be a 1d array, one value for each row of X", name="y")
    return y
