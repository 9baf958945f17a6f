"""`tacit attack`: targets from files, folders and servers; findings on the screen, in files and in the ledger."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import duckdb
import numpy as np
import pytest

from tacit.attack import Claim, Finding
from tacit.cli.app import run
from tacit.cli.attacks import queries
from tacit.cli.attacks.files import read_records
from tacit.cli.attacks.targets import KINDS
from tacit.cli.backends import open_access
from tacit.curator import Curator, self_audit
from tacit.ledger import kept_findings
from tacit.privacy.errors import (
    BudgetExceeded,
    InvalidInput,
    NotPermitted,
    ShowsUnits,
    StorageUnavailable,
    TacitError,
)
from tacit.privacy.tables import Kind
from tests.unit.cli.terminal import Terminal, Typist

PEOPLE = 60
SECRETS = np.random.default_rng(4).integers(0, 2, PEOPLE)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "released.csv").write_text(
        "zip,born,ill,who\n"
        + "".join(f"0{2138 + one},19{one:02},{'yes' if one % 2 else 'no'},p{one}\n" for one in range(60))
    )
    (tmp_path / "voters.csv").write_text(
        "name,zip,born\n" + "".join(f"p{one},0{2138 + one},19{one:02}\n" for one in range(60))
    )
    (tmp_path / "block.toml").write_text(
        'people = 3\n[attributes]\nage = {from = 1, to = 9}\nsex = ["F", "M"]\n'
        '[[statistic]]\nname = "all"\ncount = 3\nmean = {age = 4}\nmedian = {age = 3}\n'
        '[[statistic]]\nname = "women"\nwhere = {sex = "F"}\ncount = 1\nmean = {age = 8}\n'
        '[[rule]]\nif = {sex = "M"}\nthen = {age = {to = 8}}\n'
    )
    (tmp_path / "noise.py").write_text(
        "import random\n"
        "def little(x):\n    return x + random.choice([-0.1, 0.1])\n"
        "def much(x):\n    return x + random.expovariate(0.5) - random.expovariate(0.5)\n"
        "def many(x, count):\n    return [much(x) for _ in range(count)]\n"
    )
    present = [one % 2 for one in range(400)]
    (tmp_path / "scores.csv").write_text("score,present\n" + "".join(f"{one + 0.001},{one}\n" for one in present))
    (tmp_path / "secrets.csv").write_text("id,secret\n" + "".join(f"{one},{bit}\n" for one, bit in enumerate(SECRETS)))
    return tmp_path


@pytest.fixture
def folder(files: Path) -> Path:
    made = files / "clinic"
    with Curator(made) as curator:
        (files / "people.csv").write_text("id,ill\n" + "".join(f"{one},{bit}\n" for one, bit in enumerate(SECRETS)))
        curator.add_table("people", files / "people.csv", unit="id", dataset="clinic")
        curator.set_budget("clinic", epsilon=4.0, epsilon_min=0)
    return made


def attacked(*words: str, code: int = 0) -> list[Finding]:
    """Run an attack and return its findings, which are also written as lines of JSON."""
    assert run(["attack", *words, "--seed", "1", "--findings", "found.jsonl"]) == code
    return [Finding.from_json(line) for line in Path("found.jsonl").read_text().split("\n")[:-1]]


LINKAGE = ("linkage", "released.csv", "--on", "zip,born", "--register", "voters.csv", "--identity", "name")


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ((*LINKAGE, "--truth", "who", "--risk", "0.1"), "violates"),
        (("linkage", "released.csv", "--on", "ill", "--risk", "0.1"), "consistent"),
        (("attribute-linkage", "released.csv", "--on", "zip", "--sensitive", "ill", "--risk", "0.5"), "violates"),
        (("table-reconstruction", "block.toml", "--risk", "0.1"), "violates"),
        (("mechanism-audit", "noise.py:little", "--input", "0", "--neighbour", "1", "--epsilon", "1"), "violates"),
        (("mechanism-audit", "noise.py:much", "--input", "0", "--neighbour", "1", "--epsilon", "1"), "consistent"),
        (
            ("mechanism-audit", "noise.py:many", "--many", "--input", "0", "--neighbour", "1", "--samples", "400",
             "--epsilon", "1"),
            "consistent",
        ),
        (("canary-audit", "scores.csv", "--epsilon", "1", "--delta", "1e-5"), "violates"),
        (("canary-audit", "scores.csv", "--epsilon", "1", "--trainings", "independent"), "violates"),
        (("canary-audit", "scores.csv"), "not applicable"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("files")
def test_an_attack_on_files_is_judged_by_its_claim(words: tuple[str, ...], verdict: str) -> None:
    (found,) = attacked(*words)
    assert found.verdict == verdict, found.reason
    assert found.target == words[1]


def test_a_file_of_statistics_says_how_means_and_medians_were_rounded(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of three people of age 0 or 1 the mean is 2/3, published as 1: they are (0, 1, 1) or (1, 1, 1)."""
    block = 'people = 3\n[attributes]\nage = {from = 0, to = 1}\n[[statistic]]\nname = "all"\ncount = 3\n'
    block += "mean = {age = 1}\n"
    for decimals, certain in (("", 1.0), ("decimals = 0\n", 2 / 3)):
        (files / "rounded.toml").write_text(block + decimals)
        Path("found.jsonl").unlink(missing_ok=True)
        (found,) = attacked("table-reconstruction", "rounded.toml", "--risk", "0.1")
        assert found.lower_bound == pytest.approx(certain)
    (files / "rounded.toml").write_text(block + "decimals = -1\n")
    assert run(["attack", "table-reconstruction", "rounded.toml"]) == 2
    assert "decimals must be" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["linkage", "attribute-linkage"])
def test_a_complete_register_and_an_entity_are_options_of_attacks_on_tables(
    files: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["attack", name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--entity" in shown
    assert "--complete-register" in shown
    asked = ("released.csv", "--on", "zip,born", "--sensitive", "ill", "--register", "voters.csv", "--identity", "name")
    (candidate,) = attacked(name, *asked, "--risk", "0.1")
    assert candidate.verdict == "not applicable"
    _, found = attacked(name, *asked, "--complete-register", "--entity", "who", "--risk", "0.1")
    assert (found.verdict, found.lower_bound) == ("violates", 1.0)


def test_ratings_of_a_register_are_matched_with_published_ones(files: Path) -> None:
    random = np.random.default_rng(3)
    rows = [
        (one, item, random.integers(1, 6), f"2024-{random.integers(1, 13):02}-{random.integers(1, 29):02}")
        for one in range(40)
        for item in random.choice(200, 12, replace=False)
    ]
    (files / "ratings.csv").write_text("who,film,stars,day\n" + "".join(f"e{a},{b},{c},{d}\n" for a, b, c, d in rows))
    (files / "known.csv").write_text(
        "name,film,stars,day,is\n" + "".join(f"p{a},{b},{c},{d},e{a}\n" for a, b, c, d in rows)
    )
    columns = ("--entity", "who", "--item", "film", "--value", "stars", "--when", "day")
    (found,) = attacked(
        "sparse-linkage", "ratings.csv", *columns, "--register", "known.csv", "--identity", "name", "--truth", "is",
        "--risk", "0.01",
    )  # fmt: skip
    assert found.verdict == "violates", found


def test_means_tell_who_is_in_the_group(files: Path) -> None:
    random = np.random.default_rng(2)
    shares = random.uniform(0.2, 0.8, 400)
    members, others = (random.random((30, 400)) < shares for _ in range(2))
    names = [f"a{one}" for one in range(400)]
    rows = zip(names, members.mean(0), shares, strict=True)
    (files / "means.csv").write_text("attribute,mean,reference\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    for name, people in (("members", members), ("outsiders", others)):
        lines = "".join(",".join(str(int(cell)) for cell in person) + "\n" for person in people)
        (files / f"{name}.csv").write_text(",".join(names) + "\n" + lines)
    (found,) = attacked(
        "tracing", "means.csv", "--members", "members.csv", "--outsiders", "outsiders.csv", "--epsilon", "0.1"
    )
    assert found.verdict == "violates"


def written(path: Path, columns: str, rows: Any) -> None:
    path.write_text(columns + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))


@pytest.mark.parametrize(("copied", "verdict"), [(True, "violates"), (False, "consistent")])
def test_synthetic_records_of_files_are_compared_as_numbers(files: Path, copied: bool, verdict: str) -> None:
    """A generator that moves the real ages by 1 memorises; one that draws anew does not."""
    random = np.random.default_rng(5)
    real, control, fresh = (
        np.column_stack([random.permutation(100_000)[:300], [f"0{random.integers(3)}" for _ in range(300)]])
        for _ in range(3)
    )
    moved = [(int(age) + 1, place) for age, place in real]
    for name, rows in (("real", real), ("control", control), ("synthetic", moved if copied else fresh)):
        written(files / f"{name}.csv", "age,place", rows)
    words = ("synthetic.csv", "--real", "real.csv", "--control", "control.csv", "--epsilon", "2", "--delta", "1e-5")
    (found,) = attacked("closest-record", *words)
    assert found.verdict == verdict, found.reason


def test_codes_with_leading_zeros_are_texts_and_missing_numbers_are_missing(files: Path) -> None:
    for name in ("real", "synthetic"):
        written(files / f"{name}.csv", "zip,age,n", [("02138", 1, "1e3"), ("10001", "", "-.5")])
    written(files / "control.csv", "zip,age,n", [("02139", 2, "1e3"), ("10002", "", "-.5")])
    settings = {name: files / f"{name}.csv" for name in ("real", "control", "synthetic")}
    found = KINDS["synthetic"].make(settings)  # type: ignore[misc]
    assert found.real.rows(["zip", "age", "n"]) == [("02138", 1.0, 1000.0), ("10001", None, -0.5)]


def test_updates_of_files_tell_which_canaries_took_part(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(6)
    canaries, present = random.normal(size=(200, 400)), random.integers(0, 2, 200)
    columns = ",".join(f"w{one}" for one in range(400))
    written(files / "rounds.csv", columns, [canaries[present == 1].sum(0)] * 2)
    written(
        files / "canaries.csv", f"present,{columns}", [(one, *row) for one, row in zip(present, canaries, strict=True)]
    )
    words = ("update-audit", "rounds.csv", "--canaries", "canaries.csv", "--epsilon", "0.5", "--delta", "1e-5")
    (found,) = attacked(*words)
    assert found.verdict == "violates", found.reason
    table = 'kind = "updates"\nrounds = "rounds.csv"\ncanaries = "canaries.csv"\nclaim = {epsilon = 0.5}'
    assert run(["attack", *targets(files / "t.toml", table), "--fail-on", "violates"]) == 1
    (files / "canaries.csv").write_text("present,w0\n1,2\n")
    assert run(["attack", *words]) == 2
    assert "w1" in capsys.readouterr().err


def test_a_folder_is_attacked_within_an_epsilon_and_the_finding_is_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = ("people", "--secret", "ill = 1", "--unit", "id", "--truth", "secrets.csv", "--folder", str(folder))
    (found,) = attacked("differencing", *query, "--epsilon", "1", "--keep", "--by", "olga")
    assert found.verdict in ("consistent", "underpowered")
    with Curator(folder) as curator:
        assert 0 < curator.budget("clinic").spent().epsilon <= 1.0 + 1e-9
        (kept,) = curator.findings("clinic")
    assert (kept.by, kept.finding) == ("olga", found.without_people())
    capsys.readouterr()
    assert run(["attack", "findings", "--folder", str(folder)]) == 0
    assert ",clinic,,olga,differencing," in capsys.readouterr().out
    assert run(["attack", "differencing", *query, "--epsilon", "2.5"]) == 2
    assert "add --yes to confirm" in capsys.readouterr().err
    assert run(["attack", "differencing", *query, "--epsilon", "9", "--yes"]) == 3
    assert re.search(
        r"T300 .* epsilon 9, and (3\S*) remains of clinic; --epsilon \1 would fit", capsys.readouterr().err
    )
    with Curator(folder) as curator:
        assert curator.budget("clinic").spent().epsilon <= 1.0 + 1e-9


@pytest.mark.usefixtures("folder")
def test_a_refusal_of_the_curator_keeps_its_code_and_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for error in (ShowsUnits("the answer would be about one person"), BudgetExceeded("nothing is left")):

        def refuse(*_: object, refusal: TacitError = error, **__: object) -> None:
            raise refusal

        monkeypatch.setattr(Curator, "sql", refuse)
        for name in ("differencing", "errors", "timing", "reconstruction", "consistency"):
            assert run(["attack", name, *QUERY, "--epsilon", "1", "--junit", "j.xml"]) == 3
            err = capsys.readouterr().err
            assert f"tacit: {error.code} the interface answered " in err
            assert f": {error.message}\n" in err
            (failed,) = ElementTree.parse("j.xml").getroot().iter("error")
            assert error.message not in str(failed.attrib)


def test_an_interrupted_attack_on_a_table_called_stats_does_not_say_that_nothing_was_charged(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    release, asked = Curator.sql, []

    def interrupted(curator: Curator, *given: object, **options: object) -> object:
        asked.append(given)
        if len(asked) > 2:
            raise KeyboardInterrupt
        return release(curator, *given, **options)  # type: ignore[arg-type]

    with Curator(files / "stats") as curator:
        curator.add_table("stats", files / "secrets.csv", unit="id", dataset="clinic")
        curator.set_budget("clinic", epsilon=4.0, epsilon_min=0)
    monkeypatch.setattr(Curator, "sql", interrupted)
    query = ("stats", "--secret", "secret = 1", "--unit", "id", "--truth", "secrets.csv", "--folder", "stats")
    assert run(["attack", "differencing", *query, "--epsilon", "1"]) == 130
    with Curator(files / "stats") as curator:
        assert curator.budget("clinic").spent().epsilon > 0
    assert "nothing was charged" not in capsys.readouterr().err


def test_a_claim_is_read_from_the_ledger_and_the_finding_kept_beside_its_entry(folder: Path) -> None:
    with Curator(folder) as curator:
        permit = curator.sql("SELECT COUNT(*) FROM people", 0.5).permit
    assert permit is not None
    words = ("mechanism-audit", "noise.py:little", "--input", "0", "--neighbour", "1", "--samples", "400")
    (found,) = attacked(*words, "--permit", permit.id, "--keep", "--by", "olga", "--folder", str(folder))
    assert found.claimed == Claim(0.5, 0.0, permit=permit.id)
    assert found.verdict == "violates"
    with Curator(folder) as curator:
        assert [one.finding.verdict for one in curator.findings(permit=permit)] == ["violates"]


def test_a_suite_runs_the_targets_of_a_file_and_leaves_out_what_was_found_before(
    files: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = "".join(f"{one},{bit}\n" for one, bit in enumerate(SECRETS[:14]))
    (files / "secrets.csv").write_text("id,secret\n" + few)
    (folder / "attacks.toml").write_text(
        '[[target]]\nname = "release"\nkind = "table"\nrecords = "../released.csv"\non = ["zip", "born"]\n'
        'sensitive = "ill"\nclaim = {risk = 0.1}\n'
        '[[target]]\nkind = "model"\nscores = "../scores.csv"\nclaim = {epsilon = 1.0, delta = 1e-5}\n'
        '[[target]]\nname = "queries"\nkind = "query"\ntable = "people"\nsecret = "ill = 1"\nunit = "id"\n'
        'truth = "../secrets.csv"\nclaim = {epsilon = 1.0}\n'
    )
    words = ("--suite", "ci", "--folder", str(folder), "--fail-on", "violates")
    found = attacked(*words, "--junit", "j.xml", "--sarif", "s.json", "--html", "h.html", code=1)
    names = {(one.target, one.attack) for one in found}
    assert {("release", "linkage"), ("release", "attribute_linkage"), ("target 2", "canary_audit")} < names
    assert {one.correction for one in found if one.confidence > 0.95} == {f"Bonferroni over {len(found)} attacks"}
    suite = ElementTree.parse("j.xml").getroot()[0]
    assert int(suite.get("tests", "")) == len(found)
    assert int(suite.get("failures", "")) == sum(one.is_violation for one in found) >= 3
    assert len(json.loads((files / "s.json").read_text())["runs"][0]["results"]) == len(found)
    assert "<svg" in (files / "h.html").read_text()
    with Curator(folder) as curator:
        spent = curator.budget("clinic").spent().epsilon
    assert spent <= 1.0 + 1e-9
    capsys.readouterr()
    assert attacked(*words, "--json", code=1) == found  # nothing is computed, and nothing spent, again
    assert len(json.loads(capsys.readouterr().out)["findings"]) == len(found)


def test_without_a_file_the_suite_attacks_this_installation(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = self_audit._mechanisms
    monkeypatch.setattr(self_audit, "_statistics", lambda effort: ())
    monkeypatch.setattr(self_audit, "_curators", lambda stack: ())
    monkeypatch.setattr(self_audit, "_mechanisms", lambda samples: list(whole(400))[:5])
    assert run(["attack", "--suite", "ci", "--fail-on", "underpowered"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("target,attack,verdict,claimed,shown,seconds,reason,figures,assumptions\n")
    assert "Laplace on reals,floating_point,consistent,epsilon 1," in out


@pytest.mark.usefixtures("files")
def test_the_correction_counts_the_attacks_that_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = list(self_audit._mechanisms(400))[1:3]
    left = [replace(first, leaves_out=frozenset({"floating_point"})), second]
    monkeypatch.setattr(self_audit, "_statistics", lambda effort: ())
    monkeypatch.setattr(self_audit, "_curators", lambda stack: left)
    monkeypatch.setattr(self_audit, "_mechanisms", lambda samples: ())
    found = attacked("--suite", "ci")
    assert {one.correction for one in found if one.measurements} == {f"Bonferroni over {len(found)} attacks"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seed", "1"), "name an attack, or give --suite ci"),
        (("linkag", "released.csv"), "did you mean linkage"),
        (("linkage", "nowhere.csv", "--on", "zip"), "T613 there is no file nowhere.csv"),
        (("linkage", "released.csv", "--on", "zap"), "no column 'zap'; did you mean zip"),
        (("linkage", "released.csv"), "give --on COLUMN,COLUMN"),
        (("attribute-linkage", "released.csv", "--on", "zip"), "give --sensitive COLUMN"),
        (("linkage", "released.csv", "--on", "zip", "--register", "voters.csv"), "--identity COLUMN"),
        (
            ("linkage", "released.csv", "--on", "ill", "--register", "voters.csv", "--identity", "name"),
            "the register voters.csv has no column ill; it has name, zip, born",
        ),
        (
            ("linkage", "released.csv", "--on", "zip", "--risk", "0.1", "--epsilon", "1"),
            "an epsilon says nothing about linkage; claim a share of people with --risk 0.05",
        ),
        (("mechanism-audit", "noise.py:much", "--input", "0", "--neighbour", "0"), "input and neighbour are the same"),
        (("linkage", "scores.bin", "--on", "zip"), "cannot be read as CSV"),
        (("linkage", "ragged.csv", "--on", "a"), "more or fewer cells"),
        (("linkage", "empty.csv", "--on", "a"), "there are no records"),
        (("linkage", "released.csv", "--on", "zip", "--html", "no/where.html"), "there is no folder no"),
        (("linkage", "released.csv", "--on", "zip", "--seed", "1", "--findings", "released.csv"), "no findings"),
        (("linkage", "released.csv", "--on", "zip", "--findings", "new.jsonl"), "--findings needs --seed"),
        (("linkage", "released.csv", "--on", "zip", "--keep"), "no catalog or ledger"),
        (("mechanism-audit", "noise.py", "--input", "0", "--neighbour", "1"), "FILE.py:NAME"),
        (("mechanism-audit", "noise.py:none", "--input", "0", "--neighbour", "1"), "has no none"),
        (("mechanism-audit", "broken.py:x", "--input", "0", "--neighbour", "1"), "cannot be loaded: NameError"),
        (("mechanism-audit", "noise.py:much", "--input", "{", "--neighbour", "1"), "is not JSON"),
        (("mechanism-audit", "noise.py:much", "--input", "0", "--neighbour", "1", "--samples", "3"), "at least 100"),
        (("mechanism-audit", "noise.py:much", "--input", "0", "--neighbour", "1", "--epsilon", "-1"), "epsilon"),
        (("gaussian-canary-audit", "scores.csv", "--epsilon", "1"), "a claim with a delta above 0"),
        (("canary-audit", "few.csv", "--epsilon", "1"), "at least 20 canaries"),
        (("canary-audit", "odd.csv", "--epsilon", "1"), "is no truth value"),
        (("table-reconstruction", "noise.py", "--risk", "0"), "cannot be read as TOML"),
        (("table-reconstruction", "half.toml", "--risk", "0"), "needs people, a table of attributes"),
        (("tracing", "scores.csv", "--members", "few.csv", "--outsiders", "few.csv"), "no column 'attribute'"),
        (("--suite", "ci", "--targets", "nothing.toml"), "there is no file"),
        (("--suite", "ci", "--targets", "half.toml"), "names no targets"),
        (("--suite", "ci", "--targets", "kind.toml"), "did you mean table"),
        (("--suite", "ci", "--targets", "setting.toml"), "has no setting record; did you mean records"),
        (("--suite", "ci", "--targets", "needs.toml"), "needs scores"),
        (("findings",), "no catalog or ledger"),
    ],
)
def test_bad_input_gets_one_sentence_and_no_verdict(
    files: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {
        "ragged.csv": "a,b\n1\n", "empty.csv": "a,b\n", "broken.py": "x = y\n", "few.csv": "score,present\n1,1\n",
        "odd.csv": "score,present\n1,maybe\n", "half.toml": "people = 3\n", "kind.toml": '[[target]]\nkind = "tabel"\n',
        "setting.toml": '[[target]]\nkind = "table"\nrecord = "x"\n', "needs.toml": '[[target]]\nkind = "model"\n',
    }  # fmt: skip
    for name, text in texts.items():
        (files / name).write_text(text)
    (files / "scores.bin").write_bytes(b"\xff\xfe\x00")
    assert run(["attack", *words]) in (2, 4)
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


CANARIES = ("canary-audit", "scores.csv")
AUDIT = ("mechanism-audit", "noise.py:little", "--input", "0", "--neighbour", "1", "--samples", "200")
QUERY = ("people", "--secret", "ill = 1", "--unit", "id", "--truth", "secrets.csv", "--folder", "clinic")


def targets(path: Path, *tables: str) -> tuple[str, ...]:
    """Write a file of targets and return the words of a suite over it."""
    path.write_text("".join(f"[[target]]\n{table}\n" for table in tables))
    return ("--suite", "ci", "--targets", str(path))


TABLE = 'kind = "table"\nrecords = "released.csv"\non = ["zip"]\nclaim = {risk = 0.1}\n'
BROKEN = (
    'name = "broken"\nkind = "mechanism"\nfunction = "raises.py:f"\ninput = 0\nneighbour = 1\nsamples = 200\n'
    "claim = {epsilon = 1}\n"
)


@pytest.mark.parametrize(
    "changed",
    [
        ("--epsilon", "2"), ("--epsilon", "1", "--delta", "1e-3"), ("--epsilon", "1", "--effort", "nightly"),
        ("--epsilon", "1", "--trainings", "independent"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("files")
def test_a_finding_of_another_run_is_not_reused(changed: tuple[str, ...]) -> None:
    (first,) = attacked(*CANARIES, "--epsilon", "1")
    assert attacked(*CANARIES, "--epsilon", "1") == [first]
    again, other = attacked(*CANARIES, *changed)
    assert again == first
    assert other.target_digest != first.target_digest


def test_a_finding_is_not_reused_once_a_file_or_the_version_changed(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attacked(*CANARIES, "--epsilon", "1")
    with (files / "scores.csv").open("a") as file:
        file.write("0.5,1\n")
    assert len(attacked(*CANARIES, "--epsilon", "1")) == 2
    monkeypatch.setattr("tacit.version.__version__", "0.0.0")
    assert len(attacked(*CANARIES, "--epsilon", "1")) == 3


def test_findings_of_code_are_never_reused_because_it_may_import_other_code(files: Path) -> None:
    (files / "noise.py").write_text("import sys\nsys.path.insert(0, '.')\nfrom helper import little\n")
    (files / "helper.py").write_text("def little(x): return x\n")
    assert len(attacked(*AUDIT, "--epsilon", "1")) == 1
    (files / "helper.py").write_text("def little(x): return 0\n")
    assert len(attacked(*AUDIT, "--epsilon", "1")) == 2


def test_a_journal_survives_a_torn_line_and_separators_of_lines(files: Path) -> None:
    (files / "\u2028.csv").write_text((files / "scores.csv").read_text())
    (first,) = attacked("canary-audit", "\u2028.csv", "--epsilon", "1")
    journal = files / "found.jsonl"
    assert journal.read_bytes().isascii()
    whole = journal.read_bytes()
    journal.write_bytes(whole + whole[:100])
    assert run(["attack", *AUDIT, "--epsilon", "1", "--seed", "1", "--findings", "found.jsonl"]) == 0
    found = [Finding.from_json(line) for line in journal.read_bytes().split(b"\n")[:-1]]
    assert [one.attack for one in found] == ["canary_audit", "mechanism_audit"]
    assert found[0] == first


def test_findings_without_measurements_are_not_reused(files: Path) -> None:
    attacked(*AUDIT, "--epsilon", "1")
    journal = files / "found.jsonl"
    empty = {**json.loads(journal.read_text()), "measurements": []}
    journal.write_text(json.dumps(empty) + "\n")
    assert len(attacked(*AUDIT, "--epsilon", "1")) == 2


@pytest.mark.usefixtures("folder")
def test_a_finished_run_is_replayed_without_confirmation_and_kept_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("differencing", *QUERY, "--epsilon", "3")
    (found,) = attacked(*words, "--yes")
    for _ in range(2):
        assert attacked(*words, "--keep", "--by", "olga") == [found]
    assert capsys.readouterr().err.count("is not kept again") == 1
    with Curator("clinic") as curator:
        assert [one.finding for one in curator.findings("clinic")] == [found]
        with Path("people.csv").open("a") as file:
            file.write("999,1\n")
        curator.refresh("people")
    assert run(["attack", *words, "--seed", "1", "--findings", "found.jsonl"]) == 3  # other rows would be attacked
    assert "would spend" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*AUDIT, "--epsilon", "nan"), "finite"),
        (("linkage", "released.csv", "--on", "zip", "--risk", "2"), "from 0 to 1"),
        ((*AUDIT, "--delta", "0.1"), "needs its epsilon"),
        ((*AUDIT, "--risk", "0.1"), "no such option"),
        (("differencing", *QUERY, "--permit", "x"), "no such option"),
        (("--fail-on", "violates", "--junit", "j.xml", *LINKAGE), "put the options after the name of the attack"),
        (("--format", "csv", *LINKAGE), "put the options after the name of the attack"),
        ((*LINKAGE, "--truth", "name"), "truth and identity name the same column"),
        ((*LINKAGE, "--truth", "ill"), "no value of the truth is among the identities"),
        ((*LINKAGE, "--html", "x", "--junit", "x"), "a file of its own"),
        ((*LINKAGE, "--html", "."), "is a directory"),
        (("linkage", "twice.csv", "--on", "a"), "two columns of one name"),
        (("table-reconstruction", "typo.toml"), "no key cuont here; did you mean count"),
        (("linkage", "re*.parquet", "--on", "zip"), "reads as a pattern"),
        (("mechanism-audit", "noise.txt:f", "--input", "0", "--neighbour", "1"), "FILE.py:NAME"),
        (("mechanism-audit", "leaves.py:f", "--input", "0", "--neighbour", "1"), "cannot be loaded: SystemExit"),
        (("mechanism-audit", "noise.py:much", "--input", "[" * 200_000, "--neighbour", "1"), "nested too deep"),
        (("mechanism-audit", "raises.py:f", "--input", "0", "--neighbour", "1"), "the mechanism raised ValueError: no"),
        (("mechanism-audit", "raises.py:g", "--input", "0", "--neighbour", "1"), "the mechanism raised SystemExit: 0"),
    ],
)
def test_what_could_be_misread_is_refused(
    files: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "re*.parquet").write_bytes(b"")
    (files / "noise.txt").write_text("def f(x): return x")
    (files / "twice.csv").write_text("a,a\n1,2\n")
    (files / "typo.toml").write_text((files / "block.toml").read_text().replace("count = 1", "cuont = 1"))
    (files / "leaves.py").write_text("raise SystemExit(0)")
    (files / "raises.py").write_text("def f(x): raise ValueError('no')\ndef g(x): raise SystemExit(0)\n")
    assert run(["attack", *words]) in (2, 4)
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (TABLE.replace("risk = 0.1", "rsk = 0.1"), "a claim has no key rsk; did you mean risk"),
        (TABLE.replace("risk = 0.1", 'risk = "0.1"'), "risk of a claim must be a number"),
        (TABLE.replace("risk = 0.1", "risk = nan"), "finite"),
        (TABLE.replace("risk = 0.1", "epsilon = 1"), "a claim about a target of the kind table has no epsilon"),
        (TABLE.replace("released.csv", "gone.csv"), "t.toml"),
        (TABLE.replace("{risk = 0.1}", "0.1"), "must be a table"),
        (TABLE.replace('["zip"]', '"zip"'), "on must be a list of texts"),
        (TABLE + "name = 3", "printable text"),
        (TABLE + 'name = "a\\u001b"', "printable text"),
        (TABLE + '[[target]]\nname = "target 1"\n' + TABLE, "two targets target 1"),
        (BROKEN.replace("samples = 200", "samples = true"), "samples must be an integer"),
        (BROKEN + "many = 1", "many = 1"),
        (BROKEN.replace("epsilon", "risk"), "a claim about a target of the kind mechanism has no risk"),
        (
            'kind = "query"\ntable = "people"\nsecret = "ill = 1"\nunit = "id"\ntruth = "secrets.csv"\n'
            "claim = {permit = '1'}",
            "kind query has no permit",
        ),
        ('kind = "table"\nrecords = "released.csv"', "no attack fits the target target 1"),
    ],
)
def test_a_target_of_a_file_is_refused_unless_it_is_well_formed(
    files: Path, table: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "raises.py").write_text("def f(x): raise ValueError('no')\n")
    if said == "t.toml":
        said = f"there is no file {files / 'gone.csv'}"
    if said == "many = 1":
        table, said = BROKEN.replace("claim", "many = 1\nclaim"), "many must be true or false"
    assert run(["attack", *targets(Path("t.toml"), table)]) in (2, 4)
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


def test_a_list_of_targets_must_hold_tables(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "t.toml").write_text("target = [1]")
    assert run(["attack", "--suite", "ci", "--targets", "t.toml"]) == 2
    assert "names no targets" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [("--keep",), ("--keep", "--by", ""), ("--keep", "--by", "olga", "--dataset", "nowhere")],
)
def test_what_cannot_be_kept_is_refused_before_anything_is_spent(words: tuple[str, ...]) -> None:
    assert run(["attack", "differencing", *QUERY, "--epsilon", "1", *words]) == 2
    assert run(["attack", *LINKAGE, "--folder", "clinic", "--keep", "--by", "olga"]) == 2
    with Curator("clinic") as curator:
        assert curator.budget("clinic").spent().epsilon == 0


@pytest.mark.usefixtures("folder")
def test_what_all_targets_spend_is_confirmed_together(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = 'kind = "query"\ntable = "people"\nsecret = "ill = 1"\nunit = "id"\ntruth = "secrets.csv"\n'
    for epsilon, said in ((1.5, "this costs ε 3"), (2.5, "would spend epsilon 5, and 4 remains of clinic")):
        words = targets(files / "t.toml", *[f"{query}claim = {{epsilon = {epsilon}, delta = 1e-9}}"] * 2)
        assert run(["attack", *words, "--folder", "clinic"]) in (2, 3)
        assert said in capsys.readouterr().err
    words = targets(files / "t.toml", f"{query}claim = {{epsilon = 0.5}}", 'kind = "table"\nrecords = "released.csv"')
    assert run(["attack", *words, "--folder", "clinic"]) == 2
    with Curator("clinic") as curator:
        assert curator.budget("clinic").spent().epsilon == 0


def test_a_suite_goes_on_when_an_attack_fails(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "raises.py").write_text("def f(x): raise SystemExit(0)\n")
    words = targets(files / "t.toml", BROKEN, TABLE)
    assert run(["attack", *words, "--junit", "j.xml"]) == 2
    out, err = capsys.readouterr()
    assert "target 2,linkage,violates" in out
    assert " broken, mechanism_audit: the mechanism raised SystemExit: 0" in err
    suite = ElementTree.parse("j.xml").getroot()[0]
    errors = [one.get("message") for one in suite.iter("error")]
    assert errors == ["MechanismFailed"] * int(suite.get("errors", ""))
    assert errors
    assert run(["attack", *words, "--fail-on", "violates"]) == 1
    (files / "raises.py").write_text("def f(x): raise KeyboardInterrupt\n")
    words = targets(files / "t.toml", TABLE, BROKEN)
    capsys.readouterr()
    assert run(["attack", *words, "--sarif", "s.json"]) == 130
    out, err = capsys.readouterr()
    assert "target 1,linkage,violates" in out
    assert "tacit: interrupted after 1 of 3 attacks; with --findings FILE it could be continued" in err
    assert len(json.loads((files / "s.json").read_text())["runs"][0]["results"]) == 1


def test_a_file_that_cannot_be_written_is_reported_after_the_others(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "raises.py").write_text(
        "import os\nif not os.path.isdir('j.xml'): os.mkdir('j.xml')\ndef f(x): return x\n"
    )
    words = targets(files / "t.toml", TABLE, BROKEN)
    assert run(["attack", *words, "--junit", "j.xml", "--sarif", "s.json"]) == 4
    out, err = capsys.readouterr()
    assert "target 1,linkage,violates" in out
    assert "j.xml cannot be written" in err
    assert (files / "s.json").exists()


def test_parquet_keeps_dates_and_integers(files: Path) -> None:
    duckdb.sql("SELECT DATE '2024-01-31' AS day, NULL::INT AS n UNION ALL SELECT NULL, 9007199254740993").write_parquet(
        str(files / "r.parquet")
    )
    found = read_records(files / "r.parquet")
    assert sorted(map(str, found["day"])) == ["2024-01-31", "None"]
    assert {type(one) for one in found["n"]} == {int, type(None)}
    assert 9007199254740993 in found["n"]


def test_truth_of_another_type_than_the_identities_is_compared_as_text(files: Path) -> None:
    duckdb.sql(
        "SELECT zip, born, ill, who[2:]::INT AS who FROM read_csv('released.csv', all_varchar=true)"
    ).write_parquet(str(files / "released.parquet"))
    (files / "voters.csv").write_text((files / "voters.csv").read_text().replace("\np", "\n"))
    words = ("linkage", "released.parquet", *LINKAGE[2:])
    (found,) = attacked(*words, "--truth", "who", "--risk", "0.1")
    assert found.verdict == "violates"


def test_ids_are_of_the_kind_of_the_unit_column_and_occur_there(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []
    with Curator(files / "clinic") as curator:
        ids = ["a", *(f"00{one + 10}" for one in range(60))]
        (files / "people.csv").write_text("id,ill\n" + "".join(f"{one},1\n" for one in ids))
        curator.add_table("people", files / "people.csv", unit="id", dataset="clinic")
        curator.set_budget("clinic", epsilon=4.0, epsilon_min=0)
    assert run(["attack", "differencing", *QUERY, "--epsilon", "1"]) == 2
    assert "0 of 60 ids of secrets.csv are in people.id; nothing was charged" in capsys.readouterr().err
    with Curator("clinic") as curator:
        assert curator.budget("clinic").spent().epsilon == 0
    with pytest.raises(InvalidInput, match="no integer"):
        queries._id(1.5, Kind.INTEGER)
    (files / "secrets.csv").write_text("id,secret\n" + "".join(f"00{one + 10},{one % 2}\n" for one in range(60)))
    whole = Curator.sql
    monkeypatch.setattr(
        Curator, "sql", lambda self, sql, *rest, **more: asked.append(sql) or whole(self, sql, *rest, **more)
    )
    attacked("differencing", *QUERY, "--epsilon", "1")
    assert any("'0010'" in sql or "'0011'" in sql for sql in asked)


@pytest.mark.usefixtures("files")
def test_unprintable_texts_neither_break_xml_nor_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    name = "sc\x1b[31m\x7fores.csv"
    Path("scores.csv").rename(name)
    assert run(["attack", "canary-audit", name, "--epsilon", "1", "--junit", "j.xml", "--sarif", "s.json"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert ElementTree.parse("j.xml").getroot()[0][0].get("classname") == "sc\\x1b[31m\x7fores.csv"
    assert run(["attack", "canary-audit", name, "--sarif", "s.json"]) == 0
    (result,) = json.loads(Path("s.json").read_text())["runs"][0]["results"]
    assert (result["kind"], result["level"]) == ("open", "none")


@pytest.mark.usefixtures("files")
def test_a_file_of_targets_in_the_folder_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    targets(Path("attacks.toml"), TABLE)
    assert run(["attack", "--suite", "ci"]) == 0
    assert capsys.readouterr().err == "targets: attacks.toml\n"


def test_a_mechanism_of_a_file_is_found_beside_it_and_may_define_dataclasses(files: Path) -> None:
    (files / "sub").mkdir()
    (files / "sub" / "m.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom typing import ClassVar\n"
        "@dataclass\nclass A:\n    a: ClassVar[int] = 1\ndef f(x): return x\n"
    )
    table = BROKEN.replace("raises.py:f", "m.py:f")
    assert run(["attack", *targets(files / "sub" / "t.toml", table), "--fail-on", "violates"]) == 1


@pytest.mark.usefixtures("folder")
def test_no_id_of_a_person_is_in_the_journal_of_the_ledger(files: Path) -> None:
    lines = "".join(f"person-{one},{one % 2}\n" for one in range(30))
    (files / "people.csv").write_text("id,ill\n" + lines)
    (files / "secrets.csv").write_text("id,secret\n" + lines)
    with Curator("clinic") as curator:
        curator.add_table("people", files / "people.csv", unit="id", dataset="clinic", replace=True)
    (found,) = attacked("differencing", *QUERY, "--epsilon", "1")
    assert found.threat_model.queries > 1
    with Curator("clinic") as curator:
        curator.ledger.export(files / "journal.jsonl")
    journal = (files / "journal.jsonl").read_text()
    assert r"\"purpose\":\"attack\"" in journal
    assert "person-" not in journal


@pytest.mark.usefixtures("folder")
def test_a_finding_that_cannot_be_kept_is_shown_and_written(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StorageUnavailable("the ledger is gone")

    monkeypatch.setattr(Curator, "keep_finding", fail)
    words = ("differencing", *QUERY, "--epsilon", "1", "--keep", "--by", "olga", "--html", "h.html")
    assert len(attacked(*words, code=4)) == 1
    out, err = capsys.readouterr()
    assert "people,differencing," in out
    assert "T522 the ledger is gone" in err
    assert "differencing" in (files / "h.html").read_text()


@pytest.mark.usefixtures("folder")
def test_whether_a_finding_can_be_kept_is_checked_before_anything_is_spent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(queries, "FINDINGS_MAX", 0)
    words = ("attack", "differencing", *QUERY, "--epsilon", "1", "--keep", "--by")
    assert run([*words, "olga"]) == 2
    assert "has 0 findings, the maximum; leave out --keep" in capsys.readouterr().err
    with open_access(Path("clinic"), postgres=False) as access:
        access.people.add("olga", None)
    assert run([*words, "olgo"]) == 2
    assert "olgo is no person of this folder; did you mean olga" in capsys.readouterr().err
    with Curator("clinic") as curator:
        assert curator.budget("clinic").spent().epsilon == 0


def test_the_limit_of_findings_is_that_of_the_ledger() -> None:
    assert queries.FINDINGS_MAX == kept_findings.FINDINGS_MAX


def test_a_kept_document_that_cannot_be_read_is_listed_as_unreadable(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Curator(folder) as curator:
        kept = curator.ledger.keep_finding("clinic", {"schema_version": 2}, by="olga")
    assert run(["attack", "findings", "--folder", "clinic"]) == 0
    assert f",clinic,,olga,{kept.id},unreadable,," in capsys.readouterr().out
    assert run(["attack", "findings", "--folder", "clinic", "--dataset", "nosuch"]) == 2


@pytest.mark.usefixtures("files")
def test_what_could_not_be_read_again_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Finding, "to_dict", lambda self: {"schema_version": 2})
    assert run(["attack", *CANARIES, "--epsilon", "1", "--seed", "1", "--findings", "found.jsonl"]) == 2
    assert not Path("found.jsonl").exists()


@pytest.mark.usefixtures("files")
def test_records_of_people_are_written_if_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*LINKAGE, "--truth", "who", "--html", "h.html", "--json")
    for more, is_shown in (((), False), (("--show-records",), True)):
        Path("found.jsonl").unlink(missing_ok=True)
        (found,) = attacked(*words, *more)
        assert bool(found.worst) is is_shown
        (printed,) = json.loads(capsys.readouterr().out)["findings"]
        assert bool(printed["worst"]) is is_shown
        assert ("Records at the greatest risk" in Path("h.html").read_text()) is is_shown


@pytest.mark.usefixtures("folder")
def test_the_unit_is_that_of_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    without = [one for one in QUERY if one not in ("--unit", "id")]
    assert run(["attack", "differencing", *without, "--epsilon", "1"]) == 0
    assert run(["attack", "differencing", *without, "--unit", "ill", "--epsilon", "1"]) == 2
    assert "--unit: the people of people are in the column id" in capsys.readouterr().err


@pytest.mark.usefixtures("files")
def test_a_link_to_a_missing_file_stays_a_link() -> None:
    Path("there.html").symlink_to("made.html")
    assert run(["attack", *LINKAGE, "--html", "there.html"]) == 0
    assert Path("there.html").is_symlink()
    assert "linkage" in Path("made.html").read_text()


@pytest.mark.usefixtures("folder")
def test_an_interrupted_attack_says_what_it_spent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, calls = Curator.sql, []

    def interrupted(self: Curator, *words: object, **more: object) -> object:
        calls.append(words)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(self, *words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Curator, "sql", interrupted)
    assert run(["attack", "differencing", *QUERY, "--epsilon", "1"]) == 130
    assert "tacit: interrupted; spent epsilon 0." in capsys.readouterr().err


@pytest.mark.usefixtures("files")
def test_without_a_claim_a_hint_says_how_to_state_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["attack", *LINKAGE]) == 0
    assert "hint: add --risk 0.05 to have it judged" in capsys.readouterr().err


def test_help_lists_options_by_section_and_only_those_that_the_attack_uses(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["attack", "linkage", "--help"]) == 0
    out = capsys.readouterr().out
    assert [one for one in out.splitlines() if re.fullmatch(r"[A-Z][a-z]+:", one)] == [
        "Target:", "Claim:", "Ledger:", "Output:"
    ]  # fmt: skip
    assert "RECORDS: The published records" in out
    for option in ("--epsilon", "--item", "--yes"):
        assert option not in out
    assert run(["attack", "--help"]) == 0
    assert "Attacks on query interfaces:" in capsys.readouterr().out


def test_a_prior_is_an_option_of_the_attacks_that_use_one(capsys: pytest.CaptureFixture[str]) -> None:
    for name, uses in (("averaging", True), ("linkage", False), ("timing", False), ("canary-audit", False)):
        assert run(["attack", name, "--help"]) == 0
        assert ("--prior" in capsys.readouterr().out) is uses


@pytest.mark.usefixtures("files")
def test_shares_are_written_in_percent(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["attack", "linkage", "released.csv", "--on", "zip,born", "--risk", "0.05"]) == 0
    assert "The attack identifies at least 100 % of people; the claim allows 5 %." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("grant", "is_enough"),
    [
        (("owner", None, None), True), (("auditor", "clinic", None), True), (("analyst", "clinic", None), False),
        (("curator", "other", None), False), (("curator", "clinic", "people"), False),
    ],
)  # fmt: skip
def test_the_right_to_keep_over_a_server_is_read_from_the_grants(
    grant: tuple[str, str | None, str | None], is_enough: bool
) -> None:
    class Server:
        def me(self) -> dict[str, object]:
            return {"grants": [dict(zip(("role", "dataset", "table"), grant, strict=True))]}

    if is_enough:
        queries._require_grant(Server(), "clinic")
    else:
        with pytest.raises(NotPermitted, match="needs the role owner, curator or auditor on clinic; nothing was"):
            queries._require_grant(Server(), "clinic")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_queries_are_counted_on_a_terminal_and_not_in_a_pipe(
    files: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.setattr("tacit.cli.output.QUIET_S", 0.0)
    whole = Curator.sql
    monkeypatch.setattr(Curator, "sql", lambda self, *rest, **more: time.sleep(0.01) or whole(self, *rest, **more))
    few = "".join(f"{one},{bit}\n" for one, bit in enumerate(SECRETS[:10]))
    (files / "secrets.csv").write_text(f"id,secret\n{few}")
    table = f'kind = "query"\ntable = "people"\nsecret = "ill = 1"\ntruth = "{files / "secrets.csv"}"\n'
    suite = ("--folder", str(folder), *targets(files / "t.toml", f"{table}claim = {{epsilon = 0.5}}"))
    for words in (("differencing", *QUERY, "--epsilon", "0.5"), suite):
        shown, typist = Terminal() if is_terminal else io.StringIO(), Typist(monkeypatch)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", shown)
            assert typist.runs("attack", *words)[0] == 0
        assert (" of 20 queries" in shown.getvalue()) is is_terminal
        assert "running" not in shown.getvalue() or is_terminal


def test_in_a_pipe_figures_and_assumptions_are_shown_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("born,sex\n1970,F\n1971,M\n", encoding="utf-8")
    assert run(["attack", "linkage", "rows.csv", "--on", "born,sex", "--risk", "0.05"]) == 0
    shown = capsys.readouterr().out
    assert "100 %" in shown
    assert "at most 5 % of people at risk" in shown
    assert "each record is of another person" in shown
    assert "smallest group (k-anonymity): 1" in shown


def test_a_suite_that_was_interrupted_leaves_no_green_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tacit.cli.attacks.suites._attack", interrupted)
    assert run(["attack", "--suite", "ci", "--junit", "x.xml", "--findings", "f.jsonl", "--seed", "1"]) == 130
    assert "attacks on this installation start anew" in capsys.readouterr().err
    (suite,) = ElementTree.parse("x.xml").getroot()
    assert suite.get("errors") == "1"


@pytest.mark.usefixtures("files")
def test_a_suite_says_why_an_attack_was_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    Path("few.csv").write_text("a\n1\n2\n", encoding="utf-8")
    Path("other.csv").write_text("a\n3\n4\n", encoding="utf-8")
    Path("t.toml").write_text(
        '[[target]]\nkind = "synthetic"\nreal = "few.csv"\nsynthetic = "few.csv"\ncontrol = "other.csv"\n'
        "claim = {epsilon = 1.0}\n",
        encoding="utf-8",
    )
    assert run(["attack", "--suite", "ci", "--targets", "t.toml"]) == 0
    assert "left out: target 1, closest_record: The attack could not be run: " in capsys.readouterr().err
