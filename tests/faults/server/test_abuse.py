"""A server on which everything is tried: afterwards it answers, its ledger verifies, and its log says nothing."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

import tacit
from tests.faults.server.processes import Served, make_folder, served
from tests.unit.server import clinic
from tests.unit.server.clinic import NOBODY, PASSWORD

MARK = "Qq7markerqQ"
"""Stands in whatever must not be found in the log."""
BODY_BYTES = 65_536
LIMITS = {
    "TACIT_LIMITS__BODY_BYTES": str(BODY_BYTES),
    "TACIT_LIMITS__BODY_S": "1.0",
    "TACIT_LIMITS__HEADERS_S": "1.0",
    "TACIT_LIMITS__RUNNING": "2",
    "TACIT_LIMITS__RUNNING_EACH": "1",
    "TACIT_LIMITS__WAITING_EACH": "32",
}
ESCAPES = (
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "SELECT COUNT(*) FROM '/etc/passwd'",
    "SELECT COUNT(*) FROM visits, read_text('/etc/passwd')",
    "ATTACH '/tmp/other.db' AS other",
    "COPY visits TO '/tmp/stolen.csv'",
    "PRAGMA database_list",
    "SET enable_external_access = true",
    "INSTALL httpfs",
    "SELECT COUNT(*) FROM visits; DROP TABLE visits",
    "SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM secret",
    "SELECT getenv('HOME'), COUNT(*) FROM visits",
    "SELECT current_setting('home_directory'), COUNT(*) FROM visits",
    "SELECT COUNT(*) FROM duckdb_tables()",
    "SELECT COUNT(*) FROM information_schema.tables",
    "SELECT COUNT(*) FROM sqlite_master",
    "SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id",
    "SELECT * FROM visits",
    "SELECT MAX(patient_id) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE error(sex) = 'F'",
    "SELECT COUNT(*) FROM visits UNION ALL SELECT age FROM visits",
    "SELECT /* */ age -- COUNT(*)\nFROM visits",
    "SELECT COUNT(*) FROM vi\u200bsits",
    "SELECT CO\uff35NT(*) FROM visits",
    "SELECT COUNT(*) FROM visits WHERE 1 = 1 /*",
    "\x00SELECT COUNT(*) FROM visits",
    "SELECT " + "(" * 5_000 + "1" + ")" * 5_000 + " FROM visits",
    "SELECT COUNT(*) FROM visits WHERE " + " AND ".join(["age > 1"] * 5_000),
    "SELECT COUNT(*) FROM visits WHERE sex = '" + "x" * 50_000 + "'",
    "'" * 999,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that was abused, and is looked at when all tests are over."""
    folder = tmp_path_factory.mktemp("abused") / "clinic"
    tokens = make_folder(folder)
    with served(folder, "--timing-class", "0.02", tokens=tokens, **LIMITS) as made:
        yield made
        with made.client() as client:
            assert client.get("/v1/me").status_code == 200
        assert made.process.poll() is None
    check_ledger(folder)
    check_log(made)


def check_ledger(folder: Path) -> None:
    """The ledger verifies, and nothing was charged that was not answered."""
    with tacit.Curator(folder) as curator:
        curator.ledger.verify(full=True)
        assert curator.ledger.reservations() == []


def check_log(made: Served) -> None:
    text = made.log.read_text()
    assert '"event": "request"' in text
    assert '"event": "defect"' not in text
    secrets = [MARK, PASSWORD, "SELECT", "patient_id", *(token[-20:] for token in made.tokens.values())]
    assert [one for one in secrets if one in text] == []


def head(folder: Path) -> int:
    with tacit.Curator(folder) as curator:
        return curator.ledger.head().number


@pytest.mark.parametrize("sql", ESCAPES, ids=range(len(ESCAPES)))
def test_sql_does_not_leave_the_guard(server: Served, sql: str) -> None:
    before = head(server.folder)
    with server.client() as client:
        response = client.post("/v1/queries", json={"sql": sql, "epsilon": 0.01, "purpose": MARK})
    assert response.status_code in (400, 404, 422), response.text
    assert "root:" not in response.text
    assert head(server.folder) == before


def test_a_body_beyond_the_limit_is_refused_stated_or_not(server: Served) -> None:
    text = json.dumps({"sql": MARK + "x" * BODY_BYTES, "epsilon": 1.0}).encode()
    with server.client() as client:
        stated = client.post("/v1/queries", content=text)
        chunked = client.post("/v1/queries", content=iter([text[:1000], text[1000:]]))
    for response in (stated, chunked):
        assert (response.status_code, response.json()["error"]["code"]) == (413, "T701")


def test_slow_requests_end_in_time_and_hold_up_nobody(server: Served) -> None:
    with server.connect() as headers, server.connect() as body:
        headers.sendall(b"GET /v1/me HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        body.sendall(b"POST /v1/queries HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        with server.client() as client:
            assert client.get("/v1/me").status_code == 200
        assert read_all(headers) == b"", "slow headers were answered"
        assert read_all(body).startswith(b"HTTP/1.1 408")


def read_all(connection: socket.socket) -> bytes:
    """Read until the other side closes; longer than the time limit of the connection is a failure."""
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
        if b"T704" in part:
            break
    return b"".join(parts)


def test_tokens_that_are_not_right_let_nobody_in(server: Served) -> None:
    right = server.tokens["analyst.visits"]
    with server.client("owner") as owner:
        made = owner.post("/v1/tokens", json={"label": "to be revoked", "days": 1}).json()
        assert owner.delete(f"/v1/tokens/{made['id']}").status_code == 204
    wrong = (
        *(
            "tacit",
            MARK,
            right[:-1],
            right + "A",
            right.upper(),
            right[:-1] + ("A" if right[-1] != "A" else "B"),
        ),
        *(made["token"], f"tacit_{'0' * 12}_{MARK * 4}"[:62], "\u00e9" * 10, "x" * 5_000),
    )
    with server.client(NOBODY) as client:
        for text in wrong:
            response = client.get("/v1/me", headers={b"Authorization": f"Bearer {text}".encode()})
            assert response.status_code in (401, 429), text


def test_a_flood_of_wrong_tokens_leaves_the_right_ones_in(server: Served) -> None:
    with server.client(NOBODY) as client:
        for number in range(150):
            bad = {"Authorization": f"Bearer tacit_{number:012x}_{'A' * 43}"}
            assert client.get("/v1/me", headers=bad).status_code == 401
    with server.client() as client:
        assert client.get("/v1/me").status_code == 200


def test_cookies_need_their_own_proof(server: Served) -> None:
    with server.client(NOBODY) as client:
        login = client.post("/v1/login", json={"name": "analyst.visits", "password": PASSWORD})
        assert login.status_code == 200
        body = {"dataset": "visits", "epsilon": 0.1, "reason": "more"}
        assert client.get("/v1/me").json()["name"] == "analyst.visits"
        for csrf in (None, "", MARK, "x" * 43):
            headers = {} if csrf is None else {"X-Tacit-CSRF": csrf}
            forged = client.post("/v1/requests", json=body, headers=headers)
            assert (forged.status_code, forged.json()["error"]["code"]) == (403, "T403")
        assert client.post("/v1/requests", json=body, headers={"X-Tacit-CSRF": login.json()["csrf"]}).status_code == 201
    for cookie in (MARK, "A" * 43, ""):
        with server.client(NOBODY, cookies={"tacit_session": cookie}) as client:
            assert client.get("/v1/me").status_code == 401


def test_headers_and_addresses_carry_nothing_into_the_answer(server: Served) -> None:
    with server.connect() as connection:
        connection.sendall(b"GET /v1/tables/x%0d%0aX-Evil:%20" + MARK.encode() + b" HTTP/1.1\r\nHost: localhost\r\n")
        connection.sendall(f"Authorization: Bearer {server.tokens['owner']}\r\nConnection: close\r\n\r\n".encode())
        assert b"\r\nX-Evil" not in read_all(connection)
    with server.client("owner") as client:
        assert client.get("/v1/ledger", params={"first": "9" * 5_000}).status_code == 400
        assert client.get("/v1/releases", params={"dataset": MARK * 2_000}).status_code in (200, 400)
        assert client.get(f"/v1/budgets/{MARK * 200}").status_code in (400, 404)
        key = {"Idempotency-Key": "x" * 1_000}
        question = {"sql": "SELECT COUNT(*) FROM visits", "epsilon": 0.01}
        assert client.post("/v1/queries", json=question, headers=key).status_code == 400
        assert client.post("/v1/queries", content=b"[" * 20_000).status_code == 400
        assert client.post("/v1/queries", content=b'{"sql": "\xff"}').status_code == 400


CONNECTIONS = 64


def test_one_who_asks_much_does_not_keep_others_waiting(server: Served) -> None:
    order: list[str] = []
    lock = threading.Lock()

    def ask(name: str, number: int) -> int:
        body = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.01 + number * 1e-6, "purpose": MARK}
        with server.client(name) as client:
            status = client.post("/v1/queries", json=body).status_code
        with lock:
            order.append(name if status == 200 else str(status))
        return status

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        many = [threads.submit(ask, "analyst", number) for number in range(200)]
        while order.count("analyst") < 3:
            time.sleep(0.005)
        before = order.count("analyst")
        assert threads_of_one(ask) == 200
        between = order[: order.index("analyst.visits")].count("analyst") - before
        statuses = {one.result() for one in many}
    assert statuses <= {200, 429}
    # in the order of arrival nearly all connections of the other would come first; in fair turns only what runs already
    assert between <= CONNECTIONS // 4, f"{between} questions of the other were answered before it"


def threads_of_one(ask: object) -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(ask("analyst.visits", 900)))  # type: ignore[operator]
    thread.start()
    thread.join()
    return found[0]


def test_a_server_that_is_told_to_stop_lets_go_of_everything(tmp_path: Path) -> None:
    tokens = make_folder(tmp_path / "clinic")
    with served(tmp_path / "clinic", tokens=tokens) as made, made.client() as client:
        assert client.get("/v1/me").status_code == 200
    assert made.process.returncode is not None
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{made.url}/healthz")
    assert clinic.NOBODY not in made.tokens
