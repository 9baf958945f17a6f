"""Frames that are in memory, written down as a Parquet file, so that they outlive the process and can be registered.

A frame is a pandas, polars or Arrow table, or anything that speaks Arrow's stream protocol (`__arrow_c_stream__`). The
file is written aside and renamed: a table never reads half of it. Only its owner can read it and its folder.

Promise: the type of a column is that of the frame's column, and is not guessed from values. A pandas column of Python
objects has no type; it is written if all its values are texts, or all truths, dates or bytes, and refused otherwise:
among whole numbers, one more value such as 0.5 or 10^20 would turn all of them into doubles, and people into one.
"""

from __future__ import annotations

import filecmp
import os
import re
import secrets
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tacit.engines.protocol import Source
from tacit.engines.quoting import require_distinct
from tacit.privacy.errors import EngineFailed, Unavailable, WrongType

FOLDER: Final = "tables"
LEFTOVER_S: Final = 86_400
_MODULES: Final = ("pandas", "polars", "pyarrow")


def is_frame(data: object) -> bool:
    """Return whether something is a frame rather than a path."""
    if isinstance(data, str | os.PathLike | type) or _is_series(data):
        return False
    if hasattr(data, "__arrow_c_stream__"):
        return True
    return _module(data) in _MODULES and type(data).__name__ in ("DataFrame", "LazyFrame", "Table", "RecordBatch")


def frame_source(frame: Any, folder: Path | str, name: str) -> Source:
    """Write a frame to a new file in `folder`/tables and return it as a source.

    Files of earlier registrations stay: the table may be registered with one until the new one is accepted.
    """
    if not is_frame(frame):
        raise WrongType(
            f"rows in memory come as a pandas, polars or Arrow table, not as a {type(frame).__name__}", name="data"
        )
    frame = _with_schema(frame)
    require_distinct(f"the {type(frame).__name__} for {name}", map(str, _names(frame)))
    place = Path(folder).absolute() / FOLDER
    path = place / f"{quote(name, safe=' ')}-{secrets.token_hex(4)}.parquet"
    aside = place / f"{path.name}.aside-{os.getpid()}"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.chmod(0o700)
        aside.touch(mode=0o600)
        _write(_typed(frame) if _module(frame) == "pandas" else frame, aside)
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError:
        raise EngineFailed(f"the rows of {name} cannot be written to {path}; check the folder and its disk") from None
    finally:
        with suppress(OSError):
            aside.unlink()
    return Source("parquet", str(path))


def is_same_frame(before: Source, after: Source, folder: Path | str) -> bool:
    """Return whether two sources are files of frames in `folder` that hold the same bytes."""
    place = Path(folder).absolute() / FOLDER
    if before.form != "parquet" or Path(before.place).parent != place:
        return False
    with suppress(OSError):
        return filecmp.cmp(before.place, after.place, shallow=False)
    return False


def remove_unused(folder: Path | str, name: str, places: Collection[str], used: Collection[str]) -> None:
    """Remove those files of frames among `places` that no table is registered with.

    With them go files of the table `name` that a process which died has left a day ago or earlier: a younger one may be
    somebody else's who is about to register it.
    """
    start, now_s = f"{quote(name, safe=' ')}-", time.time()
    for path in (Path(folder).absolute() / FOLDER).glob("*.parquet"):
        with suppress(OSError):
            is_own = re.fullmatch(re.escape(start) + "[0-9a-f]{8}[.]parquet", path.name) is not None
            is_left = is_own and now_s - path.stat().st_mtime > LEFTOVER_S
            if (is_left or str(path) in places) and str(path) not in used:
                path.unlink()


def _with_schema(frame: Any) -> Any:
    """Return a stream of rows that no known library made as one that says how its columns are called."""
    if _module(frame) in _MODULES or not _has_arrow():
        return frame
    import pyarrow as pa

    with suppress(Exception):  # whatever a frame's own code may raise; it may quote values
        return pa.RecordBatchReader.from_stream(frame)
    raise _not_written(type(frame).__name__)


def _names(frame: Any) -> Iterable[object]:
    """Return the names of the columns of a frame, as it has them."""
    if _module(frame) == "pyarrow":
        return list(frame.schema.names)
    if hasattr(frame, "collect_schema"):  # polars, whose lazy frames warn of .columns
        return list(frame.collect_schema().names())
    return list(getattr(frame, "columns", ()))


def _typed(frame: Any) -> Any:
    """Return a pandas frame in which DuckDB has nothing to guess and nothing to round; the given one stays as it is."""
    import pandas as pd

    typed = frame.copy(deep=False)
    for place, dtype in enumerate(frame.dtypes):
        column = frame.iloc[:, place]
        if isinstance(dtype, pd.CategoricalDtype):
            column = _uncategorized(pd, column)
        if column.dtype == object:
            column = _of_one_type(pd, column)
        elif isinstance(column.dtype, pd.DatetimeTZDtype):  # DuckDB cuts those to microseconds
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        if column.dtype != dtype:
            typed.isetitem(place, column)
    return typed


def _uncategorized(pd: Any, column: Any) -> Any:
    """Return a column of categories as one of their own type, with missing values where there are any."""
    categories = column.cat.categories
    if not pd.api.types.is_integer_dtype(categories.dtype):
        return column.astype("boolean" if pd.api.types.is_bool_dtype(categories.dtype) else categories.dtype)
    kind = "UInt64" if pd.api.types.is_unsigned_integer_dtype(categories.dtype) else "Int64"
    # astype would lead over doubles where a value is missing
    whole = pd.array(categories, dtype=kind).take(column.cat.codes, allow_fill=True)
    return pd.Series(whole, index=column.index, name=column.name)


def _of_one_type(pd: Any, column: Any) -> Any:
    """Return a column of Python objects if they are of one type that can be written as it is, or refuse it."""
    found = pd.api.types.infer_dtype(column, skipna=True)
    if found in ("string", "empty"):
        return column.astype("string")
    if found in ("boolean", "date", "bytes"):
        return column
    raise WrongType(
        f"the column {column.name} holds Python objects ({found}); give it one type, for example with "
        '.astype("Int64") for whole numbers or .astype("string") for texts',
        name="data",
    )


def _write(frame: Any, path: Path) -> None:
    import duckdb

    from tacit.engines.duckdb.connections import connect
    from tacit.engines.quoting import literal

    failed = ""
    connection = connect({"preserve_insertion_order": True})  # the same rows again give the same bytes
    try:
        connection.register("frame", frame)
        connection.execute(f"COPY (SELECT * FROM frame) TO {literal(str(path))} (FORMAT parquet, USE_TMP_FILE false)")
    except duckdb.IOException:
        raise EngineFailed(f"the rows cannot be written to {path.parent}; check the folder and its disk") from None
    except Exception:  # whatever a frame's own code may raise; it may quote values
        failed = type(frame).__name__
    finally:
        connection.close()
    if failed:
        if _module(frame) != "pandas" and not _has_arrow():
            raise Unavailable(f'a {failed} is read with pyarrow, which is not installed; pip install "tacit[frames]"')
        raise _not_written(failed)


def _not_written(kind: str) -> WrongType:
    return WrongType(
        f"this {kind} cannot be written as a table; give every column one type of numbers, texts, dates or times",
        name="data",
    )


def _has_arrow() -> bool:
    try:
        import pyarrow
    except ImportError:
        return False
    return bool(pyarrow)


def _is_series(data: object) -> bool:
    return _module(data) in _MODULES and type(data).__name__ in ("Series", "Array", "ChunkedArray", "Index")


def _module(data: object) -> str:
    return type(data).__module__.partition(".")[0]
