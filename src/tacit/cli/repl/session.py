"""One session of the prompt: the settings of the next query, its preview, confirmation and answer, and dot commands.

Dot commands charge nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tacit.cli import rendering
from tacit.cli.app import with_options
from tacit.cli.backends import Backend
from tacit.cli.output import Fact, Screen, progress_bar
from tacit.pipeline.interrupts import run_shielded
from tacit.privacy.errors import InvalidInput, NotInCatalog
from tacit.privacy.figures import exactly
from tacit.privacy.numbers import DEFAULT_LEVEL, positive

if TYPE_CHECKING:
    from tacit.query import Preview
    from tacit.query.explain import Line
    from tacit.query.release import ReleasedRows


T = TypeVar("T")
COSTS: Final = ("epsilon", "rho", "error")
SYMBOLS: Final = {"epsilon": "ε ", "rho": "ρ ", "error": "± "}
YES: Final = ("y", "yes")


@dataclass
class Session:
    """The settings of the next query, which dot commands change."""

    backend: Backend
    screen: Screen
    confirm: Callable[[], str]
    """Prompts for confirmation and returns the answer."""
    options: dict[str, Any] = field(default_factory=dict)
    """The cost and the other plan options, as for `tacit sql`."""
    analyst: str | None = None
    purpose: str = ""
    level: float = DEFAULT_LEVEL
    timeout_s: float | None = None
    asks_confirmation: bool = True
    shows_card: bool = False
    card: str = ""
    """The card of the last answer."""

    @property
    def cost(self) -> str:
        """The cost of the next query in words; empty if it is not set."""
        stated = [name for name in COSTS if self.options.get(name) is not None]
        return f"{SYMBOLS[stated[0]]}{exactly(self.options[stated[0]])}" if stated else ""

    def set_cost(self, name: str, value: float) -> None:
        """Set the cost of the next queries as epsilon, rho or error, instead of the one before."""
        self.options |= {**dict.fromkeys(COSTS), name: value}

    def require_cost(self) -> None:
        """Raise InvalidInput unless the cost is set; it has no default."""
        if not self.cost:
            raise InvalidInput("set the privacy cost first, with .epsilon, .rho or .error and a number", name="epsilon")

    def ask(self, sql: str) -> None:
        """Preview a query, ask for confirmation, run it and show the answer."""
        self.require_cost()
        self.hint(sql)
        if self.asks_confirmation:
            preview = self.preview(sql)
            self.say(preview_line(preview))
            if not preview.fits:
                self.say(
                    f"not run, because it does not fit the budget: {with_dot_commands(with_options(preview.refusal))}"
                )
                return
            if self.confirm().strip().lower() not in YES:
                self.say("not run; nothing was charged")
                return
        with progress_bar(self.screen) as progress:
            answer = self.interruptible(
                lambda: self.backend.sql(
                    sql,
                    self.options,
                    self.analyst,
                    purpose=self.purpose,
                    timeout_s=self.timeout_s,
                    progress=progress,
                )
            )
        self.card = answer.card
        self.show(answer, self.backend.explain(sql, self.options))

    def preview(self, sql: str) -> Preview:
        """Return what a query would cost."""
        self.require_cost()
        return self.interruptible(lambda: self.backend.preview(sql, self.options, self.analyst))

    def hint(self, sql: str) -> None:
        """Write hints about values that are not categories."""
        for hint in rendering.category_hints(sql, self.backend.tables(), self.options.get("keys")):
            self.say(f"hint: {hint}")

    def show(self, answer: ReleasedRows, lines: Sequence[Line]) -> None:
        """Show an answer as `tacit sql` does; `lines` explain how it was computed."""
        self.screen.show_records(answer.columns, rendering.table_rows(answer, self.level))
        if self.screen.console.is_terminal:
            remaining = self.backend.remaining(answer.datasets, self.analyst)
            payer = self.backend.payer(self.analyst)
            self.screen.show_facts(rendering.answer_facts(answer, remaining, lines, payer))
        if self.shows_card:
            self.say(answer.card)

    def say(self, sentence: str) -> None:
        """Write a sentence."""
        self.screen.say(sentence)

    def interruptible(self, work: Callable[[], T]) -> T:
        """Run `work` so that Ctrl-C cancels it."""
        return run_shielded(work, self.backend.cancel)


def preview_line(preview: Preview) -> str:
    """Return the cost, the expected half-widths and the remaining budgets of a preview on one line."""
    widths = ", ".join(f"{name} {rendering.half_width_text(width)}" for name, width in preview.widths.items())
    budgets = rendering.remaining_facts(preview.remaining, preview.analyst)
    parts = [f"cost {rendering.cost_text(preview)}", widths, *(f"{one.label} {one.text}" for one in budgets)]
    return "; ".join(filter(None, parts))


def with_dot_commands(sentence: str) -> str:
    """Return a message with the options that the prompt sets replaced by its dot commands."""
    return re.sub(r"--(epsilon|rho|error|analyst)\b", r".\1", sentence)


class ExitRequested(Exception):
    """The user wants to quit."""


@dataclass(frozen=True, slots=True)
class DotCommand:
    """A dot command: its argument, its description and its function."""

    argument: str
    description: str
    run: Callable[[Session, str], None]


def run_dot_command(session: Session, line: str) -> None:
    """Run a dot command."""
    name, _, rest = line.strip().removesuffix(";").strip().partition(" ")
    if name not in COMMANDS:
        raise InvalidInput(f"no such command {name}; .help lists the commands", name="command", value=name)
    COMMANDS[name].run(session, rest.strip())


def _help(session: Session, _rest: str) -> None:
    facts = [Fact(f"{name} {one.argument}".strip(), one.description) for name, one in COMMANDS.items()]
    session.screen.show_facts([*facts, Fact("SELECT ... ;", "preview a query and run it after you confirm it")])


def _tables(session: Session, _rest: str) -> None:
    from tacit.cli.catalog_rendering import printable, protected_text

    tables = session.backend.tables()
    if not tables:
        session.say("no tables yet")
        return
    rows = [
        (printable(one.name), protected_text(one), one.dataset if one.is_private else "", str(len(one.columns)))
        for one in tables
    ]
    session.screen.show_records(("table", "protected", "budget", "columns"), rows)


def _describe(session: Session, rest: str) -> None:
    from tacit.cli.catalog_rendering import printable, protected_text, show_columns

    name = rest.strip('"')
    found = [one for one in session.backend.tables() if one.name.lower() == name.lower()]
    if not found:
        raise NotInCatalog(f"no table {name}; .tables lists the tables" if name else "give a table: .describe visits")
    session.say(f"{printable(found[0].name)}; protected: {protected_text(found[0])}")
    show_columns(session.screen, found[0])


def _budget(session: Session, _rest: str) -> None:
    from tacit.cli.catalog_rendering import show_budgets

    show_budgets(session.screen, session.backend.budgets())


def _cost(session: Session, rest: str, *, name: str) -> None:
    if rest:
        try:
            value = float(rest)
        except ValueError:
            raise InvalidInput(f"{name} must be a number: .{name} 0.5", name=name, value=rest) from None
        session.set_cost(name, float(positive(name, value)))
    session.say(f"each query costs {session.cost}" if session.cost else "no cost is set")


def _analyst(session: Session, rest: str) -> None:
    if rest:
        session.backend.require_analyst(rest)
    session.analyst = rest or None
    session.say(
        f"queries are charged to {rest} and to the data set" if rest else "queries are charged to the data set only"
    )


def _preview(session: Session, rest: str) -> None:
    session.hint(rest)
    facts = rendering.preview_facts(session.preview(rest))
    session.screen.show_facts([one._replace(text=with_dot_commands(one.text)) for one in facts])


def _explain(session: Session, rest: str) -> None:
    session.require_cost()
    lines = session.interruptible(lambda: session.backend.explain(rest, session.options))
    session.screen.show_facts([Fact(line.label, line.text) for line in lines])


def _card(session: Session, _rest: str) -> None:
    session.say(session.card or "no query has been answered yet")


def _confirm(session: Session, rest: str) -> None:
    if rest not in ("on", "off", ""):
        raise InvalidInput("type .confirm on or .confirm off", name="confirm", value=rest)
    session.asks_confirmation = rest == "on" if rest else session.asks_confirmation
    session.say(
        "each query is previewed and runs after you confirm it"
        if session.asks_confirmation
        else "queries run and are charged without confirmation"
    )


def _quit(_session: Session, _rest: str) -> None:
    raise ExitRequested


COMMANDS: Final[dict[str, DotCommand]] = {
    ".help": DotCommand("", "list the commands", _help),
    ".tables": DotCommand("", "list the tables", _tables),
    ".describe": DotCommand("TABLE", "show the columns of a table", _describe),
    ".budget": DotCommand("", "show what is spent and what remains of each budget", _budget),
    ".epsilon": DotCommand("X", "set the cost of a query to epsilon X", partial(_cost, name="epsilon")),
    ".rho": DotCommand("X", "set the cost of a query to rho X", partial(_cost, name="rho")),
    ".error": DotCommand("X", "set the cost of a query so that its 95 % interval is ± X", partial(_cost, name="error")),
    ".analyst": DotCommand("NAME", "set the analyst whose budget is charged as well", _analyst),
    ".preview": DotCommand("SQL", "show what a query would cost", _preview),
    ".explain": DotCommand("SQL", "show step by step how a query is answered", _explain),
    ".card": DotCommand("", "describe the last answer in plain language", _card),
    ".confirm": DotCommand("on|off", "turn the confirmation of each query on or off", _confirm),
    ".quit": DotCommand("", "quit, as Ctrl-D does", _quit),
}
