"""How the tour looks in a terminal: one question at a time, each as soon as it is answered.

The number of lines does not depend on the noise, and nothing needs more than 80 columns.
"""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.text import Text

from tacit.cli.tour.stops import BUDGET_EPSILON, Answer, Averaging, Stop, Value

WIDTH_MAX: Final = 100
INDENT: Final = "   "
LABEL_WIDTH: Final = 16
BAR_WIDTH: Final = 20
INVENTED: Final = "shown because these people are invented"


def show_opening(console: Console, patients: int, protected: str) -> None:
    """Say where we are, who is protected, and what may be spent."""
    console.print()
    console.print(Text.assemble(("tacit", "bold cyan"), f"  a tour on an invented clinic of {patients:,} patients\n"))
    _show_fact(console, "protected", Text(protected))
    _show_fact(console, "budget", Text(f"ε {BUDGET_EPSILON:g} for all answers below, whose costs are simply added up"))


def show_stop(console: Console, number: int, stop: Stop, epsilon_left: float) -> None:
    """Show one question, its answers beside the truth, and what they cost."""
    _show_heading(console, str(number), stop.question)
    if len(stop.answers) == 1:
        _show_fact(console, "private answer", _private(stop.answers[0], stop.unit))
        _show_fact(console, "true value", _true(stop.answers[0].truth, stop.unit))
    else:
        _show_fact(console, "private answers", _chart(stop.answers))
        _show_fact(console, "true values", Text(INVENTED, "dim"))
    _show_fact(console, "why private", Text(stop.why))
    _show_fact(console, "cost", _cost(stop.epsilon, epsilon_left))


def show_averaging(console: Console, attack: Averaging) -> None:
    """Show why a budget exists."""
    _show_heading(console, "!", f"The first question {attack.times_asked:,} times over, with fresh noise each time")
    _show_fact(console, "their average", Text(f"{attack.average:.2f}", "bold red"))
    _show_fact(console, "true value", _true(attack.truth))
    lesson = (
        f"The noise averages out and the truth is left. So many answers cost ε {attack.epsilon_total:,.0f}; "
        f"a budget of ε {BUDGET_EPSILON:g} pays for {attack.within_budget} of them, and that is why one exists."
    )
    _show_fact(console, "lesson", Text(lesson))


def show_next(console: Console, python: str) -> None:
    """Show the lines of Python that do the same."""
    _show_heading(console, "→", "Next: the same in Python")
    for line in python.splitlines():
        console.print(Text(f"{INDENT}{line}".rstrip()), soft_wrap=True)
    console.print()


def _show_heading(console: Console, mark: str, text: str) -> None:
    console.print()
    console.print(Text.assemble((f"{mark:>2} ", "bold cyan"), (text, "bold")))


def _show_fact(console: Console, label: str, fact: Text) -> None:
    width = min(console.width, WIDTH_MAX) - len(INDENT) - LABEL_WIDTH
    for line in fact.wrap(console, width):
        line.rstrip()
        console.print(Text.assemble(INDENT, (label.ljust(LABEL_WIDTH), "dim"), line), soft_wrap=True)
        label = ""


def _private(answer: Answer, unit: str) -> Text:
    shown = Text.assemble((_figure(answer.answer, unit), "bold cyan"))
    if answer.low is not None and answer.high is not None:
        shown.append(f" ± {_half_width(answer)}")
        shown.append(f"   95 % interval {_figure(answer.low)} to {_figure(answer.high)}", "dim")
    return shown


def _true(truth: Value, unit: str = "") -> Text:
    return Text.assemble(_figure(truth, unit), (f"   {INVENTED}", "dim"))


def _chart(answers: tuple[Answer, ...]) -> Text:
    longest = max(1, *(int(answer.answer) for answer in answers))
    chart = Text()
    for answer in answers:
        bar = "█" * round(BAR_WIDTH * max(0, int(answer.answer)) / longest)
        chart.append(f"{answer.label:>5} ", "dim")
        chart.append(f"{bar:{BAR_WIDTH}} ", "cyan")
        chart.append(f"{answer.answer:>4}", "bold cyan")
        chart.append(f" ± {_half_width(answer)}")
        chart.append(f"   true {answer.truth:>4}\n", "dim")
    chart.rstrip()
    return chart


def _cost(epsilon: float, epsilon_left: float) -> Text:
    filled = round(BAR_WIDTH * max(0.0, epsilon_left) / BUDGET_EPSILON)
    return Text.assemble(
        f"ε {epsilon:.2f}",
        (f"   left of ε {BUDGET_EPSILON:g} ", "dim"),
        ("█" * filled, "green"),
        ("░" * (BAR_WIDTH - filled), "dim"),
        f" {epsilon_left:.2f}",
    )


def _half_width(answer: Answer) -> str:
    half = ((answer.high or 0) - (answer.low or 0)) / 2
    return str(int(half)) if isinstance(answer.answer, int) else f"{half:.2g}"


def _figure(value: Value, unit: str = "") -> str:
    shown = f"{value:#.3g}" if isinstance(value, float) else str(value)
    return f"{shown} {unit}" if unit else shown
