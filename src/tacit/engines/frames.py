"""Frames that are in memory, written down as a Parquet file, so that they outlive the process and can be registered.

A frame is a pandas, polars or Arrow table, or anything that speaks Arrow's stream protocol (`__arrow_c_stream__`). The
file is written aside and renamed: a table never reads half of it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tacit.engines.protocol import Source
from tacit.privacy.errors import EngineFailed, Unavailable, WrongType

FOLDER: Final = "tables"
_MODULES: Final = ("pandas", "polars", "pyarrow")


def is_frame(data: object) -> bool:
    """Return whether something is a frame rather than a path."""
    if isinstance(data, str | os.PathLike | type) or _is_series(data):
        return False
    if hasattr(data, "__arrow_c_stream__"):
        return True
    return _module(data) in _MODULES and type(data).__name__ in ("DataFrame", "LazyFrame", "Table", "RecordBatch")


def frame_source(frame: Any, folder: Path | str, name: str) -> Source:
    """Write a frame to `folder`/tables/NAME.parquet and return it as a source; a file that is there is replaced."""
    if not is_frame(frame):
        raise WrongType(
            f"rows in memory come as a pandas, polars or Arrow table, not as a {type(frame).__name__}", name="data"
        )
    place = Path(folder).absolute() / FOLDER
    path = place / f"{quote(name, safe=' ')}.parquet"
    aside = place / f"{path.name}.aside-{os.getpid()}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        _write(frame, aside)
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError:
        raise EngineFailed(f"the rows of {name} cannot be written to {path}; check the folder and its disk") from None
    finally:
        with suppress(OSError):
            aside.unlink()
    return Source("parquet", str(path))


def _write(frame: Any, path: Path) -> None:
    import duckdb

    from tacit.engines.duckdb.connecting import connect
    from tacit.engines.names import literal

    failed = ""
    connection = connect({})
    try:
        connection.register("frame", frame)
        connection.execute(f"COPY (SELECT * FROM frame) TO {literal(str(path))} (FORMAT parquet)")
    except duckdb.IOException:
        raise EngineFailed(f"the rows cannot be written to {path.parent}; check the folder and its disk") from None
    except Exception:  # whatever a frame's own code may raise; it may quote values
        failed = type(frame).__name__
    finally:
        connection.close()
    if failed:
        if _module(frame) != "pandas" and not _has_arrow():
            raise Unavailable(f'a {failed} is read with pyarrow, which is not installed; pip install "tacit[frames]"')
        raise WrongType(
            f"this {failed} cannot be written as a table; give every column one type of numbers, texts, dates or times",
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
