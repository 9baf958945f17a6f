"""The release plan of noisy answers to public queries, from the votes of teachers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.learn.pate.aggregators import Aggregator, GNMax, InteractiveGNMax
from tacit.learn.pate.sanitised_epsilon import SanitisedEpsilon, SanitisedReport
from tacit.mechanisms.randomness import RandomSource
from tacit.pipeline import ReleaseOptions, UnstoredPlan
from tacit.privacy.errors import EmptyInput, InvalidInput
from tacit.privacy.events import Converted, Event

UNLABELLED = -1
"""The label of public rows without an answer, as in `sklearn.semi_supervised`."""


class PateAnswers(NamedTuple):
    """What leaves: a label or UNLABELLED for each query, which of them teachers gave, and the sanitised epsilon."""

    labels: NDArray[np.int64]
    given: NDArray[np.bool_]
    report: SanitisedEpsilon | None


@dataclass(frozen=True)
class PatePlan(UnstoredPlan[PateAnswers]):
    """The release plan of the answers to all queries (`pipeline.ReleasePlan`)."""

    aggregator: Aggregator
    classes: int
    queries: int
    answers: int
    delta: float | None
    report: SanitisedReport | None = None
    votes: NDArray[np.int64] | None = None
    probabilities: Callable[[NDArray[np.int64]], NDArray[np.float64]] | None = None
    """The student's predictions for all queries after training on the labels so far; for InteractiveGNMax."""
    rounds: int = 1

    @property
    def event(self) -> Event:
        """All tests and the greatest number of labels, counted at `delta`, with the report."""
        plan = self.aggregator.plan(self.queries, self.answers)
        if self.report is not None and self.delta is not None:
            return self.report.event(plan, self.delta)
        return plan if self.delta is None else Converted(plan, self.delta)

    @property
    def digest(self) -> str:
        """The parameters of the release."""
        parameters = (self.aggregator, self.classes, self.queries, self.answers, self.delta, self.report)
        return hashlib.sha256(repr(parameters).encode()).hexdigest()

    @property
    def label(self) -> str:
        """The aggregator and the number of queries."""
        return f"PATE: {self.queries} queries by {type(self.aggregator).__name__}"

    def check(self) -> None:
        """Raise unless the report is defined for the aggregator."""
        if self.report is not None:
            if self.delta is None:
                raise InvalidInput("a report needs a delta", name="delta")
            self.report.check(self.aggregator, self.classes)

    def run(self, options: ReleaseOptions) -> PateAnswers:
        """Ask one query after another until `answers` are answered."""
        if self.votes is None:
            raise EmptyInput("there are no votes to answer with", name="votes")
        labels = np.full(self.queries, UNLABELLED, dtype=np.int64)
        given = np.zeros(self.queries, dtype=np.bool_)
        for chunk in np.array_split(np.arange(self.queries), self.rounds):
            predicted = None if self.probabilities is None else self.probabilities(labels)
            for query in chunk.tolist():
                if int(given.sum()) == self.answers:
                    break
                label, given[query] = ask(self.aggregator, self.votes[query], predicted, query, options.source)
                labels[query] = UNLABELLED if label is None else int(label)
        report = None
        if self.report is not None and self.delta is not None and isinstance(self.aggregator, GNMax):
            charged = self.report.event(self.aggregator.plan(self.queries, self.answers), self.delta).epsilon
            report = self.report.release(
                self.aggregator, self.votes, self.delta, charged=charged, source=options.source
            )
        return PateAnswers(labels, given, report)


def ask(
    aggregator: Aggregator, votes: Any, predicted: NDArray[Any] | None, query: int, source: RandomSource
) -> tuple[Any, bool]:
    """Return the label of one query or None, and whether it came from the teachers."""
    if isinstance(aggregator, InteractiveGNMax) and predicted is not None:
        return aggregator.compare(votes, predicted[query], source=source)
    label = aggregator.release(votes, source=source)
    return label, label is not None
