"""Running totals over a stream: after each step the total so far, all under one price that is paid at the start.

    budget = ledger.budget("visits")
    visits = tacit.stats.RunningCount(365, epsilon=1.0, budget=budget, path="visits.state")
    visits.add(1204).value, visits.add(1187).interval(0.95)
    visits = tacit.stats.RunningCount.open("visits.state", budget=budget)  # after a restart: nothing is charged again

Promise (neighbours: one unit more or less, or one replaced, as the budget says): all totals together are as private as
was charged, if no unit adds more than `per_step` to any step, nor anything to more than `steps_per_unit` of them. With
1 and 1 that protects single events; to protect people, state in how many steps a person can be, and leave out what is
beyond that: whoever adds up the steps must see to it, for here they are numbers already. Steps may depend on what was
released before (Denisov, McMahan, Rush, Smith, Thakurta 2022 for Gaussian noise and a triangular matrix; for Laplace
noise each node of a tree is a mechanism by itself, and the sum of what a unit moves them is bounded on every path).

Which mechanism: the one with the lower mean variance of a total, `roots` or `trees` (`prefix_sums`), Gaussian noise
where the budget has a delta or rho is paid, Laplace noise otherwise. The noise is whole and exact.

Promise about crashes: all noise is drawn and stored before the first total is released, and with `path` each step is
stored before its total is. A process that is killed at any moment and started again goes on with the same noise and
pays nothing; where it had not stored a step, telling that step again releases what it would have released before.

Promise about copies: each step is noted with the permit at the budget that paid before its total leaves
(`pipeline.steps`), so that a state that was copied or restored, which would use the same noise again, is refused
(AlreadySettled). A state in a file outlives the process, and so must its budget: it is one of a ledger. Threads may
share a running total. The state holds the steps and the noise as they are: it is as private as the data.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.conversions import Cost
from tacit.ledger import Budget, Permit
from tacit.measuring.allocation import Allocation, Law, Noise
from tacit.measuring.intervals import DISCRETE_BELOW, Summand, discrete_half_width, half_widths, variance
from tacit.mechanisms import Gaussian, Laplace
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SYSTEM, Source
from tacit.mechanisms.simulation import SeededSource
from tacit.pipeline import ReleaseOptions, begin
from tacit.pipeline.steps import StepAnchor, digest_after, digest_of
from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import EmptyInput, Exhausted, InvalidInput, TooLarge, WrongType
from tacit.privacy.events import Composed, Event
from tacit.privacy.figures import at_most
from tacit.privacy.numbers import DEFAULT_LEVEL, level_of, whole
from tacit.privacy.tables import Kind
from tacit.stats.array_sums import ArrayColumn
from tacit.stats.prefix_sums import Counter, Roots, Trees, best_tree, root_error, root_length
from tacit.stats.rows import ColumnSteps
from tacit.stats.stream_files import StateFile, read, record, taken, written

HORIZON_MAX: Final = 2**20
SECRET_BYTES: Final = 32
SUM_STEPS: Final = 2**16
"""Into how many steps the greatest value of a sum is divided."""

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class RunningTotal:
    """A running total: after which step, the number, its estimate before rounding, and its variance."""

    step: int
    value: int | float
    estimate: float
    variance: float
    kurtosis: float = 0.0
    at_least: float | None = None
    summands: tuple[Summand, ...] = ()
    """The noises that the estimate is off by, where they are known one by one."""

    def interval(self, level: float = DEFAULT_LEVEL) -> Interval:
        """Return where the total without noise lies with probability `level`."""
        if self.summands and self.variance < DISCRETE_BELOW:
            width = discrete_half_width(self.summands, level_of(level))
        else:
            width = float(half_widths(self.variance, self.kurtosis, level_of(level)))
        low, high = self.estimate - width, self.estimate + width
        if self.at_least is not None:
            low, high = max(low, self.at_least), max(high, self.at_least)
        return Interval(low, high)


class RunningCount:
    """Running counts over at most `horizon` steps, for one price."""

    kind: str = "count"

    def __init__(
        self,
        horizon: int,
        *,
        epsilon: object = None,
        rho: object = None,
        budget: Budget,
        per_step: int = 1,
        steps_per_unit: int = 1,
        path: Path | str | None = None,
        purpose: str = "",
        source: Source = SYSTEM,
    ) -> None:
        header = {"kind": self.kind, "per_step": whole("per_step", per_step)}
        self._begin(horizon, epsilon, rho, budget, steps_per_unit, path, purpose, source, header)

    def _begin(
        self,
        horizon: int,
        epsilon: object,
        rho: object,
        budget: Budget,
        steps_per_unit: int,
        path: Path | str | None,
        purpose: str,
        source: Source,
        header: dict[str, Any],
    ) -> None:
        """Check everything, charge, draw all noise, and store it."""
        steps, in_steps = whole("horizon", horizon), whole("steps_per_unit", steps_per_unit)
        if steps > HORIZON_MAX:
            raise TooLarge(f"a running total goes over at most {HORIZON_MAX:,} steps", name="horizon", value=horizon)
        if in_steps > steps:
            raise InvalidInput("a unit is in no more steps than there are", name="steps_per_unit", value=in_steps)
        if not isinstance(budget, Budget):
            raise WrongType("a running total is paid from a budget: budget=tacit.Budget(1.0)", name="budget")
        place = None if path is None else Path(path)
        if place is not None and not budget.is_durable:
            raise InvalidInput(
                "a running total in a file outlives this process, and so must the budget that notes its steps: "
                "budget=ledger.budget(name), or leave path= out",
                name="budget",
            )
        if place is not None and place.exists():
            raise taken(place)
        label = f"running {self.kind} over {steps} steps"
        plan = _RunningPlan.of(label, Allocation.of(budget, epsilon, rho), steps, in_steps, int(header["per_step"]))
        permit = begin(plan, budget, ReleaseOptions(purpose, source=source))
        full = {**header, **plan.header, "horizon": steps, "steps_per_unit": in_steps, "simulated": source.simulated}
        full |= {"epsilon": permit.cost.epsilon, "delta": permit.cost.delta, "rho": permit.cost.rho}
        full |= {"permit": permit.id, "secret": source.read(SECRET_BYTES).hex()}
        start = written(full, plan.drawn(source))
        StepAnchor(budget, permit.id, steps).begin(digest_of(start))
        self.permit: Permit | None = permit
        self._set(start, None if place is None else StateFile.create(place, start), budget)

    @classmethod
    def open(cls, path: Path | str, *, budget: Budget) -> Self:
        """Go on with a state that is stored in a file; nothing is charged. `budget` is the one that paid."""
        file = StateFile(Path(path))
        try:
            found = cls.__new__(cls)
            found.permit = None
            found._set(None, file, budget)
        except BaseException:
            file.close()
            raise
        return found

    @classmethod
    def from_bytes(cls, state: bytes, *, budget: Budget) -> Self:
        """Go on with a state; nothing is charged. `budget` is the one that paid.

        Only one copy of a state goes on: the one that is told the next step first.
        """
        found = cls.__new__(cls)
        found.permit = None
        found._set(state, None, budget)
        return found

    def _set(self, state: bytes | None, file: StateFile | None, budget: Budget) -> None:
        if not isinstance(budget, Budget):
            raise WrongType("a running total goes on with the budget that paid for it: budget=", name="budget")
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._is_lost = False
        before = self._load(state, file)
        self._anchor = StepAnchor(budget, str(self._header["permit"]), self.horizon)
        self._anchor.require(self.steps, self._digest, before)

    def _load(self, state: bytes | None, file: StateFile | None) -> str:
        """Read a state, and return its digest before its last step."""
        found = file.load() if file is not None else read(state or b"")
        if found.header.get("kind") != self.kind:
            raise InvalidInput(f"this is the state of a running {found.header.get('kind')}", name="state")
        self._header = found.header
        self._file = file
        self._start = written({key: one for key, one in found.header.items() if key != "noises"}, found.noises)
        self._counter = _counter(found.header, found.noises)
        self._records: list[bytes] = []
        self._digest = before = digest_of(self._start)
        for step, (value, measured) in enumerate(found.steps):
            self._counter.restore(value, measured)
            self._records.append(record(step, value, measured))
            before, self._digest = self._digest, digest_after(self._digest, self._records[-1])
        return before

    def add(self, count: int, *, step: int | None = None) -> RunningTotal:
        """Tell the next step and return the total so far.

        `step` (from 0 on) says which step it is: one that was told before is not counted again, and gives what was
        released then.
        """
        return self._add(whole("count", count, at_least=0), step)

    def _add(self, value: int, step: int | None) -> RunningTotal:
        if os.getpid() != self._process:
            raise InvalidInput("a forked process cannot go on with a running total; open it there")
        with self._lock:  # two threads at one step would both be answered with its noise
            at = self.steps if step is None else whole("step", step, at_least=0)
            if at < self.steps:
                return self._running(at + 1)
            if at > self.steps:
                raise InvalidInput(f"the next step is {self.steps}, and not {at}", name="step", value=step)
            if at >= self.horizon:
                raise Exhausted(
                    f"this running total was paid for {self.horizon} steps",
                    accepted="start another one for what follows",
                )
            if self._file is not None:
                self._file.require_own()
            if self._is_lost:
                raise InvalidInput("whether the last step was noted is not known; open this running total again")
            self._tell(at, value)
            return self._running(at + 1)

    def _tell(self, at: int, value: int) -> None:
        """Measure, keep and note a step; one that fails or is interrupted before it is noted was not told."""
        before = self._digest
        try:
            measured = self._counter.measure(value)
            kept = record(at, self._counter.values[-1], measured)
            if self._file is not None:
                self._file.append(kept)
            self._records.append(kept)
            after = digest_after(before, kept)
            self._anchor.advance(at + 1, after, before)
            self._digest = after
        except BaseException:
            self._recover(at, before)
            raise

    def _recover(self, at: int, before: str) -> None:
        """Return to the last step that was noted; where that cannot be found out, no step is taken any more."""
        self._is_lost = True
        self._load(None if self._file is not None else self.to_bytes(), self._file)
        if self.steps > at and self._anchor.is_at(at, before):
            if self._file is not None:
                self._file.drop_last()
            self._records.pop()
            self._load(None if self._file is not None else self.to_bytes(), self._file)
        self._is_lost = not self._anchor.is_at(self.steps, self._digest)

    def _running(self, steps: int) -> RunningTotal:
        estimate, spread, kurtosis = self._counter.total(steps)
        noises = self._counter.summands(steps)
        return RunningTotal(steps, max(0, round(estimate)), estimate, spread, kurtosis, at_least=0.0, summands=noises)

    @property
    def horizon(self) -> int:
        """How many steps were paid for."""
        return int(self._header["horizon"])

    @property
    def steps(self) -> int:
        """How many steps were told."""
        return self._counter.done

    @property
    def last(self) -> RunningTotal:
        """The total that was released last."""
        with self._lock:
            if not self.steps:
                raise EmptyInput("no step was told yet")
            return self._running(self.steps)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All totals that were released: `step`, `value`, and the ends `low` and `high` of its 95 % interval."""
        with self._lock:
            found = [self._running(steps) for steps in range(1, self.steps + 1)]
        spans = [one.interval() for one in found]
        return [
            {"step": one.step, "value": one.value, "low": span.low, "high": span.high}
            for one, span in zip(found, spans, strict=True)
        ]

    @property
    def cost(self) -> Cost:
        """What all totals together cost; it was charged at the start."""
        return Cost(*(float(self._header[name]) for name in ("epsilon", "delta", "rho")))

    @property
    def expected_error(self) -> float:
        """The mean squared error of a total, over all steps of the horizon."""
        return float(self._header["error"])

    @property
    def simulated(self) -> bool:
        """Whether the noise can be replayed, so that the totals protect nobody."""
        return bool(self._header["simulated"])

    @property
    def card(self) -> str:
        """What is released, in plain language."""
        steps = int(self._header["steps_per_unit"])
        whom = "one step" if steps == 1 else f"{steps} steps"
        return (
            f"Running {self.kind} over {self.horizon} steps. Protected are people in at most {whom}, with at most "
            f"{self._per_step} in each. Measured by {self._header['how']}, with {self._header['law']} noise. "
            f"All totals together, charged at the start, cost {self.cost.in_words}."
        ) + (" The noise can be replayed: this is a simulation and protects nobody." if self.simulated else "")

    @property
    def _per_step(self) -> str:
        return str(self._header["per_step"])

    def to_bytes(self) -> bytes:
        """Return the state, from which `from_bytes` goes on; it is as private as the data."""
        with self._lock:
            return self._start + b"".join(self._records)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        raise WrongType("a running total is not copied, since two would use the same noise; move it by to_bytes")

    def close(self) -> None:
        """Give the file back, if there is one; what was released can still be read, and no step added."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<running {self.kind}: {self.steps} of {self.horizon} steps, epsilon {at_most(self.cost.epsilon)}>"


class RunningSum(RunningCount):
    """Running sums of values, each clamped to its bounds; a unit has at most `per_step` values in a step.

    Values are counted in whole steps, 2^16 to the greatest of them.
    """

    kind = "sum"

    def __init__(
        self,
        horizon: int,
        *,
        bounds: Any,
        epsilon: object = None,
        rho: object = None,
        budget: Budget,
        per_step: int = 1,
        steps_per_unit: int = 1,
        path: Path | str | None = None,
        purpose: str = "",
        source: Source = SYSTEM,
    ) -> None:
        scale = _scale(bounds)
        header = {
            "kind": self.kind,
            "per_step": whole("per_step", per_step) * scale.reach,
            "values": whole("per_step", per_step),
            "bounds": [scale.lower, scale.upper],
        }
        self._begin(horizon, epsilon, rho, budget, steps_per_unit, path, purpose, source, header)

    def add(self, values: Any, *, step: int | None = None) -> RunningTotal:
        """Tell the values of the next step, and return the total so far; missing ones add nothing."""
        array = ArrayColumn("values", values, default=Kind.REAL)
        if not len(array):
            return self._add(0, step)
        return self._add(int(array.steps(self._scale)[~array.missing].sum()), step)

    @property
    def _scale(self) -> ColumnSteps:
        return _scale(self._header["bounds"])

    @property
    def _per_step(self) -> str:
        low, high = self._header["bounds"]
        return f"{self._header['values']} values between {low:g} and {high:g}"

    def _running(self, steps: int) -> RunningTotal:
        estimate, spread, kurtosis = self._counter.total(steps)
        worth = float(self._scale.step)
        return RunningTotal(steps, estimate * worth, estimate * worth, spread * worth**2, kurtosis)

    @property
    def expected_error(self) -> float:
        """The mean squared error of a total, over all steps of the horizon."""
        return float(self._header["error"]) * float(self._scale.step) ** 2


@dataclass(frozen=True)
class _RunningPlan:
    """The mechanism of least mean variance, as the pipeline charges it."""

    label: str
    noises: tuple[Noise, ...]
    sizes: tuple[int, ...]
    header: dict[str, Any]

    @classmethod
    def of(cls, label: str, allocation: Allocation, horizon: int, steps: int, per_step: int) -> _RunningPlan:
        """Choose by expected error, and give every measured vector its noise."""

        def error(law: Law) -> float:
            if law == "Gaussian":
                return root_error(horizon, steps) * per_step**2
            return best_tree(horizon)[2] * (steps * per_step) ** 2

        spent = allocation.least_error(error)
        header: dict[str, Any] = {"law": spent.law, "error": error(spent.law) * spent.variance}
        if spent.law == "Gaussian":
            noise = spent.noise(root_length(horizon, steps) * per_step)
            header |= {"how": "square roots", "variances": [variance(noise)]}
            return cls(label, (noise,), (horizon,), header)
        branch, shares, _ = best_tree(horizon)
        noises = tuple(part.noise(Fraction(steps * per_step)) for part in spent.divided(*shares))
        header |= {"how": f"a tree with {branch} branches", "branch": branch, "variances": [*map(variance, noises)]}
        return cls(label, noises, tuple(horizon // branch**level for level in range(len(shares))), header)

    @property
    def event(self) -> Event:
        """All totals together."""
        events = tuple(noise.event for noise in self.noises)
        return events[0] if len(events) == 1 else Composed(events)

    def check(self) -> None:
        """Raise for noise that is not sampled, before anything is charged."""
        for noise in self.noises:
            noise.release(np.zeros(1, dtype=np.int64), source=SeededSource(0))

    def drawn(self, source: Source) -> list[Whole]:
        """Return all noise that will ever be used."""
        found: list[Whole] = []
        for noise, size in zip(self.noises, self.sizes, strict=True):
            assert isinstance(noise, Laplace | Gaussian)
            found.append(np.asarray(noise.release(np.zeros(size, dtype=np.int64), source=source)))
        return found


def _counter(header: Any, noises: tuple[Whole, ...]) -> Counter:
    variances = tuple(float(one) for one in header["variances"])
    if header["law"] == "Gaussian":
        return Roots(int(header["horizon"]), noises[0], variances[0])
    return Trees(int(header["branch"]), noises, variances)


def _scale(bounds: Any) -> ColumnSteps:
    if isinstance(bounds, Bounds):
        stated = bounds
    elif isinstance(bounds, list | tuple) and len(bounds) == 2:
        stated = Bounds(*bounds)
    else:
        raise WrongType("bounds are two numbers: bounds=(0, 120)", name="bounds", value=bounds)
    return ColumnSteps.of("values", stated, Kind.REAL, SUM_STEPS, centred=False)
