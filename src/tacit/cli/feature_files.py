"""Files of rows that a model predicts for: CSV, read some rows at a time, with errors that name line and column."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any, Final

from tacit.privacy.errors import InvalidInput
from tacit.privacy.tables import Kind

ROWS_AT_ONCE: Final = 1_000
"""Rows of one request for predictions."""
TEXT_SHOWN: Final = 40
"""Characters of a bad field that a message shows."""


def feature_parts(rows: Path, features: Sequence[str], kinds: Sequence[Kind]) -> Iterator[Mapping[str, list[Any]]]:
    """Yield the features of some rows after another, as columns; raise InvalidInput for a file that has none."""
    try:
        with sys.stdin if str(rows) == "-" else rows.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            if doubled := [name for name in features if header.count(name) > 1]:
                raise InvalidInput(f"{rows} has two columns {doubled[0]}; name each once", name=doubled[0])
            if missing := [name for name in features if name not in header]:
                raise InvalidInput(
                    f"{rows} has no column {missing[0]}; the features are {', '.join(features)}", name=missing[0]
                )
            places = [header.index(name) for name in features]
            while part := list(islice(_rows(reader, header, rows), ROWS_AT_ONCE)):
                yield {
                    name: [_cell(f"{rows}, line {line}", row[at], name, kind) for line, row in part]
                    for name, kind, at in zip(features, kinds, places, strict=True)
                }
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {rows}", name="rows", value=str(rows)) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{rows} cannot be read as CSV in UTF-8: {error}", name="rows", value=str(rows)) from None


def _rows(reader: Any, header: Sequence[str], file: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield lines and their rows, with a field for each name of the header; raise InvalidInput for another number.

    A blank line is left out at the end, and is a row of empty fields before others.
    """
    blank: list[int] = []
    for row in reader:
        if not row:
            blank.append(reader.line_num)
            continue
        if len(row) != len(header):
            raise InvalidInput(
                f"line {reader.line_num} of {file} has {len(row)} fields, and the header {len(header)}; quote a field "
                "that holds a comma",
                name="rows",
            )
        yield from ((line, [""] * len(header)) for line in blank)
        blank.clear()
        yield reader.line_num, row


def _cell(place: str, text: str, name: str, kind: Kind) -> Any:
    """Return a field of a CSV file as a value of a kind, None if it is empty; raise InvalidInput for what is none."""
    if not text:
        return None  # a listed category, or refused by the model
    readers: dict[Kind, tuple[Any, ...]] = {
        Kind.TEXT: (str,),
        Kind.BOOLEAN: ({"true": True, "false": False}.__getitem__,),
        Kind.INTEGER: (int, float),
        Kind.REAL: (int, float),
        Kind.DATE: (date.fromisoformat,),
        Kind.TIME: (datetime.fromisoformat,),
    }
    plain = text if kind is Kind.TEXT else text.strip().lower() if kind is Kind.BOOLEAN else text.strip()
    for read in readers[kind]:
        try:
            found = read(plain)
        except (ValueError, KeyError):
            continue
        if not isinstance(found, float) or isfinite(found):
            return found
    raise InvalidInput(f"{place}: {name} is {text[:TEXT_SHOWN]!r}, which is no {kind} value", name=name, value=text)
