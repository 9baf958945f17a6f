"""Attacks on one or several targets: which findings are known already, what the others spend, and what fails."""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.attacks.claims import ClaimSettings
from tacit.cli.attacks.files import read_toml
from tacit.cli.attacks.queries import QUERY, Place, Spending, Spent, confirm_spending, query_target
from tacit.cli.attacks.report import Failed, Report
from tacit.cli.attacks.targets import KINDS, MECHANISM
from tacit.cli.options import ServerAddress, is_typed
from tacit.cli.output import RUNNING, Screen, ShowProgress, is_interrupt, progress_bar
from tacit.privacy.errors import InvalidInput, UnknownName, WrongType

if TYPE_CHECKING:
    from tacit.attack import Claim, Finding
    from tacit.curator.self_audit import Trial

TARGETS_FILE: Final = "attacks.toml"


@dataclass(frozen=True, slots=True)
class Planned:
    """A target that is to be attacked: what it claims, what tells it from others, and what attacks on it spend."""

    name: str
    target: Any
    claim: Claim | None
    identity: Mapping[str, Any]
    """Kind, settings and digests of files (`TargetKind.identity`)."""
    spending: Spending | None = None
    leaves_out: frozenset[str] = frozenset()
    is_code: bool = False
    """Whether it is code: a mechanism may import any other, so its findings are never reused."""

    def fitting(self, effort: str) -> list[str]:
        """Return the names of the attacks that a suite runs; raise InvalidInput if there are none."""
        from tacit.attack.kit import attacks_on

        found = [one.name for one in attacks_on(self.target, self.claim, effort) if one.name not in self.leaves_out]
        if not found:
            raise InvalidInput(f"no attack fits the target {self.name} as it stands", name="target")
        return found

    def digest(self, attack: str, run: RunSettings) -> str:
        """Return the SHA-256 of all on which a finding depends."""
        from tacit.version import __version__

        described = {
            "version": __version__,
            "attack": attack,
            "target": self.identity,
            "claim": None if self.claim is None else asdict(self.claim),
            "run": asdict(run),
        }
        return hashlib.sha256(json.dumps(described, sort_keys=True, default=repr).encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How attacks are run, the same for all of a command."""

    effort: str
    seed: int | None
    prior: float | None = None
    among: int = 1
    """The number of attacks for which the confidence is corrected."""


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """The options of a suite that are not those of its report."""

    effort: str
    targets: Path | None
    folder: Path
    server: ServerAddress | None
    yes: bool


@dataclass(slots=True)
class _Progress:
    """What a suite has found so far."""

    found: list[Finding] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    advance: ShowProgress | None = None

    def show(self, among: int, text: str = RUNNING) -> None:
        """Show which share of the attacks is done."""
        if self.advance is not None:
            self.advance(min(1.0, (len(self.found) + len(self.failed)) / among), text)


def run_suite(screen: Screen, options: SuiteOptions, report: Report) -> None:
    """Attack every target of a file, or without one this installation over invented data."""
    state = _Progress()
    stopped: BaseException | None = None
    with ExitStack() as stack:
        place = Place(stack, options.folder, options.server)
        planned = list(_planned(stack, place, _targets_file(options), options.effort))
        fitting = [one.fitting(options.effort) for one in planned]
        settings = RunSettings(options.effort, report.seed, among=_among(planned, fitting, options.effort))
        held = [_held(one, names, settings, report) for one, names in zip(planned, fitting, strict=True)]
        spendings = [
            replace(one.spending, epsilon=one.spending.epsilon * (len(names) - len(known)) / len(names))
            for one, names, known in zip(planned, fitting, held, strict=True)
            if one.spending is not None and len(known) < len(names)
        ]
        confirm_spending(screen, place, spendings, is_confirmed=options.yes)
        spent = Spent(place, spendings)
        state.advance = stack.enter_context(progress_bar(screen))
        try:
            for one, known in zip(planned, held, strict=True):
                state.found += known
                _attack(one, {finding.attack for finding in known}, settings, report, state)
        except KeyboardInterrupt as error:
            goes_on = report.files.journal is not None and not all(one.is_code for one in planned)
            advice = "with --findings FILE it could be continued"
            if report.files.journal is not None:
                advice = "the same command goes on" if goes_on else "attacks on this installation start anew"
            done = len(state.found) + len(state.failed)
            words = [f"interrupted after {done} of {sum(map(len, fitting))} attacks", spent.words(), advice]
            stopped = KeyboardInterrupt("; ".join(filter(None, [*words, str(error)])))
        except Exception as error:
            stopped = error
    report.show(screen, state.found, state.failed, stopped=stopped)


def _among(planned: Sequence[Planned], fitting: Sequence[Sequence[str]], effort: str) -> int:
    """Return the number of attacks that are run, which the kit takes if it is at least that of every target."""
    from tacit.attack.kit import attacks_on

    return max(sum(map(len, fitting)), *(len(attacks_on(one.target, one.claim, effort)) for one in planned))


def _held(one: Planned, names: Sequence[str], settings: RunSettings, report: Report) -> list[Finding]:
    """Return the findings of a target that the journal holds."""
    known = [] if one.is_code else [report.known(one.digest(name, settings)) for name in names]
    return [replace(finding, target=one.name) for finding in known if finding is not None]


def _attack(one: Planned, done: set[str], settings: RunSettings, report: Report, state: _Progress) -> None:
    """Run the attacks on a target that are not done; those that fail are noted, and the others are run."""
    from tacit.attack.kit import suite

    def add(finding: Finding) -> None:
        state.found.append(replace(finding, target=one.name, target_digest=one.digest(finding.attack, settings)))
        report.add(state.found[-1])
        state.show(settings.among)

    def fail(attack: str, error: Exception) -> None:
        if is_interrupt(error):
            raise KeyboardInterrupt from error
        if is_typed("debug"):
            click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
        state.failed.append(Failed.of(one.name, attack, error))
        state.show(settings.among)

    watch_queries(one.target, lambda asked, planned: state.show(settings.among, queries_text(asked, planned)))
    suite(
        one.target, one.claim, settings.prior, settings.effort, settings.seed,
        among=settings.among, done=one.leaves_out | done, report=add, failed=fail,
    )  # fmt: skip


def watch_queries(target: object, progress: Callable[[int, int], None]) -> None:
    """Have the queries of attacks on a target reported, if it is asked any."""
    from tacit.attack import QueryInterface

    if isinstance(target, QueryInterface):
        target.progress = progress


def queries_text(asked: int, planned: int) -> str:
    """Return how many queries of an attack are done, in words."""
    return f"{asked:,} of {planned:,} queries"


def run_one(attack: str, one: Planned, settings: RunSettings) -> Finding:
    """Run one attack on a target, at a confidence without correction."""
    from tacit.attack import run

    found = run(attack, one.target, one.claim, settings.prior, settings.effort, settings.seed)
    return replace(found, target=one.name, target_digest=one.digest(attack, settings))


def _targets_file(options: SuiteOptions) -> Path | None:
    """Return the file of targets; one that is picked up from the folder is named on standard error."""
    if options.targets is not None:
        return options.targets
    path = options.folder / TARGETS_FILE
    if not path.exists():
        return None
    click.echo(f"targets: {path}", err=True)
    return path


def _planned(stack: ExitStack, place: Place, file: Path | None, effort: str) -> Iterator[Planned]:
    if file is None:
        from tacit.curator.self_audit import trials

        yield from map(_planned_of_trial, stack.enter_context(trials(effort)))
        return
    tables = read_toml(file).get("target")
    if not isinstance(tables, list) or not tables or not all(isinstance(one, dict) for one in tables):
        raise InvalidInput(f"{file} names no targets; write each as a table [[target]]", name="targets")
    names = [_name(one.get("name", f"target {number + 1}")) for number, one in enumerate(tables)]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"{file} names two targets {name}; give each a name of its own", name="name")
    for name, table in zip(names, tables, strict=True):
        yield planned_of_table(name, table, file.parent, place)


def _name(name: object) -> str:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise WrongType(f"the name of a target must be a printable text, not {name!r}", name="name", value=name)
    return name


def _planned_of_trial(trial: Trial) -> Planned:
    from tacit.attack import Claim

    claim = Claim.of(trial.promise, trial.delta or None)
    return Planned(trial.name, trial.target, claim, {"installation": trial.name}, None, trial.leaves_out, is_code=True)


def planned_of_table(name: str, table: Mapping[str, Any], base: Path, place: Place) -> Planned:
    """Return the target of a table of a file; paths are relative to `base`."""
    from tacit.privacy.texts import did_you_mean

    kinds = {**KINDS, QUERY.name: QUERY}
    kind = kinds.get(str(table.get("kind")))
    if kind is None:
        hint = did_you_mean(str(table.get("kind")), kinds, f"use {', '.join(kinds)}")
        raise UnknownName(f"the target {name} is of no known kind; {hint}", name="kind")
    claim = ClaimSettings.of(table.get("claim", {}), kind.claims, kind.name)
    settings = {key: value for key, value in table.items() if key not in ("name", "kind", "claim")}
    return planned(name, kind.name, kind.of_table(settings, base), claim, place)


def planned(name: str, kind_name: str, settings: Mapping[str, Any], claim: ClaimSettings, place: Place) -> Planned:
    """Return the target of the settings of a kind; nothing is asked or spent."""
    if kind_name == QUERY.name:
        made = query_target(settings, claim.epsilon, place)
        identity = {**QUERY.identity(settings), "place": place.address, "data": place.data_version(settings["table"])}
        return Planned(name, made.interface, claim.claim(place), identity, made.spending)
    kind = KINDS[kind_name]
    assert kind.make is not None
    target = kind.make(settings)
    return Planned(name, target, claim.claim(place), kind.identity(settings), is_code=kind is MECHANISM)
