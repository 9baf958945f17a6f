"""Side channels of an interface that takes SQL: times, errors, and answers that should be equal and are not.

timing         how long a question about one person takes, for people with the secret and without
errors         whether a query fails exactly if one person has the secret: a division by zero, a cast or an overflow
               that only that person's row would reach
consistency    whether questions that mean the same have the same answer, and what the repetition cost
"""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np

from tacit.attack.confidence import clopper_pearson, epsilon_of_counts
from tacit.attack.finding import Measurement, Power, RocPoint, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack, stated
from tacit.attack.mechanism_audit import measure
from tacit.attack.power import of_tests
from tacit.attack.query_interface import Interface, QueryInterface, Question
from tacit.attack.secret_scoring import doubt_about_people, doubt_about_total, roc
from tacit.attack.targets import DoesNotFit
from tacit.privacy.errors import Cancelled, TacitError

PEOPLE: Final = (60, 100, 400)
"""How many people are asked about with each value of the secret, by effort."""
PROVOCATIONS: Final = (
    "1 / (CASE WHEN {person} AND ({secret}) THEN 0 ELSE 1 END) = 1",
    "CAST(CASE WHEN {person} AND ({secret}) THEN 'x' ELSE '1' END AS INTEGER) = 1",
    "9223372036854775807 + (CASE WHEN {person} AND ({secret}) THEN 1 ELSE 0 END) > 0",
    "SQRT(CASE WHEN {person} AND ({secret}) THEN -1 ELSE 1 END) = 1",
    "LN(CASE WHEN {person} AND ({secret}) THEN 0 ELSE 1 END) = 0",
)
"""Conditions that fail in a database, but only where one person with the secret is there."""


def _people(interface: Interface, setting: Setting) -> tuple[list[int], list[int]]:
    """Return as many people with the secret as without, in random order."""
    order = setting.random.permutation(len(interface.truth))
    ones, others = (order[interface.truth[order] == value].tolist() for value in (True, False))
    count = min(len(ones), len(others), setting.scaled(*PEOPLE))
    if count < 4:
        raise DoesNotFit("the attack needs at least four people with the secret and four without", name="truth")
    return ones[:count], others[:count]


def _only(target: QueryInterface, person: int) -> str:
    return f"{target.unit} = {target.literal(stated(target.ids, 'ids')[person])}"


def _one(target: QueryInterface, person: int, condition: str) -> Question:
    mask = np.zeros(target.people, dtype=bool)
    mask[person] = True
    return Question(mask, condition)


@attack(
    "timing",
    QueryInterface,
    paper="Haeberlen, Pierce, Narayan 2011",
    summary="whether the time of an answer tells a person's secret",
    needs=("table",),
)
def measure_times(target: QueryInterface, setting: Setting) -> Outcome:
    """Time one question about each person, and test the times for the secret."""
    interface = target.open(setting.random, 2 * setting.scaled(*PEOPLE), 16)
    with_secret, without = _people(interface, setting)
    times: dict[bool, list[float]] = {True: [], False: []}
    answers: dict[bool, list[float]] = {True: [], False: []}
    asked = [(True, one) for one in with_secret] + [(False, one) for one in without]
    for index in setting.random.permutation(len(asked)):
        value, person = asked[index]
        begun_s = time.perf_counter()
        answer = interface.count(_one(target, person, _only(target, person)))
        if answer is None:
            break
        times[value].append(time.perf_counter() - begun_s)
        answers[value].append(answer)
    ones, others = np.array(times[True]), np.array(times[False])
    if min(len(ones), len(others)) < 4:
        raise DoesNotFit("the interface answered too few queries", name="target", refused=interface.refused)
    found = measure(ones, others, 0.0, setting.confidence)
    secrets = np.arange(len(ones) + len(others)) < len(ones)
    doubt = doubt_about_people(np.array(answers[True] + answers[False]), secrets)
    points = roc(ones, others, setting)
    return _outcome(interface, setting, found.hits, found.alarms, "how long answers take", doubt, points)


@attack(
    "errors",
    QueryInterface,
    paper="Wilson et al. 2020, section 5; failures as an oracle",
    summary="whether an error tells a person's secret",
    needs=("table",),
)
def provoke_errors(target: QueryInterface, setting: Setting) -> Outcome:
    """Ask questions that fail in a plain database exactly if a person has the secret.

    The provocation is chosen on two people who are not measured; the others are asked about in random order, as far as
    the interface goes on answering or refusing single queries.
    """
    interface = target.open(
        setting.random, 2 * len(PROVOCATIONS) + 2 * setting.scaled(*PEOPLE), 2 * len(PROVOCATIONS) + 8
    )
    interface.ends_at_refusal = False
    with_secret, without = _people(interface, setting)
    kinds: dict[str, int] = {}
    answers: list[float] = []

    def fails(provoked: str, person: int) -> bool | None:
        condition = provoked.format(person=_only(target, person), secret=target.secret)
        question = Question(np.ones(target.people, dtype=bool), condition, is_written=True)
        kind = _outcome_class(interface, question, answers)
        if kind is not None:
            kinds[kind] = kinds.get(kind, 0) + 1
        return None if kind is None else kind != ANSWERED

    best = max(PROVOCATIONS, key=lambda one: bool(fails(one, with_secret[0])) - bool(fails(one, without[0])))
    asked = [(True, one) for one in with_secret[1:]] + [(False, one) for one in without[1:]]
    outcomes: dict[bool, list[bool]] = {True: [], False: []}
    for index in setting.random.permutation(len(asked)):
        value, person = asked[index]
        failed = fails(best, person)
        if failed is None:
            break
        outcomes[value].append(failed)
    hits, alarms = (np.array(outcomes[value]) for value in (True, False))
    if min(len(hits), len(alarms)) < 3 or ANSWERED not in kinds:
        raise DoesNotFit("the interface answered too few queries", name="target", refused=interface.refused)
    doubt = doubt_about_total(interface, np.array(answers), slack=1.0)  # the one person's row may be left out
    return _outcome(interface, setting, hits, alarms, "whether a query fails", doubt, outcomes=kinds)


ANSWERED: Final = "answered"


def _outcome_class(interface: Interface, question: Question, answers: list[float]) -> str | None:
    """Return how a question ends: answered, refused, or the class of an error; None if no more can be asked."""
    try:
        answer = interface.count(question)
    except Cancelled:
        raise
    except TacitError as error:
        return error.code
    except Exception as error:
        return type(error).__name__
    if interface.is_exhausted:
        return None
    answers += [] if answer is None else [answer]
    return "refused" if answer is None else ANSWERED


def _outcome(
    interface: Interface,
    setting: Setting,
    hits: Any,
    alarms: Any,
    channel: str,
    doubt: str,
    points: tuple[RocPoint, ...] = (),
    **details: Any,
) -> Outcome:
    """Return the outcome of a test of people with the secret (hits) against those without (alarms)."""
    tests = (int(hits.sum()), len(hits), int(alarms.sum()), len(alarms))
    flipped = (tests[1] - tests[0], tests[1], tests[3] - tests[2], tests[3])
    delta, confidence = setting.delta, 1 - (1 - setting.confidence) / 2  # two directions
    bound = max(epsilon_of_counts(*one, delta, confidence) for one in (tests, flipped))
    leaked = epsilon_of_counts(len(hits), len(hits), 0, len(alarms), delta, confidence)
    mixed = setting.random.permutation(np.concatenate([hits, alarms]))
    ones, others = mixed[: len(hits)], mixed[len(hits) :]
    nothing = epsilon_of_counts(int(ones.sum()), len(ones), int(others.sum()), len(others), delta, confidence)
    error = (1 - setting.confidence) / 2
    return Outcome(
        ThreatModel(f"queries in SQL, and {channel}", "the ids of the people", interface.asked),
        (
            Measurement(
                "noticed, of people with the secret",
                tests[0] / tests[1],
                clopper_pearson(*tests[:2], error),
                key="noticed_with_secret",
            ),
            Measurement(
                "noticed, of people without",
                tests[2] / tests[3],
                clopper_pearson(*tests[2:], error),
                key="noticed_without_secret",
            ),
        ),
        bound,
        "Clopper-Pearson bounds in both directions",
        Power(
            "a channel that tells every secret",
            leaked,
            nothing,
            setting.refutes(leaked) and not doubt,
            doubt,
            least_epsilon=of_tests(setting.claim, confidence, len(hits), len(alarms)),
        ),
        roc=points,
        assumptions=("the people are exchangeable but for the secret",),
        details=details,
    )


@attack(
    "consistency",
    QueryInterface,
    paper="averaging over equivalent queries: Denning 1980",
    summary="whether equivalent queries have one answer, or noise that averages out",
    needs=("table",),
)
def compare_spellings(target: QueryInterface, setting: Setting) -> Outcome:
    """Ask one count in several spellings and compare the answers."""
    spellings = ("", "TRUE", "1 = 1", f"{target.unit} = {target.unit}", f"NOT ({target.unit} <> {target.unit})")
    interface = target.open(setting.random, len(spellings), 2)
    everybody = np.ones(target.people, dtype=bool)
    answers = [
        answer
        for one in spellings
        if (answer := interface.count(Question(everybody, one, is_written=bool(one)))) is not None
    ]
    if len(answers) < 2:
        raise DoesNotFit("the interface answered too few queries", name="target", refused=interface.refused)
    return Outcome(
        ThreatModel("queries in SQL", "nothing", interface.asked),
        (
            Measurement("different answers to one query", len(set(answers)), baseline=1.0, key="different_answers"),
            Measurement("spread of the answers", float(np.ptp(answers)), key="answer_spread"),
        ),
        details={"answers": answers, "refusal": interface.refusal},
    )
