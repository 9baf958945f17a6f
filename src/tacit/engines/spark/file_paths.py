"""Paths of the files that Spark reads, in one spelling.

A source `parquet:PATH` is read as Hadoop reads it: `/x`, `file:/x` and `file:///x` are one path; a scheme may be in
upper case; a % stands for itself; several slashes are one; `.` and `..` are taken off before links are followed; and a
path with `[`, `*` or `?` is a glob, also where a file of that very name exists. What Python's globs do not match in the
same way (`{a,b}`, `[^a]`, escapes), and paths that depend on where Java was started, are refused: files that are
registered must be recognised under every name.
"""

from __future__ import annotations

import glob
import os
import re
from typing import Final

from tacit.privacy.errors import InvalidInput

FILES: Final = "parquet:"
"""What a source of files begins with."""

_ADDRESS: Final = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(/.*)", re.DOTALL)
_STORES: Final = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "wasb"}
"""Schemes of the same store."""

_REMOTE: Final = frozenset({"s3", "gs", "hdfs", "viewfs", "abfs", "wasb"})
_CLASS: Final = re.compile(r"\[!?[\w.-]+\]")
_UNLIKE_PYTHON: Final = frozenset("{}[]\\")


def local_path(table: str) -> str | None:
    """Return the path or glob of local files that a source of Spark names, None for a table or files of a store."""
    address = normalize_address(table) if table.startswith(FILES) else ""
    return address if address.startswith("/") else None


def normalize_address(table: str) -> str:
    """Return the address of a source of files in one spelling: a path for local files, scheme://host/path for others.

    Raises InvalidInput, without quoting the address, unless it is known which files it names.
    """
    parts = _ADDRESS.fullmatch(table.removeprefix(FILES))
    scheme = (parts[1] or "file").lower() if parts else ""
    scheme = _STORES.get(scheme, scheme)
    is_local = parts is not None and scheme == "file" and (parts[2] or "") in ("", "localhost")
    if parts is None or not (is_local or scheme in _REMOTE):
        raise InvalidInput(
            "files of Spark are named by a path that begins with /, with file: before it or none, or by the address of "
            "a store such as s3a://bucket/path; write the path in one of these forms",
            name="source",
        )
    path = os.path.normpath(re.sub("/+", "/", parts[3]))
    if not is_local:
        return f"{scheme}://{(parts[2] or '').lower()}{path}"
    if _UNLIKE_PYTHON.intersection(_CLASS.sub("", path)):
        raise InvalidInput(
            "a path of Spark has the signs *, ? and [a-z] for several files; name a folder, or use these in the place "
            "of {a,b}, [^a] and escapes",
            name="source",
        )
    return path


def match_files(path: str) -> list[str]:
    """Return the present files and folders that a path or glob of local files may name."""
    found = {path} if os.path.exists(path) else set()
    return sorted(found.union(glob.glob(path, recursive=True, include_hidden=True)))
