"""From a charge to a release: reserve, run, commit. SQL and statistics of registered tables go through here.

Promise: the ledger has charged the event before `work` touches the data; `work` runs against the tables that were bound
before the charge, in exactly those versions and with exactly those records, or its outcome is dropped; what is kept
under the plan's digest and the data's version is given again at no cost, and for one permit only one answer leaves.

What fails after the charge. Whether a run fails must tell as little as possible of the rows. The rule, on every engine:

1. No value of a row makes a statement fail: expressions are total, arithmetic is exact and proved to fit, sizes of
   texts and numbers of rows per unit are bounded when the question is planned, so one unit adds a small, public amount
   of work. What is left are failures of the machine: no memory, no disk, no connection, time is up.
2. All of them are one error, EngineFailed, with one sentence. The reason is noted in the ledger, for its owner. Only
   what the caller decided itself is told apart: that it cancelled, and, over DuckDB, that the time limit it gave has
   passed (on a server the owner sets time limits, and there that is EngineFailed as well).
3. The charge stands, and is not good for another run: a key whose run failed or was cancelled is refused. A budget has
   a smallest price, so the bits that failures could tell are few and counted.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tacit.accounting.bounds import Cost
from tacit.curator.engine_registry import Bound, EngineRegistry
from tacit.ledger import Ledger, Permit
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
    version = bound.data_version
    if not is_simulated and (kept := ledger.released(charge.plan, version)) is not None:
        return kept, None
    try:
        permit = ledger.reserve(
            charge.dataset,
            charge.event,
            analyst=charge.analyst,
            purpose=charge.purpose,
            key=charge.key,
            question=charge.plan,
            data_version=version,
        )
    except AlreadySettled:  # its key was answered since the look at what was released
        if (kept := ledger.released(charge.plan, version)) is None:
            raise
        return kept, None
    if charge.key is not None and ledger.note(permit):
        raise AlreadySettled(
            f"the run that was paid for with the key {charge.key!r} failed; take a new key, which is charged anew",
            name="key",
            value=charge.key,
        )
    answer = _run(ledger, engines, bound, permit, work)
    try:
        ledger.commit(permit, answer, *((None, None) if is_simulated else (charge.plan, version)))
    except AlreadySettled:  # with a key, somebody else answered for the same permit: only that answer leaves
        if (kept := ledger.released(charge.plan, version)) is None:
            raise
        return kept, permit
    return answer, permit


def _run(ledger: Ledger, engines: EngineRegistry, bound: Bound, permit: Permit, work: Callable[[], bytes]) -> bytes:
    """Do the work of a charged plan; whatever goes wrong is noted in the ledger and told as the rule above says."""
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
    ledger.annotate(permit, f"the run failed: {reason}")
    raise failure
