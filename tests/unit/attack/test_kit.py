"""How attacks are chosen, judged and reported."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import tacit
from tacit import attack
from tacit.attack.exchange import to_junit, to_sarif
from tacit.attack.finding import Power, judge
from tacit.attack.kit import MODULES
from tacit.attack.pages import page
from tacit.privacy import events
from tacit.privacy.errors import InvalidInput, NotFinite, OutOfRange, UnknownName, WrongType


def interface(people: int = 40) -> attack.QueryInterface:
    return attack.QueryInterface(make=lambda secrets: lambda asked: (secrets & asked).sum(), people=people)


def test_every_attack_has_a_paper_a_summary_and_a_name_of_its_own_for_its_target() -> None:
    found = attack.attacks()
    assert len({(one.name, one.target, one.needs) for one in found}) == len(found) >= len(MODULES)
    assert all(one.paper and one.summary for one in found)


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
    assert judge(claim, 0.9, weak)[0] == judge(claim, 0.9, None)[0] == "underpowered"
    assert judge(None, 0.9, strong)[0] == judge(claim, None, strong)[0] == "not applicable"
    assert judge(claim, 0.9, strong, what="a share of people")[0] == "not applicable"
    assert judge(attack.Claim(risk=0.5), 0.9, strong, what="a share of people")[0] == "violates"


def test_a_suite_runs_what_fits_at_a_corrected_confidence() -> None:
    found = attack.suite(interface(), 1.0, seed=1)
    assert {one.attack for one in found} == {"reconstruction", "differencing", "averaging"}
    assert {one.verdict for one in found} == {"violates"}
    assert {one.confidence for one in found} == {1 - 0.05 / 3}
    assert {one.correction for one in found} == {"Bonferroni over 3 attacks"}


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
    assert shown.count("<section>") == 3
    assert "<svg" in shown
    assert "violates" in found[0]._repr_html_()
    suite = ElementTree.fromstring(to_junit(found, "clinic & co"))[0]
    assert (suite.get("tests"), suite.get("failures")) == ("3", "3")
    log = json.loads(to_sarif(found, "clinic"))
    assert [one["level"] for one in log["runs"][0]["results"]] == ["error"] * 3


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
    assert found.threat_model.questions == 100
    assert found.details["refusal"] == "no more questions"
    with pytest.raises(InvalidInput, match="too few"):
        attack.run("reconstruction", attack.QueryInterface(make=limited, people=1000), 1.0, seed=1)


def test_canaries_of_one_training_and_of_many_bound_epsilon() -> None:
    random = np.random.default_rng(1)
    present = random.integers(0, 2, 1000).astype(bool)
    revealed = attack.run("canary_audit", attack.Model(present * 1.0, present), (1.0, 1e-5), seed=1)
    assert revealed.verdict == "violates"
    assert revealed.details["gaussian_lower_bound"] > 2
    nothing = attack.run("canary_audit", attack.Model(random.normal(size=1000), present), (1.0, 1e-5), seed=1)
    assert nothing.lower_bound == 0.0
    assert nothing.verdict == "consistent"
    many = attack.run("canary_audit", attack.Model(present * 1.0, present, trainings="independent"), 1.0, seed=1)
    assert many.verdict == "violates"
    with pytest.raises(InvalidInput, match="at least 20"):
        attack.run("canary_audit", attack.Model([1.0], [True]), 1.0)


def test_membership_is_traced_from_exact_means_and_not_from_private_ones() -> None:
    random = np.random.default_rng(3)
    shares = random.uniform(0.1, 0.9, 2000)
    members, outsiders = ((random.random((50, 2000)) < shares).astype(float) for _ in range(2))
    exact = attack.Statistics.of_means(members.mean(axis=0), shares, members=members, outsiders=outsiders)
    assert attack.run("tracing", exact, 0.5, seed=1).verdict == "violates"
    noisy = members.mean(axis=0) + random.laplace(scale=2000 / 50 / 0.5, size=2000)
    private = attack.Statistics.of_means(noisy, shares, members=members, outsiders=outsiders)
    assert attack.run("tracing", private, 0.5, seed=1).verdict == "consistent"
