"""Replay: a journal in which something happened that the ledger never lets happen is damaged, whoever hashed it."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.ledger.caps import Cap
from tacit.ledger.journal import Head, Record, next_record
from tacit.ledger.permits import Scope
from tacit.ledger.replay import MemoryRows, apply
from tacit.ledger.transactions import checkpoint_scopes
from tacit.privacy import events
from tacit.privacy.errors import LedgerCorrupt, LedgerTooNew

VISITS, ANA, EPOCH = Scope("visits").key, Scope("visits", "analyst", "ana").key, Scope("visits", "epoch", "2024").key
PLAN = events.Repeated(events.Laplace(0.1), 5)
PLAN_SHA256 = "a" * 64
ANSWER = "b" * 64

Step = tuple[str, dict[str, Any]]


def cap(epsilon: float = 1.0, relation: str = "add-remove") -> dict[str, Any]:
    return Cap.of(epsilon, relation=relation).to_dict()


def budget(dataset: str = "visits") -> Step:
    return "budget-created", {"cap": cap(), "per_epoch": False, "scope": Scope(dataset).key}


BUDGET = budget()
CAP: Step = ("cap-created", {"cap": cap(0.5), "scope": ANA})
COST = {"delta": 0.0, "epsilon": 0.5, "rho": None}
FILED: Step = ("request-filed", {"analyst": "ana", "cost": COST, "dataset": "visits", "reason": "", "request": "r"})


def epoch(**changes: Any) -> Step:
    return "epoch-added", {"cap": cap(), "ends": None, "scope": EPOCH, "starts": None} | changes


def reserved(permit: str = "p", **changes: Any) -> Step:
    body = {
        "analysts": ["ana"],
        "charged": {VISITS: [["5", "0"]], ANA: [["5", "0"]]},
        "cost": COST,
        "dataset": "visits",
        "epochs": [],
        "event": PLAN.to_dict(),
        "is_plan": True,
        "key": None,
        "permit": permit,
        "purpose": "",
    }
    return "reserved", body | changes


def refunded(permit: str = "p", **changes: Any) -> Step:
    return "refunded", {
        "permit": permit,
        "ran": PLAN.event.to_dict(),
        "returned": {VISITS: [["3", "0"]], ANA: [["3", "0"]]},
    } | changes


def committed(permit: str = "p", answer: str | None = None) -> Step:
    return "committed", {"answer_sha256": answer, "permit": permit}


def released(permit: str = "p", answer: str = ANSWER) -> Step:
    body = {"bytes": 1, "data_version": "1", "permit": permit, "plan_sha256": PLAN_SHA256, "sha256": answer}
    return "answer-released", body


def decided(granted: object = False, request: str = "r", **more: Any) -> Step:
    return "request-decided", {"by": "carl", "granted": granted, "note": "", "request": request} | more


def granted(epsilon: float = 0.8, scope: str = ANA, **changes: Any) -> Step:
    return decided(granted=True, cap=cap(epsilon) | changes, scope=scope)


def found(**changes: Any) -> Step:
    return "finding-kept", {"by": "olga", "dataset": "visits", "document": {}, "finding": "f", "permit": None} | changes


def annotated(permit: str = "p") -> Step:
    return "annotated", {"note": "", "permit": permit}


def rebuilt(*answers: tuple[str, str]) -> Step:
    return "caches-rebuilt", {"by": "carl", "dropped_answers": list(map(list, answers)), "reason": ""}


def back(noted: int, lost: int = 0) -> Step:
    return "restored", {"aside": None, "by": "carl", "lost": lost, "noted": noted, "noted_hash": "", "reason": "why"}


def replayed(*steps: Step) -> MemoryRows:
    head, rows = Head(), MemoryRows()
    for kind, contents in steps:
        record: Record = next_record(head, kind, contents, 1)
        apply(record, rows)
        head = record.head
    return rows


SET_UP = (BUDGET, CAP)


@pytest.mark.parametrize(
    "steps",
    [
        (*SET_UP, reserved(), refunded(), committed(answer=ANSWER), released()),
        (*SET_UP, reserved(key="k"), reserved("q", key="other"), reserved("s"), annotated(), committed("q")),
        (*SET_UP, FILED, decided()),
        (*SET_UP, FILED, granted(), reserved()),
        (*SET_UP, reserved(), committed(answer=ANSWER), released(), rebuilt((PLAN_SHA256, "1")), rebuilt()),
        (*SET_UP, back(noted=5, lost=3), back(noted=1)),
        (BUDGET, found(), CAP, reserved(), found(finding="g", permit="p"), committed(), found(finding="h", permit="p")),
        (BUDGET, epoch(), ("checkpoint", {"scopes": {}}), ("imported", {"records": 3, "source": "export"})),
    ],
)
def test_what_a_ledger_does_is_replayed(steps: tuple[Step, ...]) -> None:
    replayed(*steps)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((*SET_UP, reserved(), refunded(), refunded()), "refunded before"),
        ((*SET_UP, reserved(), committed(), refunded()), "committed before"),
        ((*SET_UP, reserved(is_plan=False), refunded()), "no plan"),
        ((*SET_UP, reserved(), refunded(returned={VISITS: [["6", "0"]]})), "more than was charged"),
        ((*SET_UP, reserved(), refunded(returned={VISITS: [["1", "1"]]})), "more than was charged"),
        ((*SET_UP, reserved(charged={VISITS: [["5", "0"]]}), refunded()), "was not charged"),
        ((*SET_UP, reserved(), refunded(returned={VISITS: [["-3", "0"]]})), "returned is not what"),
        ((*SET_UP, reserved(), refunded(returned={VISITS: [["3"]]})), "more than was charged"),
        ((*SET_UP, refunded()), "permit p is not known"),
        ((*SET_UP, committed()), "permit p is not known"),
        ((*SET_UP, reserved(), committed(), committed()), "committed before"),
        ((*SET_UP, annotated()), "permit p is not known"),
        ((*SET_UP, reserved(), committed(), annotated()), "committed before"),
        ((*SET_UP, reserved(), reserved()), "permit p exists"),
        ((*SET_UP, reserved(key="k"), reserved("q", key="k")), "key 'k' was used"),
        ((*SET_UP, reserved(is_plan="no")), "is_plan is not what a reserved record holds"),
        ((*SET_UP, FILED, decided(granted="no")), "granted is not what"),
        ((("budget-created", {"cap": cap(), "per_epoch": "no", "scope": VISITS}),), "per_epoch is not what"),
        ((*SET_UP, reserved(charged={VISITS: [["-5", "0"]]})), "charged is not what"),
        ((*SET_UP, reserved(charged={VISITS: [["5", "0"], ["1"]]})), "not an amount"),
        ((*SET_UP, reserved(charged={ANA: [["5", "0"]]})), "visits was not charged"),
        ((*SET_UP, reserved(charged={VISITS: [["5", "0"]], EPOCH: [["5", "0"]]})), "2024 of visits is not known"),
        ((BUDGET, reserved()), "ana on visits is not known"),
        ((BUDGET, BUDGET), "visits exists"),
        ((("budget-created", {"cap": cap(), "per_epoch": False, "scope": ANA}),), "no data set"),
        ((*SET_UP, CAP), "ana on visits exists"),
        ((CAP,), "visits is not known"),
        ((BUDGET, ("cap-created", {"cap": cap(2.0), "scope": ANA})), "above"),
        ((BUDGET, ("cap-created", {"cap": cap(0.5, "replace-one"), "scope": ANA})), "above"),
        ((BUDGET, ("cap-created", {"cap": cap(0.5), "scope": VISITS})), "no analyst"),
        ((BUDGET, epoch(), epoch()), "2024 of visits exists"),
        ((BUDGET, epoch(scope=ANA)), "no epoch"),
        ((BUDGET, epoch(cap=cap(2.0))), "above"),
        ((*SET_UP, FILED, FILED), "request r exists"),
        ((BUDGET, FILED), "ana on visits is not known"),
        ((*SET_UP, decided()), "request r is not known"),
        ((*SET_UP, FILED, decided(), decided()), "decided before"),
        ((*SET_UP, FILED, decided(), granted()), "decided before"),
        ((*SET_UP, FILED, granted(1.5)), "above"),
        ((*SET_UP, FILED, granted(0.3)), "lowered"),
        ((*SET_UP, FILED, granted(scope=VISITS)), "another scope"),
        ((*SET_UP, FILED, granted(filter="zcdp")), "cap"),
        ((*SET_UP, reserved(), released()), "not committed"),
        ((*SET_UP, reserved(), committed(answer="c" * 64), released()), "another answer"),
        ((*SET_UP, reserved(), committed(answer=ANSWER), released(), released()), "released before"),
        ((*SET_UP, rebuilt((PLAN_SHA256, "1"))), "never released"),
        ((*SET_UP, ("imported", {"records": 7, "source": "export"})), "records"),
        ((found(),), "visits is not known"),
        ((BUDGET, found(), found()), "finding f exists"),
        ((BUDGET, found(permit="p")), "permit p is not known"),
        ((*SET_UP, reserved(), budget("labs"), found(dataset="labs", permit="p")), "another data set than labs"),
        ((BUDGET, found(document=[])), "document is not what a finding-kept record holds"),
        ((BUDGET, ("finding-kept", {"dataset": "visits"})), "not what a finding-kept record holds"),
        ((*SET_UP, back(noted=5, lost=2)), "2 is not how many records were lost"),
        ((*SET_UP, back(noted=5)), "0 is not how many"),
        ((*SET_UP, ("reserved", {})), "not what a reserved record holds"),
        ((*SET_UP, reserved(charged=None)), "not what a reserved record holds"),
    ],
)
def test_what_no_ledger_does_cannot_have_happened(steps: tuple[Step, ...], why: str) -> None:
    with pytest.raises(LedgerCorrupt, match=rf"record {len(steps)} is impossible: .*{why}") as found:
        replayed(*steps)
    assert found.value.record == len(steps)


@pytest.mark.parametrize("body", [{}, {"scopes": 3}, {"scopes": {VISITS: 3}}, {"scopes": {VISITS: {}}}])
def test_a_checkpoint_of_another_form_is_damage(body: dict[str, Any]) -> None:
    with pytest.raises(LedgerCorrupt, match="record 1 does not have the contents of a checkpoint"):
        checkpoint_scopes(next_record(Head(), "checkpoint", body, 1))


@pytest.mark.parametrize("key", ['["\\ud800","dataset",""]', '[1,"dataset",""]', '[[1],"dataset",""]', "[]", "5"])
def test_a_scope_that_is_named_by_no_text_is_damage(key: str) -> None:
    with pytest.raises(LedgerCorrupt, match="is not a valid scope key"):
        Scope.from_key(key)


def deep(levels: int) -> dict[str, Any]:
    return {"x": deep(levels - 1)} if levels > 1 else {}


BAD_NAMES = (None, "", 7, {}, [], True, "a\x00b", "a\nb", "x" * 129, "\ud800")
NAMED = {
    "finding-kept": (found(), ("by", "dataset", "finding")),
    "reserved": (reserved(), ("dataset", "permit")),
    "annotated": (annotated(), ("permit",)),
    "committed": (committed(), ("permit",)),
    "request-filed": (FILED, ("analyst", "dataset", "request")),
    "request-decided": (decided(), ("by", "request")),
    "caches-rebuilt": (rebuilt(), ("by",)),
    "restored": (back(noted=1), ("by",)),
}
BEFORE = {
    "annotated": (*SET_UP, reserved()),
    "committed": (*SET_UP, reserved()),
    "request-decided": (*SET_UP, FILED),
}
MALFORMED = [
    *((kind, name, value) for kind, (_, names) in NAMED.items() for name in names for value in BAD_NAMES),
    *(("finding-kept", "document", value) for value in (None, [], "", 1, deep(33), deep(900), {"x": "é" * 150_000})),
    *(("finding-kept", "permit", value) for value in ("", 7, {}, "a\x00b")),
    *(
        ("request-filed", "cost", value)
        for value in (None, {}, {**COST, "epsilon": "1"}, {**COST, "rho": -1.0}, {**COST, "rho": 10**400}, [1])
    ),
    *(("request-filed", "reason", value) for value in (None, 7, "x" * 2_001, "a\x00b")),
    *(("reserved", "event", value) for value in (None, {}, [], {**PLAN.to_dict(), "count": -1})),
    *(("reserved", "cost", value) for value in (None, {}, {**COST, "epsilon": True})),
    *(("reserved", "analysts", value) for value in (None, "ana", [7], [""])),
    *(("reserved", "key", value) for value in ("", 7, "x" * 257)),
    *(("reserved", "plan_sha256", value) for value in ("", 7, "A" * 64)),
    *(("reserved", "purpose", value) for value in (None, 7, "a\x00b")),
    *(("annotated", "note", value) for value in (None, 7, "x" * 2_001)),
    *(("committed", "answer_sha256", value) for value in ("", 7, "b" * 63)),
]


@pytest.mark.parametrize(("kind", "name", "value"), MALFORMED)
def test_a_field_that_the_ledger_does_not_write_is_damage(kind: str, name: str, value: object) -> None:
    (_, body), _ = NAMED[kind]
    before = BEFORE.get(kind, SET_UP)
    replayed(*before, (kind, body))
    with pytest.raises(LedgerCorrupt, match=f"{name} is not what a {kind} record holds") as raised:
        replayed(*before, (kind, body | {name: value}))
    assert raised.value.record == len(before) + 1


@pytest.mark.parametrize("kind", NAMED)
def test_a_field_that_is_missing_is_damage_and_one_that_is_unknown_needs_a_newer_tacit(kind: str) -> None:
    (_, body), _ = NAMED[kind]
    before = BEFORE.get(kind, SET_UP)
    for name in body.keys() - {"aside", "noted_hash"}:
        with pytest.raises(LedgerCorrupt, match=f"{name} is not what a {kind} record holds"):
            replayed(*before, (kind, {one: value for one, value in body.items() if one != name}))
    with pytest.raises(LedgerTooNew, match="unknown field 'more'"):
        replayed(*before, (kind, body | {"more": 1}))
    with pytest.raises(LedgerTooNew, match="unknown kind 'teleported'"):
        replayed(*SET_UP, reserved(event={"kind": "teleported", "version": 1}))


@pytest.mark.parametrize("scope", [Scope(""), Scope("a\x00b"), Scope("visits", "dataset", "x"), Scope("x" * 129)])
def test_a_scope_has_names_that_every_store_holds(scope: Scope) -> None:
    with pytest.raises(LedgerCorrupt, match="scope is not what a budget-created record holds"):
        replayed(("budget-created", {"cap": cap(), "per_epoch": False, "scope": scope.key}))
