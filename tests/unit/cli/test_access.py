"""`tacit access`: what it changes is what the server sees; secrets are asked without echo and shown once."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from tacit import Curator
from tacit.cli.app import run
from tacit.server.access import Access, Grant, Hasher, Role
from tacit.server.database import FILE_NAME, open_database
from tests.support import postgres_server
from tests.unit.cli.terminal import Typist

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.server.access.access.Hasher", lambda: Hasher(is_cheap=True))


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    place = tmp_path / "clinic"
    assert run(["init", str(place)]) == 0
    capsys.readouterr()
    return place


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.touch(0o600)
    file.write_text(f"{PASSWORD}\n", encoding="utf-8")
    return file


def access(folder: Path, *words: str) -> int:
    return run(["access", *words, "--folder", str(folder)])


def answer(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert access(folder, *words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_the_road_from_nobody_to_a_token_that_works(
    folder: Path, password_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    added = answer(folder, capsys, "people", "add", "ana", "--password-file", str(password_file))
    assert (added["name"], added["is_active"], added["grants"]) == ("ana", True, [])
    granted = answer(folder, capsys, "grant", "ana", "--role", "owner")
    assert granted["grants"] == [{"role": "owner", "dataset": None, "table": None}]
    words = ("token", "create", "ana", "--days", "3", "--role", "analyst", "--dataset", "visits", "--label", "laptop")
    made = answer(folder, capsys, *words)
    database = open_database(folder)
    server = Access(database)
    actor = server.actor_of_token(made["token"])
    assert (actor.name, actor.grants, actor.limit.role if actor.limit else None) == (
        *("ana", (Grant(Role.OWNER),), Role.ANALYST),
    )
    server.login("ana", PASSWORD)
    (listed,) = answer(folder, capsys, "token", "list", "ana")["tokens"]
    assert (listed["id"], listed["label"], listed["role"], listed["dataset"]) == (
        *(made["id"], "laptop", "analyst", "visits"),
    )
    assert listed["last_used_at"] is not None
    assert made["token"][-43:] not in json.dumps(listed)
    assert answer(folder, capsys, "token", "revoke", made["id"])["is_revoked"]
    assert answer(folder, capsys, "token", "list")["tokens"][0]["is_revoked"]
    database.close()


def test_people_are_removed_but_not_the_last_owner(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ana", "bob"):
        answer(folder, capsys, "people", "add", name, "--no-password")
    answer(folder, capsys, "grant", "ana", "--role", "owner")
    answer(folder, capsys, "grant", "bob", "--role", "analyst", "--dataset", "clinic", "--table", "visits")
    assert access(folder, "withdraw", "ana", "--role", "owner") == 3
    assert access(folder, "people", "remove", "ana") == 3
    assert "ana is the last owner" in capsys.readouterr().err
    assert access(folder, "withdraw", "bob", "--role", "analyst", "--dataset", "clinic") == 2
    assert access(folder, "withdraw", "bob", "--role", "analyst", "--dataset", "clinic", "--table", "visits") == 0
    assert access(folder, "people", "remove", "bob") == 0
    capsys.readouterr()
    listed = {one["name"]: one for one in answer(folder, capsys, "people", "list")["people"]}
    assert (listed["ana"]["is_active"], listed["bob"]["is_active"]) == (True, False)


def test_the_audit_shows_what_was_changed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(folder, capsys, "people", "add", "ana", "--no-password")
    answer(folder, capsys, "grant", "ana", "--role", "owner")
    records = answer(folder, capsys, "audit")["records"]
    assert [(one["number"], one["action"], one["person"], one["code"]) for one in records] == [
        (1, "people.write", "ana", "done"),
        (2, "grant.owner", "ana", "done"),
    ]
    assert [one["number"] for one in answer(folder, capsys, "audit", "--records", "1")["records"]] == [2]
    assert [one["number"] for one in answer(folder, capsys, "audit", "--first", "1", "--records", "1")["records"]] == [
        1
    ]


def test_in_a_pipe_lists_are_csv_and_hints_go_to_standard_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert access(folder, "people", "add", "ana", "--no-password") == 0
    assert "tacit access grant ana --role owner --folder" in capsys.readouterr().err
    assert access(folder, "token", "create", "ana") == 0
    made = capsys.readouterr()
    assert made.out.startswith("tacit_")
    assert made.out.count("\n") == 1
    assert "the token is shown only once" in made.err
    assert access(folder, "people", "list") == 0
    assert capsys.readouterr().out.startswith("name,roles,since\nana,none,")


@pytest.mark.parametrize("words", [("people", "list"), ("token", "list"), ("audit",)])
def test_every_list_has_a_header_in_each_format_also_when_it_is_empty(
    folder: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert access(folder, *words) == 0
    empty = capsys.readouterr()
    assert empty.out.count("\n") == 1
    assert "," in empty.out
    assert empty.err.startswith(("no ", "the audit log is empty"))
    assert access(folder, "people", "add", "ana", "--no-password") == 0
    assert access(folder, "token", "create", "ana") == 0
    capsys.readouterr()
    assert access(folder, *words, "--format", "markdown") == 0
    assert capsys.readouterr().out.startswith(f"| {empty.out.strip().replace(',', ' | ')} |\n| --- |")
    assert access(folder, *words, "--format", "table") == 0
    assert "─" in capsys.readouterr().out
    assert access(folder, *words, "--format", "json") == 0
    assert len(next(iter(json.loads(capsys.readouterr().out).values()))) >= 1


@pytest.fixture
def visits(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder whose data set visits has a budget, with a person who has none on it."""
    assert run(["budget", "set", "visits", "--epsilon", "3", "--folder", str(folder)]) == 0
    assert access(folder, "people", "add", "ana", "--no-password") == 0
    capsys.readouterr()
    return folder


def caps(folder: Path) -> dict[str, float]:
    with Curator(folder) as curator:
        return {one.scope.name: one.cap.epsilon for one in curator.budgets("visits") if one.scope.kind == "analyst"}


GRANT = ("grant", "ana", "--role", "analyst", "--dataset", "visits")


def test_a_grant_to_an_analyst_without_a_budget_says_how_to_set_one(
    visits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hint = f"ana has no budget on visits yet: tacit budget analyst ana visits --epsilon 1 --folder {visits}"
    assert access(visits, *GRANT) == 0
    shown = capsys.readouterr()
    assert shown.out == "ana is analyst on visits\n"
    assert f"hint: {hint}\n" in shown.err
    assert answer(visits, capsys, *GRANT)["hints"] == [hint]
    assert caps(visits) == {}
    assert run(hint.partition("tacit ")[2].split()) == 0
    assert caps(visits) == {"ana": 1.0}
    capsys.readouterr()
    assert "hints" not in answer(visits, capsys, *GRANT)
    assert "hints" not in answer(visits, capsys, "grant", "ana", "--role", "curator", "--dataset", "visits")
    assert "hints" not in answer(visits, capsys, "grant", "ana", "--role", "analyst", "--dataset", "other")


def test_at_a_terminal_a_grant_asks_for_the_epsilon_until_it_can_be_set(
    visits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("access", *GRANT, "--folder", str(visits))
    code, shown = Typist(monkeypatch).runs(*words, types=["much", "7", "0.5"])
    assert code == 0
    assert "epsilon that ana may spend on visits (Enter skips)" in shown
    assert "write a number" in shown
    assert shown.endswith("ana may spend ε 0.5 on visits\n")
    assert caps(visits) == {"ana": 0.5}


def test_at_a_terminal_enter_skips_the_epsilon(
    visits: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _shown = Typist(monkeypatch).runs("access", *GRANT, "--folder", str(visits), types=[" "])
    assert code == 0
    assert "ana has no budget on visits yet" in capsys.readouterr().err
    assert caps(visits) == {}


def test_on_a_terminal_tables_have_heads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typist = Typist(monkeypatch)
    place = ("--folder", str(folder))
    assert typist.runs("access", "people", "list", *place)[1].startswith("no people yet")
    assert "no tokens" in typist.runs("access", "token", "list", *place)[1]
    assert "the audit log is empty" in typist.runs("access", "audit", *place)[1]
    assert typist.runs("access", "people", "add", "ana", "--no-password", *place)[0] == 0
    assert typist.runs("access", "token", "create", "ana", *place)[0] == 0
    for words, heads in (
        (("people", "list"), ("name", "roles", "since", "none")),
        (("token", "list"), ("id", "restricted to", "never", "valid")),
        (("audit",), ("person", "result", "people.write", "done")),
    ):
        shown = typist.runs("access", *words, *place)[1]
        assert all(head in shown for head in heads), shown


def test_a_password_is_asked_twice_without_being_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[dict[str, Any]] = []

    def prompt(_text: str, **settings: Any) -> str:
        asked.append(settings)
        return PASSWORD

    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr(sys, "stdin", type("Keyboard", (io.StringIO,), {"isatty": lambda _: True})())
    assert access(folder, "people", "add", "ana") == 0
    assert access(folder, "people", "password", "ana") == 0
    assert [(one["hide_input"], bool(one["confirmation_prompt"])) for one in asked] == [(True, True)] * 2
    shown = capsys.readouterr()
    assert PASSWORD not in shown.out + shown.err
    assert PASSWORD.encode() not in (folder / FILE_NAME).read_bytes()


def test_a_password_comes_from_a_file_or_a_pipe_and_never_from_a_file_that_others_can_read(
    folder: Path, password_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{PASSWORD}\n"))
    assert access(folder, "people", "add", "ana", "--password-file", "-") == 0
    assert access(folder, "people", "add", "bob") == 2
    assert "no terminal to prompt for a password" in capsys.readouterr().err
    password_file.chmod(0o644)
    assert access(folder, "people", "add", "bob", "--password-file", str(password_file)) == 3
    assert "run: chmod 600" in capsys.readouterr().err
    assert access(folder, "people", "add", "bob", "--password-file", str(folder / "none")) == 2
    password_file.chmod(0o600)
    password_file.write_text("short")
    assert access(folder, "people", "add", "bob", "--password-file", str(password_file)) == 2
    assert "at least 12 characters" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("people", "add", "a b", "--no-password"), "a person's name has"),
        (("grant", "nobody", "--role", "owner"), "there is no person of this name"),
        (("grant", "ana", "--role", "king"), "is not one of"),
        (("grant", "ana", "--role", "owner", "--dataset", "visits"), "the role owner cannot be limited"),
        (("grant", "ana", "--role", "analyst", "--table", "visits"), "also needs its data set"),
        (("token", "create", "ana", "--days", "400"), "1<=x<=365"),
        (("token", "list", "nobody"), "there is no person of this name"),
        (("token", "revoke", "x"), "there is no such token"),
    ],
)
def test_what_means_nothing_is_bad_use(
    folder: Path, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert access(folder, *words) == 2
    assert sentence in capsys.readouterr().err


def test_a_mistyped_folder_does_not_become_a_second_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert access(tmp_path / "clinc", "people", "list") == 2
    assert "create them with: tacit init" in capsys.readouterr().err
    assert not (tmp_path / "clinc").exists()


def test_people_can_be_kept_in_postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TACIT_LEDGER_POSTGRES", raising=False)
    assert access(tmp_path, "people", "list", "--postgres") == 2
    monkeypatch.setenv("TACIT_LEDGER_POSTGRES", postgres_server.address())
    postgres_server.execute("DROP SCHEMA IF EXISTS tacit_server CASCADE")
    capsys.readouterr()
    answer(tmp_path, capsys, "people", "add", "ana", "--no-password", "--postgres")
    assert [one["name"] for one in answer(tmp_path, capsys, "people", "list", "--postgres")["people"]] == ["ana"]
    assert list(tmp_path.iterdir()) == []
