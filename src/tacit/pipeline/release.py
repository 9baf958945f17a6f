"""From a plan to a release: check, reserve, run, commit.

Promise: the budget has charged the plan's event before `run` touches the data; `run` works on the tables that the plan
was bound to, in exactly those versions and with exactly those records, or its outcome is dropped; the answer that is
stored under the plan's digest and the data's version is repeated at no cost, and for one permit only one outcome
leaves. The quota of stored answers, where the ledger has one, is checked before the charge. Budgets in memory and rows
of the caller take the same way, without keys and stored answers.

What fails after the charge. Whether a run fails must tell as little as possible of the rows. The rule, on every engine:

1. No value of a row makes a statement fail: expressions are total, arithmetic is exact and proved to fit, sizes of
   texts and numbers of rows per unit are bounded when the question is planned, so one unit adds a small, public amount
   of work. What is left are failures of the machine: no memory, no disk, no connection, time is up.
2. All of them are one error, EngineFailed, with one message. The reason is noted in the ledger, for its owner. Only the
   caller's own decisions are told apart: that it cancelled, and, over DuckDB, that the time limit it gave has passed
   (on a server the owner sets time limits, and there that is EngineFailed as well).
3. The charge stands, and pays for no other run: a key whose run failed or was cancelled is refused. A budget has a
   smallest price, so the number of bits that failures could tell is bounded.
4. If 1. is broken all the same, by an engine or by a mistake in a rule, failures tell few bits: after FAILURES_MAX
   failed runs (and those that were under way) nothing more is run on a data set, until its owner has looked at them
   and allows it (`allow_runs`). Cancelled runs, changed tables and lost connections do not count. After half as many
   of one analyst it is only that analyst whose runs are refused, so that nobody alone stops the runs of others.

Concurrent equal requests. A release without a key gets one from its plan's digest, the data's version, its payer and
the number of the attempt. Equal requests for the same payer while it runs, in whichever thread or process, get the same
open permit from the ledger, and are charged nothing more. All of them run; that is sound, because

1. nothing leaves a run before the ledger has settled its permit, by one transaction: `commit` writes the answer if
   neither an answer nor a failure stands there, `annotate` the failure on the same condition;
2. the first of the two to be written is the outcome that leaves for this permit. A run that comes second drops what it
   has, its own failure too: if an answer was written it returns that one; if a failure was written it begins again with
   the next attempt, which is a new charge. So a failure that was reported was paid for by itself, and fresh noise on
   the same numbers is never seen twice for one charge. Only a caller that cancelled its run is told so in any case;
3. a run that died with its process has settled nothing, and nothing of it left: the next equal request runs under its
   permit, as with a key of its own;
4. payers do not share: an analyst's own cap is charged for whatever was not released before.
"""

from __future__ import annotations

import hashlib
import json
import logging
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from shlex import quote
from typing import Final, Protocol, TypeVar

from tacit.accounting.conversions import Cost
from tacit.ledger import Budget, Ledger, Permit
from tacit.ledger.answer_storage import reserved_bytes
from tacit.pipeline import notes
from tacit.pipeline.interrupts import begin_charge, run_shielded
from tacit.pipeline.plan import Quote, Released, ReleaseOptions, ReleasePlan
from tacit.privacy.errors import (
    AlreadySettled,
    Cancelled,
    CatalogChanged,
    EngineFailed,
    InvalidInput,
    NoAccess,
    NoConnection,
    SourceMissing,
    Suspended,
    TacitError,
    TimedOut,
)
from tacit.privacy.events import Event
from tacit.privacy.figures import at_most

T = TypeVar("T")

ZERO_COST: Final = Cost(0.0, 0.0, 0.0)
"""The cost of an answer that was released before."""
RUN_FAILED: Final = (
    "the run failed; what was charged stays charged, and the owner finds the reason in the ledger (tacit ledger show)"
)
FAILURES_MAX: Final = 10
"""How many unseen failed runs stop further runs on a data set; half as many of one analyst stop that analyst."""
_UNCOUNTED: Final = frozenset(one.code for one in (Cancelled, CatalogChanged, SourceMissing, NoConnection, NoAccess))
STALE_PLAN: Final = "a table was registered again after this was planned; nothing was charged; run it again"
_log: Final = logging.getLogger("tacit.pipeline")
_hold: Final[ContextVar[Callable[[], None] | None]] = ContextVar("hold", default=None)


@contextmanager
def holding_outcomes(hold: Callable[[], None]) -> Iterator[None]:
    """Within the block, call `hold` after each run, before anything of its outcome can be seen.

    Once it is committed, an answer is repeated at cost 0 and listed, a failure is in the ledger, and a quota shows how
    much was stored: a caller who polls for that would measure how long the run took. A server waits in `hold` until the
    end of the run's time class.
    """
    token = _hold.set(hold)
    try:
        yield
    finally:
        _hold.reset(token)


def _hold_outcome() -> None:
    if (hold := _hold.get()) is not None:
        hold()


class _Chargeable(Protocol):
    """The part of a plan that `begin` needs."""

    @property
    def event(self) -> Event: ...

    @property
    def label(self) -> str: ...

    def check(self) -> None: ...


def find_released(plan: ReleasePlan[T], budget: Budget) -> Callable[[], T] | None:
    """Return a function that reads the answer that was released before for a plan and its data's version, or None.

    Nothing is charged or run. Raises what `preview` raises, so that it tells nothing to callers without permission.
    """
    budget.preview(plan.event)
    kept = _stored_answer(plan, budget)
    return None if kept is None else lambda: plan.decode(kept)


def preview(plan: ReleasePlan[T], budget: Budget) -> Quote:
    """Return exactly what `release` would charge now, and whether the remaining budget covers it; spends nothing."""
    cost, refusal = budget.preview(plan.event), None
    if is_released := _stored_answer(plan, budget) is not None:
        cost = ZERO_COST
    else:
        refusal = suspension(budget) or budget.refusal(plan.event)
    return _quote(plan.event, budget, cost, refusal, is_released=is_released)


def preview_steps(plan: _Chargeable, budget: Budget) -> Quote:
    """Return exactly what `begin` would charge now, and whether the remaining budget covers it; spends nothing."""
    plan.check()
    return _quote(plan.event, budget, budget.preview(plan.event), budget.refusal(plan.event))


def _quote(event: Event, budget: Budget, cost: Cost, refusal: TacitError | None, *, is_released: bool = False) -> Quote:
    remaining = {budget.dataset: budget.remaining()}
    is_charged = not is_released and refusal is None
    leaves = {budget.dataset: budget.remaining(event)} if is_charged else remaining
    why = "" if refusal is None else refusal.message
    return Quote(cost.epsilon, cost.delta, cost.rho, is_released, remaining, leaves, why, budget.payer)


def begin(plan: _Chargeable, budget: Budget, options: ReleaseOptions, *, refundable: bool = False) -> Permit:
    """Charge a plan that is released in steps (`StepAnchor`), and return its permit.

    With `refundable`, steps that are not run can be refunded (`Budget.refund`).
    """
    plan.check()
    begin_charge()
    return budget.reserve(plan.event, options.purpose or plan.label, refundable=refundable)


def release(plan: ReleasePlan[T], budget: Budget, options: ReleaseOptions) -> Released[T]:
    """Charge a plan, run it and return its answer; an error before the charge spends nothing.

    On the main thread Ctrl-C cancels the run and interrupts no step of the ledger (`interrupts`).
    """
    if plan.data.version is None and options.key is not None:
        raise InvalidInput("key= needs a registered table, whose ledger stores the answer; leave it out", name="key")
    budget.preview(plan.event)  # first: callers without permission learn nothing from the checks below
    if not options.source.simulated and (kept := _stored_answer(plan, budget)) is not None:
        return Released(plan.decode(kept), ZERO_COST, None)
    plan.check()
    if not plan.data.is_current():
        raise CatalogChanged(STALE_PLAN)
    if (suspended := suspension(budget)) is not None:
        raise suspended
    return run_shielded(lambda: _release_within_quota(plan, budget, options), plan.data.cancel)


def suspension(budget: Budget) -> Suspended | None:
    """Return the refusal of further runs on a data set, if too many failed; None while they are allowed."""
    failures = _unseen_failures(budget.open_notes())
    own = [one for one in failures.values() if budget.payer and one.payer == budget.payer]
    is_own = 2 * len(own) >= FAILURES_MAX
    if not is_own and len(failures) < FAILURES_MAX:
        return None
    failed = f"{len(own)} runs of {budget.payer}" if is_own else f"{len(failures)} runs"
    return Suspended(
        f"{failed} on {budget.dataset} have failed, and failures may tell about single people",
        accepted=f"the owner finds the reasons with tacit ledger show, and allows runs again with tacit budget resume "
        f"{quote(budget.dataset)}",
    )


def allow_runs(ledger: Ledger, dataset: str) -> int:
    """Allow further runs on a data set: mark its failed runs as seen by the owner, and return their number."""
    noted = ledger.open_notes(dataset)
    failed = _unseen_failures(noted)
    for permit, failure in failed.items():
        with suppress(AlreadySettled):  # somebody else has marked it meanwhile
            ledger.annotate(permit, str(failure.seen), before=noted[permit])
    return len(failed)


def _unseen_failures(noted: Mapping[str, str]) -> dict[str, notes.FailureNote]:
    """Return the failures that count, by permit."""
    read = {permit: notes.read(text) for permit, text in noted.items()}
    return {
        permit: note
        for permit, note in read.items()
        if isinstance(note, notes.FailureNote) and not note.is_seen and note.reason not in _UNCOUNTED
    }


def _stored_answer(plan: ReleasePlan[T], budget: Budget) -> bytes | None:
    version = plan.data.version
    return None if version is None else budget.released(plan.digest, version)


def _release_within_quota(plan: ReleasePlan[T], budget: Budget, options: ReleaseOptions) -> Released[T]:
    if budget.quota is None or plan.data.version is None:
        return _charge_and_run(plan, budget, options)[0]
    reservation, size = budget.quota.reserve(budget.payer, reserved_bytes(plan.answer_bytes)), 0
    try:
        released, size = _charge_and_run(plan, budget, options)
    finally:
        budget.quota.settle(reservation, size)
    return released


def _charge_and_run(plan: ReleasePlan[T], budget: Budget, options: ReleaseOptions) -> tuple[Released[T], int]:
    """Charge a plan, run it and commit its answer; repeat with a new charge while another run of it failed.

    Returns the release and the number of bytes stored.
    """
    version = plan.data.version
    is_kept = version is not None and not options.source.simulated
    attempt = 0
    while True:
        attempt += 1
        key = options.key
        if key is None and is_kept:
            key = _shared_key(plan, budget, attempt)
        bound_to = {} if version is None else {"plan": plan.digest, "data_version": version}
        begin_charge()
        try:
            permit = budget.reserve(
                plan.event, options.purpose or plan.label, key=key, plan=bound_to.get("plan"), data_version=version
            )
            answer, encoded = _run(plan, budget, permit, options)
            budget.commit(permit, encoded, **(bound_to if is_kept else {}), before="")
            return Released(answer, permit.cost, permit), len(encoded or b"")
        except AlreadySettled:  # another run under this key ended first: its outcome counts
            if (kept := _stored_answer(plan, budget)) is not None:
                return Released(plan.decode(kept), ZERO_COST, None), 0
            if options.key is not None:
                raise


def _shared_key(plan: ReleasePlan[T], budget: Budget, attempt: int) -> str:
    """Return the key of a release without one: equal for the same plan, data, payer and attempt.

    Callers of a server cannot write it: their keys begin with their names, and no name begins with =.
    """
    shared = json.dumps([plan.digest, plan.data.version, budget.payer, attempt])
    return f"={hashlib.sha256(shared.encode()).hexdigest()}"


def cancelled_text(cost: Cost) -> str:
    """Return what becomes of the charge of a run that was cancelled."""
    spent = f"epsilon {at_most(cost.epsilon)}" + (f" and delta {at_most(cost.delta)}" if cost.delta else "")
    return f"the run was cancelled; {spent} stays charged, and repeating the query is charged again"


def _run(plan: ReleasePlan[T], budget: Budget, permit: Permit, options: ReleaseOptions) -> tuple[T, bytes | None]:
    """Run a charged plan; a failure is noted in the ledger and reported by the rule above.

    Raise AlreadySettled if it fails after another run of the same permit was answered or failed.
    """
    failure: EngineFailed
    try:
        answer = plan.run(options)
        encoded = None if plan.data.version is None else plan.encode(answer)
        if not plan.data.is_current():
            raise CatalogChanged("a table was registered again during the run")
        _hold_outcome()
        return answer, encoded
    except Cancelled as error:
        failure = Cancelled(cancelled_text(permit.cost))
        reason = error.code
    except TimedOut as error:
        failure = error
        reason = error.code
    except TacitError as error:
        failure = EngineFailed(RUN_FAILED)
        reason = error.code
    except Exception as error:
        failure = EngineFailed(RUN_FAILED)
        reason = type(error).__name__
        frames = "".join(traceback.format_tb(error.__traceback__))  # without the message, which may quote a row
        _log.error("a charged run failed with %s\n%s", reason, frames)
    _hold_outcome()
    try:
        budget.annotate(permit, str(notes.FailureNote(reason, budget.payer)), before="")
    except AlreadySettled:
        if not isinstance(failure, Cancelled):  # the caller knows that it cancelled, and learns nothing else
            raise
    raise failure
