"""Where a server binds, and how it is told to: nothing is open to others unless that was said twice."""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from tacit.privacy.errors import InvalidInput, UnsafeBind
from tacit.server.process import check_bind, free_port, open_access, open_app
from tacit.server.settings import OTHER_VARIABLES, ServerLimits, Settings, settings_of
from tests.style.rules import ROOT
from tests.unit.server import clinic


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
    with open_access(Settings(folder=tmp_path)) as access:
        access.people.add("owner", "printed by the demo", is_demo=True)
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


FROM_THE_ENVIRONMENT: dict[str, tuple[str, Any]] = {
    "host": ("::1", "::1"),
    "port": ("1002", 1002),
    "workers": ("3", 3),
    "certificate": ("cert.pem", Path("cert.pem")),
    "key": ("key.pem", Path("key.pem")),
    "hosts": ("clinic.example", ("clinic.example",)),
    "proxies": ("10.0.0.7, 10.1.0.0/16", ("10.0.0.7", "10.1.0.0/16")),
    "postgres": ("true", True),
    "timing_class_s": ("0.5", 0.5),
    "refresh_s": ("60", 60.0),
    "sources": ("/data/a,/data/b", (Path("/data/a"), Path("/data/b"))),
    "without_tls": ("2", 2),
    "demo_for_others": ("2", 2),
    "oidc": ('{"issuer": "https://login.example"}', {"issuer": "https://login.example"}),
}


def test_every_setting_can_come_from_the_environment(tmp_path: Path) -> None:
    assert FROM_THE_ENVIRONMENT.keys() == Settings.model_fields.keys() - {"folder", "limits"}
    given = {f"TACIT_{name.upper()}": text for name, (text, _) in FROM_THE_ENVIRONMENT.items()}
    limits = {name: getattr(ServerLimits(), name) + 1 for name in ServerLimits.model_fields}
    given |= {f"TACIT_LIMITS__{name.upper()}": str(value) for name, value in limits.items()}
    found = settings_of(tmp_path, {}, given)
    assert {name: getattr(found, name) for name in FROM_THE_ENVIRONMENT} == {
        name: value for name, (_, value) in FROM_THE_ENVIRONMENT.items()
    }
    assert found.limits.model_dump() == limits


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("TACIT_PROXY", "TACIT_PROXIES"),
        ("TACIT_PROXYS", "TACIT_PROXIES"),
        ("TACIT_TRUSTED_PROXIES", "TACIT_PROXIES"),
        ("TACIT_SERVER_HOSTS", "TACIT_HOSTS"),
        ("TACIT_LIMITS_ROWS", "TACIT_LIMITS__"),
        ("TACIT_LIMIT__BODY_BYTES", "TACIT_LIMITS__"),
        ("TACIT_LIMITS__ROW", "limits.row"),
        ("TACIT_OIDC__ISSUER", "TACIT_OIDC"),
        ("TACIT_FOLDER", "tacit serve"),
        ("TACIT_LIMITS", "TACIT_LIMITS__"),
    ],
)
def test_a_variable_that_is_no_setting_is_refused(variable: str, meant: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=meant):
        settings_of(tmp_path, {}, {variable: "10"})


def test_variables_for_other_uses_are_left_alone(tmp_path: Path) -> None:
    environment = dict.fromkeys(OTHER_VARIABLES, "10") | {"PROXIES": "10.0.0.7", "_TACIT_PORT": "1"}
    assert settings_of(tmp_path, {}, environment) == Settings(folder=tmp_path)


def test_every_variable_that_the_repository_reads_is_known() -> None:
    read = re.compile(r"""(?:environ\S*[\[(]|: Final = |setenv\()\s*["'](TACIT_[A-Z0-9_]+)["']""")
    files = [
        path
        for folder in ("src", "bench", "tests")
        for path in (ROOT / folder).rglob("*.py")
        if ".venvs" not in path.parts
    ]
    found = {name for path in files for name in read.findall(path.read_text(encoding="utf-8"))}
    assert {"TACIT_TOKEN", "TACIT_CLUSTER"} <= found
    assert found - OTHER_VARIABLES <= {"TACIT_MIDDLE"}, "TACIT_MIDDLE is a function of PostgreSQL"


def test_limits_in_the_file_that_are_no_table_are_refused_whatever_the_environment_says(tmp_path: Path) -> None:
    (tmp_path / "server.toml").write_text("limits = 3\n")
    with pytest.raises(InvalidInput, match="limits"):
        settings_of(tmp_path, {}, {"TACIT_LIMITS__ROWS": "7"})


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
    monkeypatch.setattr(process, "open_app", lambda settings: settings)
    monkeypatch.setattr(process.telemetry, "configure", lambda: None)
    process.serve(Settings(folder=tmp_path))
    process.serve(Settings(folder=tmp_path, proxies=("10.0.0.7",)))
    assert [(one["proxy_headers"], one["forwarded_allow_ips"]) for one in given] == [(False, []), (True, ["10.0.0.7"])]


def test_threads_end_with_their_application(tmp_path: Path) -> None:
    made = clinic.make(tmp_path / "clinic")
    made.close()
    before = set(threading.enumerate())
    app = open_app(Settings(folder=tmp_path / "clinic", hosts=("testserver",)))
    with clinic.TestClient(app, raise_server_exceptions=False) as client:
        login = {"name": "owner", "password": clinic.PASSWORD}
        assert client.post("/v1/login", json=login).status_code == 200
        question = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.1}
        answer = client.post("/v1/queries", json=question, headers=made.headers("owner"))
        assert answer.status_code == 200, answer.text
        begun = {one for one in threading.enumerate() if one.name.startswith("tacit ")} - before
        used = {one.name.rpartition("_")[0] for one in begun}
        assert used >= {"tacit planning", "tacit login", "tacit query", "tacit hash"}
    for one in begun:
        one.join(10)
    assert not [one.name for one in begun if one.is_alive()]
