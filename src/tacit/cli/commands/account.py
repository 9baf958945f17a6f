"""`tacit account`: what events cost, the noise for a target, and what a cost means to an attacker."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.groups import Group
from tacit.cli.output import Fact, Screen

if TYPE_CHECKING:
    from tacit.cli.accounting import Answer
    from tacit.privacy.events import Event

PRIORS: Final = (0.01, 0.1, 0.5)
RELATIONS: Final = ("add-remove", "replace-one")
OPERATORS: Final = (
    ("N x EVENT", "The event N times over, each time with fresh randomness on the same data."),
    ("EVENT + EVENT", "Several events on the same data, one after another."),
)


class NotationGroup(Group):
    """A group whose help ends with how events are written."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from tacit.privacy.notation import signatures

        with formatter.section("Events"):
            formatter.write_dl([*OPERATORS, *signatures()])


@click.group("account", cls=NotationGroup)
def command() -> None:
    """Compute what releases cost, and what that means to an attacker.

    An event is what was released, or is planned:

    \b
      "1000 x sampled(0.01, gaussian(1))"    a thousand steps on Poisson samples
      "gaussian(2) + 10 x laplace(0.1)"      eleven releases on the same data
      "sampled(256/60000, gaussian(?))"      ? is what calibrate looks for

    Bounds hold for plans, whose parameters were fixed before the data was touched. Upper bounds are shown rounded up
    and lower bounds rounded down; with --json all digits are there, and null where no finite bound is known.
    """


def _checked(_context: click.Context, _option: click.Parameter, plot: Path | None) -> Path | None:
    """Refuse a plot that cannot be drawn before anything is computed."""
    if plot is not None:
        from tacit.report import check_target

        check_target(plot)
    return plot


_DELTA: Final = click.option("--delta", type=float, required=True, help="The delta at which epsilon is wanted.")
_PLOT: Final = click.option(
    "--plot", type=click.Path(path_type=Path), callback=_checked, help="Also save a plot to this .svg or .png file."
)
_FILE: Final = click.option(
    "--file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Compose the events of a file instead, one a line, as JSON or in the notation; - is standard input.",
)
_RELATION: Final = click.option(
    "--relation",
    type=click.Choice(RELATIONS),
    help="Which data sets are neighbours, for all events in the notation; the usual one of each unless stated.",
)


def _about_a_plan(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which event it is about, and hand it the event as `plan`."""

    @wraps(function)
    def wrapped(*screen: Screen, event: str | None, file: Path | None, relation: str | None, **settings: Any) -> None:
        from tacit.cli.accounting import read_events

        function(*screen, plan=read_events(event, file, relation), **settings)

    return click.argument("event", required=False)(_FILE(_RELATION(click.pass_obj(wrapped))))


@command.command("epsilon")
@_DELTA
@_PLOT
@_about_a_plan
def epsilon_command(screen: Screen, plan: Event, delta: float, plot: Path | None) -> None:
    """Find epsilon at a delta.

    The plot is the privacy curve: delta at every epsilon.
    """
    from tacit.accounting import meaning
    from tacit.cli.accounting import CostAnswer
    from tacit.report import privacy_curve, save

    worth = meaning(plan, delta)
    if plot is not None:
        save(privacy_curve(plan, worth.epsilon.upper, delta), plot)
    _show(screen, CostAnswer("delta", delta, "epsilon", worth.epsilon, worth), plot)


@command.command("delta")
@click.option("--epsilon", type=float, required=True, help="The epsilon at which delta is wanted.")
@_PLOT
@_about_a_plan
def delta_command(screen: Screen, plan: Event, epsilon: float, plot: Path | None) -> None:
    """Find delta at an epsilon.

    The plot is the privacy curve: delta at every epsilon.
    """
    from tacit.accounting import Bound, Meaning, delta
    from tacit.cli.accounting import CostAnswer
    from tacit.report import privacy_curve, save

    bound = delta(plan, epsilon)
    if plot is not None:
        save(privacy_curve(plan, epsilon, bound.upper), plot)
    worth = Meaning(plan, bound.upper, Bound(0.0, epsilon, "given"))
    _show(screen, CostAnswer("epsilon", epsilon, "delta", bound, worth), plot)


@command.command("calibrate")
@click.option("--epsilon", type=float, required=True, help="What the event may cost.")
@click.option("--delta", type=float, required=True, help="The delta at which it may.")
@_RELATION
@click.argument("event")
@click.pass_obj
def calibrate_command(screen: Screen, epsilon: float, delta: float, relation: str | None, event: str) -> None:
    """Find the noise, or another parameter, for a target.

    It stands as ? in the event, as in "100 x gaussian(?)"; several ? stand for the same number. The cost has to rise or
    to fall with it.
    """
    from tacit.accounting import calibrate, meaning
    from tacit.cli.accounting import CalibrationAnswer, event_template, rounded_parameter

    make = event_template(event, relation)
    found = calibrate(make, epsilon, delta)
    if screen.as_json:
        parameter, worth = found, meaning(make(found), delta)
    else:
        parameter, worth = rounded_parameter(make, found, epsilon, delta)
    _show(screen, CalibrationAnswer(event, parameter, epsilon, worth))


@command.command("meaning")
@_DELTA
@click.option(
    "--prior",
    "priors",
    type=float,
    multiple=True,
    default=PRIORS,
    show_default=True,
    help="What an attacker believes beforehand, as a probability; may be given several times.",
)
@_PLOT
@_about_a_plan
def meaning_command(screen: Screen, plan: Event, delta: float, priors: tuple[float, ...], plot: Path | None) -> None:
    """Say what an attacker can gain, at most.

    FPR is the share of the people who are not in the data that an attack accuses, TPR the share of those who are in it
    that it finds. The plot is the trade-off between the two.
    """
    from tacit.accounting import meaning
    from tacit.cli.accounting import MeaningAnswer
    from tacit.report import save, trade_off

    worth = meaning(plan, delta)
    if plot is not None:
        save(trade_off(worth), plot)
    _show(screen, MeaningAnswer(worth, priors), plot)


@command.command("compare")
@_DELTA
@_about_a_plan
def compare_command(screen: Screen, plan: Event, delta: float) -> None:
    """Show all accountants side by side.

    Every one of them is a true bound; the other commands take the best. For Gaussian releases the chain of theorems
    that textbooks teach is among them, with a note where its condition fails.
    """
    from tacit.accounting import compare
    from tacit.cli.accounting import bound_object, plan_object
    from tacit.privacy.figures import at_most

    bounds = compare(plan, delta)
    if screen.as_json:
        screen.show_object({**plan_object(plan), "delta": delta, "bounds": [bound_object(bound) for bound in bounds]})
    else:
        screen.show_table(
            ("accountant", "epsilon, at most"), [(bound.method, at_most(bound.upper)) for bound in bounds]
        )


def _show(screen: Screen, answer: Answer, plot: Path | None = None) -> None:
    if screen.as_json:
        drawn = {} if plot is None else {"plot": str(plot)}
        screen.show_object({**answer.to_dict(), **drawn})
    else:
        facts = [] if plot is None else [Fact("plot", str(plot))]
        screen.show_facts([*answer.facts(), *facts])
