"""What the pipeline promises, held against every kind of release."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit import pipeline
from tacit.ledger.answer_storage import reserved_bytes
from tacit.mechanisms.simulation import SeededSource
from tacit.pipeline import ReleaseOptions, ReleasePlan
from tacit.privacy.errors import (
    BudgetExceeded,
    Cancelled,
    CatalogChanged,
    EngineFailed,
    InvalidInput,
    KeyReused,
    NotPermitted,
    Suspended,
    TimedOut,
)
from tests.conformance.pipeline.kinds import EPSILON, KINDS, clinic, register, spent

pytestmark = [pytest.mark.parametrize("kind", KINDS), pytest.mark.sampled(6)]
ROOT = Path(__file__).parents[3]


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[tacit.Curator]:
    with clinic(tmp_path / "clinic") as curator:
        yield curator
        curator.ledger.verify(full=True)


def run_instead(monkeypatch: pytest.MonkeyPatch, plan: ReleasePlan[Any], run: Any) -> None:
    """Replace what a kind of release does when it runs."""
    monkeypatch.setattr(type(plan), "run", lambda self, options: run(options))


def notes(curator: tacit.Curator) -> list[str]:
    return [one.note for one in curator.ledger.reservations()]


def test_what_a_preview_says_is_charged_once_and_repeated_for_free(curator: tacit.Curator, kind: str) -> None:
    prepared = KINDS[kind](curator, None)
    cost = pipeline.preview(prepared.plan, prepared.budget)
    assert (cost.is_released, cost.fits, spent(curator)) == (False, True, 0.0)
    first = prepared.release()
    assert first.cost == cost
    assert first.permit is not None
    assert spent(curator) == pytest.approx(EPSILON)
    again = KINDS[kind](curator, None)
    quote = pipeline.preview(again.plan, again.budget)
    assert (quote, quote.is_released) == (pipeline.ZERO_COST, True)
    second = again.release()
    assert (second.cost, second.permit) == (pipeline.ZERO_COST, None)
    assert again.plan.encode(second.answer) == prepared.plan.encode(first.answer)
    assert spent(curator) == pytest.approx(EPSILON)
    assert [one.kind for one in curator.ledger.history()].count("answer-released") == 1


def test_the_answer_is_no_larger_than_the_plan_says(curator: tacit.Curator, kind: str) -> None:
    prepared = KINDS[kind](curator, None)
    assert len(prepared.encoded()) <= reserved_bytes(prepared.plan.answer_bytes)


def test_an_answer_is_read_back_as_it_was_written(curator: tacit.Curator, kind: str) -> None:
    prepared = KINDS[kind](curator, None)
    encoded = prepared.encoded()
    assert prepared.plan.encode(prepared.plan.decode(encoded)) == encoded


def test_a_key_is_charged_once_and_pays_for_nothing_else(curator: tacit.Curator, kind: str) -> None:
    prepared, options = KINDS[kind](curator, "ana"), ReleaseOptions(key="monday")
    first = prepared.encoded(options)
    assert prepared.encoded(options) == first
    assert spent(curator, "ana") == pytest.approx(EPSILON)
    for other in set(KINDS) - {kind}:
        with pytest.raises((KeyReused, InvalidInput)):
            KINDS[other](curator, "ana").release(options)
    assert spent(curator) == pytest.approx(EPSILON)


def test_the_run_gets_the_order_and_the_ledger_the_purpose(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    prepared, seen = KINDS[kind](curator, None), []
    run = type(prepared.plan).run
    monkeypatch.setattr(type(prepared.plan), "run", lambda self, options: (seen.append(options), run(self, options))[1])
    shares: list[float] = []
    options = ReleaseOptions("quarterly report", timeout_s=30.0, progress=shares.append)
    released = prepared.release(options)
    assert seen == [options]
    assert released.permit is not None
    assert released.permit.purpose == "quarterly report"


@pytest.mark.sampled(8, each="kind")
@pytest.mark.parametrize("error", [ValueError("a row says 42"), InvalidInput("a row says 42"), MemoryError()])
def test_a_run_that_fails_stays_charged_and_says_nothing_of_its_reason(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, kind: str, error: Exception
) -> None:
    prepared = KINDS[kind](curator, None)

    def fail(_options: ReleaseOptions) -> None:
        raise error

    with monkeypatch.context() as patched:
        run_instead(patched, prepared.plan, fail)
        with pytest.raises(EngineFailed) as failure:
            prepared.release()
    assert str(failure.value) == pipeline.RUN_FAILED
    assert failure.value.__cause__ is None
    assert failure.value.__suppress_context__ or failure.value.__context__ is None
    assert "42" not in "".join(notes(curator))
    assert spent(curator) == pytest.approx(EPSILON)
    assert prepared.release().permit is not None  # asked again, it is charged again
    assert spent(curator) == pytest.approx(2 * EPSILON)


@pytest.mark.parametrize("error", [Cancelled("stopped"), TimedOut("late")])
def test_what_the_caller_decided_is_told_apart_and_stays_charged(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, kind: str, error: EngineFailed
) -> None:
    prepared = KINDS[kind](curator, None)

    def stop(_options: ReleaseOptions) -> None:
        raise error

    run_instead(monkeypatch, prepared.plan, stop)
    with pytest.raises(type(error)):
        prepared.release()
    assert spent(curator) == pytest.approx(EPSILON)
    assert notes(curator) == [f"failed/{error.code}"]


def test_after_some_failures_nothing_is_run_until_the_owner_allows_it(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The second line of defence: a row that makes runs fail, which no row should, tells a few bits and no more."""
    monkeypatch.setattr(sys.modules["tacit.pipeline.release"], "FAILURES_MAX", 3)
    prepared = KINDS[kind](curator, None)
    errors: list[Exception] = [Cancelled("stopped"), EngineFailed("overflow"), ValueError(), MemoryError()]

    def fail(_options: ReleaseOptions) -> None:
        raise errors.pop(0)

    with monkeypatch.context() as patched:
        run_instead(patched, prepared.plan, fail)
        while errors:
            with pytest.raises(EngineFailed):
                prepared.release()
        before = spent(curator)
        with pytest.raises(Suspended, match="3 runs on visits have failed"):
            prepared.release()
    assert spent(curator) == before
    assert pipeline.preview(prepared.plan, prepared.budget).refusal.startswith("3 runs on visits have failed")
    assert curator.resume("visits") == 3
    assert prepared.release().permit is not None
    assert curator.resume("visits") == 0


def test_an_analyst_whose_runs_failed_is_refused_before_others_are(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sys.modules["tacit.pipeline.release"], "FAILURES_MAX", 4)
    ana, bob = KINDS[kind](curator, "ana"), KINDS[kind](curator, "bob")

    def fail(_options: ReleaseOptions) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        run_instead(patched, ana.plan, fail)
        for _ in range(2):
            with pytest.raises(EngineFailed):
                ana.release()
    with pytest.raises(Suspended, match="2 runs of ana on visits have failed"):
        ana.release()
    assert bob.release().permit is not None
    assert curator.resume("visits") == 2


def test_what_would_fail_for_any_rows_is_not_charged(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    prepared = KINDS[kind](curator, None)

    def refuse(_plan: Any) -> None:
        raise InvalidInput("the engine has no such function")

    monkeypatch.setattr(type(prepared.plan), "check", refuse)
    with pytest.raises(InvalidInput):
        prepared.release()
    assert spent(curator) == 0.0
    assert curator.ledger.reservations() == []


def test_a_budget_that_does_not_admit_it_keeps_it_from_the_data(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    curator.add_analyst("eve", {"visits": tacit.Budget(EPSILON / 2, 1e-8)})

    def release(analyst: str) -> None:
        prepared = KINDS[kind](curator, analyst)
        run_instead(monkeypatch, prepared.plan, lambda _options: pytest.fail("the data were touched"))
        prepared.release()

    for analyst, error in (("eve", BudgetExceeded), ("nobody", NotPermitted)):
        with pytest.raises(error):
            release(analyst)
    assert spent(curator) == 0.0


def test_a_table_that_is_registered_anew_refuses_older_plans_uncharged(curator: tacit.Curator, kind: str) -> None:
    stale = KINDS[kind](curator, None)
    register(curator, age_max=100, replace=True)
    with pytest.raises(CatalogChanged):
        stale.release()
    assert spent(curator) == 0.0
    assert curator.ledger.reservations() == []


def test_a_table_that_changes_during_the_run_drops_the_answer(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    prepared = KINDS[kind](curator, None)
    run = type(prepared.plan).run

    def change(self: Any, options: ReleaseOptions) -> Any:
        answer = run(self, options)
        register(curator, age_max=100, replace=True)
        return answer

    monkeypatch.setattr(type(prepared.plan), "run", change)
    with pytest.raises(EngineFailed):
        prepared.release()
    assert spent(curator) == pytest.approx(EPSILON)
    assert [one.kind for one in curator.ledger.history()].count("answer-released") == 0


def test_payers_do_not_share_and_answers_do(curator: tacit.Curator, kind: str) -> None:
    first = KINDS[kind](curator, "ana").encoded()
    assert KINDS[kind](curator, "bob").encoded() == first
    assert (spent(curator, "ana"), spent(curator, "bob")) == (pytest.approx(EPSILON), 0.0)


def test_payers_do_not_share_a_charge_while_it_runs(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    first, second = KINDS[kind](curator, "ana"), KINDS[kind](curator, "bob")
    run, nested = type(first.plan).run, []

    def run_other_within(self: Any, options: ReleaseOptions) -> Any:
        if not nested:
            nested.append(True)
            second.release()
        return run(self, options)

    monkeypatch.setattr(type(first.plan), "run", run_other_within)
    first.release()
    assert (spent(curator, "ana"), spent(curator, "bob")) == (pytest.approx(EPSILON), pytest.approx(EPSILON))


def test_a_simulated_answer_is_not_repeated_as_a_release(curator: tacit.Curator, kind: str) -> None:
    """Its noise can be computed by whoever knows the seed."""
    prepared = KINDS[kind](curator, None)
    prepared.release(ReleaseOptions(source=SeededSource(7)))
    assert not pipeline.preview(prepared.plan, prepared.budget).is_released
    assert prepared.release().permit is not None
    assert spent(curator) == pytest.approx(2 * EPSILON)


def test_what_is_asked_twice_at_once_is_charged_once(
    curator: tacit.Curator, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    both, found = threading.Barrier(2, timeout=20), []
    plans = [KINDS[kind](curator, None) for _ in range(2)]
    run = type(plans[0].plan).run
    monkeypatch.setattr(type(plans[0].plan), "run", lambda self, options: (both.wait(), run(self, options))[1])
    threads = [threading.Thread(target=lambda one=one: found.append(one.encoded())) for one in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert len(set(found)) == 1
    assert spent(curator) == pytest.approx(EPSILON)


SCRIPT = """
    import json, os, signal, sys, threading, traceback
    import tacit
    from tacit.ledger import LedgerBudget
    from tacit.privacy.errors import Cancelled
    from tests.conformance.pipeline.kinds import KINDS

    def released(folder, kind, moment):
        curator, cancelled = tacit.Curator(folder), threading.Event()
        prepared = KINDS[kind](curator, None)
        run, commit = type(prepared.plan).run, LedgerBudget.commit

        def killed(self, options):
            if moment == "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
                cancelled.wait()  # an engine that is told to stop
                raise Cancelled("stopped")
            answer = run(self, options) if moment in ("during", "after") else None
            if moment in ("before", "during"):
                os._exit(9)
            return answer

        def killed_after(self, *values, **named):
            commit(self, *values, **named)
            if moment == "after":
                os._exit(9)

        type(prepared.plan.data).cancel = lambda self, thread: cancelled.set()
        type(prepared.plan).run = killed
        LedgerBudget.commit = killed_after
        try:
            prepared.release()
        except KeyboardInterrupt:
            curator.close()
            os._exit(130)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where interrupts are ignored
    for case in json.loads(sys.argv[1]):
        if not (child := os.fork()):  # all that is loaded is shared, and nothing is open yet
            try:
                released(*case)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
MOMENTS = {"before": 9, "during": 9, "after": 9, "interrupt": 130}


@pytest.fixture(scope="module")
def stopped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """Stop releases at every moment that a case of this run is about, each in a process and a folder of its own."""
    folder, cases = tmp_path_factory.mktemp("stopped"), {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and "stopped" in item.fixturenames:
            kind, moment = item.callspec.params["kind"], item.callspec.params.get("moment", "interrupt")
            cases[kind, moment] = folder / f"{kind} {moment}"
    for own in cases.values():
        clinic(own).close()
    listed = json.dumps([[str(own), *case] for case, own in cases.items()])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), listed]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout.split() == [str(MOMENTS[moment]) for _, moment in cases], done.stderr
    return cases


@pytest.mark.sampled(9, each="kind")
@pytest.mark.parametrize("moment", ["before", "during", "after"])
def test_a_process_that_is_killed_leaves_the_charge_and_never_a_second_one(
    stopped: dict[tuple[str, str], Path], kind: str, moment: str
) -> None:
    with tacit.Curator(stopped[kind, moment]) as curator:
        assert spent(curator) == pytest.approx(EPSILON)
        assert len(curator.ledger.reservations()) == (0 if moment == "after" else 1)
        prepared = KINDS[kind](curator, None)
        assert pipeline.preview(prepared.plan, prepared.budget).is_released is (moment == "after")
        prepared.release()
        assert spent(curator) == pytest.approx(EPSILON)
        curator.ledger.verify(full=True)


def test_ctrl_c_cancels_the_run_and_notes_the_charge(stopped: dict[tuple[str, str], Path], kind: str) -> None:
    with tacit.Curator(stopped[kind, "interrupt"]) as curator:
        assert spent(curator) == pytest.approx(EPSILON)
        assert notes(curator) == [f"failed/{Cancelled.code}"]
