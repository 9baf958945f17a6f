"""The way of one question: preview, consent, answer; and what holds for the next one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tacit.cli.kit import Fact, Screen
from tacit.cli.prompt.answers import Answers, Previewed
from tacit.cli.questions import showing
from tacit.cli.questions.waiting import apart, progress_on
from tacit.privacy.errors import InvalidInput
from tacit.privacy.figures import at_least, exactly

if TYPE_CHECKING:
    from tacit.query.explain import Line

T = TypeVar("T")

PRICES: Final = ("epsilon", "rho", "error")
SYMBOLS: Final = {"epsilon": "ε ", "rho": "ρ ", "error": "± "}
YES: Final = ("", "y", "yes")


@dataclass
class Asking:
    """What holds for the next question; dot commands change it."""

    answers: Answers
    screen: Screen
    consent: Callable[[], str]
    """Asks whoever types whether to go on; returns what was typed."""
    asked: dict[str, Any] = field(default_factory=dict)
    """The price and the rest of a question, as `tacit sql` has them."""
    analyst: str | None = None
    purpose: str = ""
    level: float = 0.95
    timeout_s: float | None = None
    is_confirmed: bool = True
    shows_card: bool = False
    card: str = ""
    """The card of the last answer."""

    @property
    def price(self) -> str:
        """What the next question may cost, in words; empty if that was not said."""
        stated = [name for name in PRICES if self.asked.get(name) is not None]
        return f"{SYMBOLS[stated[0]]}{exactly(self.asked[stated[0]])}" if stated else ""

    def set_price(self, name: str, value: float) -> None:
        """Let the next questions cost so much; what was said before no longer holds."""
        self.asked |= {**dict.fromkeys(PRICES), name: value}

    def require_price(self) -> None:
        """Refuse to choose a price for somebody."""
        if not self.price:
            raise InvalidInput(
                "say first what a question may cost: .epsilon, .rho or .error, and a number",
                name="epsilon",
            )

    def ask(self, sql: str) -> None:
        """Preview a question and, if that is wanted, ask it and show the answer."""
        self.require_price()
        if self.is_confirmed:
            self.say(in_one_line(self.previewed(sql)))
            if self.consent().strip().lower() not in YES:
                self.say("dropped; nothing was spent")
                return
        with progress_on(self.screen) as progress:
            answer = self.patiently(
                lambda: self.answers.sql(
                    sql,
                    self.asked,
                    self.analyst,
                    purpose=self.purpose,
                    timeout_s=self.timeout_s,
                    progress=progress,
                )
            )
        self.card = answer.card
        self.show(answer, self.answers.explain(sql, self.asked))

    def previewed(self, sql: str) -> Previewed:
        """Return what a question would cost."""
        self.require_price()
        return self.patiently(lambda: self.answers.preview(sql, self.asked, self.analyst))

    def show(self, answer: showing.Answer, lines: Sequence[Line]) -> None:
        """Show an answer as `tacit sql` does; `lines` say how it was made."""
        self.screen.show_table(answer.columns, showing.table_rows(answer, self.level))
        if self.screen.console.is_terminal:
            remaining = self.answers.remaining(answer.datasets, self.analyst)
            self.screen.show_facts(showing.after(answer, remaining, lines))
        if self.shows_card:
            self.say(answer.card)

    def say(self, sentence: str) -> None:
        """Write a sentence."""
        self.screen.console.print(sentence, soft_wrap=True)

    def patiently(self, work: Callable[[], T]) -> T:
        """Do something that Ctrl-C may stop."""
        return apart(work, self.answers.cancel)


def in_one_line(previewed: Previewed) -> str:
    """Return the price, the expected half-widths and what is left, on one line."""
    preview = previewed.preview
    price = f"costs {showing.cost_in_words(preview)}"
    return "; ".join([price, *_widths(preview.widths), f"left {left_in_words(previewed)}"])


def left_in_words(previewed: Previewed) -> str:
    """Return what is left of each budget that would pay."""
    return ", ".join(f"ε {at_least(cost.epsilon)} on {name}" for name, cost in previewed.remaining.items())


def preview_facts(previewed: Previewed) -> list[Fact]:
    """Return a preview as facts, one a line."""
    preview = previewed.preview
    facts = [Fact("cost", showing.cost_in_words(preview), True)]
    facts += showing.plan_facts(preview.lines)
    facts += [Fact(name, _width(width)) for name, width in preview.widths.items()]
    return [*facts, Fact("left", left_in_words(previewed))]


def _widths(widths: Mapping[str, float | None]) -> list[str]:
    shown = ", ".join(f"{name} {_width(width)}" for name, width in widths.items())
    return [shown] if shown else []


def _width(width: float | None) -> str:
    return "± depends on the data" if width is None else f"± {width:,.4g}"
