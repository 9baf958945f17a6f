"""Whatever is passed to a ledger or a budget, what comes out is a result or an error of the tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest

from tacit.accounting import Cost, delta, epsilon, meaning
from tacit.ledger import Budget, Cap, Ledger, LedgerBudget, Scope, permits
from tacit.ledger.stores import SqliteStore
from tacit.mechanisms import Laplace
from tacit.privacy import events
from tacit.privacy.errors import InvalidInput, LedgerUnavailable, MixedRelations, TacitError, UnknownEvent, WrongType
from tacit.privacy.units import Relation
from tests.support.odd_arguments import public, uncoded

ELSEWHERE: Final = {"close", "export_lines", "import_", "rows_of", "verify"}
"""What moves, checks or closes a whole ledger has tests of its own; the others are called by those that are tried."""

TENTH: Final = events.Laplace(0.1)


def arguments(ledger: Ledger, tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Return what each public method is called with, so that it works."""
    plan = ledger.reserve("visits", events.Repeated(TENTH, 2), refundable=True)
    reserve = {"dataset": "visits", "event": TENTH, "analyst": "ana", "purpose": "p", "key": "k"}
    reserve |= {"plan": "q", "data_version": "1"}
    file_request: dict[str, Any] = {
        "analyst": "ana",
        "dataset": "visits",
        "what": Cost(0.1, 0.0, 0.0),
        "reason": "more",
    }
    cap = {"epsilon": 0.5, "delta": 1e-9, "filter": None, "order": None}
    return {
        "add_epoch": {"dataset": "labs", "name": "e", "starts": date(2024, 1, 1), "ends": date(2025, 1, 1)}
        | {"epsilon": 0.5, "delta": 1e-9},
        "payer": {"dataset": "visits", "analyst": "ana"},
        "annotate": {"permit": plan, "note": "n", "before": ""},
        "backup": {"path": tmp_path / "backup"},
        "budget": {"dataset": "visits", "analyst": "ana", "epoch": None},
        "commit": {"permit": plan, "answer": b"17", "plan": "q", "data_version": "1"},
        "create_budget": {"dataset": "more", "relation": "add-remove", "per_epoch": False, "epsilon_min": None} | cap,
        "create_cap": {"dataset": "visits", "analyst": "bob"} | cap,
        "create_caps": {"analyst": "cleo", "caps": {"visits": Cap.of(0.1)}},
        "permit": {"permit": plan},
        "decide": {"request": ledger.file_request(**file_request), "granted": True, "by": "carl", "note": ""},
        "export": {"target": tmp_path / "export"},
        "file_request": file_request,
        "finding": {"finding": ledger.keep_finding("visits", {"x": 1}, by="olga").id},
        "findings": {"dataset": ["visits", "labs"], "permit": plan, "first": 1, "limit": 5},
        "head": {},
        "history": {"first": 1},
        "keep_finding": {"dataset": "visits", "document": {"x": 1}, "permit": plan, "by": "olga"},
        "note": {"permit": plan},
        "open_notes": {"dataset": "visits"},
        "preview": {"dataset": "visits", "event": TENTH, "analyst": "ana", "epochs": (), "refundable": False},
        "refund": {"permit": plan, "ran": TENTH},
        "refusal": {"dataset": "visits", "event": TENTH, "analyst": "ana", "epochs": ()},
        "released": {"plan": "q", "data_version": "1"},
        "requests": {"only_open": False},
        "reservations": {},
        "reserve": reserve | {"epochs": (), "refundable": False},
        "row_of": {"scope": ledger.scopes()[0]},
        "scopes": {"dataset": "visits"},
        "stated_delta_left": {"dataset": "visits", "analyst": "ana", "epochs": ()},
    }


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "clinic") as ledger:
        for name in ("visits", "labs"):
            ledger.create_budget(name, epsilon=1e6, delta=1e-7, epsilon_min=0)
        ledger.create_cap("visits", "ana", epsilon=1e5, delta=1e-8)
        yield ledger
        ledger.verify(full=True)


def test_every_method_of_a_ledger_is_tried(ledger: Ledger, tmp_path: Path) -> None:
    assert arguments(ledger, tmp_path).keys() == public(Ledger) - ELSEWHERE


def test_a_wrong_argument_of_a_ledger_is_an_error_of_the_tree(ledger: Ledger, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    bare = [
        sentence
        for name, given in arguments(ledger, tmp_path).items()
        for sentence in uncoded(getattr(ledger, name), given)
    ]
    assert not bare, "\n".join(bare)


@pytest.mark.parametrize("kind", [Budget, LedgerBudget])
def test_a_wrong_argument_of_a_budget_is_an_error_of_the_tree(ledger: Ledger, kind: type[Budget]) -> None:
    budget = Budget(1e6, 1e-7) if kind is Budget else ledger.budget("visits", analyst="ana")
    permit = budget.reserve(TENTH)
    given: dict[str, dict[str, Any]] = {
        "annotate": {"permit": permit, "text": "n", "before": ""},
        "charge": {"event": TENTH, "purpose": "p"},
        "commit": {"permit": permit, "answer": b"17", "plan": None, "data_version": None, "before": ""},
        "note": {"permit": permit},
        "open_notes": {},
        "preview": {"event": TENTH},
        "refund": {"permit": permit, "ran": TENTH},
        "refusal": {"event": TENTH},
        "released": {"plan": "q", "data_version": "1"},
        "remaining": {},
        "report": {},
        "reserve": {"event": TENTH, "purpose": "p", "key": None, "plan": None, "data_version": None},
        "spent": {},
        "stated_delta_left": {},
        "warnings": {"units": 5},
    }
    assert given.keys() == public(kind)
    bare = [sentence for name in given for sentence in uncoded(getattr(budget, name), given[name])]
    assert not bare, "\n".join(bare)


def test_a_wrong_argument_of_a_new_budget_is_an_error_of_the_tree() -> None:
    cap = {"epsilon": 1.0, "delta": 1e-6, "filter": None, "order": None, "relation": "add-remove"}
    bare = uncoded(Budget, cap) + uncoded(Cap.of, cap)
    bare += uncoded(Cap.from_dict, {"record": Cap.of(1.0).to_dict()}) + uncoded(SqliteStore, {"folder": "f"})
    bare += uncoded(Scope, {"dataset": "visits", "kind": "analyst", "name": "ana"})
    assert not bare, "\n".join(bare)


def test_what_is_wrong_is_named(ledger: Ledger) -> None:
    for call, name in (
        (lambda: ledger.reserve("visits", TENTH, analyst=5), "analyst"),  # type: ignore[arg-type]
        (lambda: ledger.reserve("visits", TENTH, epochs=None), "epoch"),  # type: ignore[arg-type]
        (lambda: ledger.reserve("visits", TENTH, epochs=(one for one in "a")), "epoch"),  # type: ignore[arg-type]
        (lambda: ledger.create_caps("bob", {"visits": 1.0}), "caps"),  # type: ignore[dict-item]
        (lambda: ledger.commit(None), "permit"),  # type: ignore[arg-type]
        (lambda: ledger.budget(["visits"]), "dataset"),  # type: ignore[arg-type]
        (lambda: ledger.history("x"), "first"),  # type: ignore[arg-type]
        (lambda: ledger.file_request("ana", "visits", Cost("1", 0.0, 0.0), "more"), "epsilon"),  # type: ignore[arg-type]
        (lambda: ledger.backup(5), "path"),  # type: ignore[arg-type]
    ):
        with pytest.raises(WrongType, match=name):
            call()
    with pytest.raises(InvalidInput, match="control characters"):
        ledger.backup("a\0b")


def test_a_mechanism_in_the_place_of_its_event_is_told_apart(ledger: Ledger) -> None:
    mechanism: Any = Laplace(1, 0.1)
    for call in (
        lambda: Budget(1.0).charge(mechanism),
        lambda: ledger.reserve("visits", mechanism),
        lambda: ledger.file_request("ana", "visits", mechanism, "more"),
        lambda: epsilon(mechanism, 1e-6),
        lambda: delta(mechanism, 1.0),
        lambda: meaning(mechanism, 1e-6),
        lambda: events.Composed((mechanism,)),
        lambda: events.Repeated(mechanism, 2),
    ):
        with pytest.raises(InvalidInput, match=r"Laplace; pass its \.event"):
            call()


@pytest.mark.parametrize("noted", [5, "x", (), (1,), ("1", "ab"), (1, 5), (-1, "ab"), (2**70, "ab"), (1, "ab", 2), {}])
def test_a_noted_head_that_is_none_is_refused_and_closes_nothing(tmp_path: Path, noted: Any) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        with pytest.raises(WrongType):
            ledger.verify(noted=noted)
        with pytest.raises(WrongType):
            ledger.verify(full="no")  # type: ignore[arg-type]
        assert ledger.verify(full=True).head == ledger.head()
        ledger.reserve("visits", TENTH)


RELATION: Final = Relation.ADD_REMOVE
BY_HAND: Final = (
    Cap(-1.0, 0.0, "pure", None, RELATION),
    Cap(float("nan"), 0.0, "pure", None, RELATION),
    Cap(0.5, 0.0, "nope", None, RELATION),  # type: ignore[arg-type]
    Cap("1", 0.0, "pure", None, RELATION),  # type: ignore[arg-type]
    Cap(0.5, 0.0, "zcdp", None, RELATION),
    Cap(True, 0.0, "pure", None, RELATION),
    Cap(0.5, 1e-9, "renyi", 1e9, RELATION),
    Cap(0.5, 0.0, "pure", None, "nope"),  # type: ignore[arg-type]
)


@pytest.mark.parametrize("cap", BY_HAND, ids=str)
def test_a_cap_made_by_hand_is_checked_and_closes_nothing(tmp_path: Path, cap: Cap) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0, delta=1e-8)
        with pytest.raises(InvalidInput):
            ledger.create_caps("ana", {"visits": cap})
        assert ledger.reserve("visits", TENTH).id


def test_a_record_that_cannot_be_written_closes_nothing(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("visits", epsilon=1.0)
        with pytest.raises(LedgerUnavailable, match=r"nothing was written: record 2 is impossible"):
            ledger._change(lambda work: work.write("committed", {"permit": "5-x", "answer_sha256": None}))
        with pytest.raises(LedgerUnavailable, match="it is not what a reserved record holds"):
            ledger._change(lambda work: work.write("reserved", {}))
        assert ledger.reserve("visits", TENTH).id
        ledger.verify(full=True)


class Same(events.Laplace):
    """An event that says that it equals every other one."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


class Elsewhere(events.Laplace):
    """An event that says that it is stated under another relation."""

    @property
    def relation(self) -> Relation:
        return Relation.ADD_REMOVE


@dataclass(frozen=True)
class Mine(events.Laplace):
    """An event of a kind that nobody can read."""

    kind = "mine"


class Unwritable(events.Laplace):
    def to_dict(self) -> dict[str, Any]:
        raise ZeroDivisionError


@pytest.mark.parametrize("make", [Budget, None], ids=["memory", "ledger"])
def test_an_event_counts_as_it_is_written(tmp_path: Path, make: type[Budget] | None) -> None:
    ledger = Ledger.open(tmp_path)
    ledger.create_budget("visits", epsilon=10.0)
    budget = ledger.budget("visits") if make is None else make(epsilon=10.0)
    budget.charge(events.Composed((Same(0.1), Same(0.7))))
    assert budget.spent().epsilon == pytest.approx(0.8)
    for wrong in (Mine(0.5), events.Composed((events.Laplace(0.1), Mine(0.5))), Unwritable(0.5)):
        with pytest.raises(UnknownEvent):
            budget.charge(wrong)
    with pytest.raises(MixedRelations):
        budget.charge(Elsewhere(0.1, under=Relation.REPLACE_ONE))
    permit = budget.charge(Same(0.1))
    assert type(permit.event) is events.Laplace
    assert budget.report().events == {events.Composed((events.Laplace(0.1), events.Laplace(0.7))): 1, TENTH: 1}
    ledger.close()


def test_an_event_of_known_kinds_and_plain_numbers_is_taken_as_it_is() -> None:
    sampled = events.Repeated(events.Sampled(0.1, events.Gaussian(1.0)), 5)
    for event in (TENTH, sampled, events.Disjoint((TENTH, TENTH))):
        assert events.canonical_event(event) is event
    mutated = events.Laplace(0.1)
    object.__setattr__(mutated, "epsilon", "0.1")
    with pytest.raises(WrongType):
        events.canonical_event(mutated)


class Evil(str):
    """A text that says that it is another one."""

    looks: str

    def __new__(cls, content: str, looks: str) -> Evil:
        self = super().__new__(cls, content)
        self.looks = looks
        return self

    def __eq__(self, other: object) -> bool:
        return other == self.looks

    def __hash__(self) -> int:
        return hash(self.looks)


def test_a_text_that_says_it_is_another_one_is_not_believed(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        ledger.create_budget("decoy", epsilon=1000.0)
        ledger.create_budget("visits", epsilon=1.0)
        permits._key.cache_clear()
        assert ledger.budget(Evil("decoy", "visits")).epsilon == 1000.0
        assert ledger.row_of(Scope(Evil("decoy", "visits"))).cap.epsilon == 1000.0
        assert Cap.of(1.0, filter=Evil("pure", "gdp")).filter == "pure"
        permit = ledger.reserve("visits", TENTH)
        assert permit.scopes == (Scope("visits"),)
        assert ledger.budget("visits").spent().epsilon == pytest.approx(0.1)
        assert type(ledger.reserve("visits", TENTH, purpose=Evil("a", "b")).purpose) is str


NO_PLACE: Final = (None, 1, 1.5, True, b"x", [], {}, object(), "", "x\0", "\ud800", "a" * 5000)


@pytest.mark.parametrize("wrong", NO_PLACE, ids=lambda wrong: repr(wrong)[:12])
def test_what_is_no_place_of_a_ledger_is_said(tmp_path: Path, wrong: Any) -> None:
    def charged(folder: Path, anchor: Any) -> None:
        with Ledger.open(folder, anchor=anchor) as anchored:
            anchored.create_budget("visits", epsilon=1.0)

    calls: tuple[Callable[[], Any], ...] = (
        lambda: Ledger.open(wrong),
        lambda: Ledger.rebuild(wrong, by="eva", reason="r"),
        lambda: Ledger.restore(wrong, tmp_path, by="eva", reason="r"),
        lambda: charged(tmp_path / "anchored", anchor=wrong),
        lambda: ledger.import_(wrong),
        lambda: ledger.import_(tmp_path / "export", source=wrong),
    )
    with Ledger.open(tmp_path / "other") as other:
        other.create_budget("visits", epsilon=1.0)
        other.export(tmp_path / "export")
    with Ledger.open(tmp_path / "new") as ledger:
        for call in calls[: 3 if wrong is None else len(calls)]:
            with pytest.raises(TacitError):
                call()
        with pytest.raises(TacitError):
            ledger.import_(wrong)
