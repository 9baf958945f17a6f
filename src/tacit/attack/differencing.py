"""Differencing: two counts that differ by one person tell that person's secret, whatever the least group size is.

differencing   everybody, and everybody but the person
averaging      the same difference again and again, in several spellings of the same condition; noise that is drawn anew
               without a charge averages out (Asghar, Kaafar 2020). All answers about everybody are one mean
linear_sql     counts over subsets that a condition of SQL selects by arithmetic on the ids, which passes for harmless,
               and a reconstruction from them (Cohen, Nissim 2018, against Diffix)
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.attack.finding import Measurement, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack, stated
from tacit.attack.linear_reconstruction import Subsets, decode, decoded_share, linear_estimates
from tacit.attack.query_interface import Interface, QueryInterface, Question
from tacit.attack.secret_scoring import exact_counts, score, simulated, twins, worst
from tacit.attack.targets import DoesNotFit, Mask, Numbers

TARGETS: Final = (30, 100, 500)
"""How many people are attacked, by effort."""
REPEATS: Final = (10, 50, 200)
"""How often averaging asks about each of them, by effort."""
SPELLINGS: Final = 5
MODULUS_MIN, MODULUS_MAX = 2**12, 2**31
"""Of the arithmetic that selects subsets: as large as products of ids and factors stay whole numbers of 53 bits."""
_ACCESS: Final = "counts of subsets"


def _everybody(target: QueryInterface) -> Question:
    return Question(np.ones(target.people, dtype=bool))


def _all_but(target: QueryInterface, person: int, spelling: int = 0) -> Question:
    """Return the question about everybody but one; spellings differ in words alone."""
    mask = np.ones(target.people, dtype=bool)
    mask[person] = False
    if not target.is_sql:
        return Question(mask)
    name, unit = target.literal(stated(target.ids, "ids")[person]), target.unit
    spellings = (
        f"{unit} <> {name}",
        f"NOT ({unit} = {name})",
        f"{unit} < {name} OR {unit} > {name}",
        f"NOT ({unit} IN ({name}))",
        f"CASE WHEN {unit} = {name} THEN FALSE ELSE TRUE END",
    )
    assert len(spellings) == SPELLINGS
    return Question(mask, spellings[spelling])


@attack(
    "differencing",
    QueryInterface,
    paper="Denning 1980",
    summary="one person's secret as the difference of two counts",
    uses_prior=True,
)
def difference(target: QueryInterface, setting: Setting) -> Outcome:
    """Guess the secrets of some people, each from two counts."""
    return _differences(target, setting, repeats=1)


@attack(
    "averaging",
    QueryInterface,
    paper="Asghar, Kaafar 2020; Denning 1980",
    summary="the same difference many times, in several spellings",
    uses_prior=True,
)
def average(target: QueryInterface, setting: Setting) -> Outcome:
    """Guess the secrets of some people from the mean of repeated differences."""
    return _differences(target, setting, repeats=setting.scaled(*REPEATS))


def _differences(target: QueryInterface, setting: Setting, repeats: int) -> Outcome:
    chosen = min(target.people, setting.scaled(*TARGETS))
    interface = target.open(setting.random, 2 * repeats * chosen, 2 * repeats)
    people = setting.random.permutation(target.people)[:chosen]
    everybody, questions = _everybody(target), list[Question]()
    for person in people:
        spelled = [_all_but(target, int(person), spelling) for spelling in range(min(repeats, SPELLINGS))]
        for repeat in range(repeats):
            questions += [everybody, spelled[repeat % SPELLINGS]]
    answers = interface.counts(questions)
    done = len(answers) // (2 * repeats)
    if not done:
        raise DoesNotFit(
            "the interface answered too few queries to attack one person",
            name="target",
            refused=interface.refused,
        )
    people, used = people[:done], questions[: 2 * repeats * done]

    def differences(found: Numbers) -> Numbers:
        pairs = found[: 2 * repeats * done].reshape(done, repeats, 2)
        all_of_them = pairs[:, :, 0] if repeats == 1 else pairs[:, :, 0].mean()
        return np.asarray((all_of_them - pairs[:, :, 1]).mean(axis=1))

    def guess(found: Numbers) -> Mask:
        return differences(found) > 0.5

    found = differences(answers)
    planted, (null, _) = twins(interface, exact_counts(used), setting, guess)
    pairs = answers[: 2 * repeats * done].reshape(done, repeats, 2)
    scored = score(
        interface, guess(answers), planted, (null, interface.truth[people]), setting, people,
        estimates=found, everybody=float(pairs[0, 0, 0]),
        share_at=simulated(
            interface, setting, exact_counts(used)(interface.truth), guess, interface.truth[people],
            _repeated(people, repeats, answers),
        ),
    )  # fmt: skip
    errors = found - interface.truth[people]
    return Outcome(
        ThreatModel(_ACCESS, "who the people are", interface.asked),
        (
            scored.measurement,
            Measurement("standard deviation of a difference", float(errors.std()), key="difference_deviation"),
            Measurement(
                "answers that differ when the query is repeated", _fresh(pairs, repeats), key="repeated_answers_differ"
            ),
        ),
        scored.lower_bound,
        scored.method,
        scored.power,
        worst=worst(interface, _spread(interface, people, guess(answers)), _spread_numbers(interface, people, found)),
        assumptions=scored.assumptions,
        details={"people": done, "repeats": repeats, "refusal": interface.refusal},
    )


def _repeated(people: NDArray[np.int64], repeats: int, answers: Numbers) -> NDArray[np.int64]:
    """Return the number of the noise in each answer: answers that are equal and about the same people share one."""
    asked = np.stack([np.full((len(people), repeats), -1), np.repeat(people[:, None], repeats, 1)], axis=2).ravel()
    distinct = np.unique(np.column_stack([asked, answers[: len(asked)]]), axis=0, return_inverse=True)
    return np.asarray(distinct[1]).ravel()


def _fresh(pairs: np.ndarray[Any, Any], repeats: int) -> float:
    """Return the share of repeated questions whose answer is not the one before."""
    return 0.0 if repeats == 1 else float((np.diff(pairs, axis=1) != 0).mean())


def _spread(interface: Interface, people: np.ndarray[Any, Any], guessed: Mask) -> Mask:
    """Return guesses about some people as guesses about all, wrong for everybody else."""
    found = ~interface.truth
    found[people] = guessed
    return found


def _spread_numbers(interface: Interface, people: np.ndarray[Any, Any], numbers: Numbers) -> Numbers:
    found = np.zeros(len(interface.truth))
    found[people] = np.abs(numbers - 0.5)
    return found


def _whole_ids(target: QueryInterface) -> list[int]:
    """Return the ids, or raise DoesNotFit unless arithmetic on them is the same in every database and in Python.

    The sign of a remainder is not, nor are products that 64 bits, or the digits of a double, do not hold.
    """
    written = stated(target.ids, "ids")
    try:
        ids = [int(one) for one in written]
    except (TypeError, ValueError, OverflowError):
        ids = []
    if len(ids) < len(written) or any(
        one not in (number, str(number)) for one, number in zip(written, ids, strict=True)
    ):
        raise DoesNotFit("linear_sql needs ids that are whole numbers", name="ids")
    if min(ids) < 0 or max(ids) >= 2**53 // MODULUS_MIN - 1:
        raise DoesNotFit(f"linear_sql needs ids from 0 to {2**53 // MODULUS_MIN - 2:,}", name="ids")
    return ids


def _pseudorandom(ids: NDArray[np.int64], unit: str | None, random: np.random.Generator) -> Question:
    """Return the count of a subset in which each id is with probability 1/2, and two ids are both or neither so, too.

    Factor and shift are uniform below the modulus, so the distance of two ids is; the modulus is drawn, too, so that
    no two ids are equal under all of them.
    """
    largest = min(MODULUS_MAX, 2**53 // (int(ids.max()) + 2))
    modulus = int(random.integers(largest // 2, largest, endpoint=True))
    factor, shift = (int(one) for one in random.integers(0, modulus, 2))
    mask = (ids * factor + shift) % modulus < modulus // 2
    return Question(mask, f"({unit} * {factor} + {shift}) % {modulus} < {modulus // 2}")


@attack(
    "linear_sql",
    QueryInterface,
    paper="Cohen, Nissim 2018",
    summary="secrets from counts over subsets that arithmetic on ids selects",
    needs=("table",),
    uses_prior=True,
)
def decode_sql(target: QueryInterface, setting: Setting) -> Outcome:
    """Ask counts of pseudorandom subsets by arithmetic on ids, and decode them."""
    ids = np.array(_whole_ids(target), dtype=np.int64)
    wanted = 4 * target.people + 1
    interface = target.open(setting.random, wanted, target.people // 2 + 1)
    questions = [_everybody(target)]
    questions += [_pseudorandom(ids, target.unit, setting.random) for _ in range(wanted - 1)]
    answers = interface.counts(questions)
    if len(answers) <= target.people // 2:
        raise DoesNotFit(
            "the interface answered too few queries for a reconstruction",
            name="target",
            refused=interface.refused,
        )
    subsets = Subsets.of(np.array([one.people for one in questions[: len(answers)]]))

    def solve(found: Numbers) -> Mask:
        return decode(subsets, found) > 0.5

    guessed = solve(answers)
    planted, null = twins(interface, subsets.sums, setting, solve)
    scored = score(
        interface, guessed, planted, null, setting,
        estimates=linear_estimates(subsets, answers), everybody=float(answers[0]),
        share_at=decoded_share(interface, setting, subsets),
    )  # fmt: skip
    deviation = float((answers - subsets.sums(interface.truth)).std())
    return Outcome(
        ThreatModel("counts in SQL", "the ids of the people", interface.asked),
        (scored.measurement, Measurement("standard deviation of the noise", deviation, key="noise_deviation")),
        scored.lower_bound,
        scored.method,
        scored.power,
        assumptions=scored.assumptions,
        details={"people": target.people, "counts": len(answers), "refusal": interface.refusal},
    )
