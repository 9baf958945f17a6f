"""The command line: exit codes, errors as one sentence, JSON, and a quiet end whatever happens."""

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from typing import Any

import click
import pytest

from tacit import __version__
from tacit.cli import app as application
from tacit.cli.app import app, run
from tacit.cli.groups import Command
from tacit.cli.output import Screen
from tacit.privacy import errors
from tacit.privacy.numbers import positive


def tacit(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "tacit", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **settings)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes `tacit fail` raise an error."""

    def plant(error: BaseException) -> None:
        @click.command("fail", cls=Command)
        def fail() -> None:
            raise error

        monkeypatch.setitem(app.commands, "fail", fail)
        monkeypatch.setattr(type(app), "get_command", click.Group.get_command)

    return plant


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert capsys.readouterr().out.startswith("Usage: tacit [OPTIONS]")


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_names_every_command_and_the_exit_codes(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([option]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    refused = "3 refused (privacy, budget, access or unsupported SQL)"
    assert all(name in shown for name in ("completion", "demo", "errors", "2 usage error", refused))


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"tacit {__version__}\n"


def test_every_command_takes_json_and_debug() -> None:
    with app.make_context("tacit", [], resilient_parsing=True) as context:
        commands = [app.get_command(context, name) for name in app.list_commands(context)]
    assert commands
    for command in [app, *commands]:
        assert command is not None
        assert {"json", "debug"} <= {parameter.name for parameter in command.params}


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (errors.NotPositive("epsilon must be above 0, not -1"), 2),
        (errors.QueryRefused("grouping by the unit shows single people"), 3),
        (errors.BudgetExceeded("asked for epsilon 1, 0.2 is left"), 3),
        (errors.NotPermitted("ana may not see visits"), 3),
        (errors.LedgerCorrupt("the journal does not verify"), 4),
        (errors.Unavailable("install tacit[spark]"), 4),
    ],
)
def test_an_error_of_the_tree_is_one_sentence_with_its_code_and_exit_code(
    error: errors.TacitError, exit_code: int, failing: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(error)
    assert run(["fail"]) == exit_code
    assert capsys.readouterr() == ("", f"tacit: {error.code} {error.message}\n")


@pytest.mark.parametrize("arguments", [["--json", "fail"], ["fail", "--json"]])
def test_with_json_an_error_is_an_object_on_standard_error(
    arguments: list[str], failing: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(errors.BudgetExceeded("nothing is left"))
    assert run(arguments) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err) == {"error": {"code": "T300", "message": "nothing is left"}}


def test_a_refused_number_is_shown_as_the_kernel_says_it(failing: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(errors.NotPositive) as refusal:
        positive("epsilon", -1)
    failing(refusal.value)
    run(["fail"])
    assert capsys.readouterr().err == "tacit: T101 epsilon must be above 0, not -1\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["unknown"], "tacit: T100 no such command 'unknown'; see tacit --help"),
        (["demo", "--unknown"], "tacit: T100 no such option"),
        (["completion"], "tacit: T100 missing argument"),
        (["completion", "tcsh"], "tacit: T100 invalid value"),
        (["errors", "T300", "extra"], "tacit: T100 got unexpected extra argument"),
    ],
)
def test_bad_use_is_one_sentence_and_exit_code_2(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(sentence)
    assert err.endswith(" --help\n")
    assert err.count("\n") == 1
    assert run([*arguments, "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "T100"


def test_an_unexpected_error_is_one_line_and_exit_code_4(failing: Any, capsys: pytest.CaptureFixture[str]) -> None:
    failing(ZeroDivisionError("first line\nsecond line"))
    assert run(["fail"]) == 4
    assert capsys.readouterr().err == (
        "tacit: T000 internal error: ZeroDivisionError: first line second line; run with --debug for the traceback\n"
    )


def test_an_unexpected_error_without_words_is_named(failing: Any, capsys: pytest.CaptureFixture[str]) -> None:
    failing(MemoryError())
    assert run(["fail"]) == 4
    assert "internal error: MemoryError; run" in capsys.readouterr().err


@pytest.mark.parametrize("error", [ZeroDivisionError("defect"), errors.InvalidInput("refused")])
def test_debug_shows_the_traceback_before_the_sentence(
    error: Exception, failing: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(error)
    run(["fail", "--debug"])
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "Traceback (most recent call last):"
    assert last.startswith("tacit: T")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), click.Abort()])
def test_an_interruption_ends_quietly_with_130(
    interruption: BaseException, failing: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(interruption)
    assert run(["fail"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("words", [["errors"], ["demo", "--no-serve"]])
def test_a_reader_that_has_gone_ends_it_quietly_with_141(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tacit", *words], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_module_runs_as_the_command_does() -> None:
    assert tacit("--version").stdout == f"tacit {__version__}\n"


def test_the_exit_code_reaches_the_shell() -> None:
    assert tacit("unknown").returncode == 2


def test_an_output_without_greek_letters_shows_question_marks_instead_of_failing() -> None:
    done = tacit("demo", "--no-serve", env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "? 0.50" in done.stdout


def test_starting_loads_neither_numpy_nor_rich() -> None:
    program = (
        "import sys, tacit.cli; tacit.cli.app.run(['--help']); print({'numpy', 'rich', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


class Terminal(io.StringIO):
    """A place to write to that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    return Terminal()


def test_a_table_is_ruled_on_a_terminal(terminal: Terminal) -> None:
    with redirect_stdout(terminal):
        Screen().show_table(("code", "meaning"), [("T100", "bad use")])
    shown = terminal.getvalue()
    assert "─" in shown
    assert "\x1b[1m" in shown


def test_brackets_in_a_table_are_text(terminal: Terminal) -> None:
    with redirect_stdout(terminal):
        Screen().show_table(("meaning",), [("install tacit[red]",)])
    assert "install tacit[red]" in terminal.getvalue()


def test_records_are_csv_with_a_header_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().show_records(("code", "meaning"), [("T100", "bad use"), ("T200", "refused, or not")])
    assert capsys.readouterr().out == 'code,meaning\nT100,bad use\nT200,"refused, or not"\n'


def test_no_color_removes_every_colour_on_a_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    colour = "\x1b[1;36m"
    with redirect_stdout(terminal):
        run(["demo", "--no-serve"])
    assert colour in terminal.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stdout(plain := Terminal()):
        run(["demo", "--no-serve"])
    assert "private answer" in plain.getvalue()
    assert not re.search(r"\x1b\[[\d;]*3\d", plain.getvalue())


def test_a_command_of_the_folder_is_named_with_hyphens(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = [type("Module", (), {"name": "two_words"})]
    monkeypatch.setattr("tacit.cli.groups.iter_modules", lambda _: modules)
    context = click.Context(application.app)
    assert application.app.list_commands(context) == ["two-words"]
