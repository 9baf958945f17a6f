"""Frames in memory, written as Parquet files, so that they outlive the process and can be registered.

A frame is a pandas, polars or Arrow table, or any object with Arrow's stream protocol (`__arrow_c_stream__`). The file
is written under another name and renamed: a table never reads half of it. Only its owner can read it and its folder.

Promise: the type of a column is that of the frame's column, and is not guessed from values. A pandas column of Python
objects has no type; it is written if all its values are texts, or all booleans, dates or bytes, and refused otherwise:
among whole numbers, one more value such as 0.5 or 10^20 would turn all of them into doubles, and merge units.
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
"""Files of frames that no table uses are removed after this time."""
_MODULES: Final = ("pandas", "polars", "pyarrow")


def is_frame(data: object) -> bool:
    """Return whether an object is a frame rather than a path."""
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
            f"data in memory must be a pandas, polars or Arrow table, not a {type(frame).__name__}", name="data"
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
    """Return whether two sources are files of frames in `folder` with the same content."""
    place = Path(folder).absolute() / FOLDER
    if before.form != "parquet" or Path(before.place).parent != place:
        return False
    with suppress(OSError):
        return filecmp.cmp(before.place, after.place, shallow=False)
    return False


def remove_unused(folder: Path | str, name: str, places: Collection[str], used: Collection[str]) -> None:
    """Remove those files of frames among `places` that no table is registered with.

    Also remove files of the table `name` that are older than `LEFTOVER_S` and unused, left by a process that died; a
    younger one may be about to be registered by another process.
    """
    start, now_s = f"{quote(name, safe=' ')}-", time.time()
    for path in (Path(folder).absolute() / FOLDER).glob("*.parquet"):
        with suppress(OSError):
            is_own = re.fullmatch(re.escape(start) + "[0-9a-f]{8}[.]parquet", path.name) is not None
            is_left = is_own and now_s - path.stat().st_mtime > LEFTOVER_S
            if (is_left or str(path) in places) and str(path) not in used:
                path.unlink()


def _with_schema(frame: Any) -> Any:
    """Return a frame of another library as a pyarrow reader, which has the names of its columns."""
    if _module(frame) in _MODULES or not _has_arrow():
        return frame
    import pyarrow as pa

    with suppress(Exception):  # the frame's own code may raise anything, and quote values
        return pa.RecordBatchReader.from_stream(frame)
    raise _unwritable(type(frame).__name__)


def _names(frame: Any) -> Iterable[object]:
    """Return the names of a frame's columns."""
    if _module(frame) == "pyarrow":
        return list(frame.schema.names)
    if hasattr(frame, "collect_schema"):  # polars, whose lazy frames warn of .columns
        return list(frame.collect_schema().names())
    return list(getattr(frame, "columns", ()))


def _typed(frame: Any) -> Any:
    """Return a copy of a pandas frame in whose columns DuckDB has no type to guess and no value to round."""
    import pandas as pd

    typed = frame.copy(deep=False)
    for place, dtype in enumerate(frame.dtypes):
        column = frame.iloc[:, place]
        if isinstance(dtype, pd.CategoricalDtype):
            column = _uncategorized(pd, column)
        if column.dtype == object:
            column = _single_typed(pd, column)
        elif isinstance(column.dtype, pd.DatetimeTZDtype):  # DuckDB cuts those to microseconds
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        if column.dtype != dtype:
            typed.isetitem(place, column)
    return typed


def _uncategorized(pd: Any, column: Any) -> Any:
    """Return a categorical column in the type of its categories, with its missing values."""
    categories = column.cat.categories
    if not pd.api.types.is_integer_dtype(categories.dtype):
        return column.astype("boolean" if pd.api.types.is_bool_dtype(categories.dtype) else categories.dtype)
    kind = "UInt64" if pd.api.types.is_unsigned_integer_dtype(categories.dtype) else "Int64"
    # astype would convert to double where a value is missing
    whole = pd.array(categories, dtype=kind).take(column.cat.codes, allow_fill=True)
    return pd.Series(whole, index=column.index, name=column.name)


def _single_typed(pd: Any, column: Any) -> Any:
    """Return a column of Python objects of one type that can be written; raise WrongType for any other."""
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
    except Exception:  # the frame's own code may raise anything, and quote values
        failed = type(frame).__name__
    finally:
        connection.close()
    if failed:
        if _module(frame) != "pandas" and not _has_arrow():
            raise Unavailable(f'a {failed} is read with pyarrow, which is not installed; pip install "tacit[frames]"')
        raise _unwritable(failed)


def _unwritable(kind: str) -> WrongType:
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
