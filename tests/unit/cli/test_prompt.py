"""`tacit sql` without a query: a question is shown with its price before it is asked, and no error ends the prompt."""

from __future__ import annotations

import os
import signal
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from tacit.cli import rendering
from tacit.cli.app import run
from tacit.cli.backends import FolderBackend
from tacit.cli.output import Screen
from tacit.cli.repl import prompt as prompt_module
from tacit.cli.repl.prompt import SqlCompleter, is_complete, is_quoted, run_repl, split_statements
from tacit.cli.repl.session import COMMANDS
from tacit.curator import Curator
from tacit.ledger import Budget
from tacit.pipeline.interrupts import run_shielded
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import Cancelled
from tacit.privacy.tables import Limits

BY_SEX = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"
ENTER, CTRL_C, CTRL_D = "\r", "\x03", "\x04"
NO_PRICE: dict[str, Any] = {
    "epsilon": None, "rho": None, "error": None, "delta": None, "limits": Limits(), "keys": None, "other": False,
}  # fmt: skip


def made(place: Path) -> Curator:
    rows = "".join(f"{i % 400},{20 + i % 60},{'FM'[i % 2]},{'abc'[i % 3]}\n" for i in range(1200))
    (place / "visits.csv").write_text(f"patient,age,sex,ward no\n{rows}", encoding="utf-8")
    curator = Curator(place / "clinic")
    facts = {"age": Bounds(0, 120), "sex": Categories(["F", "M"])}
    curator.add_table("visits", str(place / "visits.csv"), unit="patient", columns=facts)
    curator.set_budget("visits", epsilon=5, delta=1e-6)
    curator.add_analyst("ana", {"visits": Budget(epsilon=2, delta=1e-6)})
    return curator


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[Curator]:
    with made(tmp_path) as curator:
        yield curator


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Curator]:
    """A curator of whose budget nothing is ever spent, so that tests can share it."""
    with made(tmp_path_factory.mktemp("untouched")) as curator:
        yield curator
        assert spent(curator) == 0


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def typed(answers: Any, *lines: str, price: float | None = 0.5, **settings: Any) -> None:
    """Type lines, an Enter after each, and leave."""
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        keys.send_text("".join(f"{line}{ENTER}" for line in lines) + CTRL_D)
        run_repl(Screen(), answers, {**NO_PRICE, "epsilon": price}, **settings)


def spent(curator: Curator) -> float:
    return curator.budget("visits").spent().epsilon


def test_a_query_is_previewed_on_one_line_and_run_after_a_yes(
    curator: Curator, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(FolderBackend(curator), f"{BY_SEX};", "y")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"folder {curator.folder}: end a query with ;")
    assert lines[1] == "cost ε 0.5; n ± 48 (95 %); remaining ε 5 on visits"
    assert [line.split(",")[0] for line in lines[2:]] == ["sex", "F", "M"]
    assert spent(curator) == pytest.approx(0.5)


@pytest.mark.parametrize("reply", ["", "n", "no", "wait", CTRL_C, CTRL_D])
def test_a_question_that_is_not_consented_to_is_dropped_and_spends_nothing(
    untouched: Curator, capsys: pytest.CaptureFixture[str], reply: str
) -> None:
    typed(FolderBackend(untouched), f"{BY_SEX};", reply)
    out = capsys.readouterr().out
    assert "cost ε 0.5" in out
    assert "not run; nothing was charged" in out
    assert spent(untouched) == 0


def test_ctrl_c_after_the_charge_does_not_say_that_nothing_was_charged(
    curator: Curator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FolderBackend, "explain", interrupt)  # the answer is there, and not shown yet
    typed(FolderBackend(curator), ".confirm off", f"{BY_SEX};")
    out = capsys.readouterr().out
    assert spent(curator) == pytest.approx(0.5)
    assert "stopped; what was charged stays charged" in out
    assert "nothing was charged" not in out


def test_without_a_price_nothing_is_previewed_or_asked(untouched: Curator, capsys: pytest.CaptureFixture[str]) -> None:
    typed(FolderBackend(untouched), f"{BY_SEX};", f".preview {BY_SEX}", f".explain {BY_SEX}", price=None)
    out, err = capsys.readouterr()
    assert "set the privacy cost of a query first" in out
    assert err.count("T100 set the privacy cost first") == 3
    assert "costs" not in out
    assert spent(untouched) == 0


@pytest.mark.parametrize(
    ("command", "says"),
    [(".epsilon 0.25", "cost ε 0.25;"), (".rho 0.01", "cost ε 0."), (".error 12", "n ± 12 (95 %); remaining")],
)
def test_a_price_is_said_by_a_command(
    untouched: Curator, capsys: pytest.CaptureFixture[str], command: str, says: str
) -> None:
    typed(FolderBackend(untouched), command, f"{BY_SEX};", "n", price=None)
    assert says in capsys.readouterr().out


def test_the_same_question_again_is_said_to_cost_nothing(curator: Curator, capsys: pytest.CaptureFixture[str]) -> None:
    typed(FolderBackend(curator), f"{BY_SEX};", "y", f"{BY_SEX};", "Yes")
    assert "cost nothing, because the answer was released before" in capsys.readouterr().out
    assert spent(curator) == pytest.approx(0.5)


def test_a_statement_goes_over_lines_until_its_semicolon(curator: Curator, capsys: pytest.CaptureFixture[str]) -> None:
    typed(FolderBackend(curator), "SELECT COUNT(*) AS n", "FROM visits", "WHERE sex <> ';' ;", "y")
    assert "cost ε 0.5" in capsys.readouterr().out
    assert spent(curator) == pytest.approx(0.5)


def test_ctrl_c_drops_what_is_typed_and_the_prompt_goes_on(
    untouched: Curator, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(FolderBackend(untouched), f"SELECT nonsense{CTRL_C}.tables")
    out, err = capsys.readouterr()
    assert "visits,each patient,visits,4" in out
    assert err == ""


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("SELECT * FROM visits;", "T203"),
        ("SELEC;", "T130"),
        ("SELECT COUNT(*) FROM elsewhere;", "T131"),
        (".describe elsewhere", "T131"),
        (".nonsense", "T100"),
        (".epsilon much", "T100"),
        (".epsilon -1", "T101"),
        (".confirm maybe", "T100"),
        (".analyst nobody", "T120"),
        (".preview SELECT", "T130"),
    ],
)
def test_an_error_is_one_sentence_with_a_code_and_the_prompt_goes_on(
    untouched: Curator, capsys: pytest.CaptureFixture[str], line: str, code: str
) -> None:
    typed(FolderBackend(untouched), line, ".tables")
    out, err = capsys.readouterr()
    assert err.startswith(f"{code} ")
    assert len(err.splitlines()) == 1
    assert "each patient" in out
    assert spent(untouched) == 0


def test_a_query_that_does_not_fit_is_not_asked_about(untouched: Curator, capsys: pytest.CaptureFixture[str]) -> None:
    typed(FolderBackend(untouched), ".epsilon 3", f"{BY_SEX};", f".preview {BY_SEX}", ".budget", analyst="ana")
    out, err = capsys.readouterr()
    assert err == ""  # .preview was not taken for an answer to "Run it?"
    line, refusal = out.splitlines()[2:4]
    assert line == "cost ε 3; n ± 8 (95 %); remaining ε 2 for ana on visits"
    assert refusal.startswith("not run, because it does not fit the budget: asked for epsilon 3, 2 is left for ana on")
    assert out.count("; .epsilon 2 would fit") == 2
    assert "visits,0,5,5" in out
    typed(FolderBackend(untouched), ".confirm off", ".epsilon 3", f"{BY_SEX};", analyst="ana")
    assert "; .epsilon 2 would fit" in capsys.readouterr().err
    assert spent(untouched) == 0


def test_a_value_that_is_no_category_is_hinted_at_before_the_charge(
    untouched: Curator, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT COUNT(*) AS n FROM visits WHERE sex = 'x'"
    typed(FolderBackend(untouched), f"{sql};", "n", f".preview {sql}")
    assert capsys.readouterr().out.count("hint: 'x' is not one of the categories of sex (F, M)") == 2


def test_text_is_wrapped_at_words_on_a_terminal(
    untouched: Curator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    monkeypatch.setattr("rich.console.Console.width", 40)
    typed(FolderBackend(untouched), f"{BY_SEX};", "n", "SELECT * FROM visits;")
    out, err = capsys.readouterr()
    assert "\ncost ε 0.5; n ± 48 (95 %); remaining ε 5\non visits\n" in out
    for line in (out + err).splitlines():
        assert len(line) <= 40 or " " not in line  # a path is not broken


def test_of_several_statements_those_after_a_failed_one_are_not_asked(
    curator: Curator, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(FolderBackend(curator), ".confirm off", f"SELECT * FROM visits; {BY_SEX};")
    assert capsys.readouterr().err.startswith("T203")
    assert spent(curator) == 0
    typed(FolderBackend(curator), ".confirm off", f"{BY_SEX}; SELECT COUNT(*) FROM visits;")
    assert spent(curator) == pytest.approx(1.0)


def test_the_commands_show_what_they_are_about(curator: Curator, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [".help", ".describe visits", ".budget", ".analyst ana", f".preview {BY_SEX};", f".explain {BY_SEX}"]
    typed(FolderBackend(curator), *commands, ".card", ".confirm off", f"{BY_SEX};", ".card")
    out, err = capsys.readouterr()
    assert err == ""
    assert all(name in out for name in COMMANDS)
    assert "age,integer,0 to 120" in out
    assert "queries are charged to ana and to the data set" in out
    assert "remaining\tε 2 for ana on visits" in out
    assert "engine\tSELECT" in out
    assert "no query has been answered yet" in out
    assert "Protects each unit of visits" in out
    assert curator.budget("visits", "ana").spent().epsilon == pytest.approx(0.5)


def test_quit_leaves_at_once(untouched: Curator, capsys: pytest.CaptureFixture[str]) -> None:
    typed(FolderBackend(untouched), ".quit;", ".tables")
    assert "each patient" not in capsys.readouterr().out


class Slow(FolderBackend):
    """Answers that take until they are cancelled."""

    def __init__(self, curator: Curator) -> None:
        super().__init__(curator)
        self.stopped = threading.Event()
        self.cancelled: list[int] = []

    def sql(self, sql: str, asked: Mapping[str, Any], analyst: str | None, **rest: Any) -> Any:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        assert self.stopped.wait(10)
        raise Cancelled("the query was cancelled while it ran; what was charged stays charged")

    def cancel(self, thread: int) -> None:
        self.cancelled.append(thread)
        self.stopped.set()


def test_ctrl_c_stops_the_question_that_runs_and_the_prompt_goes_on(
    untouched: Curator, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = Slow(untouched)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests may run where interrupts are ignored
    try:
        typed(answers, ".confirm off", f"{BY_SEX};", ".tables")
    finally:
        signal.signal(signal.SIGINT, before)
    out, err = capsys.readouterr()
    assert not err
    assert "what was charged stays charged" in out
    assert "each patient" in out
    assert answers.cancelled
    assert threading.get_ident() not in answers.cancelled


def test_an_answer_that_came_before_the_cancelling_is_not_lost() -> None:
    def work() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        return "paid for"

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run_shielded(work, lambda _thread: None) == "paid for"
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_history_is_closed_to_others_and_remembers(untouched: Curator, state: Path) -> None:
    typed(FolderBackend(untouched), f"{BY_SEX};", "n")
    path = state / "tacit" / "history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    text = path.read_text(encoding="utf-8")
    assert BY_SEX in text
    assert "+n\n" not in text  # what was said instead of consent is no question


def test_a_history_that_others_could_read_is_closed(state: Path) -> None:
    path = prompt_module.history_path()
    path.parent.mkdir(parents=True)
    path.write_text("", encoding="utf-8")
    path.chmod(0o644)
    prompt_module.history()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_history_that_is_a_link_is_not_followed(state: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("mine", encoding="utf-8")
    target.chmod(0o644)
    prompt_module.history_path().parent.mkdir(parents=True)
    prompt_module.history_path().symlink_to(target)
    prompt_module.history().append_string("SELECT 1;")
    assert target.read_text(encoding="utf-8") == "mine"
    assert stat.S_IMODE(target.stat().st_mode) == 0o644


def test_a_state_directory_that_is_not_absolute_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert prompt_module.history_path({"XDG_STATE_HOME": "relative"}) == Path.home() / ".local/state/tacit/history"


def offered(untouched: Curator, before: str, after: str = "") -> list[str]:
    words = SqlCompleter(FolderBackend(untouched).tables)
    document = Document(before + after, len(before))
    return [one.text for one in words.get_completions(document, CompleteEvent(completion_requested=True))]


@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        ("SELECT COUNT(*) FROM ", "", ["visits"]),
        ("SELECT COUNT(*) FROM v", "", ["visits"]),
        ("SEL", "", ["SELECT"]),
        ("SELECT a", " FROM visits", ["age", "AS", "AND", "AVG", "ABS"]),
        ("SELECT visits.s", "", ["sex"]),
        ("SELECT v.pa", " FROM visits AS v", ["patient"]),
        ("SELECT v.pa", " FROM visits v WHERE v.age > 3", ["patient"]),
        ('SELECT "wa', "", ['"ward no"']),
        ("SELECT war", "", ['"ward no"']),
        ("SELECT x.pa", "", []),
        ("SELECT COUNT(*) FROM visits WHERE sex = 'a", "", []),
        ("-- SEL", "", []),
        (".desc", "", [".describe"]),
        (".describe v", "", ["visits"]),
        (".confirm o", "", ["on", "off"]),
        (".preview SELECT se", "", ["sex", "SELECT"]),
        (".epsilon ", "", []),
    ],
)
def test_what_may_come_next_is_offered(untouched: Curator, before: str, after: str, first: list[str]) -> None:
    found = offered(untouched, before, after)
    assert sorted(found) == sorted(first)
    assert found[:1] == first[:1]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' ;", ["SELECT ';'"]),
        ("SELECT 'it''s;' ;", ["SELECT 'it''s;'"]),
        ('SELECT ";" ;', ['SELECT ";"']),
        ("SELECT 1 -- no; end\n;", ["SELECT 1 -- no; end"]),
        ("SELECT /* ; */ 1;", ["SELECT /* ; */ 1"]),
        ("SELECT 1; -- done", ["SELECT 1"]),
        ("SELECT /* a /* ; */ ; */ 1;", ["SELECT /* a /* ; */ ; */ 1"]),
        ("SELECT $$ ; $$; SELECT 2;", ["SELECT $$ ; $$", "SELECT 2"]),
        ("SELECT 'ä😀;' ; SELECT 'é';", ["SELECT 'ä😀;'", "SELECT 'é'"]),
        (";;", []),
        ("", []),
    ],
)
def test_statements_end_at_semicolons_outside_of_quotes_and_comments(text: str, parts: list[str]) -> None:
    assert split_statements(text) == parts
    assert is_complete(text)


@pytest.mark.parametrize(
    "text", ["SELECT 1", "SELECT ';", 'SELECT ";', "SELECT 1 -- ;", "SELECT /* ;", "SELECT 1; SELECT", "SELECT $$ ;"]
)
def test_a_statement_without_its_end_goes_on(text: str) -> None:
    assert not is_complete(text)


def test_a_text_with_an_open_quote_is_asked_as_one_statement_so_that_all_of_it_is_refused() -> None:
    assert split_statements("SELECT 1; SELECT 'a; ") == ["SELECT 1; SELECT 'a;"]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [("SELECT 'a", True), ("SELECT 'a'", False), ("-- x", True), ("-- x\n", False), ("/* x", True), ("SELECT", False)],
)
def test_whether_the_cursor_is_in_quotes_is_known(text: str, quoted: bool) -> None:
    assert is_quoted(text) is quoted


def test_where_nobody_types_the_command_says_what_to_do(
    untouched: Curator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (["sql"], ["sql", "--epsilon", "1"], ["sql", "--json"]):
        assert run([*words, "--folder", str(untouched.folder)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "T100" in err
        assert "give the query as an argument, or - to read it from standard input" in err


def test_the_command_opens_the_prompt_on_a_terminal(
    untouched: Curator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Typing:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Typing())
    monkeypatch.setattr("tacit.cli.output.Screen.console", Screen().console)
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        keys.send_text(f".tables{ENTER}{CTRL_D}")
        assert run(["sql", "--folder", str(untouched.folder), "--analyst", "ana"]) == 0
    assert "each patient" in capsys.readouterr().out


def test_no_terminal_is_written_to_by_a_value_of_the_data() -> None:
    planted = "\x1b]0;owned\x07\x1b[2J"
    assert rendering.cell(planted).isprintable()
    assert rendering.cell("ward 5, Zürich") == "ward 5, Zürich"
