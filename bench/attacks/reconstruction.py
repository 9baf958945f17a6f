"""Reconstruction: the published census block, how many databases stay plausible, and secret bits from noisy counts.

Decoding is measured on n people with 10 n random counts, each with Gaussian noise of a standard deviation of
0.25 sqrt(n). The share that theory predicts is that of least squares without the bounds 0 and 1, for 4 counts a person
or more. Subsets are kept as bits: 125 MB for n = 10,000. Seconds are those of the processor, of decoding alone.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from bench.attacks.data import BLOCK
from bench.attacks.private import block_tables
from bench.results import Result
from tacit.attack.linear_reconstruction import COUNTS_EACH, Subsets, decode, predicted_recovery
from tacit.attack.table_reconstruction import Published, PublishedTables, conflict, databases

BLOCK_CASES: Final = (((), 1, 7), (("4A",), 2, None), (("2A", "2B"), 8, 4))
"""Statistics left out, and the databases and the certain records that were published."""
BLOCK_SECONDS: Final = 1.0
LEFT_OUT: Final = ("4A", "2A", "2B", "3B", "3A", "2C", "2D")
CONTRADICTING: Final = ({"2A", "5X"}, {"2B", "5X"})
"""What contradicts 5X, by which five of seven are women: 2A, by which four are, and 2B, by which three are men."""
DRAWS: Final = 5
"""How often noisy counts are drawn."""
NOISE: Final = 0.25
RECOVERED: Final = 0.998
DECODING_S: Final = 5.0
GOAL_PEOPLE: Final = 2_000


def block() -> Iterator[Result]:
    """Count the databases that fit the block, beside what its authors published."""
    databases(BLOCK)  # loads the solver
    seconds, different = 0.0, 0
    for left_out, count, certain in BLOCK_CASES:
        begun_s = time.perf_counter()
        found = databases(BLOCK.without(left_out))
        seconds += time.perf_counter() - begun_s
        label = f"block without {' and '.join(left_out)}" if left_out else "block"
        yield Result(f"{label}: databases that fit", len(found.found), "databases", {"published": count})
        different += len(found.found) != count
        if certain is not None:
            yield Result(f"{label}: certain records", found.certain.total(), "records", {"published": certain})
            different += found.certain.total() != certain
    yield Result("block: figures that differ from what was published", different, "figures", goal=0)
    yield Result("block: time of these searches", seconds, "s", goal=BLOCK_SECONDS)


def plausibility(listed_max: int) -> Iterator[Result]:
    """Count databases as statistics are left out one after another, under noise, and where statistics contradict."""
    for end in range(1, len(LEFT_OUT) + 1):
        found = databases(BLOCK.without(LEFT_OUT[:end]), listed_max).found
        yield Result(
            f"databases without {', '.join(LEFT_OUT[:end])} (listed up to {listed_max:,})", len(found), "databases"
        )
    everything = math.comb(BLOCK.people + 7, 7)
    yield Result("sex, race, married: databases of 7 people at all", everything, "databases")
    for epsilon in (None, 16.0, 4.0, 1.0):
        released = "exact" if epsilon is None else f"tacit at epsilon {epsilon:g}, 95 % intervals, median of {DRAWS}"
        counted = [len(databases(block_tables(epsilon)).found) for _ in range(1 if epsilon is None else DRAWS)]
        middle = statistics.median(counted)
        yield Result(f"all counts by two of them, {released}: databases", middle, "databases")
    wrong = [*BLOCK.statistics, Published("5X", {"sex": "F"}, 5)]
    tables = PublishedTables(BLOCK.people, BLOCK.attributes, wrong, BLOCK.rules)
    yield Result("contradicting tables: databases", len(databases(tables).found), "databases", goal=0)
    named = conflict(tables)
    is_wrong = set(named) not in CONTRADICTING
    yield Result(f"contradicting tables: {', '.join(named)} named, in no conflict", float(is_wrong), "", goal=0)


def decoding(sizes: Sequence[int], repeats: int) -> Iterator[Result]:
    """Decode secrets of some numbers of people, several times for the one that has a goal."""
    for people in sizes:
        is_goal = people == GOAL_PEOPLE
        shares, seconds = zip(*(_decoded(people, seed) for seed in range(repeats if is_goal else 1)), strict=True)
        counts, deviation = COUNTS_EACH * people, NOISE * math.sqrt(people)
        label = f"decoding {people:,} bits from {counts:,} counts"
        predicted = {"theory": predicted_recovery(counts, people, deviation)}
        goal = RECOVERED if is_goal else None
        yield Result(f"{label}: recovered", statistics.mean(shares), "share", predicted, goal=goal, better="higher")
        yield Result(f"{label}: processor", statistics.median(seconds), "s", goal=DECODING_S if is_goal else None)


def _decoded(people: int, seed: int) -> tuple[float, float]:
    """Return the share of bits that are recovered, and the processor's seconds."""
    random = np.random.default_rng(seed)
    secrets = random.integers(0, 2, people).astype(bool)
    subsets = Subsets.drawn(COUNTS_EACH * people, people, random)
    answers = subsets.sums(secrets) + random.normal(0, NOISE * math.sqrt(people), len(subsets))
    begun_s = time.process_time()
    guessed = decode(subsets, answers) > 0.5
    return float((guessed == secrets).mean()), time.process_time() - begun_s
