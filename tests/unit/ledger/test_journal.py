"""The journal's records: chained, checked, and a changed one is named with what differs."""

from dataclasses import replace
from typing import Any

import pytest

from tacit.ledger.journal import RECORD_BYTES_MAX, Head, Record, check_follows, check_record, next_record
from tacit.privacy.errors import LedgerCorrupt, LedgerTooNew, TooLarge

FIRST = next_record(Head(), "annotated", {"note": "é", "permit": "1"}, 1_000)
SECOND = next_record(FIRST.head, "annotated", {"note": "", "permit": "1"}, 2_000)


def test_a_record_follows_the_one_before() -> None:
    for record, head in ((FIRST, Head()), (SECOND, FIRST.head)):
        check_record(record)
        check_follows(record, head)
    assert (SECOND.number, SECOND.previous, SECOND.at_us) == (2, FIRST.hash, 2_000)
    assert FIRST.contents == {"note": "é", "permit": "1"}


def test_its_written_form_does_not_depend_on_the_order_of_what_is_said() -> None:
    assert next_record(Head(), "annotated", {"permit": "1", "note": "é"}, 1_000) == FIRST


@pytest.mark.parametrize(
    "change",
    [
        {"number": 7},
        {"at_us": 1_001},
        {"behind_us": 1},
        {"kind": "reserved"},
        {"body": FIRST.body.replace("1", "2")},
        {"previous": "f" * 64},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_record_is_named(change: dict[str, Any]) -> None:
    changed = replace(FIRST, **change)
    with pytest.raises(LedgerCorrupt, match=f"record {changed.number} does not have the hash") as damage:
        check_record(changed, SECOND)
    assert (damage.value.record, damage.value.differs) == (changed.number, "contents")


def test_a_changed_hash_is_told_from_changed_contents() -> None:
    with pytest.raises(LedgerCorrupt, match="the hash was changed") as damage:
        check_record(replace(FIRST, hash="f" * 64), SECOND)
    assert damage.value.differs == "hash"


def test_a_missing_record_is_named() -> None:
    third = next_record(SECOND.head, "annotated", {}, 3_000)
    with pytest.raises(LedgerCorrupt, match="record 2 is missing") as damage:
        check_follows(third, FIRST.head)
    assert damage.value.record == 2


def test_a_record_in_the_place_of_another_is_named() -> None:
    other = next_record(replace(FIRST.head, hash="e" * 64), "annotated", {}, 3_000)
    with pytest.raises(LedgerCorrupt, match="record 2 does not refer to the hash of record 1"):
        check_follows(other, FIRST.head)
    with pytest.raises(LedgerCorrupt, match="is out of order"):
        check_follows(FIRST, FIRST.head)


def test_a_clock_that_jumps_back_is_said_and_does_not_turn_the_order_round() -> None:
    late = next_record(SECOND.head, "annotated", {}, 500)
    assert (late.at_us, late.behind_us) == (2_000, 1_500)
    check_follows(late, SECOND.head)


def test_a_record_older_than_the_one_before_is_damage() -> None:
    old = next_record(replace(FIRST.head, at_us=0), "annotated", {}, 10)
    with pytest.raises(LedgerCorrupt, match="older"):
        check_follows(old, FIRST.head)


def test_a_kind_that_is_not_known_is_refused_and_never_guessed() -> None:
    with pytest.raises(LedgerTooNew, match="newer tacit"):
        check_record(next_record(Head(), "forgiven", {}, 0))


def test_a_body_that_is_no_object_is_damage() -> None:
    with pytest.raises(LedgerCorrupt):
        _ = Record(1, 0, 0, "annotated", "[]", "", "").contents


def test_a_record_has_a_limit() -> None:
    with pytest.raises(TooLarge):
        next_record(Head(), "annotated", {"note": "x" * RECORD_BYTES_MAX}, 0)
