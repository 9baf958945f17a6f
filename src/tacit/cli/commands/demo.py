"""`tacit demo`: a tour of the mechanisms on an invented clinic."""

from __future__ import annotations

from typing import Final

import click

from tacit.cli.kit import Command, Screen

PROTECTED: Final = (
    "Each patient, with everything the clinic knows of them: had any one of them been somebody else, an answer "
    "of cost ε 0.5 would be at most 1.65 times as likely. Only how many patients there are is public."
)

PYTHON: Final = """\
from fractions import Fraction
from tacit import Relation
from tacit.mechanisms import (
    Exponential, Geometric, Laplace, RandomizedResponse, SmoothMedian
)

one = Relation.REPLACE_ONE   # neighbours: somebody else in a person's place
count = Geometric(sensitivity=1, epsilon=0.5, relation=one)
answer = count.release(302)  # the true count in, a private one out
print(answer, count.interval(0.95, answer), count.event)

Laplace(200, 0.25, relation=one).release(147_377.5)              # a sum
Geometric(2, 0.5, relation=one).release([95, 305, 452])          # counts
Exponential(1, 0.1, relation=one).release([494, 419, 302])       # a choice
SmoothMedian(0.5, lower=0, upper=60).release([2.5, 4.0, 9.25])   # a median
RandomizedResponse(truth=Fraction(3, 4)).release([True, False])  # two coins
"""


@click.command("demo", cls=Command)
@click.option("--no-serve", is_flag=True, expose_value=False, help="End after the tour, as it does without a server.")
@click.pass_obj
def command(screen: Screen) -> None:
    """Take a tour of the mechanisms on an invented clinic.

    The people are the same in every run; the noise comes from the operating system and never repeats.
    """
    if screen.as_json:
        screen.show_object(_facts())
    else:
        _show(screen)


def _show(screen: Screen) -> None:
    from tacit.cli.tour import screen as view
    from tacit.cli.tour.clinic import invented_patients
    from tacit.cli.tour.stops import BUDGET_EPSILON, STOPS, averaging

    people = invented_patients()
    view.show_opening(screen.console, len(people), PROTECTED)
    epsilon_left = BUDGET_EPSILON
    for number, ask in enumerate(STOPS, start=1):
        stop = ask(people)
        epsilon_left -= stop.epsilon
        view.show_stop(screen.console, number, stop, epsilon_left)
    view.show_averaging(screen.console, averaging(people))
    view.show_next(screen.console, PYTHON)


def _facts() -> dict[str, object]:
    from dataclasses import asdict

    from tacit.cli.tour.clinic import invented_patients
    from tacit.cli.tour.stops import BUDGET_EPSILON, LEVEL, RELATION, STOPS, averaging

    people = invented_patients()
    stops = [ask(people) for ask in STOPS]
    spent = sum(stop.epsilon for stop in stops)
    return {
        "patients": len(people),
        "invented": True,
        "protected": PROTECTED,
        "relation": RELATION.value,
        "level": LEVEL,
        "stops": [asdict(stop) for stop in stops],
        "budget": {
            "epsilon": BUDGET_EPSILON,
            "spent": spent,
            "left": BUDGET_EPSILON - spent,
            "composition": "plain sum",
        },
        "averaging": asdict(averaging(people)),
        "python": PYTHON,
    }
