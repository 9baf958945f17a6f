"""Where a server binds, and how it is told to: nothing is open to others unless that was said twice."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from tacit.privacy.errors import InvalidInput, UnsafeBind
from tacit.server.process import check_bind, free_port, opened_access
from tacit.server.settings import Settings, settings_of


@pytest.fixture
def pems(tmp_path: Path) -> dict[str, Path]:
    for name in ("certificate", "key"):
        (tmp_path / name).write_text("pem")
    return {name: tmp_path / name for name in ("certificate", "key")}


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_alone_needs_no_tls(host: str, tmp_path: Path) -> None:
    check_bind(Settings(folder=tmp_path, host=host))


@pytest.mark.parametrize("said", [{}, {"without_tls": 1}])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "clinic.example"])
def test_others_without_tls_are_refused_until_it_is_said_twice(host: str, said: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UnsafeBind, match="TLS"):
        check_bind(Settings(folder=tmp_path, host=host, **said))
    check_bind(Settings(folder=tmp_path, host=host, without_tls=2))


def test_others_with_the_demos_passwords_are_refused_though_there_is_tls(tmp_path: Path, pems: dict[str, Path]) -> None:
    check_bind(Settings(folder=tmp_path, host="0.0.0.0", **pems))
    with opened_access(Settings(folder=tmp_path)) as access:
        access.add_person("owner", "printed by the demo", is_demo=True)
    for times in (0, 1):
        with pytest.raises(UnsafeBind, match="demo"):
            check_bind(Settings(folder=tmp_path, host="0.0.0.0", demo_for_others=times, **pems))
    check_bind(Settings(folder=tmp_path, host="0.0.0.0", demo_for_others=2, **pems))


def test_half_of_tls_is_refused(tmp_path: Path, pems: dict[str, Path]) -> None:
    with pytest.raises(InvalidInput, match="both"):
        check_bind(Settings(folder=tmp_path, certificate=pems["certificate"]))
    with pytest.raises(InvalidInput, match="not a file"):
        check_bind(Settings(folder=tmp_path, certificate=pems["certificate"], key=tmp_path / "nowhere"))


def test_flags_are_stronger_than_the_environment_and_that_than_the_file(tmp_path: Path) -> None:
    (tmp_path / "server.toml").write_text("port = 1001\nworkers = 2\nhost = '::1'\n[limits]\nbody_bytes = 2000\n")
    environment = {"TACIT_PORT": "1002", "TACIT_WORKERS": "3", "TACIT_LIMITS__ROWS": "7", "TACIT_TOKEN": "x", "A": "b"}
    found = settings_of(tmp_path, {"port": 1003, "host": None}, environment)
    assert (found.port, found.workers, found.host) == (1003, 3, "::1")
    assert (found.limits.body_bytes, found.limits.rows) == (2000, 7)


@pytest.mark.parametrize("text", ["port = 'x'", "port = 70000", "unknown = 1", "[limits]\nrows = 0", "=", "folder='x'"])
def test_settings_that_cannot_be_used_are_refused_by_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "server.toml").write_text(text)
    with pytest.raises(InvalidInput):
        settings_of(tmp_path, {}, {})


def test_a_port_that_is_taken_is_said_and_port_0_becomes_a_free_one(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InvalidInput, match="--port"):
            free_port(Settings(folder=tmp_path, port=taken.getsockname()[1]))
    assert free_port(Settings(folder=tmp_path, port=0)).port > 0


def test_only_proxies_that_are_named_are_believed_about_who_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import uvicorn

    from tacit.server import process

    given: list[dict[str, Any]] = []
    monkeypatch.setattr(uvicorn, "run", lambda _app, **settings: given.append(settings))
    monkeypatch.setattr(process, "opened_app", lambda settings: settings)
    monkeypatch.setattr(process.logs, "configure", lambda: None)
    process.serve(Settings(folder=tmp_path))
    process.serve(Settings(folder=tmp_path, proxies=("10.0.0.7",)))
    assert [(one["proxy_headers"], one["forwarded_allow_ips"]) for one in given] == [(False, []), (True, ["10.0.0.7"])]
