"""One person's secret from one count with the whole epsilon, again and again over fresh data.

No other plan of queries tells more about one person: all that epsilon allows is spent on one count of that person. The
secrets of the runs are independent and uniform, and each run has an interface of its own, so all runs together are one
mechanism that is (epsilon, delta)-private about each secret, and their right guesses bound epsilon as those of one run
(`confidence`). Attacks that ask about everybody divide epsilon over many queries, and notice gross faults alone; this
one notices an epsilon that is a few times the claim.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tacit.attack.confidence import clopper_pearson, one_run_epsilon
from tacit.attack.finding import Measurement, Power, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack
from tacit.attack.power import laplace_accuracy, of_guesses
from tacit.attack.query_interface import QueryInterface, Question
from tacit.attack.targets import DoesNotFit

RUNS: Final = (40, 100, 400)
"""How many interfaces are made, by effort."""


@attack(
    "single_counts",
    QueryInterface,
    paper="Kasiviswanathan, Smith 2014 (what a release tells about one record)",
    summary="one person's secret from one count with the whole epsilon",
    needs=("make",),
)
def count_singly(target: QueryInterface, setting: Setting) -> Outcome:
    """Ask every new interface for the count of one person, and guess that person's secret."""
    runs = setting.scaled(*RUNS)
    guessed, truth = np.zeros(runs, dtype=bool), np.zeros(runs, dtype=bool)
    for index in range(runs):
        interface = target.open(setting.random, 1)
        person = np.zeros(target.people, dtype=bool)
        person[setting.random.integers(target.people)] = True
        answer = interface.count(Question(person))
        if answer is None:
            raise DoesNotFit("the interface answered too few queries", name="target", refused=interface.refused)
        guessed[index], truth[index] = answer > 0.5, interface.truth[person][0]

    def bound(right: int) -> float:
        return one_run_epsilon(runs, runs, right, setting.delta, setting.confidence)

    right = int((guessed == truth).sum())
    null = int((setting.random.permutation(guessed) == truth).sum())
    claim = setting.claim
    return Outcome(
        ThreatModel("one count about one person", "the ids of the people", runs),
        (
            Measurement(
                "secrets guessed right",
                right / runs,
                clopper_pearson(right, runs, (1 - setting.confidence) / 2),
                baseline=0.5,
                ceiling=None if claim is None or claim.epsilon is None else claim.accuracy,
                key="secrets_guessed_right",
            ),
        ),
        bound(right),
        f"one run, {runs} guesses",
        Power(
            "the same answers without noise",
            bound(runs),
            bound(null),
            setting.refutes(bound(runs)),
            least_epsilon=of_guesses(claim, setting.confidence, laplace_accuracy, secrets=runs, guesses=runs),
        ),
        details={"people": runs, "right": right},
    )
