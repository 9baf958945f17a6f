"""Audit of a mechanism: a lower bound on its epsilon from many outputs on two neighbouring inputs.

Half of the outputs serve the search for an event that tells the inputs apart, the other half its measurement: the event
is fixed before the outputs that count are looked at, so the Clopper-Pearson bounds hold. Outputs are read as numbers
and forms (`attack/outputs.py`) and reduced to one score: a number is its own; of several numbers the best linear
direction (Fisher), the coordinates and their sum are tried, and pairs of a coordinate with few values and another one;
where forms differ, the form and the whole output are categories. What tells the inputs apart in another way only, such
as a seed beside the noise that follows from it, is not noticed, and findings say so. Scores are cut into cells, cells
are ordered by how much likelier they are under one input, and the event is the run of first cells with the greatest
bound.

Of several pairs of neighbours, the most promising is sought by successive halving, with outputs that are not used
again. Where pairs are proposed by a function, each proposal starts from the best pair so far (an evolution strategy
with one parent).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.attack.confidence import Counts, clopper_pearson, epsilon_of_counts, epsilons_of_counts
from tacit.attack.finding import Finding, Measurement, Power, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack, run
from tacit.attack.outputs import LARGEST, Outputs, Readings, named, read
from tacit.attack.power import of_tests
from tacit.attack.secret_scoring import roc
from tacit.attack.targets import Mechanism, Pair, Propose
from tacit.privacy.errors import OutOfRange

PAPER: Final = (
    "Ding, Wang, Wang, Zhang, Kifer 2018; Bichsel, Steffen, Bogunovic, Vechev 2021 (events sought and measured on "
    "separate outputs)"
)
CELLS: Final = 64
"""How many cells scores are cut into."""
SEARCH_ERROR: Final = 1e-4
"""The error of bounds in the search for an event, as a share of that of its measurement."""
ATOM: Final = 5
"""How often a score is seen among others to have a cell of its own."""
COORDINATES_MAX: Final = 32
DIRECTION_MAX: Final = 256
"""How many numbers an output has at most where the best direction is computed: the time grows with their cube."""
LEVELS_MAX: Final = 16
"""How many values a coordinate has at most where the others are looked at for each of its values."""
PAIRS_MAX: Final = 32
"""How many such pairs of coordinates are tried."""
SAMPLES_MIN: Final = 100
CATEGORY_MIN: Final = 5
"""How often a category is seen in the search at least; rarer ones are one category, because they may not come again."""
PROPOSALS: Final = (24, 100, 400)
"""How many pairs are tried where they are proposed, by effort; a quarter of them before the best is varied."""
RIDGE: Final = 1e-12
"""Added to the variances, as a share of them, where the best direction is computed."""

INDEPENDENT: Final = "the outputs are independent of one another"
LOOKED_AT: Final = (
    "the audit looks at single numbers, their sum and best linear direction, pairs with a number of few values, and "
    "kinds of outputs; the least epsilon speaks of these, and outputs that tell in another way may go unnoticed"
)
ALL_EQUAL: Final = "all outputs of an input were equal: the mechanism is deterministic, or gave one answer again"

Scores = NDArray[np.float64]
Score = Callable[[Outputs], Scores]


@dataclass(frozen=True)
class Event:
    """A set of outputs: those whose score falls into chosen cells."""

    score: Score
    edges: Scores
    chosen: NDArray[np.bool_]

    def contains(self, outputs: Outputs) -> NDArray[np.bool_]:
        """Return which outputs are in the set."""
        return self.chosen[np.searchsorted(self.edges, self.score(outputs), side="right")]


def audit(
    mechanism: Any,
    x: Any,
    neighbour: Any,
    claimed: object,
    samples: int = 20_000,
    seed: int | None = None,
    *,
    delta: float | None = None,
    many: bool = False,
) -> Finding:
    """Audit a mechanism on two neighbouring inputs; `lower_bound` of the finding holds with 95 % confidence.

    `samples` outputs are drawn for each input. `claimed` is an event, a cost, a pair (epsilon, delta) or an epsilon.
    `many` says that the mechanism is a function of an input and a number of outputs.
    """
    target = Mechanism(mechanism, x, neighbour, many=many, samples=samples)
    return run("mechanism_audit", target, claimed, seed=seed, delta=delta)


@attack("mechanism_audit", Mechanism, paper=PAPER, summary="lower bound on epsilon from outputs on neighbours")
def audit_mechanism(target: Mechanism, setting: Setting) -> Outcome:
    """Return the lower bound on epsilon that outputs on two neighbours show."""
    wanted = enough_samples(target, setting.scaled(10_000, 100_000, 1_000_000))
    x, neighbour, searched = _most_promising(target, wanted, setting)
    sampled = target.interleaved((x, neighbour, x), wanted, setting.random)
    ones, others, again = map(read, sampled)
    delta, confidence = setting.delta, setting.confidence
    found, null = measure(ones, others, delta, confidence), measure(ones, again, delta, confidence)
    true_positives, tested, false_positives, _ = found.counts
    revealed = planted_bound(sampled[0], sampled[1], setting)
    return Outcome(
        ThreatModel("outputs of the mechanism", "both inputs", 2 * wanted + searched),
        (
            Measurement(
                "outputs in the event, first input",
                true_positives / tested,
                clopper_pearson(true_positives, tested, (1 - confidence) / 2),
                key="event_share_first",
            ),
            Measurement(
                "outputs in the event, second input",
                false_positives / tested,
                clopper_pearson(false_positives, tested, (1 - confidence) / 2),
                baseline=true_positives / tested,
                key="event_share_second",
            ),
        ),
        epsilon_of_counts(*found.counts, delta, confidence),
        "Clopper-Pearson bounds of one event, found on other outputs",
        Power(
            "an output that names its input",
            revealed,
            epsilon_of_counts(*null.counts, delta, confidence),
            setting.refutes(revealed),
            least_epsilon=of_tests(setting.claim, confidence, tested, tested),
        ),
        roc=roc(found.event.score(second_half(ones)), found.event.score(second_half(others)), setting),
        assumptions=(*assumed(ones, others), LOOKED_AT),
        details={"samples": wanted, "inputs_tried": len(target.pairs) or setting.scaled(*PROPOSALS), "delta": delta},
    )


def enough_samples(target: Mechanism, by_effort: int) -> int:
    """Return how many outputs are drawn for each input, or raise OutOfRange for too few."""
    wanted = by_effort if target.samples is None else target.samples
    if wanted < SAMPLES_MIN:
        raise OutOfRange(f"an audit needs at least {SAMPLES_MIN} outputs for each input", name="samples", value=wanted)
    return wanted


def assumed(ones: Outputs, others: Outputs) -> tuple[str, ...]:
    """Return what a bound from many outputs assumes, and whether the outputs give reason to doubt it."""
    if any(read(one).are_equal for one in (ones, others)):
        return INDEPENDENT, ALL_EQUAL
    return (INDEPENDENT,)


def planted_bound(ones: list[Any] | NDArray[Any], others: list[Any] | NDArray[Any], setting: Setting) -> float:
    """Return the bound of the same search and measurement on outputs of which each also names its input."""
    found = measure(_named(ones, 1), _named(others, 0), setting.delta, setting.confidence)
    return epsilon_of_counts(*found.counts, setting.delta, setting.confidence)


def _named(outputs: list[Any] | NDArray[Any], name: int) -> Outputs:
    """Return outputs that name their input: arrays of numbers by one more column, others each in its own type."""
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf":
        rows = outputs.reshape(len(outputs), -1)
        return np.column_stack([np.full(len(rows), name, dtype=rows.dtype), rows])
    return [named(one, name) for one in outputs]


def _most_promising(target: Mechanism, samples: int, setting: Setting) -> tuple[Any, Any, int]:
    """Return the pair of neighbours whose outputs differ most, and how many outputs the search took."""
    if target.propose is not None:
        return _evolved(target, target.propose, samples, setting)
    pairs, drawn = list(target.pairs), 0
    count = max(SAMPLES_MIN, samples // (4 * max(1, math.ceil(math.log2(max(2, len(pairs)))))))
    while len(pairs) > 1:
        each = max(SAMPLES_MIN, count // len(pairs))
        found = []
        for x, neighbour in pairs:
            found.append(_promise(target, (x, neighbour), each, setting))
            drawn += 2 * each
        order = np.argsort(found)[::-1]
        pairs = [pairs[index] for index in order[: len(pairs) // 2]]
    return (*pairs[0], drawn)


def _evolved(target: Mechanism, propose: Propose, samples: int, setting: Setting) -> tuple[Any, Any, int]:
    """Return the best of the proposed pairs, and how many outputs the search took."""
    proposals = setting.scaled(*PROPOSALS)
    each = max(SAMPLES_MIN, samples // proposals)
    best = propose(setting.random, None)
    most = _promise(target, best, each, setting)
    for number in range(1, proposals):
        pair = propose(setting.random, None if number < proposals // 4 else best)
        found = _promise(target, pair, each, setting)
        if found > most:
            best, most = pair, found
    return (*best, 2 * each * proposals)


def _promise(target: Mechanism, pair: Pair, samples: int, setting: Setting) -> float:
    """Return how much outputs on a pair differ, for the search alone."""
    ones, others = (read(target.sample(one, samples, setting.random)) for one in pair)
    return epsilon_of_counts(*measure(ones, others, setting.delta, setting.confidence).counts, setting.delta, 0.5)


@dataclass(frozen=True)
class Measured:
    """An event, and which of the outputs that did not serve its search are in it."""

    event: Event
    hits: NDArray[np.bool_]
    alarms: NDArray[np.bool_]

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """How many outputs are in the event, and of how many, under the first input and under the second."""
        return int(self.hits.sum()), len(self.hits), int(self.alarms.sum()), len(self.alarms)


def measure(ones: Outputs, others: Outputs, delta: float, confidence: float) -> Measured:
    """Return the event that is sought on the first halves of outputs, measured on the second halves.

    The event is fixed before the outputs that count are looked at, so the bounds of one test hold. Outputs must be in
    random order.
    """
    ones, others = read(ones), read(others)
    event = _find_event(ones[: len(ones) // 2], others[: len(others) // 2], delta, confidence)
    return Measured(event, event.contains(second_half(ones)), event.contains(second_half(others)))


def second_half(outputs: Readings) -> Readings:
    """Return the outputs that do not serve the search for an event."""
    return outputs[len(outputs) // 2 :]


def _find_event(ones: Outputs, others: Outputs, delta: float, confidence: float) -> Event:
    """Return the event among all scores and orders of cells that has the greatest bound on these outputs.

    Cells are ordered by the outputs that the bound is computed from, so a lucky few in a tail look better than they
    are; bounds at a confidence far above that of the measurement prefer events that are seen often.
    """
    ones, others = read(ones), read(others)
    strict = 1 - (1 - confidence) * SEARCH_ERROR
    best: tuple[float, Event] | None = None
    for score in _scores(ones, others):
        first, second = score(ones), score(others)
        for edges in _edges(np.concatenate([first, second])):
            counts = [
                np.bincount(np.searchsorted(edges, one, side="right"), minlength=len(edges) + 1)
                for one in (first, second)
            ]
            for positive, negative in (counts, counts[::-1]):
                bound, chosen = _best_cells(positive, negative, delta, (strict, confidence))
                if chosen is not None and (best is None or bound > best[0]):
                    best = bound, Event(score, edges, chosen if positive is counts[0] else ~chosen)
    if best is None:  # all outputs are equal
        return Event(_scores(ones, others)[0], np.zeros(0), np.ones(1, dtype=bool))
    return best[1]


def _best_cells(
    positive: Counts, negative: Counts, delta: float, confidences: tuple[float, float]
) -> tuple[float, NDArray[np.bool_] | None]:
    """Return the greatest bound of a run of cells in the order of likelihood ratios, and these cells if there are two.

    The bound is that of the first confidence, or a little of that of the second where the first shows nothing.
    """
    order = np.argsort((negative + 0.5) / (positive + 0.5), kind="stable")
    if len(order) < 2:
        return 0.0, None
    ends = np.unique(np.geomspace(1, len(order) - 1, 24).astype(int)) - 1
    inside, accused = np.cumsum(positive[order])[ends], np.cumsum(negative[order])[ends]
    sizes, (strict, confidence) = (int(positive.sum()), int(negative.sum())), confidences
    bounds = epsilons_of_counts(inside, sizes[0], accused, sizes[1], delta, strict)
    if not bounds.any():  # too few outputs for it
        bounds = 1e-6 * epsilons_of_counts(inside, sizes[0], accused, sizes[1], delta, confidence)
    place, chosen = int(np.argmax(bounds)), np.zeros(len(order), dtype=bool)
    chosen[order[: ends[place] + 1]] = True
    return float(bounds[place]), chosen


def _scores(ones: Readings, others: Readings) -> list[Score]:
    """Return the functions that reduce outputs to numbers, fitted to some outputs."""
    width = max(ones.numbers.shape[1], others.numbers.shape[1])
    found: list[Score] = [partial(_column, index=index) for index in range(min(width, COORDINATES_MAX))]
    if width > 1:
        found.append(partial(_projected, direction=np.ones(width)))
    if 1 < width <= DIRECTION_MAX:
        direction = fisher(ones.widened(width), others.widened(width))
        found += [] if direction is None else [partial(_projected, direction=direction)]
    found += _joint(ones.widened(width), others.widened(width))
    if not found or len({*ones.forms, *others.forms}) > 1:
        found += [_categories(ones, others, lambda one: list(one.forms)), _categories(ones, others, Readings.keys)]
    return found


def fisher(first: Scores, second: Scores) -> Scores | None:
    """Return the direction that separates two sets of rows best, or None where it cannot be computed."""
    first, second = _cleaned(first), _cleaned(second)
    scale = np.maximum(np.abs(first).max(axis=0), np.abs(second).max(axis=0))
    scale[scale == 0] = 1.0
    first, second = first / scale, second / scale
    spread = np.atleast_2d(np.cov(first.T) + np.cov(second.T))
    ridge = RIDGE * np.diag(np.maximum(np.diag(spread), 1e-300))
    try:
        direction = np.linalg.lstsq(spread + ridge, first.mean(0) - second.mean(0), rcond=None)[0] / scale
    except np.linalg.LinAlgError:
        return None
    return direction if np.isfinite(direction).all() else None


def _joint(first: Scores, second: Scores) -> list[Score]:
    """Return scores of a coordinate with few values together with another one, for some pairs of coordinates."""
    both = np.concatenate([first, second])[:, :COORDINATES_MAX]
    values = [np.unique(_ordered(column)) for column in both.T]
    pairs = [
        (one, other)
        for one, few in enumerate(values)
        for other, many in enumerate(values)
        if one != other and 1 < len(few) <= LEVELS_MAX and len(many) > 1
    ]
    return [_pair_score(first, second, *one, values[one[0]]) for one in pairs[:PAIRS_MAX]]


def _pair_score(first: Scores, second: Scores, one: int, other: int, levels: Scores) -> Score:
    """Return the score of two coordinates: the place of their cell, by likelihood ratio."""
    pooled = _ordered(np.concatenate([first[:, other], second[:, other]]))
    edges = np.unique(np.quantile(pooled, np.linspace(0, 1, LEVELS_MAX + 1)[1:-1], method="higher"))

    def cells(numbers: Scores) -> NDArray[np.int64]:
        level = np.searchsorted(levels, _ordered(numbers[:, one]))
        return level * (len(edges) + 1) + np.searchsorted(edges, _ordered(numbers[:, other]), side="right")

    size = (len(levels) + 1) * (len(edges) + 1)
    counts = [np.bincount(cells(numbers), minlength=size) for numbers in (first, second)]
    places = np.argsort(np.argsort((counts[0] + 0.5) / (counts[1] + 0.5), kind="stable")).astype(np.float64)
    return lambda outputs: places[cells(read(outputs).widened(max(one, other) + 1))]


def _column(outputs: Outputs, index: int) -> Scores:
    return _ordered(read(outputs).widened(index + 1)[:, index])


def _projected(outputs: Outputs, direction: Scores) -> Scores:
    with np.errstate(all="ignore"):
        return _ordered(_cleaned(read(outputs).widened(len(direction))) @ direction)


def _cleaned(numbers: Scores) -> Scores:
    """Return numbers with 0 for NaN and infinity, which forms and columns tell, and limits that keep sums finite."""
    return np.clip(np.where(np.isfinite(numbers), numbers, 0.0), -LARGEST, LARGEST)


def _ordered(scores: Scores) -> Scores:
    """Return finite scores in the same order, with infinity above all numbers and NaN above infinity."""
    limited = np.clip(scores, -LARGEST, LARGEST)
    return np.nan_to_num(
        np.where(np.isinf(scores), 2 * limited, limited), nan=4 * LARGEST, posinf=2 * LARGEST, neginf=-2 * LARGEST
    )


def _categories(ones: Readings, others: Readings, key: Callable[[Readings], list[Hashable]]) -> Score:
    """Return the score of what an output is: its place among those seen often enough, by likelihood ratio."""
    first, second = Counter(key(ones)), Counter(key(others))
    often = [one for one in (first | second) if first[one] + second[one] >= CATEGORY_MIN]
    often.sort(key=lambda one: (first[one] + 0.5) / (second[one] + 0.5))
    places = {one: place + 1.0 for place, one in enumerate(often)}
    return lambda outputs: np.array([places.get(one, 0.0) for one in key(read(outputs))])


def _edges(scores: Scores) -> list[Scores]:
    """Return the edges of cells: between all different scores where these are few, otherwise quantiles.

    Where scores repeat, cells are tried as well in which each score that is seen `ATOM` times or more is alone: a value
    that has a probability of its own tells more than its neighbourhood does.
    """
    different, seen = np.unique(scores, return_counts=True)
    if len(different) <= CELLS:
        return [np.asarray(different[1:], dtype=np.float64)]
    tails = np.geomspace(1e-4, 0.02, 12)
    shares = np.unique(np.concatenate([tails, np.linspace(0.02, 0.98, CELLS - 24), 1 - tails]))
    quantiles = np.unique(np.quantile(scores, shares, method="higher"))
    atoms = different[seen >= ATOM]
    if not len(atoms):
        return [quantiles]
    return [quantiles, np.unique(np.concatenate([quantiles, atoms, np.nextafter(atoms, np.inf)]))]
