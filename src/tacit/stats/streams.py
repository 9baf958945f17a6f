"""Running counts and sums over a stream: the total after each step, all under one charge at the start.

    budget = ledger.budget("visits")
    visits = tacit.stats.RunningCount(365, epsilon=1.0, budget=budget, path="visits.state")
    visits.add(1204).value, visits.add(1187).interval(0.95)
    visits = tacit.stats.RunningCount.open("visits.state", budget=budget)  # after a restart; nothing is charged again

Promise (neighbours: one unit more or less, or one replaced, as the budget says): all totals together are as private as
was charged, if no unit adds more than `per_step` to any step, nor anything to more than `steps_per_unit` of them. With
1 and 1 that protects single events; to protect people, state in how many steps a person can be, and leave out the rest
before the steps are summed: here they are numbers already. Steps may depend on earlier totals (Denisov, McMahan, Rush,
Smith, Thakurta 2022 for Gaussian noise and a triangular matrix; for Laplace noise each node of a tree is a mechanism by
itself, and the sum of what a unit moves them is bounded on every path).

The mechanism is the one with the lower mean variance of a total (`prefix_sums`): square roots with Gaussian noise, if
the budget has a delta or rho is paid, or trees with Laplace noise. The noise is exact, in integers.

Promise about crashes: all noise is drawn and stored before the first total is released, and with `path` each step is
stored before its total is. A process that is killed at any moment and started again continues with the same noise and
is not charged; a step that was not stored can be added again, and releases the total that it would have released.

Promise about copies: each step is recorded with the permit at the budget that paid before its total is released
(`pipeline.steps`), so that a state that was copied or restored, which would use the same noise again, is refused
(AlreadySettled). A state in a file outlives the process, so its budget must be one of a ledger. Threads may share a
running total. The state holds the exact steps and the noise: it is as private as the data.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Required, Self, SupportsIndex, TypedDict, Unpack

import numpy as np

from tacit.accounting.conversions import Cost
from tacit.ledger import Budget, Permit
from tacit.measuring.allocation import Allocation, Noise, NoiseFamily
from tacit.measuring.intervals import DISCRETE_BELOW, Summand, discrete_half_width, half_widths, variance
from tacit.mechanisms import Gaussian, Laplace
from tacit.mechanisms.mechanism import Interval
from tacit.mechanisms.randomness import SIMULATED, SYSTEM, RandomSource
from tacit.mechanisms.simulation import SeededSource
from tacit.pipeline import ReleaseOptions, begin
from tacit.pipeline.steps import StepAnchor, start_digest, step_digest
from tacit.privacy.arrays import Whole
from tacit.privacy.bounds import Bounds
from tacit.privacy.errors import EmptyInput, Exhausted, InvalidInput, TooLarge, WrongType
from tacit.privacy.events import Event, composed
from tacit.privacy.figures import at_most
from tacit.privacy.numbers import DEFAULT_LEVEL, level_of, whole
from tacit.privacy.tables import Kind
from tacit.stats.array_sums import ArrayColumn
from tacit.stats.prefix_sums import PrefixSums, SquareRootSums, TreeSums, best_tree, root_error, root_length
from tacit.stats.rows import ColumnSteps
from tacit.stats.stream_files import StateFile, already_exists, decode_state, encode_state, encode_step

HORIZON_MAX: Final = 2**20
SECRET_BYTES: Final = 32
SUM_STEPS: Final = 2**16
"""The number of steps of the greatest value of a sum."""


@dataclass(frozen=True)
class RunningTotal:
    """The total after a step: its value, its estimate before rounding, and the variance of its noise."""

    step: int
    value: int | float
    estimate: float
    variance: float
    kurtosis: float = 0.0
    at_least: float | None = None
    summands: tuple[Summand, ...] = ()
    """The noises in the estimate, where they are discrete Laplace noises."""

    def interval(self, level: float = DEFAULT_LEVEL) -> Interval:
        """Return the interval that holds the total without noise with probability `level`."""
        if self.summands and self.variance < DISCRETE_BELOW:
            width = discrete_half_width(self.summands, level_of(level))
        else:
            width = float(half_widths(self.variance, self.kurtosis, level_of(level)))
        low, high = self.estimate - width, self.estimate + width
        if self.at_least is not None:
            low, high = max(low, self.at_least), max(high, self.at_least)
        return Interval(low, high)


class RunningOptions(TypedDict, total=False):
    """Options of running counts and sums, as in `RunningCount`."""

    epsilon: object
    rho: object
    budget: Required[Budget]
    per_step: int
    steps_per_unit: int
    path: Path | str | None
    purpose: str
    source: RandomSource


class RunningCount:
    """Running counts over at most `horizon` steps, under one charge.

    A unit adds at most `per_step` to each of at most `steps_per_unit` steps. With `path` the state is kept in a file.
    """

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
        source: RandomSource = SYSTEM,
    ) -> None:
        header = {"kind": self.kind, **self._step_header(whole("per_step", per_step))}
        steps, in_steps = whole("horizon", horizon), whole("steps_per_unit", steps_per_unit)
        if steps > HORIZON_MAX:
            raise TooLarge(f"a running total has at most {HORIZON_MAX:,} steps", name="horizon", value=horizon)
        if in_steps > steps:
            raise InvalidInput("steps_per_unit must not exceed the horizon", name="steps_per_unit", value=in_steps)
        if not isinstance(budget, Budget):
            raise WrongType("a running total is paid from a budget: budget=tacit.Budget(1.0)", name="budget")
        place = None if path is None else Path(path)
        if place is not None and not budget.is_durable:
            raise InvalidInput(
                "a running total in a file outlives this process, and so must the budget that records its steps: "
                "budget=ledger.budget(name), or leave path= out",
                name="budget",
            )
        if place is not None and place.exists():
            raise already_exists(place)
        label = f"running {self.kind} over {steps} steps"
        plan = _RunningPlan.of(label, Allocation.of(budget, epsilon, rho), steps, in_steps, int(header["per_step"]))
        permit = begin(plan, budget, ReleaseOptions(purpose, source=source))
        full = {**header, **plan.header, "horizon": steps, "steps_per_unit": in_steps, "simulated": source.simulated}
        full |= {"epsilon": permit.cost.epsilon, "delta": permit.cost.delta, "rho": permit.cost.rho}
        full |= {"permit": permit.id, "secret": source.read(SECRET_BYTES).hex()}
        start = encode_state(full, plan.draw(source))
        StepAnchor(budget, permit.id, steps).begin(start_digest(start))
        self.permit: Permit | None = permit
        self._set(start, None if place is None else StateFile.create(place, start), budget)

    def _step_header(self, per_step: int) -> dict[str, Any]:
        """Return the fields of the header that describe a step; `per_step` is how far a unit moves one."""
        return {"per_step": per_step}

    @classmethod
    def open(cls, path: Path | str, *, budget: Budget) -> Self:
        """Return the running total of a state in a file; nothing is charged. `budget` is the one that paid."""
        file = StateFile(Path(path))
        try:
            return cls._restore(None, file, budget)
        except BaseException:
            file.close()
            raise

    @classmethod
    def from_bytes(cls, state: bytes, *, budget: Budget) -> Self:
        """Return the running total of a state; nothing is charged. `budget` is the one that paid.

        Only one copy of a state can continue: the one to which the next step is added first.
        """
        return cls._restore(state, None, budget)

    @classmethod
    def _restore(cls, state: bytes | None, file: StateFile | None, budget: Budget) -> Self:
        found = cls.__new__(cls)
        found.permit = None
        found._set(state, file, budget)
        return found

    def _set(self, state: bytes | None, file: StateFile | None, budget: Budget) -> None:
        if not isinstance(budget, Budget):
            raise WrongType("a running total continues with the budget that paid for it: budget=", name="budget")
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._is_lost = False
        self._relation = budget.cap.relation
        before = self._load(state, file)
        self._anchor = StepAnchor(budget, str(self._header["permit"]), self.horizon)
        self._anchor.require(self.steps, self._digest, before)

    def _load(self, state: bytes | None, file: StateFile | None) -> str:
        """Read a state, and return the digest that it had before its last step."""
        found = file.load() if file is not None else decode_state(state or b"")
        if found.header.get("kind") != self.kind:
            raise InvalidInput(f"this is the state of a running {found.header.get('kind')}", name="state")
        self._header = found.header
        self._file = file
        self._start = encode_state({key: one for key, one in found.header.items() if key != "noises"}, found.noises)
        self._sums = _prefix_sums(found.header, found.noises)
        self._records: list[bytes] = []
        self._digest = before = start_digest(self._start)
        for step, (value, measured) in enumerate(found.steps):
            self._sums.restore(value, measured)
            self._records.append(encode_step(step, value, measured))
            before, self._digest = self._digest, step_digest(self._digest, self._records[-1])
        return before

    def add(self, count: int, *, step: int | None = None) -> RunningTotal:
        """Add the count of the next step, and return the total so far.

        `step` (from 0 on) is the number of the step: one that was added before is not counted again, and returns the
        total that was released then.
        """
        return self._add(whole("count", count, at_least=0), step)

    def _add(self, value: int, step: int | None) -> RunningTotal:
        if os.getpid() != self._process:
            raise InvalidInput("a forked process cannot continue a running total; open it there")
        with self._lock:  # two threads at one step would both release its noise
            at = self.steps if step is None else whole("step", step, at_least=0)
            if at < self.steps:
                return self._total(at + 1)
            if at > self.steps:
                raise InvalidInput(f"the next step is {self.steps}, not {at}", name="step", value=step)
            if at >= self.horizon:
                raise Exhausted(
                    f"this running total was charged for {self.horizon} steps",
                    accepted="start another one for the steps that follow",
                )
            if self._file is not None:
                self._file.require_own()
            self._require_recorded()
            self._record(at, value)
            return self._total(at + 1)

    def _record(self, at: int, value: int) -> None:
        """Measure, store and record a step; one that fails or is interrupted before it is recorded does not count."""
        before = self._digest
        try:
            measured = self._sums.measure(value)
            kept = encode_step(at, self._sums.values[-1], measured)
            if self._file is not None:
                self._file.append(kept)
            self._records.append(kept)
            after = step_digest(before, kept)
            self._anchor.advance(at + 1, after, before)
            self._digest = after
        except BaseException:
            self._recover(at, before)
            raise

    def _recover(self, at: int, before: str) -> None:
        """Return to the last step that was recorded; if that cannot be found out, refuse further steps."""
        self._is_lost = True
        self._load(None if self._file is not None else self.to_bytes(), self._file)
        if self.steps > at and self._anchor.is_at(at, before):
            if self._file is not None:
                self._file.drop_last()
            self._records.pop()
            self._load(None if self._file is not None else self.to_bytes(), self._file)
        self._is_lost = not self._anchor.is_at(self.steps, self._digest)

    def _require_recorded(self) -> None:
        """Raise InvalidInput while a step may be in the state and not in the ledger: its noise was not released."""
        if self._is_lost:
            raise InvalidInput("it is not known whether the last step was recorded; open this running total again")

    def _total(self, steps: int) -> RunningTotal:
        self._require_recorded()
        return self._total_of(steps)

    def _total_of(self, steps: int) -> RunningTotal:
        estimate, spread, kurtosis = self._sums.total(steps)
        noises = self._sums.summands(steps)
        return RunningTotal(steps, max(0, round(estimate)), estimate, spread, kurtosis, at_least=0.0, summands=noises)

    @property
    def horizon(self) -> int:
        """The number of steps that were paid for."""
        return int(self._header["horizon"])

    @property
    def steps(self) -> int:
        """The number of steps that were added."""
        return self._sums.done

    @property
    def last(self) -> RunningTotal:
        """The last released total."""
        with self._lock:
            if not self.steps:
                raise EmptyInput("no step was added yet")
            return self._total(self.steps)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All released totals: `step`, `value`, and the ends `low` and `high` of the 95 % interval."""
        with self._lock:
            found = [self._total(steps) for steps in range(1, self.steps + 1)]
        spans = [one.interval() for one in found]
        return [
            {"step": one.step, "value": one.value, "low": span.low, "high": span.high}
            for one, span in zip(found, spans, strict=True)
        ]

    @property
    def cost(self) -> Cost:
        """The cost of all totals together, charged at the start."""
        return Cost(*(float(self._header[name]) for name in ("epsilon", "delta", "rho")))

    @property
    def expected_error(self) -> float:
        """The mean squared error of a total, over all steps of the horizon."""
        return float(self._header["error"])

    @property
    def simulated(self) -> bool:
        """Whether the noise is reproducible, so that the totals give no privacy."""
        return bool(self._header["simulated"])

    @property
    def card(self) -> str:
        """The running total in plain language: protected units, noise and cost."""
        steps = int(self._header["steps_per_unit"])
        whom = "one step" if steps == 1 else f"{steps} steps"
        return (
            f"Running {self.kind} over {self.horizon} steps. Protects units in at most {whom}, with at most "
            f"{self._per_step} in each. Measured by {self._header['how']}, with {self._header['law']} noise. "
            f"All totals together, charged at the start, cost {self.cost.in_words(self._relation)}."
        ) + (f" {SIMULATED}" if self.simulated else "")

    @property
    def _per_step(self) -> str:
        return str(self._header["per_step"])

    def to_bytes(self) -> bytes:
        """Return the state, which `from_bytes` continues; it is as private as the data."""
        with self._lock:
            return self._start + b"".join(self._records)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        raise WrongType(
            "a running total cannot be copied, because both would use the same noise; move it with to_bytes"
        )

    def close(self) -> None:
        """Close the file, if there is one; released totals can still be read, and no step can be added."""
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

    Values are rounded to a grid of 2^16 steps up to the greatest value.
    """

    kind = "sum"

    def __init__(self, horizon: int, *, bounds: Any, **options: Unpack[RunningOptions]) -> None:
        self._stated_scale = _scale(bounds)
        super().__init__(horizon, **options)

    def _step_header(self, per_step: int) -> dict[str, Any]:
        scale = self._stated_scale
        return {"per_step": per_step * scale.reach, "values": per_step, "bounds": [scale.lower, scale.upper]}

    def add(self, values: Any, *, step: int | None = None) -> RunningTotal:
        """Add the values of the next step, and return the total so far; missing values add nothing."""
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

    def _total_of(self, steps: int) -> RunningTotal:
        estimate, spread, kurtosis = self._sums.total(steps)
        worth = float(self._scale.step)
        return RunningTotal(steps, estimate * worth, estimate * worth, spread * worth**2, kurtosis)

    @property
    def expected_error(self) -> float:
        """The mean squared error of a total, over all steps of the horizon."""
        return float(self._header["error"]) * float(self._scale.step) ** 2


@dataclass(frozen=True)
class _RunningPlan:
    """The mechanism of least mean variance, as a plan that the pipeline charges."""

    label: str
    noises: tuple[Noise, ...]
    sizes: tuple[int, ...]
    header: dict[str, Any]

    @classmethod
    def of(cls, label: str, allocation: Allocation, horizon: int, steps: int, per_step: int) -> _RunningPlan:
        """Choose the mechanism of least expected error, and the noise of its measured vectors."""

        def error(law: NoiseFamily) -> float:
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
        """The event of all totals together."""
        return composed([noise.event for noise in self.noises])

    def check(self) -> None:
        """Raise TooLarge for noise that cannot be sampled, before anything is charged."""
        for noise in self.noises:
            noise.release(np.zeros(1, dtype=np.int64), source=SeededSource(0))

    def draw(self, source: RandomSource) -> list[Whole]:
        """Return the noise of all steps."""
        found: list[Whole] = []
        for noise, size in zip(self.noises, self.sizes, strict=True):
            assert isinstance(noise, Laplace | Gaussian)
            found.append(np.asarray(noise.release(np.zeros(size, dtype=np.int64), source=source)))
        return found


def _prefix_sums(header: Any, noises: tuple[Whole, ...]) -> PrefixSums:
    variances = tuple(float(one) for one in header["variances"])
    if header["law"] == "Gaussian":
        return SquareRootSums(int(header["horizon"]), noises[0], variances[0])
    return TreeSums(int(header["branch"]), noises, variances)


def _scale(bounds: Any) -> ColumnSteps:
    if isinstance(bounds, Bounds):
        stated = bounds
    elif isinstance(bounds, list | tuple) and len(bounds) == 2:
        stated = Bounds(*bounds)
    else:
        raise WrongType("bounds must be two numbers: bounds=(0, 120)", name="bounds", value=bounds)
    return ColumnSteps.of("values", stated, Kind.REAL, SUM_STEPS, centred=False)
