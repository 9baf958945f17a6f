"""Reconstruction of secret bits from noisy counts of subsets (Dinur, Nissim 2003).

reconstruction   Random subsets, and the bits that fit the answers best by least squares within [0, 1], rounded. Against
                 independent noise it is as good as the linear program and far faster. With k n counts and noise of a
                 standard deviation c sqrt(n), a share of about Phi(sqrt(k - 1) / (4 c)) is recovered.
linear_program   The same counts, with the least sum of absolute errors: the right loss where a few answers are far off.
exhaustive       All 2^n counts within E of the truth: whatever fits them is wrong about at most 4 E bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse, stats
from scipy.sparse.linalg import LinearOperator, cg

from tacit.attack.finding import Measurement, Series, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack
from tacit.attack.power import Share
from tacit.attack.query_interface import Interface, QueryInterface, Question
from tacit.attack.secret_scoring import parts_of_epsilon, score, simulated, twins, worst
from tacit.attack.targets import DoesNotFit, Mask, Numbers

PAPER: Final = "Dinur, Nissim 2003; least squares: Dwork, McSherry, Talwar 2007; Cohen, Nissim 2018"
COUNTS_EACH: Final = 10
"""How many counts are asked for each person."""
PEOPLE_MIN: Final = 8
PEOPLE_MAX: Final = 20_000
"""How many people are reconstructed at once: the subsets take 500 MB."""
EXHAUSTIVE_MAX: Final = 12
EXHAUSTIVE_SIMULATED_MAX: Final = 9
SIMULATED_MAX: Final = 200
"""Up to how many people attacks are simulated to see what they would notice."""
PREDICTED_FROM: Final = 4
"""How many counts a person theory needs."""
LINEAR_PROGRAM_MAX: Final = 300
ITERATIONS: Final = 200
CHANGE_MIN: Final = 1e-4
"""The largest change of a coordinate at which iterations end."""
BLOCK: Final = 1024
"""How many subsets are unpacked at a time."""
BYTE_BITS: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64)
"""The bits of each value of a byte."""


class Subsets:
    """Subsets of people, one bit for each person and subset.

    Byte `packed[i, j]` says which of the people 8 i to 8 i + 7 are in subset j. Both products with the matrix of bits
    are computed by bytes: a table of 256 values holds what eight people add to a sum, so the matrix is never expanded.
    """

    def __init__(self, packed: NDArray[np.uint8], people: int) -> None:
        self.packed, self.people = packed, people

    @classmethod
    def of(cls, masks: Mask) -> Subsets:
        """Return the subsets of masks, one in each row."""
        return cls(np.ascontiguousarray(np.packbits(masks, axis=1).T), masks.shape[1])

    @classmethod
    def drawn(cls, count: int, people: int, random: np.random.Generator) -> Subsets:
        """Return independent uniform subsets after a first one that holds everybody."""
        packed = random.integers(0, 256, (-(-people // 8), count), dtype=np.uint8)
        packed[:, 0] = 255
        return cls(packed, people)

    def __len__(self) -> int:
        return int(self.packed.shape[1])

    def __iter__(self) -> Iterator[Mask]:
        for start in range(0, len(self), BLOCK):
            block = np.unpackbits(self.packed[:, start : start + BLOCK].T, axis=1, count=self.people)
            yield from block.astype(bool)

    def first(self, count: int) -> Subsets:
        """Return the first subsets."""
        return Subsets(self.packed[:, :count], self.people)

    def sums(self, values: NDArray[np.generic]) -> Numbers:
        """Return the sum of the people's values over each subset."""
        by_byte = np.pad(values.astype(np.float64), (0, -self.people % 8)).reshape(-1, 8) @ BYTE_BITS.T
        found = np.zeros(len(self))
        for table, row in zip(by_byte, self.packed, strict=True):
            found += table.take(row)
        return found

    def totals(self, values: Numbers) -> Numbers:
        """Return the sum of the subsets' values over those that each person is in."""
        by_byte = np.stack([np.bincount(row, weights=values, minlength=256) for row in self.packed])
        return np.asarray((by_byte @ BYTE_BITS).ravel()[: self.people])


Solve = Callable[[Subsets, Numbers], Numbers]
"""Returns a point of [0, 1]^n from subsets and answers."""


def decode(subsets: Subsets, answers: Numbers) -> Numbers:
    """Return the point of [0, 1]^n whose subset sums are nearest to the answers, up to a constant.

    Sums and answers are compared after the mean of each is taken away. That costs one answer, and leaves out the one
    direction, towards everybody, in which the normal matrix of random subsets is far from a multiple of the identity: a
    dozen accelerated projected gradients suffice (Beck, Teboulle 2009; restarts: O'Donoghue, Candes 2015).
    """

    def slope(point: Numbers, right: Numbers | float) -> Numbers:
        off = subsets.sums(point) - right
        return subsets.totals(off - off.mean())

    step = 1 / _largest_eigenvalue(lambda vector: slope(vector, 0.0), subsets.people)
    point = moved = np.full(subsets.people, 0.5)
    momentum = 1.0
    for _ in range(ITERATIONS):
        gradient = slope(moved, answers)
        following = np.clip(moved - step * gradient, 0.0, 1.0)
        if gradient @ (following - point) > 0:  # the momentum leads uphill
            momentum = 1.0
        grown = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        moved = following + (momentum - 1) / grown * (following - point)
        change, point, momentum = float(np.abs(following - point).max()), following, grown
        if change < CHANGE_MIN:
            break
    return point


def linear_estimates(subsets: Subsets, answers: Numbers) -> Numbers:
    """Return each person's secret by least squares without limits, up to a constant: linear in the answers."""

    def product(point: Numbers) -> Numbers:
        sums = subsets.sums(point)
        return subsets.totals(sums - sums.mean())

    shape = (subsets.people, subsets.people)
    found, _ = cg(LinearOperator(shape, matvec=product), subsets.totals(answers - answers.mean()), maxiter=ITERATIONS)
    return np.asarray(found)


def _largest_eigenvalue(product: Callable[[Numbers], Numbers], size: int) -> float:
    """Return the largest eigenvalue of a positive matrix by power iterations, with a margin."""
    vector, value = np.cos(np.arange(size) ** 2), 1.0  # a start without a pattern
    for _ in range(10):
        vector = product(vector / np.linalg.norm(vector))
        value = max(float(np.linalg.norm(vector)), 1e-9)
        if value == 1e-9:  # all subsets are equal
            break
    return 1.1 * value


def decode_by_linear_program(subsets: Subsets, answers: Numbers) -> Numbers:
    """Return the point of [0, 1]^n with the least sum of absolute errors."""
    counts, people = len(subsets), subsets.people
    cost = np.concatenate([np.zeros(people), np.ones(counts)])
    matrix, one = sparse.csr_matrix(np.array(list(subsets), dtype=np.float64)), sparse.identity(counts)
    left = sparse.vstack([sparse.hstack([matrix, -one]), sparse.hstack([-matrix, -one])])
    limits = [(0.0, 1.0)] * people + [(0.0, None)] * counts
    found = optimize.linprog(cost, left, np.concatenate([answers, -answers]), bounds=limits, method="highs")
    if found.x is None:
        raise DoesNotFit("the linear program has no solution for these answers; use reconstruction instead")
    return np.asarray(found.x[:people])


def predicted_recovery(counts: int, people: int, deviation: float) -> float | None:
    """Return the share of bits that least squares recovers from random counts with independent noise.

    None below `PREDICTED_FROM` counts a person, where the bounds 0 and 1 recover far more than the formula says.
    """
    if counts < PREDICTED_FROM * people:
        return None
    if deviation == 0:
        return 1.0
    return float(stats.norm.cdf(math.sqrt(counts - people) / (4 * deviation)))


def decoded_share(interface: Interface, setting: Setting, subsets: Subsets) -> Share | None:
    """Return the share of bits that least squares recovers under Laplace noise: simulated, of many people predicted."""
    people, counts = subsets.people, len(subsets)
    if people <= SIMULATED_MAX:
        exact = subsets.sums(interface.truth)
        return simulated(interface, setting, exact, lambda found: decode(subsets, found) > 0.5, interface.truth)
    if counts < PREDICTED_FROM * people:
        return None
    deviation = math.sqrt(2) * parts_of_epsilon(interface, setting)
    return lambda epsilon: predicted_recovery(counts, people, deviation / epsilon) or 0.0


@attack(
    "reconstruction",
    QueryInterface,
    paper=PAPER,
    summary="secret bits from noisy counts of random subsets",
    uses_prior=True,
)
def reconstruct(target: QueryInterface, setting: Setting) -> Outcome:
    """Ask random counts and decode by least squares."""
    if target.people > PEOPLE_MAX:
        raise DoesNotFit(f"at most {PEOPLE_MAX:,} people are reconstructed at once", name="people")
    return _decoded(target, setting, COUNTS_EACH, decode)


@attack(
    "linear_program",
    QueryInterface,
    paper="Dinur, Nissim 2003; Dwork, McSherry, Talwar 2007",
    summary="secret bits from noisy counts of random subsets, some of them far off",
    only_asked=True,
    uses_prior=True,
)
def reconstruct_by_linear_program(target: QueryInterface, setting: Setting) -> Outcome:
    """Ask random counts and decode by a linear program."""
    if target.people > LINEAR_PROGRAM_MAX:
        raise DoesNotFit(
            f"the linear program is for at most {LINEAR_PROGRAM_MAX} people; use reconstruction", name="people"
        )
    return _decoded(target, setting, 4, decode_by_linear_program)


def _decoded(target: QueryInterface, setting: Setting, each: int, solve: Solve) -> Outcome:
    if target.people < PEOPLE_MIN:
        raise DoesNotFit(f"a reconstruction needs at least {PEOPLE_MIN} people", name="people")
    wanted = each * target.people + 1
    interface = target.open(setting.random, wanted, target.people // 2 + 1)
    subsets = Subsets.drawn(wanted, target.people, setting.random)
    answers = interface.counts(Question(one) for one in subsets)
    if len(answers) <= target.people // 2:
        raise DoesNotFit(
            f"the interface answered {len(answers)} of {wanted} queries, too few for a reconstruction",
            name="target",
            refused=interface.refused,
        )
    asked = subsets.first(len(answers))
    point = solve(asked, answers)
    deviation = float((answers - asked.sums(interface.truth)).std())
    predicted = predicted_recovery(len(answers), target.people, deviation)
    planted, null = twins(interface, asked.sums, setting, lambda found: solve(asked, found) > 0.5)
    scored = score(
        interface, point > 0.5, planted, null, setting,
        estimates=linear_estimates(asked, answers), everybody=float(answers[0]), predicted=predicted,
        share_at=decoded_share(interface, setting, asked),
    )  # fmt: skip
    return Outcome(
        _threat(interface, "who the people are"),
        (scored.measurement, Measurement("standard deviation of the noise", deviation, key="noise_deviation")),
        scored.lower_bound,
        scored.method,
        scored.power,
        series=(_by_counts(asked, answers, point, interface),) if solve is decode else (),
        worst=worst(interface, point > 0.5, np.abs(point - 0.5) * 2),
        assumptions=scored.assumptions,
        details={
            "people": target.people,
            "counts": len(answers),
            "refusal": interface.refusal,
            "noise_over_root_people": deviation / math.sqrt(target.people),
        },
    )


def _by_counts(asked: Subsets, answers: Numbers, decoded: Numbers, interface: Interface) -> Series:
    """Return the share of right bits after a part of the answers, beside the prediction."""
    points: list[tuple[str | float, float]] = []
    predicted: list[tuple[str | float, float]] = []
    people, errors = asked.people, answers - asked.sums(interface.truth)
    for share in (0.2, 0.4, 0.6, 0.8, 1.0):
        count = max(people // 2, round(share * len(answers)))
        point = decoded if count == len(answers) else decode(asked.first(count), answers[:count])
        points.append((count, float(((point > 0.5) == interface.truth).mean())))
        theory = predicted_recovery(count, people, float(errors[:count].std()))
        predicted += [] if theory is None else [(count, theory)]
    return Series(
        "Secrets recovered", "counts asked", "share guessed right", tuple(points), tuple(predicted), "predicted"
    )


@attack(
    "exhaustive",
    QueryInterface,
    paper="Dinur, Nissim 2003, theorem 1",
    summary="secret bits of a few people from all subset counts",
    only_asked=True,
    uses_prior=True,
)
def exhaust(target: QueryInterface, setting: Setting) -> Outcome:
    """Ask all subset counts, and guess a database that fits all of them as well as any."""
    people = target.people
    if not 2 <= people <= EXHAUSTIVE_MAX:
        raise DoesNotFit(f"all subsets are asked for 2 to {EXHAUSTIVE_MAX} people, not {people}", name="people")
    every = (np.arange(2**people)[:, None] >> np.arange(people) & 1).astype(bool)
    interface = target.open(setting.random, len(every) - 1)
    answers = interface.counts(Question(one) for one in every[1:])
    if len(answers) < len(every) - 1:
        raise DoesNotFit("the interface refused to answer all subsets", name="target", refused=interface.refused)
    sums = every[1:].astype(np.float64) @ every.T

    def fitting(found: Numbers) -> Mask:
        distance = np.abs(sums - found[:, None]).max(axis=0)
        return np.asarray(every[int(np.argmin(distance))], dtype=bool)

    guessed = fitting(answers)
    error = float(np.abs(answers - sums[:, int(interface.truth @ 2 ** np.arange(people))]).max())
    distances = np.abs(sums - answers[:, None]).max(axis=0)
    consistent = int((distances <= error + 1e-9).sum())
    wrong = int((guessed != interface.truth).sum())
    planted, null = twins(interface, lambda secrets: every[1:] @ secrets.astype(np.float64), setting, fitting)
    scored = score(
        interface, guessed, planted, null, setting,
        estimates=linear_estimates(Subsets.of(every[1:]), answers), everybody=float(answers[-1]),
        share_at=None if people > EXHAUSTIVE_SIMULATED_MAX else simulated(
            interface, setting, every[1:] @ interface.truth.astype(np.float64), fitting, interface.truth
        ),
    )  # fmt: skip
    return Outcome(
        _threat(interface, "who the people are"),
        (
            scored.measurement,
            Measurement("bits wrong", wrong, predicted=min(float(people), 4 * error), key="bits_wrong"),
            Measurement("databases that fit", consistent, baseline=2.0**people, key="databases"),
        ),
        scored.lower_bound,
        scored.method,
        scored.power,
        assumptions=scored.assumptions,
        details={"largest_error": error, "bits_wrong_at_most": 4 * error},
    )


def _threat(interface: Interface, knowledge: str) -> ThreatModel:
    return ThreatModel("counts of subsets", knowledge, interface.asked)
