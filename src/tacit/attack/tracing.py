"""Tracing: whether a person is in a group of which means of many attributes were published.

Homer et al. 2008; Dwork, Smith, Steinke, Ullman, Vadhan 2015. A person's score is the inner product of the person's
attributes and the deviation of the group's means: members pull the means towards themselves. With d attributes and n
members it stands out once d is about n^2 times the square of the noise's share.

The deviation is from the mean of everybody who is asked about, members and outsiders alike: it does not depend on who
is a member, so a release that does not either separates nobody, and the bound holds whatever the reference is. A
reference with outsiders in it lies nearer to them, and scores by deviations from it tell members from outsiders even if
the release says nothing: of these the area under the curve is shown, for comparison with the literature.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy import stats

from tacit.attack.confidence import best_guesses, clopper_pearson, one_run_epsilon
from tacit.attack.finding import Measurement, Power, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack, stated
from tacit.attack.power import of_guesses
from tacit.attack.secret_scoring import roc
from tacit.attack.targets import DoesNotFit, Mask, Numbers, Statistics

GUESSED_SHARE: Final = 0.2
"""The share of people about whom a guess is made, fixed before any score is looked at."""
PEOPLE_MIN: Final = 40
SIMULATED: Final = 10
"""How many releases are simulated for the least epsilon that is noticed."""
ASSUMED: Final = (
    "nobody who is asked about is in the reference, on which the area by the reference rests, but no bound",
    "each person was put into the group by an independent coin, so no outsider was chosen to match a member; where the "
    "size of the group was fixed, exchanging a person costs up to twice the epsilon of adding one",
)


@attack(
    "tracing",
    Statistics,
    paper="Homer et al. 2008; Dwork, Smith, Steinke, Ullman, Vadhan 2015",
    summary="membership in a group of which many means were published",
    needs=("means",),
)
def trace(target: Statistics, setting: Setting) -> Outcome:
    """Score members and outsiders, and guess who is in the group."""
    means, reference = stated(target.means, "means"), stated(target.reference, "reference")
    members = stated(target.members, "members")
    people = np.concatenate([members, stated(target.outsiders, "outsiders")])
    present = np.arange(len(people)) < len(members)
    if len(people) < PEOPLE_MIN or not present.any() or present.all():
        raise DoesNotFit(f"tracing needs members and outsiders, at least {PEOPLE_MIN} in all", name="members")
    order = setting.random.permutation(len(people))
    people, present = people[order], present[order]
    everybody = people.mean(axis=0)
    prior = max(float(present.mean()), 1 - float(present.mean()))
    guesses = max(10, round(GUESSED_SHARE * len(people)))

    def attacked(shown: Numbers) -> tuple[Numbers, int]:
        scores = people @ (shown - everybody)
        chosen, guessed = best_guesses(scores, guesses)
        return scores, int((present[chosen] == guessed).sum())

    def bound(right: int) -> float:
        return one_run_epsilon(len(people), guesses, right, setting.delta, setting.confidence, prior=prior)

    scores, right = attacked(means)
    _, leaked = attacked(members.mean(axis=0))
    _, nothing = attacked(everybody + setting.random.normal(0, people.std(axis=0) / math.sqrt(len(members))))
    by_reference = _area(people @ (means - reference), present)
    noise = np.ptp(people, axis=0).sum() / len(members) * setting.random.laplace(size=(SIMULATED, len(means)))

    def share(epsilon: float) -> float:
        """Return the share of right guesses under Laplace noise of an epsilon for all means together."""
        return float(np.mean([attacked(members.mean(axis=0) + one / epsilon)[1] for one in noise])) / guesses

    share_in, positive = float(present.mean()), (guesses - guesses // 2) / guesses
    guessed_right = Measurement(
        "memberships guessed right", right / guesses, clopper_pearson(right, guesses, (1 - setting.confidence) / 2),
        baseline=positive * share_in + (1 - positive) * (1 - share_in),
        ceiling=setting.ceiling(len(people), guesses, share_in, positive), key="memberships_guessed_right",
    )  # fmt: skip
    return Outcome(
        ThreatModel("published means", "the attributes of people and the means of the population", len(means)),
        (
            guessed_right,
            Measurement("area under the curve", _area(scores, present), baseline=0.5, key="area"),
            Measurement("area under the curve, by the reference", by_reference, baseline=0.5, key="area_by_reference"),
        ),
        bound(right),
        f"one run, {guesses} guesses fixed beforehand",
        Power(
            "exact means of the members",
            bound(leaked),
            bound(nothing),
            setting.refutes(bound(leaked)),
            least_epsilon=of_guesses(
                setting.claim, setting.confidence, share, secrets=len(people), guesses=guesses, prior=prior
            ),
        ),
        roc=roc(scores[present], scores[~present], setting),
        assumptions=ASSUMED,
        details={"attributes": len(means), "members": len(members), "guesses": guesses},
    )


def _area(scores: Numbers, present: Mask) -> float:
    """Return the probability that a member scores higher than an outsider, ties as one half."""
    inside, outside = int(present.sum()), int((~present).sum())
    ranks = stats.rankdata(scores)[present].sum()
    return float((ranks - inside * (inside + 1) / 2) / (inside * outside))
