"""People whose passwords were printed by the demo stay on this machine, whichever command serves their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.cli.app import run
from tacit.cli.commands.demo import create_people, settings_with_free_port
from tacit.privacy.errors import NotKnown, UnsafeBind
from tacit.server import process
from tacit.server.process import check_bind, open_access
from tacit.server.settings import Settings

OTHERS = ["--host", "0.0.0.0", "--port", "0", "--without-tls", "--without-tls"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that `tacit demo` has served and kept."""
    assert run(["init", str(tmp_path / "clinic")]) == 0
    create_people(settings_with_free_port(tmp_path / "clinic", 8321))
    return tmp_path / "clinic"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings with which a server would have been started."""
    found: list[Settings] = []
    monkeypatch.setattr(process, "serve", found.append)
    return found


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_folder_of_the_demo_is_for_others_only_if_that_is_said_twice(
    folder: Path, served: list[Settings], times: int, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["serve", str(folder), *OTHERS, *["--demo-for-others"] * times])
    err = capsys.readouterr().err
    assert (code, len(served), "repeat --demo-for-others" in err) == ((0, 1, False) if times == 2 else (3, 0, True))


def test_a_folder_of_the_demo_is_served_on_this_machine(folder: Path, served: list[Settings]) -> None:
    assert run(["serve", str(folder), "--port", "0"]) == 0
    assert len(served) == 1


def test_a_proxy_is_a_way_from_elsewhere(folder: Path) -> None:
    with pytest.raises(UnsafeBind, match="demo"):
        check_bind(Settings(folder=folder, proxies=("127.0.0.1",)))


def test_others_may_come_when_nobody_has_a_printed_password(folder: Path, served: list[Settings]) -> None:
    settings = Settings(folder=folder)
    with open_access(settings) as access:
        printed = access.tokens.create("owner")
        access.people.remove("ana")
        access.people.remove("auditor")
        assert access.people.has_demo()
        access.people.set_password("owner", "not printed anywhere")
        assert not access.people.has_demo()
        with pytest.raises(NotKnown):
            access.actor_of_token(printed.text)
    assert run(["serve", str(folder), *OTHERS]) == 0
    assert len(served) == 1


def test_a_folder_of_others_is_not_taken_for_the_demo(tmp_path: Path, served: list[Settings]) -> None:
    assert run(["init", str(tmp_path / "own")]) == 0
    check_bind(Settings(folder=tmp_path / "own", host="0.0.0.0", without_tls=2))
    assert not (tmp_path / "own" / "server.sqlite").exists()
    assert run(["serve", str(tmp_path / "own"), *OTHERS]) == 0


def test_what_the_folders_file_says_is_not_undone_by_flags_that_nobody_gave(
    folder: Path, served: list[Settings]
) -> None:
    (folder / "server.toml").write_text("without_tls = 2\ndemo_for_others = 2\n")
    assert run(["serve", str(folder), "--host", "0.0.0.0", "--port", "0"]) == 0
    assert len(served) == 1


def test_the_flags_that_errors_name_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--demo-for-others" in shown
    assert "--without-tls" in shown
