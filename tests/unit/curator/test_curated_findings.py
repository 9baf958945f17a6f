"""Findings in the folder of a curator: about a release that was attacked, without the people who were."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import attack
from tacit.engines.duckdb.engine import DuckDBEngine
from tacit.privacy import events
from tacit.privacy.errors import (
    BudgetExceeded,
    EmptyInput,
    EngineFailed,
    InvalidInput,
    Suspended,
    UnknownName,
    WrongType,
)

IDS = [f"person-{7731 + index}" for index in range(40)]
ILL = np.random.default_rng(1).integers(0, 2, len(IDS)).astype(bool)


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("visits", pd.DataFrame({"id": IDS, "ill": ILL}), unit="id")
        curator.set_budget("visits", epsilon=1.0, epsilon_min=0)
        yield curator


def attacked(promise: object) -> attack.Finding:
    target = attack.QueryInterface(lambda people: (ILL & people).sum(), ids=IDS, truth=ILL)
    found = attack.run("averaging", target, promise, seed=1)
    assert IDS[0][:9] in found.to_json()
    return found


def test_a_finding_about_a_release_is_kept_beside_its_permit_and_read_back(curator: tacit.Curator) -> None:
    release = curator.sql("SELECT COUNT(*) AS n FROM visits", 1.0)
    found = attacked(release)
    kept = curator.keep_finding(found, by="olga")
    assert release.permit is not None
    assert (kept.dataset, kept.permit, kept.by) == ("visits", release.permit.id, "olga")
    assert kept.finding == found.without_people()
    assert curator.findings() == curator.findings("visits") == curator.findings(permit=release.permit) == [kept]
    with pytest.raises(UnknownName, match="labs has no budget"):
        curator.findings("labs")
    curator.ledger.verify(full=True)


def test_nobody_who_was_attacked_is_in_the_journal_or_its_export(curator: tacit.Curator) -> None:
    curator.keep_finding(attacked(1.0), "visits", by="olga")
    assert "person-77" not in "".join(curator.ledger.export_lines())


def test_a_finding_is_kept_of_an_exhausted_and_of_a_suspended_data_set(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["tacit.pipeline.release"], "FAILURES_MAX", 1)
    with monkeypatch.context() as patched:
        patched.setattr(DuckDBEngine, "run", lambda *_, **__: 1 / 0)
        with pytest.raises(EngineFailed):
            curator.sql("SELECT COUNT(*) AS n FROM visits", 0.5)
    with pytest.raises(Suspended):
        curator.sql("SELECT COUNT(*) AS n FROM visits", 0.5)
    curator.ledger.reserve("visits", events.Laplace(0.5))
    with pytest.raises(BudgetExceeded):
        curator.ledger.reserve("visits", events.Laplace(0.5))
    spent = curator.budget("visits").spent()
    assert curator.keep_finding(attacked(1.0), "visits", by="olga").permit is None
    assert curator.budget("visits").spent() == spent


def test_a_finding_without_its_data_set_or_about_an_unknown_permit_is_refused(curator: tacit.Curator) -> None:
    with pytest.raises(EmptyInput, match="name the data set"):
        curator.keep_finding(attacked(1.0), by="olga")
    for dataset in (None, "visits"):
        with pytest.raises(UnknownName, match="no permit 9-x"):
            curator.keep_finding(attacked(attack.Claim(1.0, permit="9-x")), dataset, by="olga")
    with pytest.raises(WrongType, match="a Finding"):
        curator.keep_finding({}, "visits", by="olga")  # type: ignore[arg-type]
    assert curator.findings() == []


def test_a_document_of_another_schema_is_listed_and_refused_when_it_is_read(curator: tacit.Curator) -> None:
    curator.ledger.keep_finding("visits", {"schema_version": 2}, by="olga")
    (kept,) = curator.findings()
    with pytest.raises(InvalidInput, match="schema version 1"):
        _ = kept.finding
