"""`tacit account`: the cost of events, calibration of noise, and what a cost means for an attacker."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.groups import Group, add_format_option
from tacit.cli.options import plot_option
from tacit.cli.output import Fact, Screen

if TYPE_CHECKING:
    from tacit.cli.accounting import AccountAnswer
    from tacit.privacy.events import Event

PRIORS: Final = (0.01, 0.1, 0.5)
RELATIONS: Final = ("add-remove", "replace-one")
OPERATORS: Final = (
    ("N x EVENT", "The event N times on the same data, each time with fresh randomness."),
    ("EVENT + EVENT", "Several events on the same data, one after another."),
)


class NotationGroup(Group):
    """A group whose help ends with the notation of events."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from tacit.privacy.notation import signatures

        with formatter.section("Events"):
            formatter.write_dl([*OPERATORS, *signatures()])


@click.group("account", cls=NotationGroup)
def command() -> None:
    """Compute the privacy cost of releases, and what it means.

    An event describes a release that was made or is planned:

    \b
      "1000 x sampled(0.01, gaussian(1))"    1000 steps on Poisson samples
      "gaussian(2) + 10 x laplace(0.1)"      11 releases on the same data
      "sampled(256/60000, gaussian(?))"      calibrate finds the value of ?

    Bounds hold for plans whose parameters were fixed before the data were used. Upper bounds are rounded up and lower
    bounds down; --json shows all digits, and null where no finite bound is known.
    """


_DELTA: Final = click.option("--delta", type=float, required=True, help="The delta at which to compute epsilon.")
_FILE: Final = click.option(
    "--file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Compose the events of a file, one per line, in the notation or as JSON; - reads standard input.",
)
_RELATION: Final = click.option(
    "--relation",
    type=click.Choice(RELATIONS),
    help="Neighbouring relation of events in the notation; each kind of event has its default.",
)


def _event_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that state an event to a command, which receives the event as `plan`."""

    @wraps(function)
    def wrapped(*screen: Screen, event: str | None, file: Path | None, relation: str | None, **settings: Any) -> None:
        from tacit.cli.accounting import read_events

        function(*screen, plan=read_events(event, file, relation), **settings)

    return click.argument("event", required=False)(_FILE(_RELATION(click.pass_obj(wrapped))))


@command.command("epsilon")
@_DELTA
@plot_option
@_event_options
def epsilon_command(screen: Screen, plan: Event, delta: float, plot: Path | None) -> None:
    """Compute epsilon at a given delta.

    --plot draws the privacy curve: delta as a function of epsilon.
    """
    from tacit.accounting import meaning
    from tacit.cli.accounting import CostAnswer
    from tacit.report import privacy_curve, save

    worth = meaning(plan, delta)
    if plot is not None:
        save(privacy_curve(plan, worth.epsilon.upper, delta), plot)
    _show(screen, CostAnswer("delta", delta, "epsilon", worth.epsilon, worth), plot)


@command.command("delta")
@click.option("--epsilon", type=float, required=True, help="The epsilon at which to compute delta.")
@plot_option
@_event_options
def delta_command(screen: Screen, plan: Event, epsilon: float, plot: Path | None) -> None:
    """Compute delta at a given epsilon.

    --plot draws the privacy curve: delta as a function of epsilon.
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
@click.option("--epsilon", type=float, required=True, help="The target epsilon.")
@click.option("--delta", type=float, required=True, help="The target delta.")
@_RELATION
@click.argument("event")
@click.pass_obj
def calibrate_command(screen: Screen, epsilon: float, delta: float, relation: str | None, event: str) -> None:
    """Find the noise scale, or another parameter, for a target.

    Write ? for the parameter, as in "100 x gaussian(?)"; several ? have the same value. The cost must increase or
    decrease with the parameter.
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
    help="Probability that an attacker assigns to a statement beforehand; can be repeated.",
)
@plot_option
@_event_options
def meaning_command(screen: Screen, plan: Event, delta: float, priors: tuple[float, ...], plot: Path | None) -> None:
    """Show how much an attacker can gain at most.

    For an attack that guesses whether a person is in the data: FPR is its false positive rate, TPR its true positive
    rate. --plot draws the trade-off between them.
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
@add_format_option
@_event_options
def compare_command(screen: Screen, plan: Event, delta: float) -> None:
    """Compare the bounds of all accountants.

    All bounds are valid; the other commands use the best. For Gaussian noise, the classical theorems of textbooks are
    included, with a note where their condition does not hold.
    """
    from tacit.accounting import compare
    from tacit.cli.accounting import bound_object, plan_object
    from tacit.privacy.figures import at_most

    bounds = compare(plan, delta)
    if screen.as_json:
        screen.show_object({**plan_object(plan), "delta": delta, "bounds": [bound_object(bound) for bound in bounds]})
    else:
        screen.show_records(
            ("accountant", "epsilon at most"), [(bound.method, at_most(bound.upper)) for bound in bounds]
        )


def _show(screen: Screen, answer: AccountAnswer, plot: Path | None = None) -> None:
    if screen.as_json:
        drawn = {} if plot is None else {"plot": str(plot)}
        screen.show_object({**answer.to_dict(), **drawn})
    else:
        facts = [] if plot is None else [Fact("plot", str(plot))]
        screen.show_facts([*answer.facts(), *facts])
