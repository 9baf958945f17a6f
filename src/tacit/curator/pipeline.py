"""From a charge to a release: reserve, run, commit. SQL and statistics of registered tables go through here.

Promise: the ledger has charged the event before `work` touches the data; `work` runs against the tables that were bound
before the charge, in exactly those versions and with exactly those records, or its outcome is dropped; what is kept
under the plan's digest and the data's version is given again at no cost, and for one permit only one outcome leaves. A
quota of the ledger, where it has one, is asked for the size of the answer before the charge.

What fails after the charge. Whether a run fails must tell as little as possible of the rows. The rule, on every engine:

1. No value of a row makes a statement fail: expressions are total, arithmetic is exact and proved to fit, sizes of
   texts and numbers of rows per unit are bounded when the question is planned, so one unit adds a small, public amount
   of work. What is left are failures of the machine: no memory, no disk, no connection, time is up.
2. All of them are one error, EngineFailed, with one sentence. The reason is noted in the ledger, for its owner. Only
   what the caller decided itself is told apart: that it cancelled, and, over DuckDB, that the time limit it gave has
   passed (on a server the owner sets time limits, and there that is EngineFailed as well).
3. The charge stands, and is not good for another run: a key whose run failed or was cancelled is refused. A budget has
   a smallest price, so the bits that failures could tell are few and counted.

What is asked twice at once. A release without a key gets one from its plan's digest, the data's version, its payer and
the number of the attempt. Whoever asks the same for the same payer while it runs, in whichever thread or process, is
given the same open permit by the ledger, and charged nothing more. All of them run; that is sound, because

1. nothing leaves a run before the ledger has settled its permit, by one transaction: `commit` writes the answer if
   neither an answer nor a failure stands there, `annotate` the failure on the same condition;
2. the first of the two to be written is the outcome that leaves for this permit. A run that comes second drops what it
   has, its own failure too: if an answer was written it returns that one; if a failure was written it begins again with
   the next attempt, which is a new charge. So a failure that was told was paid for by itself, and fresh noise on the
   same numbers is never seen twice for one charge. Only who cancelled a run is told so in any case;
3. a run that died with its process has settled nothing, and nothing of it left: the next one who asks the same runs
   under its permit, as with a key of one's own;
4. payers do not share: an analyst's own cap is charged for whatever was not released before.
"""

from __future__ import annotations

import hashlib
import json
import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tacit.accounting.bounds import Cost
from tacit.curator.engine_registry import Bound, EngineRegistry
from tacit.ledger import Ledger, Permit
from tacit.ledger.answer_size import ANSWER_BYTES_MAX
from tacit.privacy.errors import AlreadySettled, Cancelled, CatalogChanged, EngineFailed, TacitError, TimedOut
from tacit.privacy.events import Event

NOTHING: Final = Cost(0.0, 0.0, 0.0)
"""What an answer costs that was released before."""
RUN_FAILED: Final = (
    "the question could not be run to its end; what was charged stays charged, and the owner finds the reason in the "
    "ledger (tacit ledger show)"
)
_log: Final = logging.getLogger("tacit.pipeline")


@dataclass(frozen=True, slots=True)
class Charge:
    """What one release is charged: which event to which budget, for which plan, on whose account."""

    dataset: str
    event: Event
    plan: str
    """A digest that is equal for plans that release the same."""
    analyst: str | None = None
    purpose: str = ""
    key: str | None = None
    answer_bytes: int = ANSWER_BYTES_MAX
    """How many bytes the answer takes at most."""

    def shared_key(self, data_version: str, attempt: int) -> str:
        """Return the key of a release that was given none: equal for the same plan, data, payer and attempt.

        Callers of a server cannot write it: their keys begin with their names, and no name begins with =.
        """
        shared = json.dumps([self.plan, data_version, self.analyst, attempt])
        return f"={hashlib.sha256(shared.encode()).hexdigest()}"


def release(
    ledger: Ledger,
    engines: EngineRegistry,
    bound: Bound,
    charge: Charge,
    work: Callable[[], bytes],
    *,
    is_simulated: bool = False,
) -> tuple[bytes, Permit | None]:
    """Return what a plan releases and the permit that paid for it, None if it was released before.

    `work` runs the plan and returns its answer with noise. A simulated answer is charged and not kept.
    """
    if not is_simulated and (kept := ledger.released(charge.plan, bound.data_version)) is not None:
        return kept, None
    if ledger.quota is None:
        return _released(ledger, engines, bound, charge, work, is_simulated=is_simulated)
    place, size = ledger.quota.reserve(charge.analyst, charge.answer_bytes), 0
    try:
        answer, permit = _released(ledger, engines, bound, charge, work, is_simulated=is_simulated)
        size = 0 if permit is None else len(answer)
    finally:
        ledger.quota.settle(place, size)
    return answer, permit


def _released(
    ledger: Ledger,
    engines: EngineRegistry,
    bound: Bound,
    charge: Charge,
    work: Callable[[], bytes],
    *,
    is_simulated: bool,
) -> tuple[bytes, Permit | None]:
    """Charge a plan, run it and commit its answer; again with a new charge while another run of it failed."""
    version = bound.data_version
    attempt = 0
    while True:
        attempt += 1
        key = charge.key
        if key is None and not is_simulated:
            key = charge.shared_key(version, attempt)
        try:
            permit = ledger.reserve(
                charge.dataset,
                charge.event,
                analyst=charge.analyst,
                purpose=charge.purpose,
                key=key,
                question=charge.plan,
                data_version=version,
            )
            answer = _run(ledger, engines, bound, permit, work)
            ledger.commit(permit, answer, *((None, None) if is_simulated else (charge.plan, version)), before="")
            return answer, permit
        except AlreadySettled:  # another run under this key came to its end first: its outcome is the one that counts
            if (kept := ledger.released(charge.plan, version)) is not None:
                return kept, None
            if charge.key is not None:
                raise


def _run(ledger: Ledger, engines: EngineRegistry, bound: Bound, permit: Permit, work: Callable[[], bytes]) -> bytes:
    """Do the work of a charged plan; whatever goes wrong is noted in the ledger and told as the rule above says.

    Raise AlreadySettled if it goes wrong after another run of the same permit was answered or failed.
    """
    failure: EngineFailed
    try:
        answer = work()
        if engines.is_current(bound):
            return answer
        raise CatalogChanged("a table was registered anew during the run")
    except (Cancelled, TimedOut) as error:
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
    try:
        ledger.annotate(permit, f"the run failed: {reason}", before="")
    except AlreadySettled:
        if not isinstance(failure, Cancelled):  # which the caller knows, and nothing else is told by it
            raise
    raise failure
