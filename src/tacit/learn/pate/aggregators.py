"""Aggregators: the label that most teachers vote for, with noise.

Promise (neighbours: one unit, which is in the part of one teacher, so that one vote moves from class j to class k):
each `release` costs what `event` says, or `test_event` if the query is not answered; nothing but the label leaves.

- `LNMax` (Papernot et al. 2017) adds Laplace noise of scale lambda to every count. Two counts move by 1 each, so the
  noisy counts, of which the label is a function, cost two Laplace releases of epsilon 1 / lambda. That is pure epsilon
  2 / lambda, as the paper says and as report-noisy-max has it for scores that move both ways (Dwork, Roth 2014, claim
  3.9, doubled), but half its rho. The bound of 1 / lambda for monotonic counts does not apply: a vote is moved, not
  added.
- `GNMax` (Papernot et al. 2018) adds Gaussian noise: counts move by sqrt(2) in L2, so rho is 1 / sigma^2. The event
  `NoisyMax` says so.
- `ConfidentGNMax` first compares the greatest count with a threshold. The greatest count moves by at most 1, so that is
  a Gaussian release of sensitivity 1, paid for every query; GNMax is paid for those that are answered.
- `InteractiveGNMax` compares with the student's prediction p: the greatest n_j - round(M p_j). The prediction is
  public, and rounding it to whole votes keeps the sensitivity at 1. Where the student agrees and is sure, its own label
  is reinforced, at the price of the test alone.

Noise is exact (`tacit.mechanisms`): discrete Laplace on the integers; Gaussian on a grid of 2^-30 votes, which is a
function of votes with continuous Gaussian noise. The law of the label then differs from that of continuous noise by
less than `bounds.SLACK` allows for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms import Gaussian, Laplace
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.mechanisms.simulation import mark_simulated
from tacit.privacy import events
from tacit.privacy.errors import InvalidInput, OutOfRange, WrongType
from tacit.privacy.events import Composed, Event, Repeated
from tacit.privacy.numbers import Real, exact, inside_unit_interval, native_number, parameter, rounded_down, whole
from tacit.privacy.units import Relation

GRID: Final = 2.0**-30
"""The grid of Gaussian noise on votes; any power of two below it would do."""
VOTES_MAX: Final = 2**20

Votes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Aggregator(ABC):
    """A randomized function of the vote counts of one query."""

    relation: Relation = field(default=Relation.ADD_REMOVE, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", Relation.of(self.relation))

    def __str__(self) -> str:
        given = (f"{one.name} {float(getattr(self, one.name)):g}" for one in fields(self) if one.name != "relation")
        return f"{type(self).__name__}({', '.join(given)})"

    def _require(self, name: str) -> None:
        object.__setattr__(self, name, native_number(parameter(name, getattr(self, name))))

    @property
    @abstractmethod
    def event(self) -> Event:
        """The record of one answered query."""

    @property
    def test_event(self) -> Event | None:
        """The record of one query that was not answered; None if every query is answered."""
        return None

    def plan(self, queries: int, answers: int) -> Event:
        """Return the event of `queries` queries of which at most `answers` are answered.

        Which ones are answered is decided on the way; as the parts are Gaussian and their numbers fixed, the
        composition is as private as a fixed one (Gaussian filter: Smith, Thakurta 2022).
        """
        asked, answered = whole("queries", queries), whole("answers", answers)
        if answered > asked:
            raise OutOfRange("answers must not exceed queries", name="answers", value=answers)
        if self.test_event is None:
            return Repeated(self.event, asked)
        return Composed((Repeated(self.test_event, asked), Repeated(self.label_event, answered)))

    @property
    def label_event(self) -> Event:
        """The record of the label alone, without the test before it."""
        return self.event

    def release(self, votes: Any, *, source: RandomSource = SYSTEM) -> Any:
        """Return the index of a class, or None if the query is not answered."""
        counts = vote_counts(votes)
        if counts.ndim != 1:
            raise WrongType("votes must be the counts of one query, one for each class", name="votes")
        label = self._label(counts, source)
        return mark_simulated(label) if source.simulated else label

    @abstractmethod
    def _label(self, counts: Votes, source: RandomSource) -> int | None:
        """Return the noisy answer for checked counts."""


def vote_counts(votes: Any) -> Votes:
    """Return votes as whole numbers of at least 0, with at least two classes; raise for anything else."""
    array = np.asarray(votes)
    if array.dtype.kind not in "iu":
        raise WrongType(f"votes must be whole numbers, not {array.dtype}", name="votes")
    if array.ndim not in (1, 2) or array.shape[-1] < 2:
        raise WrongType("votes must hold one count for each of at least two classes", name="votes", value=array.shape)
    if array.size and (int(array.min()) < 0 or int(array.max()) > VOTES_MAX):
        raise OutOfRange(f"votes must be counts from 0 to {VOTES_MAX:,}", name="votes")
    return array.astype(np.int64)


def _gaussian(sigma: Real, counts: Any, source: RandomSource) -> NDArray[np.float64]:
    """Return counts with independent Gaussian noise of standard deviation `sigma` votes.

    The sensitivity is that of one count, 1; what several of them cost together is in the events.
    """
    values = np.asarray(counts, dtype=np.float64)
    return np.asarray(Gaussian(1.0, sigma=sigma, grid=GRID).release(values, source=source))


@dataclass(frozen=True, slots=True)
class LNMax(Aggregator):
    """The greatest count after Laplace noise of `scale` votes (lambda; 1 / gamma in the paper)."""

    scale: Real

    def __post_init__(self) -> None:
        Aggregator.__post_init__(self)
        self._require("scale")

    @property
    def _noise(self) -> Laplace:
        return Laplace(1, 1 / Fraction(self.scale), relation=self.relation)

    @property
    def event(self) -> Event:
        return Repeated(self._noise.event, 2)

    def _label(self, counts: Votes, source: RandomSource) -> int:
        return int(np.argmax(self._noise.release(counts, source=source)))


@dataclass(frozen=True, slots=True)
class GNMax(Aggregator):
    """The greatest count after Gaussian noise of standard deviation `sigma` votes."""

    sigma: Real

    def __post_init__(self) -> None:
        Aggregator.__post_init__(self)
        self._require("sigma")

    @property
    def event(self) -> Event:
        return events.NoisyMax(rounded_down(Fraction(self.sigma)), under=self.relation)

    def _label(self, counts: Votes, source: RandomSource) -> int | None:
        return int(np.argmax(_gaussian(self.sigma, counts, source)))


@dataclass(frozen=True, slots=True)
class ConfidentGNMax(GNMax):
    """GNMax for queries whose greatest count, with Gaussian noise of `test_sigma`, reaches `threshold`."""

    threshold: Real
    test_sigma: Real

    def __post_init__(self) -> None:
        GNMax.__post_init__(self)
        object.__setattr__(self, "threshold", native_number(exact("threshold", self.threshold)))
        self._require("test_sigma")

    @property
    def test_event(self) -> Event:
        return events.Gaussian(rounded_down(Fraction(self.test_sigma)), under=self.relation)

    @property
    def label_event(self) -> Event:
        return GNMax(self.sigma, relation=self.relation).event

    @property
    def event(self) -> Event:
        return Composed((self.test_event, self.label_event))

    def _passes(self, statistic: int, source: RandomSource) -> bool:
        """Test a number of sensitivity 1: the greatest count, or its greatest excess over the student's."""
        return float(_gaussian(self.test_sigma, [statistic], source)[0]) >= self.threshold

    def _label(self, counts: Votes, source: RandomSource) -> int | None:
        if not self._passes(int(counts.max()), source):
            return None
        return int(np.argmax(_gaussian(self.sigma, counts, source)))


@dataclass(frozen=True, slots=True)
class InteractiveGNMax(ConfidentGNMax):
    """GNMax where teachers contradict the student; where they do not, a student that is sure is reinforced.

    `certainty` is the probability above which the student counts as sure.
    """

    certainty: Real

    def __post_init__(self) -> None:
        ConfidentGNMax.__post_init__(self)
        object.__setattr__(self, "certainty", native_number(inside_unit_interval("certainty", self.certainty)))

    def compare(self, votes: Any, prediction: Any, *, source: RandomSource = SYSTEM) -> tuple[Any, bool]:
        """Return a label or None, and whether the teachers gave it; `prediction` is public, one probability a class."""
        counts, probabilities = vote_counts(votes), np.asarray(prediction, dtype=np.float64)
        if counts.ndim != 1 or probabilities.shape != counts.shape:
            raise WrongType("prediction must have one probability for each class", name="prediction")
        if not np.isfinite(probabilities).all() or probabilities.min() < 0 or abs(probabilities.sum() - 1) > 1e-6:
            raise InvalidInput("prediction must be probabilities that add up to 1", name="prediction")
        excess = counts - np.rint(counts.sum() * probabilities).astype(np.int64)
        label: int | None = None
        is_answered = self._passes(int(excess.max()), source)
        if is_answered:
            label = int(np.argmax(_gaussian(self.sigma, counts, source)))
        elif probabilities.max() > self.certainty:
            label = int(np.argmax(probabilities))
        return (mark_simulated(label) if source.simulated else label), is_answered

    def _label(self, counts: Votes, source: RandomSource) -> int | None:
        """Compare with a student that knows nothing: all classes alike."""
        label, is_answered = self.compare(counts, np.full(len(counts), 1 / len(counts)), source=source)
        return label if is_answered else None
