"""Whatever an argument of the public surface is, a call works or is refused with a code, and nothing is lost.

Parameters are found by inspection: a new one of a callable that stands here is tried by itself, and a new public
callable fails the test until it stands here. Statistics and the ledger have such tests of their own
(`tests/faults/stats/test_strange_arguments.py`, `tests/unit/ledger/test_arguments.py`).
"""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pandas as pd
import pytest

import tacit
from tacit import accounting
from tacit.client import Client
from tacit.curator import PrivacyWarning
from tacit.learn import StandardScaler
from tacit.privacy import events
from tacit.privacy.tables import Column, Kind, Table
from tacit.stats.preparation import CommonOptions
from tests.support.odd_arguments import ODD, failure, odd_calls, public, uncoded
from tests.unit.server.cases import finding_of

COUNT: Final = "SELECT COUNT(*) AS n, SUM(age) AS s FROM visits WHERE age < {}"
FRESH: Final = itertools.count(100)
LAPLACE: Final = events.Laplace(0.1)

RECORDS: Final[dict[Callable[..., Any], dict[str, Any]]] = {
    tacit.Bounds: {"lower": 0, "upper": 1},
    tacit.Budget: {"epsilon": 1.0, "delta": 1e-6},
    tacit.Categories: {"values": ["a", "b"]},
    tacit.Cost: {"epsilon": 1.0, "delta": 0.0, "rho": 0.0},
    tacit.ForeignKey: {"column": "a", "target_table": "b", "target_column": "c"},
    tacit.Limits: {},
    tacit.Unit: {"column": "a"},
    Column: {"name": "a", "kind": Kind.REAL},
    Table: {"name": "t", "columns": (Column("a", Kind.REAL),)},
    tacit.connect: {"url": "http://127.0.0.1:1", "token": "tacit_x"},
    accounting.Bound: {"lower": 0.1, "upper": 0.2, "method": "pure"},
    accounting.calibrate: {"make_event": events.Laplace, "epsilon": 1.0, "delta": 0.0},
    accounting.compare: {"event": LAPLACE, "delta": 1e-6},
    accounting.delta: {"event": LAPLACE, "epsilon": 1.0},
    accounting.epsilon: {"event": LAPLACE, "delta": 1e-6},
    accounting.meaning: {"event": LAPLACE, "delta": 1e-6},
    accounting.meaning(LAPLACE, 1e-6).posterior: {"prior": 0.5},
    accounting.meaning(LAPLACE, 1e-6).posterior_chance: {"prior": 0.5, "level": 0.6},
    accounting.meaning(LAPLACE, 1e-6).expected_posterior: {"prior": 0.5},
    accounting.meaning(LAPLACE, 1e-6).sentence_for: {"prior": 0.5},
    accounting.meaning(LAPLACE, 1e-6).true_positive_rate: {"false_positive_rate": 0.1},
}
METHODS: Final = public(tacit.Curator) - {"close"}
ELSEWHERE: Final = {"Curator", "Kind", "Meaning", "Relation"}
"""Public names that are tried below, are made by a function that is, or are enumerations."""


def test_every_public_name_is_tried() -> None:
    tried = {one.__name__ for one in RECORDS} | ELSEWHERE
    for home in (tacit, accounting):
        found = [getattr(home, name) for name in home.__all__]
        made = {one.__name__ for one in found if inspect.isfunction(one) or inspect.isclass(one)}
        assert {name for name in made if not _is_error(getattr(home, name))} <= tried
    assert public(accounting.Meaning) <= tried


def _is_error(one: object) -> bool:
    return inspect.isclass(one) and issubclass(one, Exception)


@pytest.mark.parametrize("call", RECORDS, ids=lambda call: call.__qualname__)
def test_an_odd_argument_is_an_error_of_the_tree(call: Callable[..., Any]) -> None:
    bare = uncoded(call, RECORDS[call])
    assert not bare, "\n".join(bare)


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tacit.Curator]:
    place = tmp_path_factory.mktemp("odd")
    rows = pd.DataFrame({"patient": range(50), "age": [index % 90 for index in range(50)], "sex": ["F", "M"] * 25})
    rows.to_csv(place / "labs.csv", index=False)
    with tacit.Curator(place / "clinic") as curator:
        one_row = tacit.Limits(rows_per_unit=1)
        curator.add_table("visits", rows, unit="patient", limits=one_row, columns={"age": tacit.Bounds(0, 90)})
        curator.add_table("codes", rows[["sex"]].drop_duplicates(), public=True)
        with warnings.catch_warnings(action="ignore", category=PrivacyWarning):
            curator.set_budget("visits", epsilon=1e6, delta=1e-3, epsilon_min=0)
        curator.add_analyst("ana", {"visits": tacit.Budget(1e5, 1e-4)})
        yield curator
        curator.ledger.verify(full=True)


def usual(curator: tacit.Curator) -> dict[str, dict[str, Any]]:
    """Return what each public method is called with, so that it works."""
    asked = {"sql": COUNT.format(7), "epsilon": 1.0, "limits": tacit.Limits(), "keys": None}
    visits = {"name": "labs", "data": curator.folder.parent / "labs.csv", "unit": "patient", "replace": True}
    table = curator.catalog.schema.table("codes")
    trained = {"table": "visits", "estimator": StandardScaler(), "features": ["age"], "target": None, "epsilon": 1.0}
    trained |= {"analyst": "ana", "purpose": "a test", "key": None, "timeout_s": 5.0}
    return {
        "add_analyst": {"name": "bob", "budgets": {"visits": tacit.Budget(1.0, 1e-6)}},
        "add_epoch": {"dataset": "nowhere", "name": "2024", "epsilon": 0.1, "delta": None},
        "add_table": visits | {"columns": {"age": tacit.Bounds(0, 90)}},
        "budget": {"dataset": "visits"},
        "budgets": {"dataset": "visits"},
        "cancel": {},
        "decide": {"request": "none", "granted": False, "by": "olga"},
        "explain": asked,
        "findings": {"dataset": "visits"},
        "keep_finding": {"finding": finding_of(), "dataset": "visits", "by": "olga"},
        "record_sources": {"names": ["labs"], "before": {}},
        "prepare_training": trained,
        "preview": asked,
        "refresh": {},
        "register": {
            "table": table,
            "source": curator.catalog.source("codes"),
            "replace": True,
            "with_linked": False,
            "copied_from": None,
        },
        "remove_table": {"name": "nowhere"},
        "queries": {},
        "requests": {"only_open": True},
        "resume": {"dataset": "visits"},
        "set_budget": {"dataset": "codes", "epsilon": 1.0, "delta": 1e-6},
        "set_cap": {"analyst": "cleo", "dataset": "visits", "epsilon": 1.0, "delta": 1e-6},
        "sql": asked | {"analyst": "ana", "purpose": "a test", "key": None, "timeout_s": 5.0},
        "table": {"name": "visits"},
        "train": trained,
    }


def state(curator: tacit.Curator) -> tuple[Any, ...]:
    """Return what a refused call must leave as it was: what was charged, the catalog, and the files of the folder."""
    files = {str(one.relative_to(curator.folder)) for one in curator.folder.rglob("*") if one.is_file()}
    kept = {one for one in files if not one.endswith(("-wal", "-shm"))}
    return curator.budget("visits").spent(), curator.ledger.head(), curator.catalog.text, kept


def test_every_method_of_a_curator_is_tried(curator: tacit.Curator) -> None:
    assert usual(curator).keys() == METHODS


@pytest.mark.filterwarnings("ignore::tacit.curator.curator.PrivacyWarning")
@pytest.mark.parametrize("name", sorted(METHODS))
def test_an_odd_argument_of_a_curator_changes_nothing(curator: tacit.Curator, name: str) -> None:
    method, bare = getattr(curator, name), []

    def call(**given: Any) -> Any:
        if isinstance(given.get("sql"), str) and given["sql"] == COUNT.format(
            7
        ):  # a question that was answered would not be run again
            given["sql"] = COUNT.format(next(FRESH))
        return method(**given)

    call.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    call.__qualname__ = name
    tried = call if name != "refresh" else method
    for shown, attempt in odd_calls(tried, usual(curator)[name]):
        before = state(curator)
        try:
            refused = failure(attempt)
        except Exception as error:
            bare.append(f"{shown}: {type(error).__name__}: {error}")
            continue
        if refused is not None and state(curator) != before:
            bare.append(f"{shown}: {refused.code} {refused}, and something was changed")
    assert not bare, "\n".join(bare)


def test_an_odd_name_of_a_frame_leaves_no_file(curator: tacit.Curator) -> None:
    frame, accepted = pd.DataFrame({"patient": [1, 2], "age": [3, 4]}), []
    for odd in ODD:
        before = state(curator)
        if failure(lambda odd=odd: curator.add_table(odd, frame, unit="patient")) is None:
            accepted.append(odd)
        else:
            assert state(curator) == before, odd
    assert accepted == ["x", "²"]


@pytest.mark.parametrize("name", ["folder", "store"])
def test_an_odd_place_of_a_curator_is_an_error_of_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)

    def opened(folder: Any = tmp_path / "one", store: Any = None) -> None:
        tacit.Curator(folder, store=store).close()

    bare = [sentence for sentence in uncoded(opened, {}) if f"({name}=" in sentence]
    assert not bare, "\n".join(bare)


def test_an_odd_argument_of_a_release_is_an_error_of_the_tree(curator: tacit.Curator) -> None:
    release = curator.sql(COUNT.format(3), 1.0)
    bare = uncoded(release.intervals, {}) + uncoded(curator.table("visits").__getitem__, {"name": "age"})
    assert not bare, "\n".join(bare)


TAKEN: Final[dict[str, list[str]]] = {
    "epsilon": ["3", "0.5", "Fraction(1, 3)", "array(5)"],
    "rho": ["None"],
    "budget": [],
    "unit": [],
    "rows_per_unit": ["None", "3", "array(5)"],
    "kind": [],
    "analyst": ["None"],
    "key": ["None", "'x'", "' x '", "'²'"],
    "purpose": ["None", "''", "'x'", "' x '", "'²'"],
    "timeout_s": ["None", "3", "0.5", "Fraction(1, 3)", "array(5)"],
    "progress": ["None", "<class 'object'>", "<built-in function len>"],
}
"""The odd arguments that a statistic may take, keys while they are new; it refuses all others."""


@pytest.mark.parametrize("name", CommonOptions.__annotations__)
def test_an_odd_argument_of_a_statistic_of_a_table_changes_nothing(curator: tacit.Curator, name: str) -> None:
    age, taken = curator.table("visits")["age"], []
    for odd in ODD:
        before, given = state(curator), {"epsilon": 1.0, name: odd}
        if failure(lambda given=given: tacit.stats.mean(age, bounds=(0, next(FRESH)), **given)) is None:
            taken.append(repr(odd))
        else:
            assert state(curator) == before, odd
    assert set(taken) <= set(TAKEN[name])


TIMES: Final = [0, -1, -0.0, float("nan"), float("inf"), "5", True, b"5", [5], 10**400, 1e300, object()]


@pytest.mark.parametrize("wrong", TIMES, ids=lambda one: f"{type(one).__name__} {one!s:.20}".partition(" object")[0])
def test_a_time_limit_that_is_none_is_refused_before_the_charge(curator: tacit.Curator, wrong: Any) -> None:
    before = state(curator)
    age = curator.table("visits")["age"]
    for call in (
        lambda: curator.sql(COUNT.format(next(FRESH)), 1.0, timeout_s=wrong),
        lambda: tacit.stats.mean(age, bounds=(0, next(FRESH)), epsilon=1.0, timeout_s=wrong),
    ):
        error = failure(call)
        assert isinstance(error, tacit.InvalidInput)
        assert error.name == "timeout_s"
    assert state(curator) == before


@pytest.mark.parametrize("purpose", [0, [], {}, b"", False, 3, "a\0", "x" * 5000], ids=lambda one: f"{one!r:.20}")
def test_a_purpose_that_is_no_text_is_refused_before_the_charge(curator: tacit.Curator, purpose: Any) -> None:
    before = state(curator)
    age = curator.table("visits")["age"]
    assert failure(lambda: curator.sql(COUNT.format(next(FRESH)), 1.0, purpose=purpose)) is not None
    assert failure(lambda: tacit.stats.mean(age, bounds=(0, next(FRESH)), epsilon=1.0, purpose=purpose)) is not None
    assert state(curator) == before


def refusing(request: httpx.Request) -> httpx.Response:
    return httpx.Response(400, json={"error": {"code": "T100", "message": "refused"}})


def remote() -> Client:
    http = httpx.Client(transport=httpx.MockTransport(refusing))
    return Client("http://127.0.0.1:1", "tacit_x", retries=0, http=http, sleep=lambda _: None)


TRAINING: Final = {"table": "visits", "estimator": "PCA", "features": ["age"], "epsilon": 1.0, "parameters": {}}
REMOTE: Final[dict[str, dict[str, Any]]] = {
    "model": {"model": "0"},
    "models": {"dataset": "visits"},
    "remove_model": {"model": "0"},
    "train": TRAINING | {"key": "k", "purpose": "a test", "timeout_s": 5.0},
    "training_preview": TRAINING,
    "add_analyst": {"name": "bob", "budgets": {"visits": tacit.Budget(1.0)}},
    "add_epoch": {"dataset": "visits", "name": "e"},
    "add_table": {"name": "labs", "data": "labs.csv", "unit": "patient"},
    "audit": {},
    "budget": {"dataset": "visits"},
    "budgets": {},
    "cancel": {"what": "job"},
    "decide": {"request": "r", "granted": True},
    "explain": {"sql": COUNT.format(7), "epsilon": 1.0},
    "file_request": {"dataset": "visits", "what": tacit.Cost(1.0, 0.0, 0.0), "reason": "more"},
    "findings": {},
    "jobs": {},
    "keep_finding": {"finding": finding_of(), "dataset": "visits"},
    "me": {},
    "preview": {"sql": COUNT.format(7), "epsilon": 1.0},
    "refresh": {"name": "visits"},
    "release": {"permit": "p"},
    "releases": {},
    "remove_table": {"name": "visits"},
    "requests": {},
    "set_budget": {"dataset": "visits", "epsilon": 1.0},
    "sql": {"sql": COUNT.format(7), "epsilon": 1.0},
    "table": {"name": "visits"},
    "tables": {},
}


def test_every_method_of_a_client_is_tried() -> None:
    assert REMOTE.keys() == public(Client) - {"close"}


@pytest.mark.parametrize("name", sorted(REMOTE))
def test_an_odd_argument_of_a_client_is_an_error_of_the_tree(name: str) -> None:
    bare = uncoded(getattr(remote(), name), REMOTE[name])
    assert not bare, "\n".join(bare)


PARTS: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "ledger": {
        "export": {"path": "export"},
        "history": {},
        "records": {},
        "reservations": {},
        "verify": {},
    },
    "people": {
        "add": {"name": "ana"},
        "all": {},
        "create_token": {},
        "grant": {"name": "ana", "role": "analyst"},
        "remove": {"name": "ana"},
        "revoke_token": {"token": "t"},
        "tokens": {},
        "withdraw": {"name": "ana", "role": "analyst"},
    },
}


@pytest.mark.parametrize("part", PARTS)
def test_an_odd_argument_of_a_part_of_a_client_is_an_error_of_the_tree(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = getattr(remote(), part)
    assert PARTS[part].keys() == public(type(found))
    bare = [sentence for name, given in PARTS[part].items() for sentence in uncoded(getattr(found, name), given)]
    assert not bare, "\n".join(bare)
    assert not list(tmp_path.iterdir())
