"""A differencing attack: everybody, and everybody but one, so that the difference is that one patient.

The attacker knows age, sex and town of somebody who is alone with them in the clinic, and wants to know whether that
patient has a diagnosis. Half of those who are attacked have it, so a coin is right half of the time.

Measured: with exact answers, and with private ones, by the mechanism of the very plan that the curator would run (a
test holds it against the curator's own road). One pair of questions is asked for real and paid by the analyst; the
many others are simulated with noise that can be replayed, in a budget of their own, because no real one has room for
them.

The bound: all that the two questions say about one patient costs epsilon in total, and whoever guesses between two
worlds that are epsilon apart is right with a probability of at most e^epsilon / (1 + e^epsilon), by whatever means
(Wasserman, Zhou 2010; Kairouz, Oh, Viswanath 2015). For these questions a patient without the diagnosis is the same as
one who is not there, so epsilon is that of one patient added or removed.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.tour.clinic import Patient
from tacit.cli.tour.setting import ANALYST
from tacit.cli.tour.steps import plan_of

if TYPE_CHECKING:
    from tacit.curator import Curator
    from tacit.query import Plan

DIAGNOSIS: Final = "depression"
EPSILON_EACH: Final = 0.25
TIMES: Final = 10
"""How often each target is attacked, each time with other noise."""

SEED: Final = 1854
EVERYBODY: Final = f"SELECT COUNT(DISTINCT patient_id) AS n FROM visits\nWHERE diagnosis = '{DIAGNOSIS}'"


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack for real, and how often many simulated ones guess right."""

    everybody: str
    but_one: str
    target: str
    answers: tuple[int, int]
    difference: int
    true_difference: int
    targets: int
    attacks: int
    exact_rate: float
    private_rate: float
    coin_rate: float
    bound: float
    epsilon: float
    """What the two questions about one target cost."""
    epsilon_simulated: float
    """What all the simulated ones were charged, in a budget of their own."""
    is_simulated: bool


@dataclass(frozen=True, slots=True)
class Rates:
    """How often the attack guesses right, with exact and with private answers, and what the latter were charged."""

    attacks: int
    exact: float
    private: float
    epsilon_charged: float


def differencing(curator: Curator, patients: list[Patient]) -> Attack:
    """Attack one patient for real, and every target many times in a simulation."""
    chosen = targets(patients)
    victim = next(one for one in chosen if has_it(one))
    everybody, but_one = (
        int(curator.sql(sql, EPSILON_EACH, analyst=ANALYST).rows[0]["n"]) for sql in (EVERYBODY, everybody_but(victim))
    )
    rates = simulated(plan_of(curator, EVERYBODY, EPSILON_EACH), sum(map(has_it, patients)), list(map(has_it, chosen)))
    epsilon = 2 * EPSILON_EACH
    return Attack(
        everybody=EVERYBODY,
        but_one=everybody_but(victim),
        target=in_words(victim),
        answers=(everybody, but_one),
        difference=everybody - but_one,
        true_difference=1,
        targets=len(chosen),
        attacks=rates.attacks,
        exact_rate=rates.exact,
        private_rate=rates.private,
        coin_rate=0.5,
        bound=math.exp(epsilon) / (1 + math.exp(epsilon)),
        epsilon=epsilon,
        epsilon_simulated=rates.epsilon_charged,
        is_simulated=True,
    )


def simulated(plan: Plan, count: int, secrets: list[bool]) -> Rates:
    """Attack everybody whose secret is given, `TIMES` times each; `count` have the diagnosis in all."""
    import numpy as np

    from tacit.ledger import Budget
    from tacit.mechanisms.simulation import SeededSource
    from tacit.privacy.events import Repeated

    truths = np.repeat(np.array(secrets), TIMES)
    everybody, but_one = np.full(len(truths), count), count - truths.astype(np.int64)
    budget = Budget(epsilon=math.ceil(2 * EPSILON_EACH * len(truths)))
    budget.charge(Repeated(plan.event, 2 * len(truths)), purpose="a simulated attack")
    source, noise = SeededSource(SEED), plan.price.noises[0]
    private = _right(noise.release(everybody, source=source), noise.release(but_one, source=source), truths)
    return Rates(len(truths), _right(everybody, but_one, truths), private, budget.spent().epsilon)


def targets(patients: list[Patient]) -> list[Patient]:
    """Return patients who are alone with their age, sex and town: as many who have the diagnosis as who do not."""
    alike = Counter((one.age, one.sex, one.town) for one in patients)
    alone = [one for one in patients if alike[one.age, one.sex, one.town] == 1]
    with_it = [one for one in alone if has_it(one)]
    without = [one for one in alone if not has_it(one)]
    size = min(len(with_it), len(without))
    return [*with_it[:size], *without[:size]]


def has_it(patient: Patient) -> bool:
    """Whether a patient has the diagnosis: the secret."""
    return patient.diagnosis == DIAGNOSIS


def everybody_but(victim: Patient) -> str:
    """Return the question about everybody but one."""
    return f"{EVERYBODY}\nAND NOT (age = {victim.age} AND sex = '{victim.sex}' AND town = '{victim.town}')"


def in_words(victim: Patient) -> str:
    """Return what the attacker knows of somebody."""
    return f"the {'woman' if victim.sex == 'F' else 'man'} of {victim.age} from {victim.town}"


def _right(everybody: Any, but_one: Any, truths: Any) -> float:
    """Return how often the difference tells the secret: who lies nearer to 1 than to 0 is taken to have it."""
    return float(((everybody - but_one > 0.5) == truths).mean())
