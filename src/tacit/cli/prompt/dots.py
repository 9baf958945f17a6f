"""The commands of the prompt that begin with a dot; each changes what holds for the next question, or shows something.

None of them spends anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from tacit.cli.kit import Fact
from tacit.cli.prompt.asking import Asking, preview_facts
from tacit.privacy.errors import InvalidInput, NotInCatalog
from tacit.privacy.numbers import positive


class Leave(Exception):
    """Whoever types wants to leave."""


@dataclass(frozen=True, slots=True)
class Command:
    """What follows the command's name, what it does in a few words, and how."""

    takes: str
    does: str
    run: Callable[[Asking, str], None]


def obey(asking: Asking, line: str) -> None:
    """Do what a command says."""
    name, _, rest = line.strip().removesuffix(";").strip().partition(" ")
    if name not in COMMANDS:
        raise InvalidInput(f"there is no command {name}; .help lists them", name="command", value=name)
    COMMANDS[name].run(asking, rest.strip())


def _help(asking: Asking, _rest: str) -> None:
    facts = [Fact(f"{name} {one.takes}".strip(), one.does) for name, one in COMMANDS.items()]
    asking.screen.show_facts([*facts, Fact("SELECT ... ;", "previews a question, and asks it after Enter")])


def _tables(asking: Asking, _rest: str) -> None:
    from tacit.cli.catalog.views import protects, shown

    tables = asking.answers.tables()
    if not tables:
        asking.say("no table was added yet")
        return
    rows = [
        (shown(one.name), protects(one), one.dataset if one.is_private else "", str(len(one.columns))) for one in tables
    ]
    asking.screen.show_table(("table", "protects", "budget", "columns"), rows)


def _describe(asking: Asking, rest: str) -> None:
    from tacit.cli.catalog.views import facts_text, protects, shown

    name = rest.strip('"')
    found = [one for one in asking.answers.tables() if one.name.lower() == name.lower()]
    if not found:
        raise NotInCatalog(
            f"there is no table {name}; .tables lists them" if name else "name a table: .describe visits"
        )
    asking.say(f"{shown(found[0].name)} protects {protects(found[0])}")
    rows = [
        (shown(one.name), one.kind.value, facts_text(one), "" if one.nullable else "never missing")
        for one in found[0].columns
    ]
    asking.screen.show_table(("column", "kind", "stated", ""), rows)


def _budget(asking: Asking, _rest: str) -> None:
    from tacit.cli.catalog.budgets import show_budgets

    show_budgets(asking.screen, asking.answers.budgets())


def _price(asking: Asking, rest: str, *, name: str) -> None:
    if rest:
        try:
            value = float(rest)
        except ValueError:
            raise InvalidInput(f"{name} is a number, as in .{name} 0.5", name=name, value=rest) from None
        asking.set_price(name, float(positive(name, value)))
    asking.say(f"a question may cost {asking.price}" if asking.price else "it was not said what a question may cost")


def _analyst(asking: Asking, rest: str) -> None:
    if rest:
        asking.answers.require_analyst(rest)
    asking.analyst = rest or None
    asking.say(f"{rest} asks, and her own budget is charged, too" if rest else "nobody in particular asks")


def _preview(asking: Asking, rest: str) -> None:
    asking.screen.show_facts(preview_facts(asking.previewed(rest)))


def _explain(asking: Asking, rest: str) -> None:
    asking.require_price()
    lines = asking.patiently(lambda: asking.answers.explain(rest, asking.asked))
    asking.screen.show_facts([Fact(line.label, line.text) for line in lines])


def _card(asking: Asking, _rest: str) -> None:
    asking.say(asking.card or "nothing was answered yet")


def _confirm(asking: Asking, rest: str) -> None:
    if rest not in ("on", "off", ""):
        raise InvalidInput("it is .confirm on or .confirm off", name="confirm", value=rest)
    asking.is_confirmed = rest == "on" if rest else asking.is_confirmed
    asking.say(
        "every question is previewed, and asked after Enter"
        if asking.is_confirmed
        else "questions are asked, and charged, at once"
    )


def _quit(_asking: Asking, _rest: str) -> None:
    raise Leave


COMMANDS: Final[dict[str, Command]] = {
    ".help": Command("", "list the commands", _help),
    ".tables": Command("", "list the tables", _tables),
    ".describe": Command("TABLE", "show what is public about a table", _describe),
    ".budget": Command("", "show what is spent and what is left", _budget),
    ".epsilon": Command("X", "let a question cost epsilon X", partial(_price, name="epsilon")),
    ".rho": Command("X", "let a question cost rho X", partial(_price, name="rho")),
    ".error": Command("X", "let a question cost what ± X takes", partial(_price, name="error")),
    ".analyst": Command("NAME", "say who asks", _analyst),
    ".preview": Command("SQL", "say what a question would cost", _preview),
    ".explain": Command("SQL", "say pass by pass what a question would do", _explain),
    ".card": Command("", "say in plain language what the last answer was", _card),
    ".confirm": Command("on|off", "ask before anything is spent, or do not", _confirm),
    ".quit": Command("", "leave, as Ctrl-D does", _quit),
}
