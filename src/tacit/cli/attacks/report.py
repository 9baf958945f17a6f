"""Findings of `tacit attack`: as a table or facts, in files for pipelines, as lines of JSON, and in the exit code."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.output import Fact, Screen, writing_answer
from tacit.privacy.errors import InvalidInput, StorageUnavailable, TacitError

if TYPE_CHECKING:
    from tacit.attack import Finding
    from tacit.attack.ci_formats import FailedAttack

EXIT_FOUND: Final = 1
"""The exit code for a finding that --fail-on names."""
SERIOUS: Final = {"violates": ("violates",), "underpowered": ("violates", "underpowered")}
UNFINISHED: Final = "the suite ended before all attacks were run"
FIRST: Final = b'{"schema_version"'
"""The beginning of a line of a journal, by which a torn one is told from a file of another kind."""


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The files to which findings are written."""

    html: Path | None
    junit: Path | None
    sarif: Path | None
    journal: Path | None

    def check(self) -> None:
        """Raise StorageUnavailable for a file that cannot be written, and UsageError for one that is named twice."""
        paths = [one for one in (self.html, self.junit, self.sarif, self.journal) if one is not None]
        for written in paths:
            path = written.resolve()  # a link to a file that does not exist yet stays a link
            if not path.parent.is_dir():
                raise StorageUnavailable(f"there is no folder {written.parent}")
            is_new = not path.exists()
            with _writing(written), path.open("ab"):
                pass
            if is_new:
                path.unlink()
        if len({path.resolve() for path in paths}) < len(paths):
            raise click.UsageError("write each of --html, --junit, --sarif and --findings to a file of its own")


@dataclass(frozen=True, slots=True)
class Journal:
    """The findings of a file with a line of JSON each; a last line that was not written whole is dropped."""

    path: Path
    held: tuple[Finding, ...]
    torn_from: int | None
    """Where a last line begins that was not written whole; None if there is none."""

    @classmethod
    def of(cls, path: Path) -> Journal:
        """Return the journal of a file, which need not exist; raise InvalidInput for lines that are no findings."""
        from tacit.attack import Finding

        try:
            written = path.read_bytes() if path.exists() else b""
            *lines, last = written.split(b"\n")
            if last and last[: len(FIRST)] != FIRST[: len(last)]:
                raise InvalidInput("the last line is no finding", name="findings")
            held = tuple(Finding.from_json(line) for line in lines if line.strip())
        except OSError as error:
            raise StorageUnavailable(f"{path} cannot be read ({error.strerror})") from None
        except TacitError:
            raise InvalidInput(f"{path} holds lines that are no findings", name="findings") from None
        return cls(path, held, len(written) - len(last) if last else None)

    def add(self, finding: Finding) -> Journal:
        """Append a finding, in the place of a torn line, and return the journal without that line."""
        document = finding.to_dict()
        type(finding).from_dict(document)  # raises for what could not be read again
        line = json.dumps(document, allow_nan=False).encode("ascii") + b"\n"
        with _writing(self.path), self.path.open("ab") as file:
            if self.torn_from is not None:
                file.truncate(self.torn_from)
            file.write(line)
        return replace(self, torn_from=None)


class Report:
    """Where findings go: files, the screen, and the exit code."""

    def __init__(
        self, files: ReportFiles, seed: int | None, fail_on: str | None, *, shows_records: bool = False
    ) -> None:
        if files.journal is not None and seed is None:
            raise click.UsageError("--findings needs --seed N, by which a finding of the same run is recognised")
        files.check()
        self.files, self.seed, self.fail_on, self._shows_records = files, seed, fail_on, shows_records
        self._journal = None if files.journal is None else Journal.of(files.journal)
        self._held = {} if self._journal is None else {one.target_digest: one for one in reversed(self._journal.held)}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Report:
        """Return the report of a command; raise for a file that cannot be written, before anything is run."""
        files = ReportFiles(**{name: values[name] for name in ("html", "junit", "sarif", "journal")})
        return cls(files, values["seed"], values["fail_on"], shows_records=values["show_records"])

    def known(self, digest: str) -> Finding | None:
        """Return the finding of the same run that the journal holds, unless its attack could not be run."""
        found = self._held.get(digest)
        return None if found is None or not found.measurements else found

    def add(self, finding: Finding) -> None:
        """Append a finding to the journal."""
        if self._journal is not None and (finding.measurements or finding.target_digest not in self._held):
            self._journal = self._journal.add(self._shown(finding))

    def _shown(self, finding: Finding) -> Finding:
        """Return a finding as it is written: without records of people unless --show-records was given."""
        return finding if self._shows_records else finding.without_people()

    def show(
        self,
        screen: Screen,
        findings: Sequence[Finding],
        failed: Sequence[Failed] = (),
        *,
        keep: Callable[[], str] | None = None,
        stopped: BaseException | None = None,
    ) -> None:
        """Write the findings to files, keep them, and show them; raise `stopped`, or exit with the code of the outcome.

        The code is 1 if --fail-on names one of the findings, otherwise that of the gravest error. A finding that cannot
        be kept is written and shown all the same.
        """
        shown = [self._shown(one) for one in findings]
        ended = [] if stopped is None else [Failed("suite", "all attacks", "interrupted", "", UNFINISHED, 1)]
        errors: list[Exception] = [*self.write(shown, [*failed, *ended])]
        kept = None
        try:
            kept = None if keep is None else keep()
        except KeyboardInterrupt as error:
            stopped = error
        except Exception as error:
            errors.append(error)
        try:
            with writing_answer("run the command again"):
                if findings or stopped is None:
                    _show(screen, shown, kept)
        except (OSError, TacitError) as problem:
            stopped = stopped or problem
        codes = [one.exit_code for one in failed]
        for one in failed:
            _show_error(screen, one.code, f"{one.target}, {one.attack}: {one.message}")
        for described in map(_described, errors):
            _show_error(screen, described.code, described.message)
            codes.append(described.exit_code)
        if stopped is not None:
            raise stopped
        if self.fail_on is not None and any(one.verdict in SERIOUS[self.fail_on] for one in findings):
            raise click.exceptions.Exit(EXIT_FOUND)
        if codes:
            raise click.exceptions.Exit(max(codes))

    def write(self, findings: Sequence[Finding], failed: Sequence[Failed]) -> list[TacitError]:
        """Write the files of the findings, and return the errors of those that could not be written."""
        from tacit.attack.ci_formats import to_junit, to_sarif
        from tacit.attack.html_report import page

        writers: list[tuple[Path | None, Callable[[], str]]] = [
            (self.files.html, lambda: page(findings)),
            (self.files.junit, lambda: to_junit(findings, [one.without_text() for one in failed])),
            (self.files.sarif, lambda: to_sarif(findings)),
        ]
        errors: list[TacitError] = []
        for path, text in writers:
            if path is not None:
                try:
                    with _writing(path):
                        _replace(path, text().encode("utf-8", errors="backslashreplace"))
                except StorageUnavailable as error:
                    errors.append(error)
        return errors


@dataclass(frozen=True, slots=True)
class Failed:
    """An attack that ended with an error."""

    target: str
    attack: str
    code: str
    message: str
    """The message of the error, which may quote a person: for standard error alone."""
    sentence: str
    """The type of the error, and fixed text."""
    exit_code: int

    @classmethod
    def of(cls, target: str, attack: str, error: Exception) -> Failed:
        """Return the record of an error."""
        from tacit.attack.targets import DoesNotFit

        failure = _described(error)
        fixed = f": {error.sentence}" if isinstance(error, DoesNotFit) else ""
        return cls(target, attack, failure.code, failure.message, f"{type(error).__name__}{fixed}", failure.exit_code)

    def without_text(self) -> FailedAttack:
        """Return what may be written to a file."""
        from tacit.attack.ci_formats import FailedAttack

        return FailedAttack(self.target, self.attack, self.code, self.sentence, self.exit_code)


def _described(error: Exception) -> Any:
    from tacit.cli.app import describe_error
    from tacit.cli.options import folder_argument

    return describe_error(error, folder_argument())


def printable(text: str) -> str:
    """Return text on one line, with unprintable characters escaped so that it cannot control a terminal."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in " ".join(text.split()))


def _show_error(screen: Screen, code: str, message: str) -> None:
    sentence = printable(message)
    if screen.as_json:
        click.echo(json.dumps({"error": {"code": code, "message": sentence}}, ensure_ascii=False), err=True)
    else:
        click.echo(f"tacit: {code} {sentence}", err=True)


def _replace(path: Path, content: bytes) -> None:
    """Write a file as a whole; what a link names is replaced, and the link stays."""
    target = path.resolve()
    if target.exists() and not target.is_file():  # a pipe or a device
        target.write_bytes(content)
        return
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be written ({error.strerror})") from None


def _show(screen: Screen, findings: Sequence[Finding], kept: str | None) -> None:
    from tacit.attack.html_report import figures

    if screen.as_json:
        shown = {"findings": [one.to_dict() for one in findings]}
        screen.show_object(shown if kept is None else {**shown, "kept": kept})
        return
    if len(findings) == 1 and screen.has_reader:
        screen.show_facts([Fact(one.label, printable(one.text), one.is_answer) for one in _facts(findings[0], kept)])
        return
    for one in findings:
        if not one.measurements:
            refusal = str(one.details.get("refusal") or "")
            why = one.reason.rstrip(".") + f" ({refusal})" * bool(refusal)
            click.echo(printable(f"left out: {one.target}, {one.attack}: {why}"), err=True)
    findings = [one for one in findings if one.measurements]
    columns = ["target", "attack", "verdict", "claimed", "shown", "seconds", "reason", "figures", "assumptions"]
    rows = [
        [
            *(one.target, one.attack, str(one.verdict), claim_of(one), bound_of(one), f"{one.seconds:.1f}", one.reason),
            "; ".join(f"{measured.name}: {figures(measured)}" for measured in one.measurements),
            "; ".join(one.assumptions),
        ]
        for one in findings
    ]
    rows = [[printable(cell) for cell in row] for row in rows]
    if not screen.has_reader:
        screen.show_records(columns, rows)
        return
    screen.show_records(columns[:6], [row[:6] for row in rows])
    for one in findings:
        if one.is_violation:
            click.echo(printable(f"{one.target}, {one.attack}: {one.reason}"))


def _facts(one: Finding, kept: str | None) -> list[Fact]:
    from tacit.attack.html_report import figures

    found = [Fact("verdict", str(one.verdict), is_answer=True), Fact("", one.reason)]
    if one.lower_bound is not None:
        found.append(Fact("lower bound", f"{bound_of(one)} at {100 * one.confidence:.4g} % confidence"))
    found += [Fact(measured.name[:1].upper() + measured.name[1:], figures(measured)) for measured in one.measurements]
    found.append(Fact("attacker", f"{one.threat_model.access}; knows {one.threat_model.knowledge}"))
    found += [Fact("assumes", text) for text in one.assumptions]
    found.append(Fact("took", f"{one.seconds:.2f} s, {one.threat_model.queries:,} queries"))
    return found if kept is None else [*found, Fact("kept as", kept)]


def claim_of(one: Finding) -> str:
    """Return the claim of a finding in words, or nothing."""
    return "" if one.claimed is None else one.claimed.words


def bound_of(one: Finding) -> str:
    """Return the lower bound of a finding, a share in percent, or nothing."""
    from tacit.attack.finding import EPSILON

    if one.lower_bound is None:
        return ""
    return f"{one.lower_bound:.3g}" if one.bounds == EPSILON else f"{100 * one.lower_bound:.3g} %"
