"""Peers: scripts run in an environment of their own, and a peer that is missing is no error."""

import sys
from pathlib import Path

import pytest

from bench import peers


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Plant a peer whose environment is this interpreter."""
    monkeypatch.setattr(peers, "HERE", tmp_path)
    monkeypatch.setattr(peers, "ENVIRONMENTS", tmp_path / ".venvs")
    (tmp_path / "planted.txt").write_text("planted==1.0\n")
    python = tmp_path / ".venvs/planted/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (tmp_path / ".venvs/planted/installed.txt").write_text("planted==1.0\n")
    return "planted"


def script(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(f"import json, sys\n{text}\n")
    return path


def test_every_requirement_of_a_peer_is_pinned() -> None:
    assert "opendp" in peers.names()
    for name in peers.names():
        lines = (peers.HERE / f"{name}.txt").read_text().split()
        assert all("==" in line for line in lines)


def test_a_script_gets_its_arguments_and_its_last_line_is_the_answer(peer: str, tmp_path: Path) -> None:
    echo = script(tmp_path, "print('warming up'); print(json.dumps({'got': json.loads(sys.argv[1])}))")
    assert peers.run(peer, echo, count=3, law="laplace") == {"got": {"count": 3, "law": "laplace"}}


def test_a_peer_that_is_not_installed_gives_none(peer: str, tmp_path: Path) -> None:
    (tmp_path / ".venvs/planted/installed.txt").unlink()
    assert peers.run(peer, tmp_path / "missing.py") is None


def test_a_peer_whose_pins_have_changed_counts_as_not_installed(peer: str, tmp_path: Path) -> None:
    assert peers.is_installed(peer)
    (tmp_path / "planted.txt").write_text("planted==2.0\n")
    assert not peers.is_installed(peer)


def test_a_script_that_fails_shows_its_last_words(peer: str, tmp_path: Path) -> None:
    with pytest.raises(peers.PeerFailed, match=r"(?s)ended with 1:.*no such law"):
        peers.run(peer, script(tmp_path, "raise SystemExit('no such law')"))


@pytest.mark.parametrize("text", ["pass", "print(json.dumps([1]))", "print('no json')"])
def test_a_script_without_an_object_at_its_end_has_failed(text: str, peer: str, tmp_path: Path) -> None:
    with pytest.raises(peers.PeerFailed, match="no JSON object"):
        peers.run(peer, script(tmp_path, text))


def test_a_script_that_takes_too_long_is_stopped(peer: str, tmp_path: Path) -> None:
    with pytest.raises(peers.PeerFailed, match=r"stopped after 0\.5 s"):
        peers.run(peer, script(tmp_path, "import time; time.sleep(60)"), timeout_s=0.5)
