"""How attacks are chosen, judged and reported."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import attack
from tacit.attack import canary_audit, floating_point, kit, mechanism_audit, side_channels
from tacit.attack.ci_formats import to_junit, to_sarif
from tacit.attack.finding import Measurement, Power, ThreatModel, judge
from tacit.attack.html_report import page
from tacit.attack.kit import MODULES
from tacit.privacy import events
from tacit.privacy.errors import InvalidInput, NotFinite, OutOfRange, UnknownName, WrongType


def interface(people: int = 40) -> attack.QueryInterface:
    return attack.QueryInterface(make=lambda secrets: lambda asked: (secrets & asked).sum(), people=people)


def test_every_attack_has_a_paper_a_summary_and_a_name_of_its_own_for_its_target() -> None:
    found = attack.attacks()
    assert len({(one.name, one.target, one.needs) for one in found}) == len(found) >= len(MODULES)
    assert all(one.paper and one.summary for one in found)


def test_an_attack_of_another_module_is_listed_last_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "_ATTACKS", list(attack.attacks()))

    @kit.attack("guess", attack.QueryInterface, paper="none", summary="a guess", needs=("make",))
    def guess(target: attack.QueryInterface, setting: kit.Setting) -> kit.Outcome:
        return kit.Outcome(ThreatModel("nothing", "nothing", 0), (Measurement("guesses", 1),))

    kit._ATTACKS.insert(0, kit._ATTACKS.pop())
    assert [one.name for one in attack.attacks()][-1] == "guess"
    assert attack.run("guess", interface()).measurements[0].value == 1
    assert "guess" in {one.attack for one in attack.suite(interface(), seed=1)}


def test_an_unknown_attack_and_a_target_that_it_does_not_fit_are_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean averaging"):
        attack.run("averagin", interface())
    with pytest.raises(InvalidInput, match="fits a target of type Table, not QueryInterface"):
        attack.run("linkage", interface())
    with pytest.raises(InvalidInput, match="no attack fits"):
        attack.suite(object())
    with pytest.raises(OutOfRange, match="effort"):
        attack.run("averaging", interface(), effort="hard")


@pytest.mark.parametrize(
    ("promise", "epsilon", "delta"),
    [
        (1.5, 1.5, 0.0),
        ((1.0, 1e-6), 1.0, 1e-6),
        (events.Laplace(0.5), 0.5, 0.0),
        (tacit.Cost(0.7, 1e-7, 0.1), 0.7, 1e-7),
    ],
)
def test_a_promise_is_read_as_epsilon_and_delta(promise: object, epsilon: float, delta: float) -> None:
    found = attack.Claim.of(promise)
    assert found is not None
    assert found.epsilon == pytest.approx(epsilon)
    assert found.delta == delta


def test_a_promise_without_its_delta_is_refused_and_gets_no_verdict() -> None:
    with pytest.raises(InvalidInput, match="state a delta"):
        attack.run("averaging", interface(), events.Gaussian(1.0))
    assert attack.Claim.of(events.Gaussian(1.0), 1e-5).epsilon == pytest.approx(4.377, abs=0.01)  # type: ignore[union-attr]
    for wrong in ("1", [1, 2, 3], object()):
        with pytest.raises(WrongType):
            attack.Claim.of(wrong)
    with pytest.raises((NotFinite, OutOfRange)):
        attack.Claim.of(float("nan"))


def test_verdicts_follow_from_bound_claim_and_power() -> None:
    claim = attack.Claim(1.0)
    strong, weak = Power("a leak", 5.0, 0.0, is_noticed=True), Power("a leak", 0.5, 0.0, is_noticed=False)
    assert judge(claim, 1.1, strong)[0] == "violates"
    assert judge(claim, 0.9, strong)[0] == "consistent"
    assert judge(claim, 1.1, Power("a leak", 5.0, 1.05, is_noticed=True))[0] == "not applicable"
    for least, verdict in ((9.9, "consistent"), (10.1, "underpowered")):
        found = judge(claim, 0.9, Power("a leak", 5.0, 0.0, is_noticed=True, least_epsilon=least))
        assert found[0] == verdict
        assert f"from epsilon {least:.3g} on" in found[1]
    assert judge(claim, 0.9, weak)[0] == judge(claim, 0.9, None)[0] == "underpowered"
    assert judge(None, 0.9, strong)[0] == judge(claim, None, strong)[0] == "not applicable"
    assert judge(claim, 0.9, strong, what="a share of people")[0] == "not applicable"
    assert judge(attack.Claim(risk=0.5), 0.9, strong, what="a share of people")[0] == "violates"


def test_a_suite_runs_what_fits_at_a_corrected_confidence() -> None:
    found = attack.suite(interface(), 1.0, seed=1)
    assert {one.attack for one in found} == {"single_counts", "reconstruction", "differencing", "averaging"}
    assert {one.verdict for one in found} == {"violates"}
    assert {one.confidence for one in found} == {1 - 0.05 / 4}
    assert {one.correction for one in found} == {"Bonferroni over 4 attacks"}


def test_the_same_seed_gives_the_same_finding() -> None:
    def noisy() -> attack.QueryInterface:
        random = np.random.default_rng(3)
        return attack.QueryInterface(
            make=lambda secrets: lambda asked: (secrets & asked).sum() + random.laplace(scale=3), people=40
        )

    one, other = (attack.run("averaging", noisy(), 1.0, seed=5).to_dict() for _ in range(2))
    assert one | {"seconds": 0} == other | {"seconds": 0}


def test_a_finding_is_written_and_read_back_and_another_schema_is_refused() -> None:
    for found in attack.suite(interface(), 1.0, seed=1):
        assert attack.Finding.from_json(found.to_json()).to_json() == found.to_json()
        assert found.to_dict()["schema_version"] == 1
    newer = json.dumps(found.to_dict() | {"schema_version": 2})
    for text in (newer, "[]", "{", json.dumps(found.to_dict() | {"verdict": "safe"})):
        with pytest.raises(InvalidInput):
            attack.Finding.from_json(text)


def test_findings_are_pages_junit_and_sarif() -> None:
    found = attack.suite(interface(), 1.0, seed=1)
    shown = page(found, "Clinic <1>")
    assert "Clinic &lt;1&gt;" in shown
    assert shown.count("<section ") == 4
    assert "<svg" in shown
    assert "violates" in found[0]._repr_html_()
    suite = ElementTree.fromstring(to_junit([replace(one, target="clinic & co") for one in found]))[0]
    assert (suite.get("tests"), suite.get("failures")) == ("4", "4")
    log = json.loads(to_sarif(found))
    assert [one["level"] for one in log["runs"][0]["results"]] == ["error"] * 4


def test_a_refusal_of_the_interface_ends_the_attack_with_what_it_has() -> None:
    def limited(secrets: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> object:
        left = [100]

        def ask(asked: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
            left[0] -= 1
            if left[0] < 0:
                raise tacit.QueryRefused("no more questions")
            return int((secrets & asked).sum())

        return ask

    found = attack.run("differencing", attack.QueryInterface(make=limited, people=200), 1.0, effort="nightly", seed=1)
    assert found.threat_model.queries == 100
    assert found.details["refusal"] == "no more questions"
    with pytest.raises(InvalidInput, match="too few"):
        attack.run("reconstruction", attack.QueryInterface(make=limited, people=1000), 1.0, seed=1)


def test_canaries_of_one_training_and_of_many_bound_epsilon() -> None:
    random = np.random.default_rng(1)
    present = random.integers(0, 2, 1000).astype(bool)
    revealed = attack.run("canary_audit", attack.Model(present * 1.0, present), (1.0, 1e-5), seed=1)
    assert revealed.verdict == "violates"
    named = attack.Model(present * 1.0, present, noise="gaussian")
    assert attack.run("gaussian_canary_audit", named, (1.0, 1e-5), seed=1).verdict == "violates"
    assert [one.attack for one in attack.suite(named, (1.0, 1e-5), seed=1)] == ["canary_audit", "gaussian_canary_audit"]
    with pytest.raises(InvalidInput, match="delta above 0"):
        attack.run("gaussian_canary_audit", attack.Model(present * 1.0, present), 1.0, seed=1)
    assert [one.attack for one in attack.suite(attack.Model(present * 1.0, present), 1.0, seed=1)] == ["canary_audit"]
    nothing = attack.run("canary_audit", attack.Model(random.normal(size=1000), present), (1.0, 1e-5), seed=1)
    assert nothing.lower_bound == 0.0
    assert nothing.verdict == "consistent"
    many = attack.run("canary_audit", attack.Model(present * 1.0, present, trainings="independent"), 1.0, seed=1)
    assert many.verdict == "violates"
    with pytest.raises(InvalidInput, match="at least 20"):
        attack.run("canary_audit", attack.Model([1.0], [True]), 1.0)


def test_a_private_training_without_gaussian_noise_is_not_judged_by_gaussian_curves() -> None:
    """Randomized response of epsilon 2: its Gaussian bound exceeds 2 in a quarter of runs, and refutes nothing."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        present = random.integers(0, 2, 1000).astype(bool)
        model = attack.Model(np.where(random.random(1000) < 1 / (1 + np.exp(-2)), present, ~present) * 1.0, present)
        assert [one.attack for one in attack.suite(model, (2.0, 1e-5), seed=seed)] == ["canary_audit"]
        asked = attack.run("gaussian_canary_audit", model, (2.0, 1e-5), seed=seed)
        assert (asked.verdict, asked.lower_bound) == ("not applicable", None)
        assert asked.measurements[-1].value > 0
    several = events.Composed((events.Gaussian(9.0), events.Repeated(events.Gaussian(20.0), 3)))
    for event, judged in ((several, True), (events.Composed((several, events.Laplace(0.1))), False)):
        found = attack.run("gaussian_canary_audit", model, event, seed=1, delta=1e-5)
        assert (found.verdict == "violates") is judged
        assert (found.verdict == "not applicable") is not judged


def test_membership_is_traced_from_exact_means_and_not_from_private_ones() -> None:
    random = np.random.default_rng(3)
    shares = random.uniform(0.1, 0.9, 2000)
    members, outsiders = ((random.random((50, 2000)) < shares).astype(float) for _ in range(2))
    exact = attack.Statistics.of_means(members.mean(axis=0), shares, members=members, outsiders=outsiders)
    assert attack.run("tracing", exact, 0.5, seed=1).verdict == "violates"
    noisy = members.mean(axis=0) + random.laplace(scale=2000 / 50 / 0.5, size=2000)
    private = attack.Statistics.of_means(noisy, shares, members=members, outsiders=outsiders)
    found = attack.run("tracing", private, 0.5, seed=1)
    assert found.verdict == "underpowered"  # 2,000 means share an epsilon of 0.5
    assert found.power is not None
    assert found.power.is_noticed
    assert found.power.least_epsilon is not None
    assert found.power.least_epsilon > 5
    assert "refutes with probability 90 %" in found.to_html()


@pytest.mark.parametrize("others", [0, 450])
def test_a_reference_with_the_outsiders_in_it_accuses_no_release_that_ignores_the_members(others: int) -> None:
    violations, areas = 0, []
    for seed in range(20):
        random = np.random.default_rng(seed)
        shares = random.uniform(0.1, 0.9, 1000)
        members, outsiders, more = ((random.random((size, 1000)) < shares) * 1.0 for size in (50, 50, others))
        reference = np.concatenate([outsiders, more]).mean(axis=0)
        target = attack.Statistics.of_means(shares, reference, members=members, outsiders=outsiders)
        found = attack.run("tracing", target, 0.1, seed=seed)
        violations += found.is_violation
        areas.append(found.measurements[2].value)
        assert found.assumptions[0].startswith("nobody who is asked about is in the reference")
    assert violations <= 3  # of 20 at a rate of 5 %, more than 3 in 1.6 % of runs
    assert np.mean(areas) > 0.8  # what scores by the reference would have accused


def test_equal_scores_have_an_area_of_one_half_under_the_curve() -> None:
    random = np.random.default_rng(1)
    members, outsiders = random.integers(0, 2, (2, 30, 50)).astype(float)
    same = np.full(50, 0.5)
    found = attack.run("tracing", attack.Statistics.of_means(same, same, members=members, outsiders=outsiders), 1.0)
    assert found.measurements[2].value == 0.5


def test_attacks_of_a_suite_share_the_epsilon_of_an_interface_and_the_error_of_all_targets() -> None:
    found: list[attack.Finding] = []
    secrets = np.random.default_rng(1).integers(0, 2, 40).astype(bool)
    asked = attack.QueryInterface(lambda mask: (secrets & mask).sum(), truth=secrets, epsilon=3.0)
    assert asked.divided(3).epsilon == 1.0
    assert interface().divided(3).epsilon is None
    attack.suite(asked, 3.0, seed=1, among=10, done=["differencing"], report=found.append)
    assert [one.attack for one in found] == ["reconstruction", "averaging"]
    assert {one.confidence for one in found} == {0.995}
    assert {one.correction for one in found} == {"Bonferroni over 10 attacks"}
    with pytest.raises(OutOfRange):
        attack.suite(asked, 3.0, among=2)


@pytest.mark.parametrize("replaces", [False, True])
def test_an_input_on_which_alone_a_mechanism_leaks_is_found(replaces: bool) -> None:
    """Values above 0.9 are added without being clamped to 0.5; every pair without one keeps epsilon 1."""

    def release(values: np.ndarray[tuple[int], np.dtype[np.float64]], count: int) -> object:
        total = np.where(values > 0.9, 5 * values, np.minimum(values, 0.5)).sum()
        return total + np.random.default_rng(int(1e6 * total) + len(values)).laplace(0, 0.5, count)

    proposed = attack.neighbouring_lists(6, 0.0, 1.0, replaces=replaces)
    found = attack.run("mechanism_audit", attack.Mechanism(release, neighbours=proposed, many=True), 1.0, seed=2)
    assert found.verdict == "violates"
    assert found.details["inputs_tried"] == 24
    pair = ([0.2, 0.3, 0.4], [0.2, 0.3])
    fixed = attack.Mechanism(lambda x, n: release(np.array(x), n), *pair, many=True)
    assert attack.run("mechanism_audit", fixed, 1.0, seed=2).verdict == "consistent"
    with pytest.raises(OutOfRange):
        attack.neighbouring_lists(3, 1.0, 1.0)


def test_what_earlier_calls_leave_behind_tells_no_input() -> None:
    """The output is independent of the input: a number of the call, or noise that changes slowly."""
    calls, noise, random = iter(range(10**6)), [0.0], np.random.default_rng(2)

    def drifting(_x: float) -> float:
        noise[0] = 0.999 * noise[0] + 0.045 * random.normal()
        return noise[0]

    for release in (lambda _x: float(next(calls)), drifting):
        found = attack.run("mechanism_audit", attack.Mechanism(release, 0.0, 1.0, samples=2000), 0.1, seed=1)
        assert not found.is_violation


@pytest.mark.parametrize("shape", [lambda x: {"n": x}, lambda x: ("n", x), lambda x: [x] * (1 + int(abs(x)) % 3)])
def test_numbers_within_outputs_are_seen(shape: Callable[[float], object]) -> None:
    random = np.random.default_rng(1)
    target = attack.Mechanism(lambda x: shape(x + random.laplace(0, 0.01)), 0.0, 1.0, samples=1_000)
    assert attack.run("mechanism_audit", target, 1.0, seed=1).verdict == "violates"


def test_an_audit_that_sees_every_output_once_says_that_it_is_blind() -> None:
    numbers = iter(range(10**6))
    target = attack.Mechanism(lambda x: f"{next(numbers)} {x}", 0, 1, samples=400)
    assert attack.run("mechanism_audit", target, 1.0, seed=1).verdict == "underpowered"


@pytest.mark.parametrize("scores", [np.zeros(1000), np.r_[np.full(998, 5000.0), 5000.5, 5000.5]])
def test_canaries_with_equal_scores_are_guessed_in_a_random_order(scores: np.ndarray[Any, Any]) -> None:
    present = np.arange(1000) >= 500
    for name in ("canary_audit", "gaussian_canary_audit"):
        found = [attack.run(name, attack.Model(scores, present), (1.0, 1e-5), seed=seed) for seed in range(5)]
        assert sum(one.is_violation for one in found) == 0


def test_the_coordinates_of_one_output_are_one_output() -> None:
    """Randomized response of epsilon 1, 20 times in each output: bounds exceed 1 in 40 % if each counted as one."""
    wrong, truth = 0, np.e / (1 + np.e)
    for seed in range(20):
        random = np.random.default_rng(seed)

        def release(x: int, count: int, random: np.random.Generator = random) -> object:
            said = random.random(count) < (truth if x else 1 - truth)
            return np.repeat(0.5 + said / 4, 20).reshape(-1, 20)

        target = attack.Mechanism(release, 0, 1, many=True, samples=500)
        wrong += (attack.run("floating_point", target, 1.0, seed=seed).lower_bound or 0.0) > 1.0
    assert wrong <= 3  # of 20 at a rate of 5 %, more than 3 in 1.6 % of runs


def test_what_is_learnt_about_a_share_is_no_leak() -> None:
    """All answers follow from one count of epsilon 1; nine of ten people have the secret."""
    for seed in range(3):
        random = np.random.default_rng(seed)
        secrets = random.random(100) < 0.9
        total = secrets.sum() + random.laplace(0, 1)
        target = attack.QueryInterface(lambda mask: total * mask.mean(), truth=secrets)  # noqa: B023
        for prior in (None, 0.5):
            assert not attack.run("reconstruction", target, 1.0, prior, seed=seed).is_violation


def test_uniqueness_is_predicted_without_the_record_itself() -> None:
    random = np.random.default_rng(1)
    days, wards = random.integers(0, 365, 2_000).tolist(), random.integers(0, 100, 2_000).tolist()
    table = attack.Table({"day": days, "ward": wards}, quasi_identifiers=["day", "ward"])
    measured = attack.run("linkage", table).measurements[1]
    assert measured.predicted == pytest.approx(measured.value, abs=0.03)
    alone = attack.Table({"day": list(range(500)) * 2}, quasi_identifiers=["day"])
    assert attack.run("linkage", alone).measurements[1].predicted is None  # independence says nothing of one column


def test_the_greatest_accuracy_under_a_claim_counts_delta_once() -> None:
    assert attack.Claim(1.0).accuracy == pytest.approx(0.7311, abs=1e-4)
    assert attack.Claim(0.1, 0.1).accuracy == pytest.approx((np.exp(0.1) + 0.1) / (1 + np.exp(0.1)))


def test_the_greatest_accuracy_of_chosen_guesses_counts_whom_delta_reveals() -> None:
    """Each of 1,000 canaries is revealed with probability 0.07, and the 71 guesses are about these."""
    random = np.random.default_rng(0)
    present, is_shown = random.integers(0, 2, 1000).astype(bool), random.random(1000) < 0.07
    model = attack.Model(np.where(is_shown, np.where(present, 1.0, -1.0), 0.0), present)
    measured = attack.run("canary_audit", model, (0.0, 0.07), seed=0).measurements[0]
    assert measured.value > 0.9
    assert measured.ceiling is not None
    assert measured.ceiling >= measured.value - 0.05
    assert attack.Claim(1.0, 0.1).accuracy_of_guesses(50, 50) == pytest.approx(attack.Claim(1.0, 0.1).accuracy)
    even = attack.Claim(1.0).accuracy_of_guesses(50, 10)
    assert even == pytest.approx(attack.Claim(1.0).accuracy)
    rare = attack.Claim(0.0).accuracy_of_guesses(50, 50, share=0.1, positive=0.0)
    assert rare == pytest.approx(0.9)  # by the prior alone


def test_an_object_with_a_release_of_its_own_is_called_once_for_each_output() -> None:
    random = np.random.default_rng(1)

    class Scalar:
        def release(self, x: float) -> float:
            return float(x + random.laplace(0, 0.5))

    assert not attack.audit(Scalar(), 0.0, 1.0, claimed=2.5, samples=500, seed=1).is_violation


def test_large_integers_are_told_apart() -> None:
    found = attack.audit(lambda x: 2**60 + x, 0, 1, claimed=1.0, samples=200, seed=1)
    assert found.verdict == "violates"


@pytest.mark.parametrize(
    "release",
    [
        lambda x: complex(1, x),
        lambda x: "1.0" if x else "1",
        lambda x: b"01" if x else b"1",
        lambda x: Decimal(2**60 + x) / 3,
        lambda x: (2**53 + x, 0.5),
        lambda x: -0.0 if x else 0.0,
        lambda x: bool(x) if x else 0,
        lambda x: True if x else 1,
        lambda x: {"a": 1, "b": 2} if x else {"b": 2, "a": 1},
        lambda x: {1: "a"} if x else {"1": "a"},
        lambda x: [1, [2]] if x else [[1], 2],
        lambda x: (1, 2) if x else [1, 2],
        lambda x: float("inf") if x else 0.0,
        lambda x: float("inf") if x else 1e308,
        lambda x: float("nan") if x else float("inf"),
        lambda x: None if x else 0.0,
        lambda x: [1e300, x],
        lambda x: [float("inf"), x],
        lambda x: [float("nan"), 0.0, float("inf") if x else 0.0],
        lambda x: 10**400 + x,
        lambda x: np.float64(1) if x else 1.0,
        lambda x: np.longdouble(1) + np.finfo(np.longdouble).eps * x,
        lambda x: np.arange(400.0) + (np.arange(400) == 200) * x,
        lambda x: SimpleNamespace(a=x),
        lambda x: Plain(x),
    ],
)
def test_outputs_that_differ_are_told_apart(release: Callable[[int], object]) -> None:
    found = attack.audit(release, 0, 1, 1.0, samples=200, seed=1)
    assert found.verdict == "violates"
    assert found.power is not None
    assert found.power.is_noticed
    assert attack.audit(lambda _: release(0), 0, 1, 1.0, samples=200, seed=1).lower_bound == 0.0


class Plain:
    """An object whose text is its address."""

    def __init__(self, value: int) -> None:
        self.value = value


@pytest.mark.parametrize("at", [float("inf"), float("nan"), -0.0, 1e300])
def test_a_leak_through_a_special_number_is_found_among_noise(at: float) -> None:
    random = np.random.default_rng(1)

    def release(x: int, count: int) -> object:
        noise = random.laplace(0, 100, (count, 3))
        noise[random.random(count) < 0.3, 1] = at if x else 0.0
        return noise

    assert attack.audit(release, 0, 1, 1.0, samples=1_000, seed=1, many=True).verdict == "violates"
    assert attack.audit(lambda _, count: release(1, count), 0, 1, 1.0, samples=1_000, many=True).verdict == "consistent"


def test_an_audit_states_that_outputs_are_independent_and_that_one_was_given_again() -> None:
    noise = dict(enumerate(np.random.default_rng(1).laplace(0, 5, 2)))
    again = attack.audit(lambda x: x + noise[x], 0, 1, 1.0, samples=200, seed=1)
    assert again.assumptions[0] == "the outputs are independent of one another"
    assert "gave one answer again" in again.assumptions[1]
    target = attack.Mechanism(lambda x: x + noise[x], 0, 1, samples=200)
    assert attack.run("floating_point", target, 1.0, seed=1).assumptions == again.assumptions[:2]
    random = np.random.default_rng(1)
    assert len(attack.audit(lambda x: x + random.laplace(0, 5), 0, 1, 1.0, samples=200, seed=1).assumptions) == 2


@pytest.mark.parametrize("samples", [0, -5, 2.5, "many"])
def test_a_number_of_outputs_that_makes_no_sense_is_refused(samples: Any) -> None:
    with pytest.raises(InvalidInput, match="samples"):
        attack.Mechanism(lambda x: x, 0, 1, samples=samples)


def test_a_mechanism_that_returns_another_number_of_outputs_is_refused() -> None:
    with pytest.raises(InvalidInput, match="returned 5 outputs instead of 200"):
        attack.audit(lambda x, count: [x] * 5, 0, 1, claimed=1.0, samples=200, many=True)


def test_claims_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="state the delta"):
        attack.Claim.of(tacit.accounting.epsilon(events.Gaussian(1.0), 0.3))
    assert attack.Claim.of(np.int64(2)) == attack.Claim(2.0)
    with tacit.Curator(tmp_path / "clinic") as curator:
        curator.add_table("people", pd.DataFrame({"id": range(9)}), unit="id")
        curator.set_budget("people", epsilon=1.0)
        first, again = (curator.sql("SELECT COUNT(*) FROM people", 0.5) for _ in range(2))
        assert first.permit is not None
        assert attack.Claim.of(first) == attack.Claim.of(curator.ledger.permit(first.permit))
    with pytest.raises(InvalidInput, match="released before"):
        attack.Claim.of(again)


@pytest.mark.parametrize(
    "stated",
    [{"epsilon": -1}, {"epsilon": float("nan")}, {"epsilon": "1"}, {"epsilon": 1.0, "delta": 2}, {"delta": 1.0},
     {"risk": 1.5}, {"risk": -0.1}, {"epsilon": float("inf")}, {"epsilon": True}, {"permit": 5}],
)  # fmt: skip
def test_a_claim_out_of_range_is_refused(stated: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        attack.Claim(**stated)


def test_a_claim_has_one_delta() -> None:
    for promise in ((1.0, 1e-6), attack.Claim(1.0), tacit.Cost(0.7, 1e-7, 0.1)):
        with pytest.raises(InvalidInput, match="states its delta"):
            attack.Claim.of(promise, 1e-5)
    assert attack.Claim.of(np.float32(0.5), 1e-5) == attack.Claim(0.5, 1e-5)
    assert attack.Claim(np.float32(0.5)).epsilon == 0.5  # type: ignore[arg-type]


def test_a_suite_refuses_attacks_that_are_done_and_do_not_exist() -> None:
    with pytest.raises(WrongType, match="done"):
        attack.suite(interface(), 1.0, done="averaging")
    with pytest.raises(UnknownName, match="did you mean averaging"):
        attack.suite(interface(), 1.0, done=["averagin"])


def test_a_suite_goes_on_after_an_attack_that_failed() -> None:
    def break_down(_mask: object) -> float:
        raise ValueError("broken")

    failed: list[str] = []
    target = attack.QueryInterface(break_down, truth=[True, False] * 20)
    assert attack.suite(target, 1.0, seed=1, failed=lambda name, _error: failed.append(name)) == []
    assert failed == ["reconstruction", "differencing", "averaging"]
    with pytest.raises(ValueError, match="broken"):
        attack.suite(target, 1.0, seed=1)


def test_findings_with_numbers_that_are_none_can_be_written_and_read() -> None:
    found = replace(
        attack.audit(lambda x: x, 0, 1, 1.0, samples=200, seed=1), details={"a": float("nan"), "b": "\ud800"}
    )
    assert attack.Finding.from_json(found.to_json()).details == {"a": None, "b": "?"}
    document = found.to_dict()
    with pytest.raises(InvalidInput):
        attack.Finding.from_dict({**document, "lower_bound": 10**400})


def test_outputs_that_are_counted_do_not_serve_the_search_for_an_event() -> None:
    """The first halves say nothing, and the second ones all: the event knows the former alone."""
    ones, others = np.zeros(400), np.zeros(300)
    ones[200:] = 1.0
    found = mechanism_audit.measure(ones, others, 0.0, 0.95)
    assert found.counts == (200, 200, 150, 150)
    ones[:200] = 1.0
    assert mechanism_audit.measure(ones, others, 0.0, 0.95).counts == (200, 200, 0, 150)
    for module in (floating_point, side_channels, canary_audit):
        assert module.measure is mechanism_audit.measure


def test_every_measurement_has_a_key_that_is_its_own_in_a_finding() -> None:
    """Keys are stable: programs read figures by them. This list is only ever added to."""
    calls = [
        node
        for path in Path(kit.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Measurement"
    ]
    keys = {part.value for one in calls for part in ast.walk(_keyword(one, "key")) if isinstance(part, ast.Constant)}
    assert keys == KEYS
    for found in (*attack.suite(interface(), 1.0, seed=1), attack.run("exhaustive", interface(8), seed=1)):
        assert len({one.key for one in found.measurements} - {""}) == len(found.measurements)
        assert found.measured("secrets_guessed_right") is found.measurements[0]
    with pytest.raises(UnknownName, match="no measurement area; it has secrets_guessed_right"):
        found.measured("area")


KEYS = {
    "abstained", "accused_without_canary", "answer_spread", "area", "area_by_reference", "bits_wrong",
    "canaries_guessed_right", "candidates", "certain_records", "databases", "difference_deviation", "different_answers",
    "event_share_first", "event_share_second", "found_with_canary", "gaussian_epsilon", "links_right",
    "memberships_guessed_right", "names_right", "noise_deviation", "noticed_with_secret", "noticed_without_secret",
    "one_value_from_one_table", "one_value_left", "people_at_risk", "ranked_first", "repeated_answers_differ",
    "secrets_guessed_right", "smallest_group", "t_closeness", "two_values_left", "unique_records",
    "values_guessed_right", "values_guessed_right_expected",
}  # fmt: skip


def _keyword(call: ast.Call, name: str) -> ast.expr:
    (found,) = (one.value for one in call.keywords if one.arg == name)
    return found


def test_a_document_without_keys_of_measurements_is_read() -> None:
    document = attack.run("averaging", interface(), 1.0, seed=1).to_dict()
    assert document["measurements"][0]["key"] == "secrets_guessed_right"
    for one in document["measurements"]:
        del one["key"], one["is_stopped"]
    assert {one.key for one in attack.Finding.from_dict(document).measurements} == {""}
    document["measurements"][0]["key"] = "two words"
    with pytest.raises(InvalidInput):
        attack.Finding.from_dict(document)
