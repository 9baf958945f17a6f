"""What the name of a column suggests; said to the owner, and never decided for them.

Only names are looked at. They are guesses: whoever knows the table knows better.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tacit.engines.protocol import Described
from tacit.privacy.tables import Kind, Table

PEOPLE: Final = (
    r"patient|person|user|customer|client|member|subject|citizen|employee|student|respondent|participant|individual"
    r"|household|account|device|worker|resident|driver|player|owner|voter|donor|guest|tenant"
)
_ID: Final = r"(_?(id|key|no|nr|num|number|code|uid|uuid|pk|ref))"
_PERSON: Final = re.compile(rf"({PEOPLE})s?{_ID}?|ssn|mrn|nhs(_?(no|number))?|uid|pid", re.IGNORECASE)
_NAMES_PEOPLE: Final = re.compile(
    r"(.*_)?(e?_?mail|phone|mobile|ssn|passport|iban|(first|last|full|sur|family|given)_?name|address|street|ip|imei"
    r"|licen[cs]e(_plate)?|social_security.*|tax_?(id|number)|fingerprint|username|login)(_.*)?",
    re.IGNORECASE,
)
_BIRTH: Final = re.compile(r"(.*_)?(dob|birth_?(date|day)?|date_?of_?birth|born(_on)?|bdate)(_.*)?", re.IGNORECASE)
_ROW_ID: Final = re.compile(r"(id|row_?id|rowid|index|pk|nr|no|uuid|guid)", re.IGNORECASE)


def likely_units(described: Sequence[Described]) -> list[str]:
    """Return columns whose names look as if they said whose row it is."""
    return [one.name for one in described if _PERSON.fullmatch(one.name.replace(" ", "_"))]


def column_hint(name: str, kind: Kind | None) -> str:
    """Say what the name of a column suggests about it, or nothing."""
    plain = name.replace(" ", "_")
    if _BIRTH.fullmatch(plain) and kind in (Kind.DATE, Kind.TIME, Kind.TEXT):
        return f"{name} looks like a date of birth: its bounds must hold for anybody, say from 1900-01-01 on"
    if _NAMES_PEOPLE.fullmatch(plain):
        return f"{name} looks like it names people: state no categories of it, for they would be public"
    return ""


def unit_hint(table: str, unit: str) -> str:
    """Doubt a unit that seems to number rows instead of people, or say nothing."""
    singular = table.lower().removesuffix("s")
    if _ROW_ID.fullmatch(unit) or re.fullmatch(rf"{re.escape(singular)}s?{_ID}", unit.lower()):
        if _PERSON.fullmatch(unit):
            return ""
        return (
            f"{unit} looks like it numbers rows: then each row is protected by itself, and a person with several rows "
            "less than promised; the unit is whoever a row is about"
        )
    return ""


def table_hints(table: Table) -> list[str]:
    """Return what the names in a table suggest, for its owner to weigh."""
    unit = table.unit
    hints = [unit_hint(table.name, unit.column)] if unit is not None and unit.is_direct else []
    if unit is None:
        people = likely_units([Described(one.name, one.kind, "") for one in table.columns])
        hints += [f"{table.name} is public, and {people[0]} looks like it is about people"] if people else []
    own = "" if unit is None else unit.column.lower() if unit.is_direct else unit.through[0].column.lower()
    for column in table.columns:
        if column.facts is not None and column.name.lower() != own and _NAMES_PEOPLE.fullmatch(column.name):
            hints.append(column_hint(column.name, column.kind))
    return [hint for hint in hints if hint]
