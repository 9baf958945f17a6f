"""Files of targets: records of CSV and Parquet files, and TOML.

Cells of CSV files stay texts, so that 02138 is no number; those of Parquet files have their own types.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tacit.privacy.errors import InvalidInput, SourceMissing

if TYPE_CHECKING:
    from tacit.attack.records import Records

TRUE: Final = frozenset({"1", "true", "t", "yes", "y"})
FALSE: Final = frozenset({"0", "false", "f", "no", "n"})
_NUMBER: Final = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
"""Cells of CSV files that are numbers; 02138 is a code."""
GLOBS: Final = "*?["
"""Characters with which DuckDB reads a path as a pattern of several files."""


def read_records(path: Path) -> Records:
    """Return the records of a CSV or Parquet file."""
    from tacit.attack.records import Records

    if not path.is_file():
        raise SourceMissing(f"there is no file {path}")
    if path.suffix == ".parquet":
        return _read_parquet(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            names, rows = list(reader.fieldnames or ()), list(reader)
    except (OSError, UnicodeDecodeError, csv.Error):
        raise SourceMissing(f"{path} cannot be read as CSV in UTF-8") from None
    if len(set(names)) < len(names):
        raise InvalidInput(f"{path} has two columns of one name", name=str(path))
    if any(None in row or None in row.values() for row in rows):
        raise InvalidInput(f"a line of {path} has more or fewer cells than its first line", name=str(path))
    return Records.of(rows)


def _read_parquet(path: Path) -> Records:
    """Return the records of a Parquet file as Python objects, so that dates stay dates and integers integers."""
    import duckdb

    from tacit.attack.records import Records

    if any(one in str(path) for one in GLOBS):
        raise InvalidInput(f"{path} has one of {GLOBS} in its name, which DuckDB reads as a pattern; rename it")
    try:
        with duckdb.connect() as connection:
            result = connection.execute("SELECT * FROM read_parquet($1)", [str(path)])
            names, rows = [one[0] for one in result.description], result.fetchall()
    except duckdb.Error:
        raise SourceMissing(f"{path} cannot be read as Parquet") from None
    return Records({name: [row[place] for row in rows] for place, name in enumerate(names)})


def reads_as_number(cell: Any) -> bool:
    """Return whether a cell is a number or missing, in CSV or Parquet."""
    if isinstance(cell, str):
        return not cell or _NUMBER.fullmatch(cell) is not None
    return cell is None or (isinstance(cell, int | float | Decimal) and not isinstance(cell, bool))


def truths(cells: Sequence[Any]) -> list[bool]:
    """Return cells as truth values, or raise InvalidInput."""
    found = []
    for cell in cells:
        text = str(cell).strip().lower()
        if text not in TRUE | FALSE:
            raise InvalidInput(f"{cell!r} is no truth value; write 0 or 1", name="truth")
        found.append(text in TRUE)
    return found


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file."""
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SourceMissing(f"there is no file {path}") from None
    except RecursionError:
        raise InvalidInput(f"{path} is nested too deep", name=str(path)) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as TOML: {error}", name=str(path)) from None
