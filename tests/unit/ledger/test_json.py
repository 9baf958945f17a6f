"""JSON that the ledger reads: a text that names a key twice, or is no JSON, means nothing and is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.ledger import Ledger
from tacit.ledger.caps import Cap
from tacit.ledger.journal import Record
from tacit.ledger.permits import Scope
from tacit.ledger.rows import ScopeRow
from tacit.privacy import events, strict_json
from tacit.privacy.errors import InvalidInput, LedgerCorrupt, UnknownEvent

DEFINITION = ScopeRow(Scope("visits"), Cap.of(1), ((0, 0),), 1).definition
LAPLACE = events.Laplace(0.1).to_json()


@pytest.mark.parametrize(
    "text",
    [
        LAPLACE.replace('"epsilon":0.1', '"epsilon":5.0,"epsilon":0.1'),
        LAPLACE.replace('"kind":"laplace"', '"kind":"gaussian","kind":"laplace"'),
        events.Repeated(events.Laplace(0.1), 3).to_json().replace('"count":3', '"count":3,"count":3'),
        events.Repeated(events.Laplace(0.1), 3).to_json().replace('"epsilon":0.1', '"epsilon":0.1,"epsilon":0.1'),
    ],
)
def test_an_event_that_names_a_parameter_twice_is_refused(text: str) -> None:
    with pytest.raises(UnknownEvent, match="twice"):
        events.from_json(text)
    with pytest.raises(UnknownEvent, match="twice"):
        events.from_json(text.encode())


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "1" * 5000, "\ud800", b"\xff"])
def test_what_is_no_json_is_refused_in_one_sentence(text: str | bytes) -> None:
    with pytest.raises(InvalidInput):
        strict_json.loads(text)


def test_json_is_read_as_it_was_written() -> None:
    value = {"a": [1, 2.5, None, True, {"b": "é"}], "c": {}}
    assert strict_json.loads(json.dumps(value)) == value


@pytest.mark.parametrize(
    "read",
    [
        lambda text: Record(1, 0, 0, "annotated", text, "", "").contents,
        lambda text: Scope.from_key(text),
        lambda text: ScopeRow.from_parts(Scope("visits").key, text, "[]", 1),
        lambda text: ScopeRow.from_parts(Scope("visits").key, DEFINITION, text, 1),
    ],
)
@pytest.mark.parametrize("text", ['{"a":1,"a":2}', "{", "NaN", "[" * 100_000, "[]", "1", "null"])
def test_what_the_ledger_keeps_as_json_is_damaged_where_it_is_none(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(LedgerCorrupt):
        read(text)


def test_an_export_that_names_a_key_twice_is_refused(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "clinic") as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        lines = list(ledger.export_lines())
    for number, line in enumerate(lines):
        doubled = [
            *lines[:number],
            f'{{"records":1,{line[1:]}' if number == 2 else line.replace("{", '{"x":1,"x":1,', 1),
        ]
        (tmp_path / "export").write_text("\n".join([*doubled, *lines[number + 1 :]]) + "\n")
        with Ledger.open(tmp_path / f"copy-{number}") as copy, pytest.raises(LedgerCorrupt, match="export is damaged"):
            copy.import_(tmp_path / "export")


def test_columns_that_equal_those_read_before_but_are_of_another_type_are_damaged() -> None:
    row = ScopeRow(Scope("visits"), Cap.of(1), ((0, 0),), 1)
    dataset, key, definition, totals, record, seal = row.columns
    assert ScopeRow.from_columns(dataset, key, definition, totals, record, seal) == row
    for other in (1.0, True):
        with pytest.raises(LedgerCorrupt):
            ScopeRow.from_columns(dataset, key, definition, totals, other, seal)
