"""`tacit attack`: attacks on published data, query interfaces, mechanisms and models, judged by what was claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from tacit.cli.attacks.claims import claim_of_options
from tacit.cli.attacks.queries import QUERY, KeepSettings, Place, Spent, confirm_spending, open_source
from tacit.cli.attacks.report import SERIOUS, Failed, Report, bound_of, claim_of, printable
from tacit.cli.attacks.suites import (
    Planned,
    RunSettings,
    SuiteOptions,
    planned,
    queries_text,
    run_one,
    run_suite,
    watch_queries,
)
from tacit.cli.attacks.targets import (
    MEANS,
    MECHANISM,
    MODEL,
    STATISTICS,
    SYNTHETIC,
    TABLE,
    UPDATES,
    TargetKind,
    TargetOption,
    json_value,
)
from tacit.cli.groups import Command, Group, add_format_option, format_option
from tacit.cli.options import (
    ServerAddress,
    folder_option,
    folder_parameter,
    server_address,
    server_options,
    server_parameters,
)
from tacit.cli.output import Screen, is_interrupt, progress_bar, show_hints
from tacit.privacy.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.attack import Finding
    from tacit.attack.kit import Attack
    from tacit.curator.curated_findings import CuratedFinding

EFFORTS: Final = ("ci", "nightly", "full")
ANYWHERE: Final = frozenset({"json", "debug"})
"""The options that may stand before the name of an attack."""
HEADINGS: Final = {
    "Table": "published tables",
    "Statistics": "published statistics",
    "QueryInterface": "query interfaces",
    "Mechanism": "mechanisms",
    "Model": "models",
    "Updates": "federated training",
    "Synthetic": "synthetic data",
}
OPTIONS: Final = {
    "quasi_identifiers": "--on COLUMN,COLUMN",
    "register": "--register FILE",
    "other": "--other FILE",
    "one_run": "--trainings one",
    "many_runs": "--trainings independent",
    **{name: f"--{name} COLUMN" for name in ("sensitive", "identity", "truth", "entity", "item", "value", "when")},
}
"""The option of each attribute that an attack may need of its target."""
_CLICK_TYPES: Final[Mapping[str, Any]] = {
    "file": click.Path(path_type=Path),
    "number": float,
    "integer": int,
    "flag": bool,
}


def _option(setting: TargetOption, is_argument: bool) -> click.Parameter:
    """Return the argument or option of a setting."""
    type_ = _CLICK_TYPES.get(setting.type, str)
    if is_argument:
        return click.Argument([setting.name], type=type_)
    if setting.type == "flag":
        return click.Option([f"--{setting.name.replace('_', '-')}"], is_flag=True, help=setting.help)
    metavar = {"file": "FILE", "names": "COLUMN,COLUMN", "json": "JSON"}.get(setting.type)
    return click.Option(
        [f"--{setting.name}"], type=type_, help=setting.help, required=setting.is_required, metavar=metavar
    )


def _typed(settings: Sequence[TargetOption], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of options in the types that targets take."""
    found = {one.name: values[one.name] for one in settings}
    for one in settings:
        value = found[one.name]
        if value is not None and one.type == "names":
            found[one.name] = [part.strip() for part in value.split(",") if part.strip()]
        if value is not None and one.type == "json":
            found[one.name] = json_value(value)
    return found


def _report_options() -> list[click.Parameter]:
    file = click.Path(path_type=Path, dir_okay=False)
    return [
        click.Option(["--seed"], type=click.IntRange(0), help="Seed of the attacker's own choices."),
        click.Option(
            ["--fail-on"],
            type=click.Choice(list(SERIOUS)),
            help="Exit with code 1 if a finding violates its claim, or is underpowered; without this option the exit "
            "code is 0 whatever the verdict.",
        ),
        click.Option(["--html"], type=file, help="Also write a page with plots to this file."),
        click.Option(["--junit"], type=file, help="Also write JUnit XML to this file."),
        click.Option(["--sarif"], type=file, help="Also write SARIF to this file."),
        click.Option(
            ["--findings", "journal"],
            type=file,
            help="Append findings to this file as lines of JSON; the same run is not computed again. Needs --seed.",
        ),
        click.Option(
            ["--show-records"],
            is_flag=True,
            help="Include the records of people at the greatest risk in --html, --json and --findings; by default they "
            "are left out.",
        ),
        format_option(),
    ]


def _claim_options(kind: TargetKind, *, uses_prior: bool) -> list[click.Parameter]:
    claims: dict[str, click.Option] = {
        "epsilon": click.Option(
            ["--epsilon"], type=float, help="The claim: epsilon. Queries of an attack spend this in all."
        ),
        "delta": click.Option(["--delta"], type=float, help="The claim: delta; 0 by default."),
        "risk": click.Option(["--risk"], type=float, help="The claim: the greatest share of people at risk."),
        "permit": click.Option(["--permit"], help="The claim: what the ledger charged for this permit."),
    }
    if "epsilon" not in kind.claims:  # parsed to be refused with a reason
        claims.update({name: click.Option([f"--{name}"], hidden=True) for name in ("epsilon", "delta", "permit")})
    if uses_prior:
        claims["prior"] = click.Option(
            ["--prior"], type=float, help="The attacker's belief beforehand that a secret is true."
        )
    return [
        *(option for name, option in claims.items() if name in (*kind.claims, "prior") or option.hidden),
        click.Option(
            ["--effort"], type=click.Choice(EFFORTS), default="ci", show_default=True, help="How long it may take."
        ),
    ]


def _keep_options() -> list[click.Parameter]:
    return [
        click.Option(["--keep"], is_flag=True, help="Keep the finding in the ledger, without records of people."),
        click.Option(["--dataset"], help="The data set under which it is kept, if no permit is named."),
        click.Option(["--by"], metavar="NAME", help="Name of the person who keeps it."),
    ]


ROWS_OF_EVENTS: Final = frozenset({"item", "value", "when"})
UNUSED: Final = {"sparse_linkage": frozenset({"on", "sensitive", "other", "complete_register"})}
"""Options of a kind of target that an attack does not use; `ROWS_OF_EVENTS` for all others."""


class AttackCommand(Command):
    """A command whose help lists options by section; those in none are about output."""

    def __init__(self, *arguments: Any, sections: Mapping[str, Sequence[str | None]], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.sections = sections

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each section."""
        titles = {name: title for title, names in self.sections.items() for name in names}
        for title in (*self.sections, "Output"):
            options = [one for one in self.get_params(context) if isinstance(one, click.Option)]
            shown = [one for one in options if titles.get(one.name, "Output") == title]
            records = [record for one in shown if (record := one.get_help_record(context)) is not None]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def command_of(entry: Attack) -> click.Command:
    """Return the command of an attack."""
    kind = _kind_of(entry)
    yes = click.Option(["--yes"], is_flag=True, hidden=kind is not QUERY, help="Spend without asking for confirmation.")
    claims, keeping = (
        _claim_options(kind, uses_prior=entry.uses_prior),
        [*_keep_options(), folder_parameter(), *server_parameters()],
    )
    settings = [_option(one, place == 0) for place, one in enumerate(kind.settings)]
    for one in settings:
        if isinstance(one, click.Option) and one.name in UNUSED.get(entry.name, ROWS_OF_EVENTS):
            one.hidden = True
    return AttackCommand(
        entry.name.replace("_", "-"),
        params=[*settings, *claims, yes, *keeping, *_report_options()],
        sections={
            "Target": [one.name for one in settings],
            "Claim": [*(one.name for one in claims), "yes"],
            "Ledger": [one.name for one in keeping],
        },
        callback=click.pass_obj(partial(_run, entry.name, kind)),
        help="\n\n".join(
            (
                f"{entry.summary[:1].upper()}{entry.summary[1:]}.",
                f"{kind.settings[0].name.upper()}: {kind.settings[0].help}",
                f"Paper: {entry.paper}.",
            )
        ),
        short_help=entry.summary,
    )


def _kind_of(entry: Attack) -> TargetKind:
    """Return the kind of target of an attack."""
    from tacit.attack import Mechanism, Model, QueryInterface, Statistics, Synthetic, Table, Updates

    if entry.target is Statistics:
        return STATISTICS if "tables" in entry.needs else MEANS
    kinds = {Table: TABLE, QueryInterface: QUERY, Mechanism: MECHANISM, Model: MODEL}
    return {**kinds, Synthetic: SYNTHETIC, Updates: UPDATES}[entry.target]


def _run(attack: str, kind: TargetKind, screen: Screen, /, **values: Any) -> None:
    report = Report.of(values)
    if "epsilon" not in kind.claims and any(values[name] is not None for name in ("epsilon", "delta", "permit")):
        raise click.UsageError(
            f"an epsilon says nothing about {attack.replace('_', ' ')}; claim a share of people with --risk 0.05"
        )
    settings, claim = _typed(kind.settings, values), claim_of_options(values)
    how = RunSettings(values["effort"], report.seed, values.get("prior"))
    with ExitStack() as stack:
        place = Place(stack, values["folder"], server_address(values["server"], values["token_file"]))
        keep = None
        if values["keep"]:
            table = settings["table"] if kind is QUERY else None
            keep = KeepSettings.of(place, values["dataset"], values["by"], permit=claim.permit, table=table)
        target = planned(str(settings[kind.settings[0].name]), kind.name, settings, claim, place)
        _require_settings(attack, target.target)
        found = None if target.is_code else report.known(target.digest(attack, how))
        if found is None:
            spendings = [] if target.spending is None else [target.spending]
            confirm_spending(screen, place, spendings, is_confirmed=values["yes"])
            spent = Spent(place, spendings)
            try:
                with progress_bar(screen) as show:
                    if show is not None:
                        watch_queries(
                            target.target,
                            lambda asked, planned: show(asked / planned, queries_text(asked, planned)),
                        )
                    found = _finding(attack, target, how, report)
            except BaseException as error:
                if not is_interrupt(error):
                    raise
                raise KeyboardInterrupt("; ".join(filter(None, ["interrupted", spent.words()]))) from error
        elif keep is not None and found.target_digest in keep.digests:
            click.echo(f"the finding was read from {report.files.journal} and is not kept again", err=True)
            keep = None
        if found.claimed is None:
            example = "--epsilon 1" if "epsilon" in kind.claims else "--risk 0.05"
            show_hints(screen, [f"add {example} to have it judged"])
        report.show(screen, [found], keep=None if keep is None else partial(keep.keep, place, found))


def _require_settings(attack: str, target: object) -> None:
    """Raise UsageError for a setting that an attack needs and that was not given."""
    missing = [one.missing(target) for one in _entries() if one.name == attack]
    if missing and all(missing):
        options = [OPTIONS.get(name, f"--{name}") for name in missing[0]]
        raise click.UsageError(f"the attack needs more of its target: give {' and '.join(options)}")


def _finding(attack: str, target: Planned, how: RunSettings, report: Report) -> Finding:
    """Run an attack and append its finding to the journal; an error is also written to the files of the report."""
    try:
        found = run_one(attack, target, how)
    except Exception as error:
        report.write([], [Failed.of(target.name, attack, error)])
        raise
    report.add(found)
    return found


class AttackGroup(Group):
    """A group whose commands are the attacks of the kit, and `findings`."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [*dict.fromkeys(one.name.replace("_", "-") for one in _entries()), "findings"]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name == "findings":
            return findings
        entry = next((one for one in _entries() if one.name.replace("_", "-") == name), None)
        return None if entry is None else command_of(entry)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the attacks by what they attack."""
        entries = {one.name: one for one in reversed(_entries())}
        for target in dict.fromkeys(one.target for one in _entries()):
            with formatter.section(f"Attacks on {HEADINGS[target.__name__]}"):
                formatter.write_dl(
                    [
                        (name.replace("_", "-"), one.summary)
                        for name, one in reversed(entries.items())
                        if one.target is target
                    ]
                )
        with formatter.section("Kept in the ledger"):
            formatter.write_dl([("findings", "Show the findings that were kept.")])


def _entries() -> Sequence[Attack]:
    from tacit.attack import attacks

    return tuple(  # data that is made has no command, nor has a target without a heading
        one for one in attacks() if "make" not in one.needs and one.target.__name__ in HEADINGS
    )


def _suite_options(function: Callable[..., None]) -> Callable[..., None]:
    for one in reversed(
        [
            click.Option(["--suite"], type=click.Choice(EFFORTS), help="Run every attack that fits, with this effort."),
            click.Option(["--targets"], type=click.Path(path_type=Path), help="A TOML file with the targets."),
            *_report_options(),
            click.Option(["--yes"], is_flag=True, help="Spend without asking for confirmation."),
            *(folder_parameter(), *server_parameters()),
        ]
    ):
        function.__click_params__ = [*getattr(function, "__click_params__", []), one]  # type: ignore[attr-defined]
    return function


@click.group("attack", cls=AttackGroup, invoke_without_command=True)
@_suite_options
@click.pass_context
def command(context: click.Context, /, suite: str | None, targets: Path | None, folder: Path, **values: Any) -> None:
    """Attack what was released, and judge what is found by what was claimed.

    With --suite, every attack that fits is run on the targets of a file (by default attacks.toml of the folder, if
    there is one), or without a file on this installation over invented data, which costs nothing. A verdict is
    violates, consistent, underpowered or not applicable; none of them is "safe".

    \b
      tacit attack --suite ci --fail-on violates --junit findings.xml
      tacit attack linkage released.csv --on zip,birth_date,sex --register voters.csv --identity name
    """
    if context.invoked_subcommand is not None:
        typed = [one for one in context.command.params if one.name not in ANYWHERE and _is_typed(context, one)]
        if typed:
            raise click.UsageError(f"put the options after the name of the attack: {typed[0].opts[0]}", context)
        return
    if suite is None:
        raise click.UsageError("name an attack, or give --suite ci", context)
    server = server_address(values["server"], values["token_file"])
    options = SuiteOptions(suite, targets, folder, server, values["yes"])
    run_suite(context.ensure_object(Screen), options, Report.of(values))


def _is_typed(context: click.Context, parameter: click.Parameter) -> bool:
    return context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE


@click.command("findings", cls=Command)
@folder_option
@server_options
@click.option("--dataset", help="Only those of this data set.")
@click.option("--permit", help="Only those about this permit.")
@add_format_option
@click.pass_obj
def findings(
    screen: Screen, folder: Path, server: ServerAddress | None, dataset: str | None, permit: str | None
) -> None:
    """Show the findings that were kept in the ledger."""
    with open_source(folder, server) as source:
        kept = source.findings(dataset, permit)
    screen.show_list(
        "findings",
        kept,
        lambda one: {"id": one.id, "dataset": one.dataset, "permit": one.permit, "by": one.by, **one.document},
        ("at", "data set", "permit", "by", "attack", "verdict", "claimed", "shown"),
        _kept_row,
        "no findings were kept",
    )


def _kept_row(one: CuratedFinding) -> tuple[str, ...]:
    first = (f"{one.at:%Y-%m-%d %H:%M}", printable(one.dataset), one.permit or "", printable(one.by))
    try:
        found = one.finding
    except InvalidInput:
        return (*first, printable(one.id), "unreadable", "", "")
    return (*first, printable(found.attack), str(found.verdict), claim_of(found), bound_of(found))
