"""`tacit sql`, `preview` and `budget show` at a server: what they show is what they show in its folder."""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from tacit.cli.app import run
from tests.unit.client.serving import Place, served

BY_SEX = "SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, str]]:
    """A server on a port of this machine."""
    with served(tmp_path_factory.mktemp("cli") / "clinic") as place:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server = uvicorn.Server(
                uvicorn.Config(
                    place.http.app, host="127.0.0.1", port=0, log_level="critical", lifespan="off", ws="none"
                )
            )
        thread = threading.Thread(target=server.run)
        thread.start()
        until_s = time.monotonic() + 20
        while not server.started and time.monotonic() < until_s:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield place, f"http://127.0.0.1:{port}"
        server.should_exit = True
        thread.join(20)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = run(words)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def here(clinic: tuple[Place, str], monkeypatch: pytest.MonkeyPatch) -> Place:
    """The environment of somebody who works at the server."""
    place, url = clinic
    monkeypatch.setenv("TACIT_SERVER", url)
    monkeypatch.setenv("TACIT_TOKEN", place.tokens["olga"])
    return place


@pytest.mark.parametrize(
    "words",
    [
        ("sql", BY_SEX, "--epsilon", "0.5", "--json"),
        ("sql", BY_SEX, "--epsilon", "0.5", "--level", "0.5", "--card"),
        ("sql", "SELECT day, COUNT(*) AS n FROM visits GROUP BY day", "--keys", "day=2024-01-02", "--epsilon", "1"),
        ("preview", BY_SEX, "--epsilon", "0.25", "--json"),
        ("preview", BY_SEX, "--error", "30", "--explain"),
        ("budget", "show"),
        ("budget", "show", "visits", "--json"),
        ("budget", "requests", "--all", "--json"),
        ("budget", "show", "nothing"),
        ("sql", "SELECT age FROM visits", "--epsilon", "1"),
    ],
)
def test_a_command_shows_the_same_at_the_server_as_in_the_folder(
    here: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    run(words)  # what costs something is paid now, so that both see the same
    server_options = shown(capsys, *words)
    monkeypatch.delenv("TACIT_SERVER")
    monkeypatch.delenv("TACIT_TOKEN")
    code, out, err = shown(capsys, *words, "--folder", str(here.folder))
    assert server_options == (code, out, err.replace(f" --folder {here.folder}", ""))


def test_what_takes_most_of_what_is_left_needs_a_yes_at_a_server_too(
    here: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The preview over REST, its client, and the command line say whether a question fits, and spend nothing."""
    monkeypatch.setenv("TACIT_TOKEN", here.tokens["ana"])
    left = here.curator.budget("visits", "ana").remaining().epsilon
    sql = "SELECT COUNT(*) AS n FROM visits WHERE age > 77"
    code, out, err = shown(capsys, "sql", sql, "--epsilon", str(0.75 * left))
    assert (code, out) == (2, "")
    assert "--yes" in err
    code, out, _ = shown(capsys, "preview", sql, "--epsilon", str(2 * left), "--json")
    told = json.loads(out)
    assert (code, told["fits"]) == (0, False)
    assert "would fit" in told["refusal"]
    assert told["remaining"]["visits"]["epsilon"] == left
    assert shown(capsys, "sql", sql, "--epsilon", str(2 * left))[0] == 3
    assert here.curator.budget("visits", "ana").remaining().epsilon == left
    here.curator.sql(sql, epsilon=0.75 * left)  # somebody else has paid
    assert shown(capsys, "sql", sql, "--epsilon", str(0.75 * left))[0] == 0


def test_an_analyst_sees_what_is_left_to_her(
    here: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_TOKEN", here.tokens["ana"])
    code, out, _ = shown(capsys, "sql", "SELECT COUNT(*) AS n FROM visits WHERE age > 61", "--epsilon", "0.5", "--json")
    answer: dict[str, Any] = json.loads(out)
    assert code == 0
    assert answer["permit"]
    left = here.curator.budget("visits", "ana").remaining()
    assert answer["remaining"]["visits"]["epsilon"] == left.epsilon
    code, out, _ = shown(capsys, "budget", "show", "--json")
    assert {row["scope"] for row in json.loads(out)["budgets"]} == {"visits", "ana on visits"}


def test_the_token_may_lie_in_a_file_and_is_never_shown(
    clinic: tuple[Place, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place, url = clinic
    monkeypatch.delenv("TACIT_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text(place.tokens["ana"], encoding="ascii")
    code, out, err = shown(capsys, "budget", "show", "--server", url, "--token-file", "token")
    assert (code, "visits" in out, place.tokens["ana"] in err) == (0, True, False)
    for words in (["--server", url], ["--server", url, "--token-file", "nowhere"]):
        code, _, err = shown(capsys, "budget", "show", *words)
        assert code == 2
        assert "token" in err
    monkeypatch.setenv("TACIT_TOKEN", "tacit_000000000000_" + "x" * 43)
    code, _, err = shown(capsys, "budget", "show", "--server", url, "--debug")
    assert code == 3
    assert "T401" in err
    assert "xxxx" not in err


def test_a_folder_and_a_server_are_not_both_meant(
    here: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = shown(capsys, "budget", "show", "--server", "http://127.0.0.1:9", "--folder", str(here.folder))
    assert code == 2
    assert "not both" in err
    monkeypatch.setenv("TACIT_SERVER", "http://127.0.0.1:9")  # what is typed is stronger
    assert shown(capsys, "budget", "show", "--folder", str(here.folder))[0] == 0


def test_who_asks_a_server_is_said_by_the_token(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = shown(capsys, "sql", BY_SEX, "--epsilon", "0.5", "--analyst", "ben")
    assert code == 2
    assert "token" in err


def test_a_server_that_is_not_there_is_a_sentence_and_an_exit_code(
    here: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = shown(capsys, "budget", "show", "--server", "http://127.0.0.1:9")
    assert (code, out) == (4, "")
    assert err == "tacit: T710 no server answers at http://127.0.0.1:9\n"


def test_an_unencrypted_way_to_another_machine_is_warned_of(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = shown(capsys, "budget", "show", "--server", "http://tacit.invalid:9")
    assert "tacit: warning: the token is sent to tacit.invalid without encryption" in err


def test_the_prompt_asks_a_server_as_it_asks_a_folder(here: Place, clinic: tuple[Place, str]) -> None:
    from tacit.cli.backends import open_backend
    from tacit.cli.options import ServerAddress
    from tacit.privacy.errors import InvalidInput
    from tacit.privacy.tables import Limits

    asked = {
        "epsilon": 0.5,
        "rho": None,
        "error": None,
        "delta": None,
        "limits": Limits(),
        "keys": None,
        "other": False,
    }
    sql = "SELECT COUNT(*) AS n FROM visits WHERE age > 62"
    with (
        open_backend(here.folder, ServerAddress(clinic[1], None), 0.9) as remote,
        open_backend(here.folder, None, 0.9) as local,
    ):
        assert remote.location == clinic[1]
        assert remote.tables() == local.tables()
        assert remote.explain(sql, asked) == local.explain(sql, asked)
        theirs, ours = remote.preview(sql, asked, None), local.preview(sql, asked, None)
        assert theirs == ours
        answer = remote.sql(sql, asked, None)
        assert (answer.rows, answer.intervals(0.9)) == (
            local.sql(sql, asked, None).rows,
            local.sql(sql, asked, None).intervals(0.9),
        )
        assert remote.remaining(answer.datasets, None) == local.remaining(answer.datasets, None)
        assert remote.budgets() == local.budgets()
        remote.cancel(threading.get_ident())
        with pytest.raises(InvalidInput):
            remote.require_analyst("ana")


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "words",
    [
        "mean visits age --by sex --epsilon 1",
        "mean visits age --by sex --epsilon 1 --json",
        "mean visits age --bounds 0:90 --epsilon 1 --level 0.5 --card",
        "mean visits age --bounds learn --epsilon 1 --json",
        "count visits age --by ward --keys a,b --epsilon 1 --rows-per-unit 2",
        "histogram visits ward --keys a,b,c --epsilon 1 --format markdown",
        "histogram visits day --bins 4 --epsilon 1",
        "median visits day --epsilon 1",
        "t-test visits age --by sex --epsilon 1 --json",
        "chi-squared visits sex ward --keys ward=a,b,c --epsilon 1",
        "marginals visits sex ward --keys ward=a,b,c --ways 1,2 --epsilon 1",
        "ranges visits age --bins 12 --epsilon 1",
        "hierarchy visits ward --levels a=north,b=north,c=south --epsilon 1",
        "mean visits nothing --epsilon 1",
        "mean visits ward --epsilon 1",
        "mean visits age --epsilon 1000",
    ],
)
def test_a_statistic_shows_the_same_at_the_server_as_in_the_folder(
    here: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    run(["stats", *words.split(), "--yes"])  # what costs something is paid now, so that both see the same
    at_server = shown(capsys, "stats", *words.split(), "--yes")
    monkeypatch.delenv("TACIT_SERVER")
    monkeypatch.delenv("TACIT_TOKEN")
    code, out, err = shown(capsys, "stats", *words.split(), "--yes", "--folder", str(here.folder))
    assert at_server == (code, out, err.replace(f" --folder {here.folder}", ""))


def test_a_statistic_that_takes_most_of_what_is_left_needs_a_yes_at_a_server_too(
    here: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_TOKEN", here.tokens["ben"])
    words = ("stats", "mean", "visits", "age", "--epsilon", "0.4")
    code, out, err = shown(capsys, *words)
    assert (code, out) == (2, "")
    assert "--yes" in err
    assert here.curator.budget("visits", "ben").spent().epsilon == 0
    assert shown(capsys, *words, "--yes")[0] == 0
    assert here.curator.budget("visits", "ben").spent().epsilon == pytest.approx(0.4)
    assert shown(capsys, *words)[0] == 0  # released before: nothing to confirm
    code, _, err = shown(capsys, "stats", "mean", "visits", "age", "--epsilon", "0.3", "--yes")
    assert code == 3
    assert "would fit" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("mean visits age --epsilon 1 --analyst ben", "token"),
        ("mean visits age --epsilon 1 --unit patient --server URL", "--unit"),
        ("mean visits age --epsilon 1 --delta 1e-6", "--delta"),
        ("ranges visits age --bins 12 --range 0:60 --epsilon 1", "--range"),
    ],
)
def test_what_a_server_decides_is_not_said_of_a_statistic(
    here: Place, clinic: tuple[Place, str], capsys: pytest.CaptureFixture[str], words: str, says: str
) -> None:
    code, out, err = shown(capsys, "stats", *words.replace("URL", clinic[1]).split())
    assert (code, out) == (2, "")
    assert says in err


def test_a_file_is_asked_here_although_a_server_is_usual(here: Place, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(here.folder / "visits.csv")
    code, _, err = shown(
        capsys, "stats", "mean", path, "age", "--bounds", "0:120", "--unit", "patient", "--rows-per-unit", "1",
        "--epsilon", "1",
    )  # fmt: skip
    assert code == 0
    assert "the charge is not recorded" in err


def test_a_server_is_attacked_within_an_epsilon_and_the_finding_is_kept(
    here: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secrets.csv").write_text("id,secret\n" + "".join(f"{one},{one % 2}\n" for one in range(60)))
    before = here.curator.budget("visits").spent().epsilon
    code, out, err = shown(
        capsys, "attack", "differencing", "visits", "--secret", "sex = 'M'", "--unit", "patient", "--truth",
        str(tmp_path / "secrets.csv"), "--epsilon", "0.5", "--seed", "1", "--keep", "--json",
    )  # fmt: skip
    assert code == 0
    assert err.endswith("are in visits cannot be checked over a server\n")
    found = json.loads(out)
    assert found["findings"][0]["verdict"] in ("consistent", "underpowered")
    assert 0 < here.curator.budget("visits").spent().epsilon - before <= 0.5 + 1e-9
    assert [one.id for one in here.curator.findings("visits")] == [found["kept"]]
    code, out, _ = shown(capsys, "attack", "findings", "--json")
    assert [one["id"] for one in json.loads(out)["findings"]] == [found["kept"]]


def test_remaining_budget_at_a_server_names_the_analyst_whose_cap_it_is(
    here: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = [
        ("sql", "SELECT COUNT(*) AS n FROM visits WHERE age > 63", "--epsilon", "0.5"),
        ("preview", "SELECT COUNT(*) AS n FROM visits WHERE age > 63", "--epsilon", "0.5"),
        ("stats", "count", "visits", "age", "--epsilon", "0.5"),
    ]
    for token, whose, analyst in (("olga", " on visits", None), ("ana", " for ana on visits", "ana")):
        monkeypatch.setenv("TACIT_TOKEN", here.tokens[token])
        for words in commands:
            code, out, err = shown(capsys, *words, "--yes" if words[0] != "preview" else "--explain")
            (line,) = [one for one in (out + err).splitlines() if one.startswith("remaining")]
            assert (code, line.endswith(whose), " for " in line) == (0, True, analyst is not None)
            assert json.loads(shown(capsys, *words, "--json")[1])["analyst"] == analyst
    monkeypatch.setenv("TACIT_TOKEN", here.tokens["ben"])
    most = str(0.75 * here.curator.budget("visits", "ben").remaining().epsilon)
    _, _, err = shown(capsys, "sql", "SELECT COUNT(*) AS n FROM visits WHERE age > 64", "--epsilon", most)
    assert "for ben on visits, which is more than half" in err


def test_models_are_trained_and_predict_at_the_server_as_in_its_folder(
    here: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "new.csv"
    rows.write_text("sex\n" + "F\nM\n" * 1_001, encoding="utf-8")  # more than are sent at once
    words = ("learn", "train", "visits", "--estimator", "LinearRegression", "--features", "sex", "--target", "age")
    at_folder = ("--folder", str(here.folder))
    priced = json.loads(shown(capsys, *words, "--epsilon", "1", "--preview", "--json")[1])
    code, out, err = shown(capsys, *words, "--epsilon", "1", "--json")
    assert code == 0, err
    made = json.loads(out)
    assert made["cost"] == priced["cost"]
    assert made["remaining"]["visits"]["epsilon"] < priced["remaining"]["visits"]["epsilon"]
    again = json.loads(shown(capsys, *words, "--epsilon", "1", "--json", *at_folder)[1])
    assert (again["model"], again["cost"]["epsilon"]) == (made["model"], 0)
    for command in (["list"], ["show", made["model"]], ["predict", made["model"], str(rows)]):
        remote, local = (shown(capsys, "learn", *command, *at) for at in ((), at_folder))
        assert remote == local
        assert remote[0] == 0
    assert len(shown(capsys, "learn", "predict", made["model"], str(rows))[1].splitlines()) == 2_003
    assert shown(capsys, "learn", "export", made["model"], str(tmp_path / "model.json"))[0] == 0
    assert shown(capsys, *words, "--epsilon", "1", "--analyst", "ana")[0] == 2
    assert shown(capsys, "learn", "remove", made["model"], "--yes")[0] == 0
    assert "there is no model" in shown(capsys, "learn", "show", made["model"])[2]
