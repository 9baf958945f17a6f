"""The benchmark of attacks: what it generates is what it says, and goals belong to plans that could miss them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bench import peers
from bench.attacks import audits, data, interfaces, linkage, private
from bench.attacks.interfaces import FULL, QUICK, SINGLY, Outcome, Plan
from tacit import attack
from tacit.attack.power import POWER


def test_the_governor_is_a_voter_and_fewer_voters_are_like_him_the_more_is_known() -> None:
    table = data.employees_and_voters(np.random.default_rng(1), employees=2_000)
    assert table.register is not None
    assert table.register.size == data.VOTERS
    assert table.records.size == 2_000
    ((born, men, neighbours),) = data.like_the_governor(1)
    assert 50 > born >= men >= neighbours >= 1


def test_zip_codes_are_as_skewed_as_they_are_said_to_be() -> None:
    sizes = data.zip_sizes(29_343)
    assert np.median(sizes) == pytest.approx(data.ZIP_MEDIAN, rel=0.01)
    assert sizes.mean() == pytest.approx(data.ZIP_MEAN, rel=0.1)  # the largest are cut
    assert sizes.max() == data.ZIP_LARGEST


def test_an_attacker_knows_as_many_ratings_as_stated_and_all_but_the_wrong_ones_are_near_the_truth() -> None:
    table = data.ratings(50, 10, known=6, wrong=2, days_off=3, random=np.random.default_rng(2))
    assert table.register is not None
    assert isinstance(table.truth, dict)
    assert table.register.size == 60
    rated = {(one, film): day for one, film, day in table.records.rows(["subscriber", "film", "day"])}
    assert len(rated) == table.records.size
    for person, film, day in table.register.rows(["who", "film", "day"])[2:6]:
        assert abs(rated[table.truth[person], film] - day) <= 3


def test_the_block_has_seven_people_in_each_table_of_two_columns() -> None:
    pytest.importorskip("ortools")
    exact = private.block_tables(None)
    assert sum(one.count for one in exact.statistics) == 3 * 7  # type: ignore[misc]


def test_missing_peers_are_listed_without_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "is_installed", lambda _: False)
    shown = {result.metric: result for result in audits.noise(4_000)}
    assert len(shown) == 7
    assert all(result.met is not False for result in shown.values())
    assert shown["Laplace, floating_point: violates"].peers == {"opendp": None, "diffprivlib": None}
    assert shown["Gaussian, mechanism_audit: violates"].peers == {"opendp": None}
    assert shown["numpy's Laplace in doubles, floating_point: violates"].value == 1


def test_the_outputs_that_a_peer_writes_suffice_for_both_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    def written(peer: str, script: Path, *, folder: str, samples: int, **_: Any) -> dict[str, Any]:
        random, paths = np.random.default_rng(1), {}
        for name in audits.PEERS[peer]:
            paths[name] = str(Path(folder) / f"{peer} {name}.npy")
            np.save(paths[name], random.laplace(size=(2, samples)) + np.array([[0.0], [1.0]]))
        return {"version": "1", "outputs": paths}

    monkeypatch.setattr(peers, "run", written)
    shown = {result.metric: result for result in audits.noise(4_000)}
    assert shown["Laplace, floating_point: violates"].peers == {"opendp": 1, "diffprivlib": 1}
    assert shown["Laplace, mechanism_audit: violates"].peers == {"opendp": 0, "diffprivlib": 0}


def test_a_claim_is_refuted_by_chance_in_one_run_of_a_hundred_at_most() -> None:
    for guesses in (16, 30, 50, 400):
        least = interfaces.refuted_from(guesses)
        rate = interfaces.accuracy(interfaces.EPSILON)
        assert stats.binom.sf(least - 1, guesses, rate) <= interfaces.ERROR < stats.binom.sf(least - 2, guesses, rate)


@pytest.mark.parametrize("plan", [QUICK[0], FULL[0]])
def test_one_count_of_one_person_notices_epsilon_three(plan: Plan) -> None:
    assert plan.attack == SINGLY
    noticed, least = interfaces.noticed_singly(1, plan.runs), interfaces.refuted_from(plan.runs)
    assert noticed is not None
    assert noticed < interfaces.NOTICED_MAX
    power = stats.binom.sf(least - 1, plan.runs, interfaces.accuracy(noticed))
    assert power == pytest.approx(POWER, abs=0.02)
    fair = Outcome(plan, 1, plan.runs, round(plan.runs * interfaces.accuracy(1.0)), noticed)
    assert next(interfaces.judged(fair)).met
    leaky = Outcome(plan, 1, plan.runs, math.ceil(plan.runs * interfaces.accuracy(3.0)), noticed)
    assert leaky.is_refuted
    assert not next(interfaces.judged(leaky)).met


def test_what_an_attack_of_the_kit_notices_is_what_its_finding_says(monkeypatch: pytest.MonkeyPatch) -> None:
    run, findings = attack.run, list[attack.Finding]()

    def noted(*words: Any, **settings: Any) -> attack.Finding:
        findings.append(run(*words, **settings))
        return findings[-1]

    monkeypatch.setattr(attack, "run", noted)
    outcome = interfaces.attacked(Plan("differencing", 12, 1))
    (found,) = findings
    assert found.power is not None
    assert outcome.noticed == found.power.least_epsilon
    assert outcome.noticed is not None
    assert outcome.noticed > 20
    assert outcome.label == "differencing, 12 people, 24 counts, 1 run"
    share, low, high, noticed = interfaces.judged(outcome)
    assert share.goal is None  # it would miss epsilon 20
    assert low.value < share.value < high.value
    assert noticed.value == outcome.noticed


def test_three_guesses_notice_nothing() -> None:
    outcome = Outcome(Plan(SINGLY, 1, 3), 1, 3, 3, interfaces.noticed_singly(1, 3))
    assert outcome.noticed == math.inf
    assert not outcome.is_refuted
    assert [result.goal for result in interfaces.judged(outcome)] == [None] * 4


def test_the_interval_of_a_mean_holds_it() -> None:
    low, high = linkage.mean_interval(np.array([2, 3, 4, 3]))
    assert low == pytest.approx(3 - 3.182 * math.sqrt(2 / 3) / 2, abs=0.001)
    assert low + high == pytest.approx(6)
