"""The steps of the tour on a terminal, and the same query in Python and curl.

The number of lines does not depend on the noise, and lines have at most 80 columns.
"""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from tacit.cli.tour import clinic, scenario
from tacit.cli.tour.clinic import ANALYST, EPSILON_ANALYST
from tacit.cli.tour.scenario import EPSILON, REFUSED_EPSILON, Attack, Cell, FirstAnswer, Refusal, RepeatedAnswer
from tacit.privacy.numbers import DEFAULT_LEVEL

KEPT: Final = "clinic"
"""The folder in snippets if the tour's own is deleted."""
FIRST_DEMO: Final = f"# first: tacit demo --no-serve --folder {KEPT}"
TOKEN: Final = "tacit_..."
WIDTH: Final = 70


def python(folder: str | None) -> str:
    """Return a Python program that registers the visits of `folder`, or of the example folder, and queries them."""
    query = textwrap.indent(scenario.SQL, "  ")
    program = f'''\
import tacit

wards = {json.dumps(clinic.WARDS)}
curator = tacit.Curator("my-{KEPT}")  # a folder: catalog, ledger, answers
curator.add_table(
    "{clinic.TABLE}", "{folder or KEPT}/{clinic.FILE}",
    unit="patient_id",  # everything of one patient is protected together
    columns={{"cost": tacit.Bounds(0, {clinic.COST_MAX}), "ward": tacit.Categories(wards)}},
    limits=tacit.Limits(groups_per_unit=1, rows_per_group={clinic.VISITS_MAX}),
)
curator.set_budget("{clinic.TABLE}", epsilon={clinic.EPSILON:g}, delta={clinic.DELTA:g})
ana = tacit.Budget(epsilon={clinic.EPSILON_ANALYST:g}, delta={clinic.DELTA_ANALYST:g})
curator.add_analyst("{clinic.ANALYST}", budgets={{"{clinic.TABLE}": ana}})
release = curator.sql("""
{query}
""", epsilon={scenario.EPSILON:g}, analyst="{clinic.ANALYST}")
print(release.rows[0], release.intervals({DEFAULT_LEVEL})[0], release.cost)
'''
    return program if folder else f"{FIRST_DEMO}\n{program}"


def curl(address: str, token: str | None, folder: str | None = None) -> str:
    """Return the shell commands that send the query to a server; without a token, how to serve `folder` and get one."""
    first, *rest = textwrap.wrap(" ".join(scenario.SQL.split()), WIDTH)
    words = [f'SQL="{first}"', *(f'SQL="$SQL {line}"' for line in rest)]
    lines = "\n".join(
        [
            f"TOKEN={token or TOKEN}",
            *words,
            f"curl -s {address}/v1/queries \\",
            '  -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\',
            f'  -d "{{\\"epsilon\\": {scenario.EPSILON:g}, \\"sql\\": \\"$SQL\\"}}"',
        ]
    )
    return f"{lines}\n" if token else f"# first: {_serve(folder)}, which shows a token\n{lines}\n"


def _serve(folder: str | None) -> str:
    return f"tacit serve {shlex.quote(folder or KEPT)}"


WIDTH_MAX: Final = 100
INDENT: Final = "   "
LABEL_WIDTH: Final = 16
BAR_WIDTH: Final = 20


def show_opening(console: Console, patients: int, visits: int, protected: str) -> None:
    """Show the clinic and who is protected."""
    console.print()
    console.print(
        Text.assemble(("tacit", "bold cyan"), f"  an invented clinic: {patients:,} patients, {visits:,} visits")
    )
    _heading(console, "1", "Who is protected")
    _words(console, Text(protected))


def show_question(console: Console, sql: str) -> None:
    """Show the query of the analyst."""
    _heading(console, "2", f"A query of the analyst {ANALYST}, at ε {EPSILON:g}")
    _code(console, sql)


def show_answer(console: Console, answered: FirstAnswer) -> None:
    """Show the private answer beside the true values."""
    _heading(console, "3", "The private answer beside the true values")
    names = list(next(iter(answered.rows.values())))
    head = f"{'ward':11}" + "".join(f"{name:>9}  {'95 % interval':>13}  {'true':>5}   " for name in names)
    console.print(Text(f"{INDENT}{head.rstrip()}", "dim"))
    for ward, cells in answered.rows.items():
        line = Text(f"{INDENT}{ward:11}")
        for name in names:
            line.append_text(_cell(cells[name]))
        line.rstrip()
        console.print(line, soft_wrap=True)
    console.print(Text(f"{INDENT}The true values can be shown because these people are invented.", "dim"))


def show_cost(console: Console, answered: FirstAnswer) -> None:
    """Show the cost of the answer by measurement, and the remaining budget."""
    _heading(console, "4", "What the answer costs")
    width = max(len(item.measures) for item in answered.items) + 3
    for item in answered.items:
        noise = item.noise.partition(" (")[0]
        part = "" if item.epsilon is None else f"ε {item.epsilon:.2f}"
        console.print(Text.assemble(INDENT, f"{item.measures:{width}}{part:9}", (noise, "dim")))
    whole = f"ε {answered.epsilon:.2f}"
    console.print(Text.assemble(INDENT, f"{'total':{width}}", (whole, "bold"), ("   as previewed", "dim")))
    _left(console, answered.left)


def show_again(console: Console, again: RepeatedAnswer) -> None:
    """Show the answer of the repeated query."""
    _heading(console, "5", "The same query again")
    same = "the same" if again.is_same else "different"
    _fact(
        console,
        "answer",
        Text.assemble((same, "bold cyan"), ", from the ledger: there is no fresh noise to average away"),
    )
    _fact(console, "cost", Text(f"ε {again.epsilon:g}"))


def show_attack(console: Console, attack: Attack) -> None:
    """Show the attack on one patient, and the success rate of many attacks."""
    _heading(console, "6", "A differencing attack: two counts, with and without the last line")
    _code(console, attack.but_one)
    _fact(console, "target", Text(f"{attack.target}, the only patient with this age, sex and town"))
    everybody, but_one = attack.answers
    _fact(console, "answers", Text(f"{everybody:,} with the target, {but_one:,} without"))
    _fact(
        console,
        "difference",
        Text.assemble(
            (f"{attack.difference}", "bold cyan"),
            f" instead of the true {attack.true_difference}, which would reveal the diagnosis"
            if attack.difference != attack.true_difference
            else ", the truth by chance, which no one who sees it can know",
        ),
    )
    console.print()
    _words(
        console,
        Text(
            f"Correct guesses of {attack.attacks:,} such attacks on {attack.targets:,} patients, half of whom have the "
            "diagnosis:"
        ),
    )
    for label, rate, style in (
        ("exact answers", attack.exact_rate, "red"),
        ("private answers", attack.private_rate, "cyan"),
        ("a coin toss", attack.coin_rate, "dim"),
        (f"bound at ε {attack.epsilon:g}", attack.bound, "dim"),
    ):
        right = f" {100 * rate:.0f} % correct"
        _fact(console, label, Text.assemble(*_bar(rate, style), right))
    _words(
        console,
        Text(
            "The bound e^ε/(1+e^ε) holds for every attack at this cost. The repeated attacks are simulated, with a "
            f"budget of their own: together they cost ε {attack.epsilon_simulated:,.0f}.",
            "dim",
        ),
    )


def show_refusal(console: Console, refused: Refusal) -> None:
    """Show the refusal of a query, and what would fit."""
    _heading(console, "7", f"A query that exceeds the remaining budget, at ε {REFUSED_EPSILON:g}")
    _code(console, refused.sql)
    _fact(console, "refused", Text.assemble((refused.code, "bold red"), f" {refused.message}"))
    _left(console, refused.left)


def show_snippets(console: Console, python: str, curl: str) -> None:
    """Show the same query in Python and curl."""
    _heading(console, "8", "The same in Python")
    _code(console, python)
    console.print()
    _words(console, Text("The same with curl", "bold"))
    _code(console, curl)


def show_end(console: Console, folder: str | None) -> None:
    """Show the next command, if no server follows, and what was written to `folder`, if the clinic is kept."""
    if folder is None:
        _heading(console, "→", "Next: run tacit demo to serve the clinic after the tour")
    else:
        _heading(console, "→", f"Next: {_serve(folder)}")
        console.print(
            f"{INDENT}{folder}/{clinic.FILE} has the invented visits, to register them yourself", soft_wrap=True
        )
    console.print()


def show_people(console: Console, address: str, people: Sequence[tuple[str, str, str, str]], moved: str) -> None:
    """Show the URL of the server, and the name, role, password and token of each person."""
    _heading(console, "→", f"The clinic is served at {address}" + (f" ({moved})" if moved else ""))
    _fact(console, "open", Text.assemble((address, "bold cyan"), "   API: /openapi.json"))
    for name, role, password, token in people:
        who = name if name == role else f"{name}, {role}"
        _fact(console, who, Text.assemble("password ", (password, "bold")))
        console.print(Text(f"{INDENT}token {token}", "dim"), soft_wrap=True)
    _words(console, Text("For this run and this machine only. Ctrl-C stops the server.", "dim"))
    console.print()


def _heading(console: Console, mark: str, text: str) -> None:
    console.print()
    console.print(Text.assemble((f"{mark:>2} ", "bold cyan"), (text, "bold")))


def _words(console: Console, words: Text) -> None:
    for line in words.wrap(console, min(console.width, WIDTH_MAX) - len(INDENT)):
        line.rstrip()
        console.print(Text.assemble(INDENT, line), soft_wrap=True)


def _fact(console: Console, label: str, fact: Text) -> None:
    width = min(console.width, WIDTH_MAX) - len(INDENT) - LABEL_WIDTH
    for line in fact.wrap(console, width):
        line.rstrip()
        console.print(Text.assemble(INDENT, (label.ljust(LABEL_WIDTH), "dim"), line), soft_wrap=True)
        label = ""


def _code(console: Console, lines: str) -> None:
    for line in lines.splitlines():
        console.print(Text(f"{INDENT}{line}".rstrip()), soft_wrap=True)


def _cell(cell: Cell) -> Text:
    span = f"{cell.low:,.0f} to {cell.high:,.0f}"
    return Text.assemble((f"{cell.answer:9,.0f}", "bold cyan"), f"  {span:>13}", (f"  {cell.truth:5,.0f}   ", "dim"))


def _left(console: Console, left: float) -> None:
    bar = _bar(left / EPSILON_ANALYST, "green")
    _fact(console, f"remaining ({ANALYST})", Text.assemble(*bar, f" ε {left:.2f} of {EPSILON_ANALYST:g}"))


def _bar(share: float, style: str) -> tuple[tuple[str, str], tuple[str, str]]:
    filled = round(BAR_WIDTH * min(max(share, 0.0), 1.0))
    return ("█" * filled, style), ("░" * (BAR_WIDTH - filled), "dim")
