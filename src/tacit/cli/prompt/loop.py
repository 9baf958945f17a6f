"""The terminal of the prompt: reads, highlights, completes, and hands every line on.

Enter ends a statement that ends with a semicolon and begins a new line otherwise. Ctrl-C drops what is typed or stops
what runs, Ctrl-D leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.styles import Style
from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

from tacit.cli.failures import describe
from tacit.cli.kit import Screen
from tacit.cli.prompt.asking import Asking
from tacit.cli.prompt.completing import Words
from tacit.cli.prompt.dots import Leave, obey
from tacit.cli.prompt.keeping import history
from tacit.cli.prompt.statements import is_complete, is_dotted, statements

if TYPE_CHECKING:
    from tacit.cli.prompt.answers import Answers

MESSAGE: Final = "tacit> "
CONSENT: Final = "[Enter] asks, n drops: "
STYLE: Final = Style.from_dict(
    {  # the terminal's own colours, so that they are readable on what it has behind them
        "prompt": "bold ansicyan",
        "consent": "bold",
        "pygments.keyword": "bold",
        "pygments.name.builtin": "bold",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansimagenta",
        "pygments.comment": "italic",
        "bottom-toolbar": "noreverse",
    }
)


def converse(screen: Screen, answers: Answers, asked: Mapping[str, Any], **settings: Any) -> None:
    """Answer whoever types until they leave."""
    keyboard: PromptSession[str] = PromptSession()
    asking = Asking(
        answers, screen, lambda: keyboard.prompt([("class:consent", CONSENT)], style=STYLE), dict(asked), **settings
    )
    lines: PromptSession[str] = PromptSession(
        [("class:prompt", MESSAGE)],
        style=STYLE,
        history=history(),
        include_default_pygments_style=False,
        lexer=PygmentsLexer(SqlLexer),
        completer=Words(answers.tables),
        complete_in_thread=True,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation=lambda width, _line, _wrapped: "...".rjust(width - 1) + " ",
        bottom_toolbar=lambda: _state(asking),
    )
    asking.say(f"{answers.place}: end a question with ; and leave with Ctrl-D; .help says more")
    if not asking.price:
        asking.say("say first what a question may cost, as in: .epsilon 0.5")
    while True:
        try:
            text = lines.prompt()
        except KeyboardInterrupt:
            continue  # what was typed is dropped
        except EOFError:
            return
        try:
            answer(asking, text)
        except Leave:
            return


def answer(asking: Asking, text: str) -> None:
    """Do what was typed: one command, or statements one after another; the first that fails ends them."""
    parts: list[tuple[Callable[[Asking, str], None], str]]
    parts = [(obey, text)] if is_dotted(text) else [(Asking.ask, one) for one in statements(text)]
    for do, part in parts:
        try:
            do(asking, part)
        except (Leave, BrokenPipeError):
            raise
        except (KeyboardInterrupt, EOFError):  # instead of consent
            asking.say("dropped; nothing was spent")
            return
        except Exception as error:
            failure = describe(error)
            click.echo(f"{failure.code} {failure.message}", err=True)
            return


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _end_or_go_on(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("enter", filter=completion_is_selected)
    def _take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return keys


def _state(asking: Asking) -> str:
    who = f"{asking.analyst} asks" if asking.analyst else "nobody in particular asks"
    price = f"a question may cost {asking.price}" if asking.price else "no price: .epsilon 0.5"
    return f" {who} · {price}" + ("" if asking.is_confirmed else " · asked at once")
