"""Side channels of an interface that takes SQL: times, errors, and answers that should be equal and are not.

timing         how long a question about one person takes, for people with the secret and without
errors         whether a query ends otherwise exactly if one person has the secret, by a failure, another error or
               another refusal: a division by zero, a cast or an overflow that only that person's row would reach
consistency    whether questions that mean the same have the same answer, and what the repetition cost
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tacit.attack.confidence import clopper_pearson, epsilon_of_counts
from tacit.attack.finding import Measurement, Power, RocPoint, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack, stated
from tacit.attack.mechanism_audit import measure
from tacit.attack.power import of_tests
from tacit.attack.query_interface import Interface, QueryInterface, Question
from tacit.attack.secret_scoring import doubt_about_people, doubt_about_total, roc
from tacit.attack.targets import DoesNotFit, Mask
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
NAMING: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\w*\d\w*")
"""The parts of a message that may differ from person to person."""
MESSAGE_MAX: Final = 200


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
    the interface goes on answering or refusing single queries. How a query ends is compared, not only whether it fails:
    the kinds of end that tell the secret are chosen on other people than those on whom they are tested.
    """
    interface = target.open(
        setting.random, 2 * len(PROVOCATIONS) + 2 * setting.scaled(*PEOPLE), 2 * len(PROVOCATIONS) + 8
    )
    interface.ends_at_refusal = False
    with_secret, without = _people(interface, setting)
    kinds: dict[str, int] = {}
    answers: list[float] = []

    def ends(provoked: str, person: int) -> str | None:
        condition = provoked.format(person=_only(target, person), secret=target.secret)
        question = Question(np.ones(target.people, dtype=bool), condition, is_written=True)
        kind = _outcome_class(interface, question, answers)
        if kind is not None:
            kinds[kind] = kinds.get(kind, 0) + 1
        return kind

    tried = {one: (ends(one, with_secret[0]), ends(one, without[0])) for one in PROVOCATIONS}
    # at best one of the two people is answered, otherwise they end differently
    best = max(PROVOCATIONS, key=lambda one: (tried[one][0] != tried[one][1], tried[one][1] == ANSWERED))
    asked = [(True, one) for one in with_secret[1:]] + [(False, one) for one in without[1:]]
    outcomes: dict[bool, list[str]] = {True: [], False: []}
    for index in setting.random.permutation(len(asked)):
        value, person = asked[index]
        kind = ends(best, person)
        if kind is None:
            break
        outcomes[value].append(kind)
    if min(map(len, outcomes.values())) < 3 or not (answers or len(kinds) > 1):
        raise DoesNotFit("the interface answered too few queries", name="target", refused=interface.refused)
    doubt = doubt_about_total(interface, np.array(answers), slack=1.0)  # the one person's row may be left out
    doubt = doubt or ("" if answers else UNANSWERED)
    tests = _tests(outcomes, tried[best], setting)
    corrected = replace(setting, confidence=1 - (1 - setting.confidence) / len(tests))
    hits, alarms = max(tests, key=lambda one: _bound(one[0], one[1], corrected))
    return _outcome(interface, corrected, hits, alarms, "how a query ends", doubt, outcomes=kinds)


def _tests(
    outcomes: dict[bool, list[str]], tried: tuple[str | None, str | None], setting: Setting
) -> list[tuple[Mask, Mask]]:
    """Return for people with the secret and without which of them end in some set of ways, for one or two such sets.

    One set is chosen on the first half of the people and tested on the second. The other is that in which the person
    with the secret ended on whom the provocation was tried, where the other person did not; it is tested on everybody.
    """
    found = measure(outcomes[True], outcomes[False], setting.delta, setting.confidence)
    chosen = (found.hits, found.alarms)
    if tried[0] == tried[1]:
        return [chosen]
    hits, alarms = (np.array([one == tried[0] for one in outcomes[value]]) for value in (True, False))
    return [(hits, alarms), chosen]


ANSWERED: Final = "answered"
UNANSWERED: Final = "no query was answered, so nothing shows that the interface is about these people"


def _outcome_class(interface: Interface, question: Question, answers: list[float]) -> str | None:
    """Return how a question ends: answered, or the code and message of an error; None if no more can be asked.

    Numbers and quoted texts of a message, which may name the person, are left out.
    """
    try:
        answer = interface.count(question)
    except Cancelled:
        raise
    except TacitError as error:
        return _described(error.code, error.message)
    except Exception as error:
        return _described(type(error).__name__, str(error))
    if interface.is_exhausted:
        return None
    if answer is not None:
        answers.append(answer)
        return ANSWERED
    assert interface.refused is not None
    return _described(f"refused {interface.refused.code}", interface.refused.message)


def _described(kind: str, message: str) -> str:
    return f"{kind}: {NAMING.sub('_', message)[:MESSAGE_MAX]}"


def _outcome(
    interface: Interface,
    setting: Setting,
    hits: Mask,
    alarms: Mask,
    channel: str,
    doubt: str,
    points: tuple[RocPoint, ...] = (),
    **details: Any,
) -> Outcome:
    """Return the outcome of a test of people with the secret (hits) against those without (alarms)."""
    tests = (int(hits.sum()), len(hits), int(alarms.sum()), len(alarms))
    delta, confidence = setting.delta, _confidence(setting)
    bound = _bound(hits, alarms, setting)
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


def _confidence(setting: Setting) -> float:
    return 1 - (1 - setting.confidence) / 2  # two directions


def _bound(hits: Mask, alarms: Mask, setting: Setting) -> float:
    """Return the lower bound on epsilon of a test in both directions."""
    return max(
        epsilon_of_counts(int(one.sum()), len(one), int(other.sum()), len(other), setting.delta, _confidence(setting))
        for one, other in ((hits, alarms), (~hits, ~alarms))
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
