"""One session of the prompt: the settings of the next query, its preview, confirmation and answer, and dot commands.

No dot command spends anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tacit.cli import rendering
from tacit.cli.backends import Backend
from tacit.cli.output import Fact, Screen, progress_bar
from tacit.pipeline.interrupts import shielded
from tacit.privacy.errors import InvalidInput, NotInCatalog
from tacit.privacy.figures import at_least, exactly
from tacit.privacy.numbers import DEFAULT_LEVEL, positive

if TYPE_CHECKING:
    from tacit.query import Preview
    from tacit.query.explain import Line


T = TypeVar("T")
PRICES: Final = ("epsilon", "rho", "error")
SYMBOLS: Final = {"epsilon": "ε ", "rho": "ρ ", "error": "± "}
YES: Final = ("", "y", "yes")


@dataclass
class Session:
    """What holds for the next question; dot commands change it."""

    backend: Backend
    screen: Screen
    confirm: Callable[[], str]
    """Asks whoever types whether to go on; returns what was typed."""
    asked: dict[str, Any] = field(default_factory=dict)
    """The price and the rest of a question, as `tacit sql` has them."""
    analyst: str | None = None
    purpose: str = ""
    level: float = DEFAULT_LEVEL
    timeout_s: float | None = None
    asks_confirmation: bool = True
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
                "set a price first: .epsilon, .rho or .error with a number",
                name="epsilon",
            )

    def ask(self, sql: str) -> None:
        """Preview a question and, if that is wanted, ask it and show the answer."""
        self.require_price()
        if self.asks_confirmation:
            self.say(preview_line(self.previewed(sql)))
            if self.confirm().strip().lower() not in YES:
                self.say("not run; nothing was charged")
                return
        with progress_bar(self.screen) as progress:
            answer = self.interruptible(
                lambda: self.backend.sql(
                    sql,
                    self.asked,
                    self.analyst,
                    purpose=self.purpose,
                    timeout_s=self.timeout_s,
                    progress=progress,
                )
            )
        self.card = answer.card
        self.show(answer, self.backend.explain(sql, self.asked))

    def previewed(self, sql: str) -> Preview:
        """Return what a question would cost."""
        self.require_price()
        return self.interruptible(lambda: self.backend.preview(sql, self.asked, self.analyst))

    def show(self, answer: rendering.Answer, lines: Sequence[Line]) -> None:
        """Show an answer as `tacit sql` does; `lines` say how it was made."""
        self.screen.show_table(answer.columns, rendering.table_rows(answer, self.level))
        if self.screen.console.is_terminal:
            remaining = self.backend.remaining(answer.datasets, self.analyst)
            self.screen.show_facts(rendering.answer_facts(answer, remaining, lines))
        if self.shows_card:
            self.say(answer.card)

    def say(self, sentence: str) -> None:
        """Write a sentence."""
        self.screen.console.print(sentence, soft_wrap=True)

    def interruptible(self, work: Callable[[], T]) -> T:
        """Do something that Ctrl-C may stop."""
        return shielded(work, self.backend.cancel)


def preview_line(preview: Preview) -> str:
    """Return the price, the expected half-widths and what is left, on one line."""
    price = f"costs {rendering.cost_text(preview)}"
    parts = [price, *_widths(preview.widths), f"left {remaining_text(preview)}"]
    return "; ".join(parts if preview.fits else [*parts, f"does not fit: {preview.refusal}"])


def remaining_text(preview: Preview) -> str:
    """Return what is left of each budget that would pay."""
    return ", ".join(f"ε {at_least(cost.epsilon)} on {name}" for name, cost in preview.remaining.items())


def preview_facts(preview: Preview) -> list[Fact]:
    """Return a preview as facts, one a line."""
    facts = [Fact("cost", rendering.cost_text(preview), True), *rendering.budget_facts(preview)]
    facts += rendering.plan_facts(preview.lines)
    return [*facts, *(Fact(name, _width(width)) for name, width in preview.widths.items())]


def _widths(widths: Mapping[str, float | None]) -> list[str]:
    shown = ", ".join(f"{name} {_width(width)}" for name, width in widths.items())
    return [shown] if shown else []


def _width(width: float | None) -> str:
    return "± depends on the data" if width is None else f"± {width:,.4g}"


class ExitRequested(Exception):
    """Whoever types wants to leave."""


@dataclass(frozen=True, slots=True)
class Command:
    """What follows the command's name, what it does in a few words, and how."""

    takes: str
    does: str
    run: Callable[[Session, str], None]


def run_dot_command(session: Session, line: str) -> None:
    """Do what a command says."""
    name, _, rest = line.strip().removesuffix(";").strip().partition(" ")
    if name not in COMMANDS:
        raise InvalidInput(f"there is no command {name}; .help lists them", name="command", value=name)
    COMMANDS[name].run(session, rest.strip())


def _help(session: Session, _rest: str) -> None:
    facts = [Fact(f"{name} {one.takes}".strip(), one.does) for name, one in COMMANDS.items()]
    session.screen.show_facts([*facts, Fact("SELECT ... ;", "preview a query, and run it after you confirm it")])


def _tables(session: Session, _rest: str) -> None:
    from tacit.cli.catalog_rendering import protects, shown

    tables = session.backend.tables()
    if not tables:
        session.say("no table was added yet")
        return
    rows = [
        (shown(one.name), protects(one), one.dataset if one.is_private else "", str(len(one.columns))) for one in tables
    ]
    session.screen.show_table(("table", "protects", "budget", "columns"), rows)


def _describe(session: Session, rest: str) -> None:
    from tacit.cli.catalog_rendering import facts_text, protects, shown

    name = rest.strip('"')
    found = [one for one in session.backend.tables() if one.name.lower() == name.lower()]
    if not found:
        raise NotInCatalog(
            f"there is no table {name}; .tables lists them" if name else "name a table: .describe visits"
        )
    session.say(f"{shown(found[0].name)} protects {protects(found[0])}")
    rows = [
        (shown(one.name), one.kind.value, facts_text(one), "" if one.nullable else "never missing")
        for one in found[0].columns
    ]
    session.screen.show_table(("column", "kind", "stated", ""), rows)


def _budget(session: Session, _rest: str) -> None:
    from tacit.cli.catalog_rendering import show_budgets

    show_budgets(session.screen, session.backend.budgets())


def _price(session: Session, rest: str, *, name: str) -> None:
    if rest:
        try:
            value = float(rest)
        except ValueError:
            raise InvalidInput(f"{name} is a number, as in .{name} 0.5", name=name, value=rest) from None
        session.set_price(name, float(positive(name, value)))
    session.say(f"each query may cost {session.price}" if session.price else "no price is set")


def _analyst(session: Session, rest: str) -> None:
    if rest:
        session.backend.require_analyst(rest)
    session.analyst = rest or None
    session.say(
        f"{rest} asks; their own budget is charged as well" if rest else "no analyst: only the data set is charged"
    )


def _preview(session: Session, rest: str) -> None:
    session.screen.show_facts(preview_facts(session.previewed(rest)))


def _explain(session: Session, rest: str) -> None:
    session.require_price()
    lines = session.interruptible(lambda: session.backend.explain(rest, session.asked))
    session.screen.show_facts([Fact(line.label, line.text) for line in lines])


def _card(session: Session, _rest: str) -> None:
    session.say(session.card or "no query was answered yet")


def _confirm(session: Session, rest: str) -> None:
    if rest not in ("on", "off", ""):
        raise InvalidInput("type .confirm on or .confirm off", name="confirm", value=rest)
    session.asks_confirmation = rest == "on" if rest else session.asks_confirmation
    session.say(
        "every query is previewed, and runs after you confirm it"
        if session.asks_confirmation
        else "queries run, and are charged, without confirmation"
    )


def _quit(_asking: Session, _rest: str) -> None:
    raise ExitRequested


COMMANDS: Final[dict[str, Command]] = {
    ".help": Command("", "list the commands", _help),
    ".tables": Command("", "list the tables", _tables),
    ".describe": Command("TABLE", "show what is public about a table", _describe),
    ".budget": Command("", "show what is spent and what is left", _budget),
    ".epsilon": Command("X", "set the price of a query to epsilon X", partial(_price, name="epsilon")),
    ".rho": Command("X", "set the price of a query to rho X", partial(_price, name="rho")),
    ".error": Command("X", "set the price of a query to what ± X costs", partial(_price, name="error")),
    ".analyst": Command("NAME", "set the analyst", _analyst),
    ".preview": Command("SQL", "show what a query would cost", _preview),
    ".explain": Command("SQL", "show step by step how a query is answered", _explain),
    ".card": Command("", "describe the last answer in plain language", _card),
    ".confirm": Command("on|off", "confirm each query before it runs, or not", _confirm),
    ".quit": Command("", "quit, as Ctrl-D does", _quit),
}
