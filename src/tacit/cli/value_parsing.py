"""Parsers of bounds, categories, kinds and foreign keys, for the command line and the wizard."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import date, datetime
from typing import Final

from tacit.privacy import strict_json
from tacit.privacy.bounds import Bounds, Categories, Category
from tacit.privacy.errors import InvalidInput, TacitError
from tacit.privacy.tables import Kind
from tacit.privacy.units import ForeignKey

_SEPARATOR: Final = re.compile(r"\s*(?:\.\.|…|,|;|\bto\b|:)\s*|\s+")
EXAMPLES: Final = {
    Kind.INTEGER: "0:120",
    Kind.REAL: "0:99.5",
    Kind.DATE: "2020-01-01:2024-12-31",
    Kind.TIME: "2020-01-01T00:00..2024-12-31T23:59",
}
_TRUTHS: Final = {"true": True, "yes": True, "false": False, "no": False}


def pair_of(text: str, example: str, form: str = "COLUMN=VALUE") -> tuple[str, str]:
    """Split "column=value" at the first =; neither part may be empty."""
    name, mark, value = text.partition("=")
    if not (mark and name.strip() and value.strip()):
        raise InvalidInput(f"write {form}, such as {example}, not {text!r}", value=text)
    return name.strip(), value.strip()


def bounds_of(name: str, kind: Kind, text: str) -> Bounds:
    """Parse two bounds with any usual separator: 0:120, 0..120, "0 to 120", "0 120"."""
    if kind not in EXAMPLES:
        remedy = f"give its categories, or read it as numbers: --kind {name}=integer (other values become missing)"
        raise InvalidInput(f"{name} is {kind} and cannot have bounds; {remedy}", name=name, value=text)
    problem = ""
    for lower, upper in _halves(text.strip()):
        try:
            return Bounds(_end(kind, lower), _end(kind, upper))
        except TacitError as error:
            problem = problem or (error.message if error.code != "T104" else "")
    raise InvalidInput(problem or f"bounds of {name} are written {EXAMPLES[kind]}, not {text!r}", name=name, value=text)


def categories_of(name: str, kind: Kind, text: str) -> Categories:
    """Parse comma-separated values, quoted where they contain a comma, or a JSON list with null for missing values."""
    if (listed := json_list(name, text)) is not None:
        return Categories(_category(name, kind, one) if isinstance(one, str) else one for one in listed)
    try:
        values = [part.strip() for part in next(csv.reader([text.strip()], skipinitialspace=True), [])]
    except csv.Error:
        raise InvalidInput(f"categories of {name} must be one comma-separated line", name=name) from None
    return Categories(_category(name, kind, value) for value in values if value)


def json_list(name: str, text: str) -> list[str | int | bool | None] | None:
    """Parse a JSON list, or return None if the text does not start with [."""
    if not text.strip().startswith("["):
        return None
    try:
        found = strict_json.loads(text)
    except InvalidInput:
        found = None
    if not isinstance(found, list) or not all(one is None or isinstance(one, str | int) for one in found):
        raise InvalidInput(
            f'a value that starts with [ must be a JSON list of strings, integers and null: {name}=["a", "b", null]',
            name=name,
            value=text,
        )
    return found


def kind_of(name: str, text: str) -> Kind:
    """Parse a kind."""
    try:
        return Kind(text.lower())
    except ValueError:
        kinds = ", ".join(kind.value for kind in Kind)
        raise InvalidInput(f"the kind of {name} must be one of {kinds}, not {text!r}", name=name, value=text) from None


def key_of(text: str) -> ForeignKey:
    """Parse one foreign key towards the unit: "visit_id=visits.id"."""
    column, _, target = text.partition("=")
    table, _, target_column = target.rpartition(".")
    if not (column.strip() and table.strip() and target_column.strip()):
        raise InvalidInput(f"write a foreign key as COLUMN=TABLE.COLUMN, such as visit_id=visits.id, not {text!r}")
    return ForeignKey(column.strip(), table.strip(), target_column.strip())


def _halves(text: str) -> Iterator[tuple[str, str]]:
    for match in _SEPARATOR.finditer(text):
        if match.start() > 0 and match.end() < len(text):
            yield text[: match.start()], text[match.end() :]


def _end(kind: Kind, text: str) -> int | float | str:
    if not kind.is_number or not text.isascii():
        return text
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text  # Bounds refuses it and quotes it


def _category(name: str, kind: Kind, text: str) -> Category:
    try:
        if kind is Kind.BOOLEAN:
            return _TRUTHS[text.lower()]
        if kind.is_number:
            return int(text)
        if kind is Kind.DATE:
            return date.fromisoformat(text)
        return datetime.fromisoformat(text) if kind is Kind.TIME else text
    except (KeyError, ValueError):
        raise InvalidInput(
            f"{text!r} is not a value of {name}, whose kind is {kind}; change the value, or the kind with --kind",
            name=name,
        ) from None
