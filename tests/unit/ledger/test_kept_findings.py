"""Findings in the ledger: they stay beside their permits, charge nothing, and are bounded in size and number."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tacit.ledger import Ledger, kept_findings
from tacit.ledger.record_fields import DOCUMENT_BYTES_MAX, DOCUMENT_DEPTH_MAX
from tacit.ledger.rows import FindingRow
from tacit.privacy import events
from tacit.privacy.errors import BudgetExceeded, InvalidInput, LedgerCorrupt, TooLarge, UnknownName

FOUND = {"attack": "averaging", "verdict": "violates", "lower_bound": 0.25, "paper": "Ærø"}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        ledger.create_budget("labs", epsilon=1.0)
        yield ledger


def test_findings_are_read_by_data_set_by_permit_by_record_and_by_id(ledger: Ledger) -> None:
    permit = ledger.reserve("visits", events.Laplace(0.1))
    judged = ledger.keep_finding("visits", FOUND, permit=permit, by="olga")
    labs = ledger.keep_finding("labs", FOUND, by="aude")
    whole = ledger.keep_finding("visits", FOUND, by="aude")
    assert (judged.permit, judged.by, judged.dataset, judged.document) == (permit.id, "olga", "visits", FOUND)
    assert ledger.findings() == ledger.findings(["labs", "visits", "labs"]) == [judged, labs, whole]
    assert ledger.findings("visits") == [judged, whole]
    assert ledger.findings(permit=permit) == ledger.findings("visits", permit.id) == [judged]
    assert ledger.findings("labs", permit) == ledger.findings([]) == ledger.findings(permit="none") == []
    assert ledger.findings(first=labs.record, limit=1) == [labs]
    assert ledger.finding(whole.id) == whole
    assert ledger.permit(permit) == permit
    with pytest.raises(UnknownName, match="there is no finding none"):
        ledger.finding("none")
    with pytest.raises(UnknownName, match="no permit none"):
        ledger.permit("none")


def test_a_finding_charges_nothing_and_is_kept_of_an_exhausted_data_set(ledger: Ledger) -> None:
    permit = ledger.reserve("visits", events.Laplace(1.0))
    with pytest.raises(BudgetExceeded):
        ledger.reserve("visits", events.Laplace(0.1))
    before = ledger.row_of(ledger.budget("visits").scope)
    ledger.keep_finding("visits", FOUND, permit=permit, by="olga")
    assert ledger.row_of(before.scope) == before


def test_a_permit_must_be_one_of_the_data_set(ledger: Ledger) -> None:
    permit, head = ledger.reserve("visits", events.Laplace(0.1)), ledger.head()
    for dataset, named in (("labs", permit.id), ("visits", "9-x")):
        with pytest.raises(UnknownName, match=f"{dataset} has no permit {named}"):
            ledger.keep_finding(dataset, FOUND, permit=named, by="olga")
    with pytest.raises(UnknownName, match="nowhere"):
        ledger.keep_finding("nowhere", FOUND, by="olga")
    with pytest.raises(UnknownName, match="nowhere"):
        ledger.findings(["visits", "nowhere"])
    assert ledger.head() == head


def nested(levels: int) -> dict[str, Any]:
    return {"x": nested(levels - 1)} if levels > 1 else {}


def sized(size: int) -> dict[str, Any]:
    return {"x": "é" * ((size - len('{"x":""}')) // 2)}


@pytest.mark.parametrize("document", [nested(DOCUMENT_DEPTH_MAX), sized(DOCUMENT_BYTES_MAX), {"x": [[], {}, None, ""]}])
def test_a_document_within_the_limits_is_read_back_as_it_was(ledger: Ledger, document: dict[str, Any]) -> None:
    assert ledger.finding(ledger.keep_finding("visits", document, by="olga").id).document == document
    ledger.verify(full=True)


@pytest.mark.parametrize(
    ("document", "error"),
    [
        (sized(DOCUMENT_BYTES_MAX + 2), TooLarge),
        (nested(DOCUMENT_DEPTH_MAX + 1), TooLarge),
        (nested(900), TooLarge),
        ({"x": [float("nan")]}, InvalidInput),
        ({"x": float("inf")}, InvalidInput),
        ({"x": "\ud800"}, InvalidInput),
        ({"x": object()}, InvalidInput),
        ({"x": {1: 2, "1": 3}}, InvalidInput),
        ({"x": {(1,): 2}}, InvalidInput),
        ({1: 2}, InvalidInput),
        ([], InvalidInput),
        ("{}", InvalidInput),
    ],
    ids=range(12),
)
def test_a_document_beyond_the_limits_or_of_no_json_is_refused(ledger: Ledger, document: Any, error: Any) -> None:
    before = ledger.head()
    with pytest.raises(error, match=r"document|twice"):
        ledger.keep_finding("visits", document, by="olga")
    assert ledger.head() == before


def test_a_data_set_has_a_greatest_number_of_findings(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_findings, "FINDINGS_MAX", 2)
    for _ in range(2):
        ledger.keep_finding("visits", FOUND, by="olga")
    with pytest.raises(TooLarge, match="visits has 2 findings, the maximum"):
        ledger.keep_finding("visits", FOUND, by="olga")
    ledger.keep_finding("labs", FOUND, by="olga")


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM findings", "UPDATE findings SET dataset = 'labs', seal = ?", "UPDATE findings SET permit = NULL"],
)
def test_a_changed_row_is_noticed_and_written_anew_from_the_journal(
    ledger: Ledger, tmp_path: Path, statement: str
) -> None:
    permit = ledger.reserve("visits", events.Laplace(0.1))
    kept = ledger.keep_finding("visits", FOUND, permit=permit, by="olga")
    ledger.close()
    forged = FindingRow(kept.id, "labs", permit.id, kept.record).columns[-1]
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)) as connection:
        assert connection.execute(statement, (forged,) if "?" in statement else ()).rowcount == 1
    with pytest.raises(LedgerCorrupt, match="finding"):
        Ledger.open(tmp_path)
    with Ledger.rebuild(tmp_path, by="carl", reason="a row was changed") as rebuilt:
        assert rebuilt.findings() == [kept]
        rebuilt.verify(full=True)


def test_a_changed_document_is_noticed(ledger: Ledger, tmp_path: Path) -> None:
    ledger.keep_finding("visits", FOUND, by="olga")
    ledger.keep_finding("labs", FOUND, by="olga")
    ledger.close()
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE journal SET body = replace(body, 'violates', 'consistent') WHERE number = 3")
    with pytest.raises(LedgerCorrupt, match="record 3"):
        Ledger.open(tmp_path)
