"""`tacit account`: the numbers of the accountants, rounded towards claiming less, for people and for programs."""

import csv
import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click
import pytest

from tacit import accounting
from tacit.cli.app import app, run
from tacit.cli.commands import account
from tacit.cli.groups import Group
from tacit.cli.output import Fact, Screen
from tacit.privacy import Relation, events
from tacit.privacy.notation import parse, signatures

PLAN = "20 x sampled(0.1, gaussian(2))"


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["account", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def facts(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    assert run(["account", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return dict(line.split("\t") for line in out.splitlines())


def refusal(capsys: pytest.CaptureFixture[str], exit_code: int, *arguments: str) -> str:
    assert run(["account", *arguments]) == exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.removeprefix("tacit: ").rstrip("\n")


class TestEpsilonAndDelta:
    def test_epsilon_is_what_the_accountants_say(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = answer(capsys, "epsilon", "--delta", "1e-5", PLAN)
        bound = accounting.epsilon(parse(PLAN), 1e-5)
        assert found["epsilon"] == {"lower": bound.lower, "upper": bound.upper, "method": bound.method}
        assert (found["event"], found["relation"], found["delta"]) == (PLAN, "add-remove", 1e-5)
        assert events.from_dict(found["written"]) == parse(PLAN)
        assert found["meaning"] == accounting.meaning(parse(PLAN), 1e-5).sentence

    def test_delta_is_what_the_accountants_say(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = answer(capsys, "delta", "--epsilon", "3", "100 x laplace(0.1)")
        bound = accounting.delta(parse("100 x laplace(0.1)"), 3)
        assert found["delta"] == {"lower": bound.lower, "upper": bound.upper, "method": bound.method}
        assert found["epsilon"] == 3
        assert "above 90% with a probability of at most 0.0" in found["meaning"]

    def test_people_see_the_ends_rounded_outwards(self, capsys: pytest.CaptureFixture[str]) -> None:
        shown = facts(capsys, "epsilon", "--delta", "1e-5", PLAN)
        bound = accounting.epsilon(parse(PLAN), 1e-5)
        ends = re.fullmatch(r"between (\S+) and (\S+)", shown["epsilon"])
        assert ends
        low, high = map(float, ends.groups())
        assert low <= bound.lower <= bound.upper <= high
        assert low == pytest.approx(bound.lower, rel=1e-4)
        assert high == pytest.approx(bound.upper, rel=1e-4)
        assert list(shown) == ["event", "neighbours", "delta", "epsilon", "method", "meaning"]

    def test_ends_that_look_alike_are_shown_once(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert facts(capsys, "epsilon", "--delta", "0", "laplace(0.1)")["epsilon"] == "0.1"

    def test_without_a_finite_bound_people_read_so_and_programs_get_null(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        asked = ["epsilon", "--delta", "1e-6", "approximate(1, 1e-3)"]
        assert facts(capsys, *asked)["epsilon"] == "no finite bound is known"
        assert answer(capsys, *asked)["epsilon"]["upper"] is None

    def test_the_relation_holds_for_all_events(self, capsys: pytest.CaptureFixture[str]) -> None:
        asked = ["epsilon", "--delta", "1e-6", "gaussian(1) + laplace(1)", "--relation", "replace-one"]
        assert answer(capsys, *asked)["relation"] == "replace-one"
        assert "with another in their place" in facts(capsys, *asked)["neighbours"]

    def test_every_relation_can_be_chosen(self) -> None:
        assert set(account.RELATIONS) == {relation.value for relation in Relation}

    def test_a_long_event_is_shortened_for_people_alone(self, capsys: pytest.CaptureFixture[str]) -> None:
        text = " + ".join(["laplace(0.01)"] * 100)
        asked = ["epsilon", "--delta", "0", text]
        assert len(facts(capsys, *asked)["event"]) < 500
        assert answer(capsys, *asked)["event"] == text


class TestWhereEventsComeFrom:
    def test_an_event_in_json_states_its_own_relation(self, capsys: pytest.CaptureFixture[str]) -> None:
        written = events.Gaussian(2, under=Relation.REPLACE_ONE).to_json()
        found = answer(capsys, "epsilon", "--delta", "1e-6", f" {written}")
        assert (found["event"], found["relation"]) == ("gaussian(2)", "replace-one")
        said = refusal(capsys, 2, "epsilon", "--delta", "1e-6", written, "--relation", "add-remove")
        assert said == "T111 the relation of the event is replace-one, but --relation is add-remove"

    def test_the_events_of_a_file_are_composed(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "events.jsonl"
        path.write_text(f"{events.Gaussian(2).to_json()}\n\n10 x laplace(0.1)\r\n{events.Pure(1).to_json()}")
        found = answer(capsys, "epsilon", "--delta", "1e-6", "--file", str(path))
        assert found["event"] == "gaussian(2) + 10 x laplace(0.1) + pure(1)"

    def test_a_file_of_one_event_is_that_event(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "events.jsonl"
        path.write_text("gaussian(2)\n")
        assert answer(capsys, "delta", "--epsilon", "1", "--file", str(path))["event"] == "gaussian(2)"

    def test_events_can_come_from_standard_input(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"pure(1)\npure(2)\n")))
        assert answer(capsys, "epsilon", "--delta", "0", "--file", "-")["epsilon"]["upper"] == pytest.approx(3)

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"", "T105 the file contains no event; write one per line"),
            (b"\n \n", "T105 the file contains no event; write one per line"),
            (b"pure(1)\ngausian(1)\n", "T112 line 2: column 1, at 'gausian(1)': no event is called gausian"),
            (b'{"kind": "perfect"}\n', "T110 line 1: unknown event kind 'perfect'"),
            (b"pure(1)\nshuffled(1, 9)\n", "T111 composed mixes add-remove and replace-one events"),
            (b"\xff\xfe", "is not UTF-8 text"),
        ],
    )
    def test_a_file_that_cannot_be_used_is_refused_at_its_line(
        self, content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "events.jsonl"
        path.write_bytes(content)
        assert said in refusal(capsys, 2, "epsilon", "--delta", "1e-6", "--file", str(path))

    def test_a_file_that_is_not_there_or_a_folder_is_refused(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for path, said in ((tmp_path / "nowhere", "No such file or directory"), (tmp_path, "Is a directory")):
            assert said in refusal(capsys, 2, "epsilon", "--delta", "1e-6", "--file", str(path))

    def test_a_file_beyond_the_limit_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(events, "EVENT_BYTES_MAX", 10)
        (tmp_path / "events").write_text("pure(1)\n" * 2)
        said = refusal(capsys, 2, "epsilon", "--delta", "0", "--file", str(tmp_path / "events"))
        assert said == "T106 a file of events may have at most 10 bytes"

    @pytest.mark.parametrize("given", [[], ["pure(1)", "--file", "events.jsonl"]])
    def test_one_event_or_one_file_is_named(self, given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        said = refusal(capsys, 2, "epsilon", "--delta", "1e-6", *given)
        assert said == "T100 give either an event or --file; see tacit account epsilon --help"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        (["epsilon", "gaussian(1)"], 2, "T100 missing option '--delta'; see tacit account epsilon --help"),
        (["delta", "gaussian(1)"], 2, "T100 missing option '--epsilon'; see tacit account delta --help"),
        (["epsilon", "--delta", "1e-5", "gausian(1)"], 2, "T112 column 1, at 'gausian(1)': no event is called gausian"),
        (["epsilon", "--delta", "1e-5", "{"], 2, "T110 an event is one JSON object: the text is not JSON"),
        (["epsilon", "--delta", "2", "gaussian(1)"], 2, "T103 delta must lie strictly between 0 and 1, and is 2"),
        (["epsilon", "--delta", "nan", "gaussian(1)"], 2, "T102 delta must be a finite number, not nan"),
        (["delta", "--epsilon", "-1", "gaussian(1)"], 2, "T103 epsilon must not be negative, and is -1"),
        (["epsilon", "--delta", "small", "pure(1)"], 2, "T100 invalid value for '--delta'"),
        (["epsilon", "--delta", "1e-5", "pure(1)", "--relation", "x"], 2, "T100 invalid value for '--relation'"),
        (["meaning", "--delta", "1e-5", "pure(1)", "--prior", "1"], 2, "T103 prior must lie strictly between 0 and 1"),
        (["calibrate", "--epsilon", "1", "--delta", "1e-5", "gaussian(1)"], 2, "there is no ?; write it in place"),
        (["calibrate", "--epsilon", "1", "--delta", "1e-5"], 2, "T100 missing argument"),
        (["calibrate", "--epsilon", "0", "--delta", "1e-5", "gaussian(?)"], 2, "T101 epsilon must be above 0, not 0"),
        (["epsilon", "--delta", "1e-5", "gaussian(?)"], 2, "? is for calibration only; write a number"),
        (["unknown"], 2, "T100 no such command 'unknown'; see tacit account --help"),
    ],
)
def test_bad_use_is_one_sentence_with_its_code(
    arguments: list[str], exit_code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refusal(capsys, exit_code, *arguments)


class TestCalibrate:
    def test_the_parameter_keeps_the_target_and_wastes_little(self, capsys: pytest.CaptureFixture[str]) -> None:
        text = "20 x sampled(0.1, gaussian(?))"
        found = answer(capsys, "calibrate", "--epsilon", "1", "--delta", "1e-5", text)
        assert found["sought"] == text
        assert found["event"] == f"20 x sampled(0.1, gaussian({found['parameter']!r}))"
        assert 0.995 < found["epsilon"]["upper"] <= 1
        assert found["target"] == {"epsilon": 1, "delta": 1e-5}

    @pytest.mark.parametrize("text", ["100 x gaussian(?)", "10 x laplace(?)", "zero_concentrated(?)"])
    def test_people_see_a_parameter_rounded_to_the_side_that_keeps_the_target(
        self, text: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        asked = ["calibrate", "--epsilon", "1", "--delta", "1e-6", text]
        exact, shown = answer(capsys, *asked)["parameter"], facts(capsys, *asked)
        assert len(re.sub(r"e.*|[.]|^0[.]0*", "", shown["?"])) <= 5
        assert float(shown["?"]) == pytest.approx(exact, rel=1e-3)
        assert shown["event"] == text.replace("?", shown["?"])
        assert accounting.epsilon(parse(shown["event"]), 1e-6).upper <= 1

    def test_where_no_short_parameter_keeps_the_target_all_digits_are_shown(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from tacit.cli import accounting as answers

        make = answers.event_template("gaussian(?)", None)
        exact = accounting.calibrate(make, 1.0, 1e-6)
        monkeypatch.setattr(answers, "at_most", answers.at_least)
        parameter, worth = answers.rounded_parameter(make, exact, 1.0, 1e-6)
        assert parameter == exact
        assert worth.epsilon.upper <= 1

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("sampled(?, gaussian(1))", "rate must be at most 1, and is 2; ? may be any number above 0"),
            ("selected(pure(1), 1, ?)", "stop must lie strictly between 0 and 1, and is 1; ? may be any number"),
            ("? x gaussian(10)", "? stands for any number above 0, and a count is a whole number"),
            ("shuffled(1, ?)", "? stands for any number above 0, and count is a whole number"),
        ],
    )
    def test_a_parameter_that_cannot_be_any_number_is_refused(
        self, text: str, said: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert said in refusal(capsys, 2, "calibrate", "--epsilon", "1", "--delta", "1e-5", text)


class TestMeaning:
    def test_programs_get_every_number(self, capsys: pytest.CaptureFixture[str]) -> None:
        found = answer(capsys, "meaning", "--delta", "1e-6", "gaussian(1.5)", "--prior", "0.4")
        worth = accounting.meaning(parse("gaussian(1.5)"), 1e-6)
        low, high = worth.posterior(0.4)
        expected = worth.expected_posterior(0.4)
        assert found["posteriors"] == [{"prior": 0.4, "lower": low, "upper": high, "expected": expected}]
        assert found["meaning"].startswith(
            "An attacker with a prior of 40% that a person is in the data has a posterior of"
        )
        assert [one["false_positive_rate"] for one in found["true_positive_rates"]] == [0.001, 0.01, 0.1]
        assert all(
            one["upper"] == worth.true_positive_rate(one["false_positive_rate"]) for one in found["true_positive_rates"]
        )
        assert found["advantage"] == worth.advantage
        assert found["risk_factor"] == worth.risk_factor
        assert found["epsilon"]["upper"] == worth.epsilon.upper
        assert [(one["epsilon"], one["delta"]) for one in found["curve"]] == list(worth.curve)
        assert found["meaning"] == worth.sentence_for(0.4)
        assert "plot" not in found

    def test_people_see_three_priors_and_three_rates(self, capsys: pytest.CaptureFixture[str]) -> None:
        shown = facts(capsys, "meaning", "--delta", "1e-6", "gaussian(1.5)")
        assert [label for label in shown if label.startswith("prior")] == ["prior 0.01", "prior 0.1", "prior 0.5"]
        assert [label for label in shown if label.startswith("FPR")] == ["FPR 0.001", "FPR 0.01", "FPR 0.1"]

    def test_people_see_bounds_rounded_towards_claiming_less(self, capsys: pytest.CaptureFixture[str]) -> None:
        shown = facts(capsys, "meaning", "--delta", "1e-6", "10 x laplace(0.15)", "--prior", "0.4")
        worth = accounting.meaning(parse("10 x laplace(0.15)"), 1e-6)
        low, high, mean = map(float, re.findall(r"[\d.]+", shown["prior 0.4"]))
        assert low <= worth.posterior(0.4)[0]
        assert high >= worth.posterior(0.4)[1]
        assert mean >= worth.expected_posterior(0.4)
        assert float(shown["posterior factor"].split()[2].rstrip(",")) >= worth.posterior_factor
        assert float(shown["FPR 0.1"].split()[-1]) >= worth.true_positive_rate(0.1)
        assert float(shown["advantage"].split()[2].rstrip(",")) >= worth.advantage
        assert float(shown["risk factor"].split()[2].rstrip(",")) >= worth.risk_factor

    def test_noise_that_is_not_purely_private_bounds_no_single_posterior(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        shown = facts(capsys, "meaning", "--delta", "1e-6", "gaussian(1.5)", "--prior", "0.4")
        assert shown["prior 0.4"].startswith("posterior may be 0 or 1; on average at most 0.")
        assert shown["meaning"].startswith("An attacker with a prior of 40% that")
        assert "posterior factor" not in shown

    def test_a_factor_that_no_double_holds_is_infinite(self, capsys: pytest.CaptureFixture[str]) -> None:
        asked = ["meaning", "--delta", "0", "pure(1000)"]
        assert facts(capsys, *asked)["risk factor"].startswith("at most ∞")
        assert answer(capsys, *asked)["risk_factor"] is None


class TestPlots:
    @pytest.mark.parametrize("suffix", ["svg", "png"])
    @pytest.mark.parametrize(
        "asked",
        [
            ["meaning", "--delta", "1e-6", "gaussian(1.5)"],
            ["epsilon", "--delta", "1e-6", "gaussian(1.5)"],
            ["delta", "--epsilon", "1", "gaussian(1.5)"],
        ],
    )
    def test_a_plot_is_drawn_and_named(
        self, asked: list[str], suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / f"plot.{suffix}"
        assert facts(capsys, *asked, "--plot", str(path))["plot"] == str(path)
        assert path.stat().st_size > 1000
        assert answer(capsys, *asked, "--plot", str(path))["plot"] == str(path)

    @pytest.mark.parametrize("name", ["plot.pdf", "nowhere/plot.svg", ""])
    def test_a_plot_that_cannot_be_drawn_is_refused_before_anything_is_computed(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("tacit.accounting.meaning", None)
        said = refusal(capsys, 2, "meaning", "--delta", "1e-6", "gaussian(1)", "--plot", str(tmp_path / name))
        assert said.startswith("T100 ")

    def test_without_the_renderer_the_command_that_installs_it_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
        plot = str(tmp_path / "plot.svg")
        said = refusal(capsys, 4, "meaning", "--delta", "1e-6", "gaussian(1)", "--plot", plot)
        assert said == "T600 drawing a plot needs vl_convert; run pip install 'tacit[report]'"

    def test_a_curve_without_a_finite_epsilon_is_not_drawn_and_nothing_is_answered(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        plot = str(tmp_path / "plot.svg")
        said = refusal(capsys, 2, "epsilon", "--delta", "1e-6", "approximate(1, 1e-3)", "--plot", plot)
        assert said.startswith("T102 there is no curve to draw")


def test_accountants_are_shown_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["compare", "--delta", "1e-6", "gaussian(2) + 10 x laplace(0.1)"]
    found = answer(capsys, *asked)
    bounds = accounting.compare(parse(asked[-1]), 1e-6)
    assert [one["method"] for one in found["bounds"]] == [bound.method for bound in bounds]
    assert found["bounds"][0]["upper"] is None
    assert run(["account", *asked]) == 0
    shown = dict(csv.reader(capsys.readouterr().out.splitlines()))
    assert shown["accountant"] == "epsilon at most"
    assert shown["sum of pure epsilons"] == "∞"
    assert float(shown["privacy loss distribution"]) >= bounds[-1].upper


@pytest.mark.parametrize("words", [["account"], ["account", "--help"], ["account", "-h"]])
def test_the_help_shows_how_every_event_is_written(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 0
    shown = capsys.readouterr().out
    assert all(signature in shown for signature, _ in signatures())
    assert "N x EVENT" in shown


def commands_below(command: click.Command, context: click.Context) -> list[click.Command]:
    if not isinstance(command, click.Group):
        return [command]
    children = [command.get_command(context, name) for name in command.list_commands(context)]
    return [command, *(one for child in children if child for one in commands_below(child, context))]


def test_every_command_at_any_depth_takes_json_and_debug_and_explains_itself() -> None:
    with app.make_context("tacit", [], resilient_parsing=True) as context:
        commands = commands_below(app, context)
    assert {"epsilon", "delta", "calibrate", "meaning"} <= {command.name for command in commands}
    for command in commands:
        assert {"json", "debug"} <= {parameter.name for parameter in command.params}
        assert command.help


def test_a_group_without_a_word_after_it_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    @click.group("family", cls=Group)
    def family() -> None:
        """Say something."""

    with pytest.raises(click.exceptions.Exit):
        family.make_context("family", [])
    assert capsys.readouterr().out.startswith("Usage: family [OPTIONS] COMMAND")


class Terminal(io.StringIO):
    """A place to write to that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_facts_stand_in_two_columns_within_the_width_of_a_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stdout(place := Terminal()):
        Screen().show_facts([Fact("event", "gaussian(1) " * 20), Fact("epsilon", "[red]1", is_answer=True)])
    lines = re.sub(r"\x1b\[[\d;]*m", "", place.getvalue()).splitlines()
    assert max(map(len, lines)) <= min(columns, 100)
    assert lines[1].startswith(" event           gaussian(1)")
    assert lines[-2] == " epsilon         [red]1"
    assert all(line == "" or line.startswith((" event", " epsilon", " " * 17)) for line in lines)
