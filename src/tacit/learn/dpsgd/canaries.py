"""The one-run audit of a training: canaries that go through its sampler, clip and noise, beside the model.

A canary is one more unit whose gradient is clip * e_j, e_j a direction of its own that is no parameter of the model. A
fair coin puts it into the training or leaves it out; then it is sampled in each step as people are, by the same draw,
and its direction gets noise with the parameters, in the same call. What the directions show after noise is scored by
the likelihood ratio of "in" and "out", summed over the steps: what the strongest attacker, who sees every noisy
gradient, would compute. The right guesses about the coins bound epsilon from below (Steinke, Nasr, Jagielski 2023;
gradient canaries: Nasr et al. 2023). Gaussian noise on samples has no Gaussian trade-off curve, so the tighter bound of
Mahloujifar, Melis, Chaudhuri 2024 is not taken.

Why people lose nothing: what is released about a person is the noisy sum over the parameters. Canaries are drawn
without the data and add nothing there; noise in other directions is independent. The model is the same as without them.

The audit notices noise that is forgotten or too small, and samples that are not drawn as accounted. It does not notice
a wrong norm of a person's gradient, for canaries come clipped, nor noise that is missing from the parameters alone.

Because samples and noise of canaries are known here, three more checks are made, each wrong with probability ALARM. How
often canaries were sampled is compared with the binomial law of the accounted rate. The deviation of the noise is
measured from (canaries * steps) numbers: noise that is a few percent too small shows at any epsilon, where guesses
would need more canaries than there is time for. And the noise in each direction is summed over the steps: the sums have
the variance of independent noises, unless noise is used in more than one step, whichever steps they are.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from tacit import attack
from tacit.attack import Finding
from tacit.learn.dpsgd.sampling import Indices
from tacit.learn.dpsgd.schedule import Schedule
from tacit.mechanisms.randomness import RandomSource, bits, words

CANARIES: Final = 4_000
"""By simulation: guesses show missing noise up to epsilon 4, and half the noise at epsilon 2 in three of four runs."""
ALARM: Final = 1e-6
"""The probability with which each check of the noise fails though the noise is as stated."""
_FIELDS: Final = ("present", "scores", "noises", "shown", "squares", "samples", "trials")


class Canaries:
    """The canaries of one training, with their coins and scores so far."""

    def __init__(self, present: NDArray[np.bool_], *sums: NDArray[np.float64]) -> None:
        self.present = present
        made = sums or np.zeros((6, len(present)))
        self.scores, self.noises, self.shown, self.squares, self.samples, self.trials = made

    @classmethod
    def drawn(cls, count: int, source: RandomSource) -> Canaries:
        """Return new canaries, each present by a fair coin."""
        return cls(words(source, count, 1) % 2 == 1)

    def means(self, sampled: Indices, schedule: Schedule) -> NDArray[np.float64]:
        """Return the sum in each direction, over the clip; with replaced rows an absent canary points backwards."""
        absent = 0.0 if schedule.steps_per_pass is None else -1.0
        found = np.zeros(len(self.present))
        found[sampled] = np.where(self.present[sampled], 1.0, absent)
        return found

    def sampled_by_loader(self, step: int, steps_per_pass: int) -> Indices:
        """Return the canaries of a step, where each is in one batch of every pass."""
        return np.arange(step % steps_per_pass, len(self.present), steps_per_pass)

    def score(self, shown: Tensor, means: Tensor, step: int, groups: NDArray[np.int64], schedule: Schedule) -> float:
        """Add the log-likelihood ratios of what a step shows; return the sum of the squares of its noise.

        `shown` is what the step released in the directions, and `means` the same without noise, over the clip. Squares
        are over the stated deviation. With several bands a canary has one coin for all rows of a block, which are
        scored together (`matrix_noise`); rows that were lost only make the score weaker.
        """
        multiplier, period = schedule.sum_noise_at(step), schedule.steps_per_pass or schedule.bands
        first = groups if schedule.steps_per_pass is None else np.arange(len(self.present)) % period
        row = (step - first) % period
        c = np.array([*schedule.coefficients, 0.0])
        weights = np.where(step >= first, c[np.minimum(row, schedule.bands)], 0.0)
        if schedule.steps_per_pass is None:
            self._score_blocks(row == 0, schedule)
            self.trials += row == 0
            self.shown += weights * shown.numpy() / multiplier**2
            self.squares += (weights / multiplier) ** 2
        else:
            self.scores += 2 * weights * shown.numpy() / multiplier**2
        noise = (shown - means).numpy() / multiplier
        self.noises += noise
        return float(np.square(noise).sum())

    def _score_blocks(self, ended: NDArray[np.bool_], schedule: Schedule) -> None:
        """Add the log-likelihood ratios of blocks of rows that have ended."""
        rate = float(schedule.rate)
        out = math.log1p(-rate) if rate < 1 else -math.inf
        self.scores += np.where(ended, np.logaddexp(out, math.log(rate) + self.shown - self.squares / 2), 0.0)
        self.shown[ended] = self.squares[ended] = 0.0

    def finding(self, promise: tuple[float, float], schedule: Schedule, source: RandomSource) -> Finding:
        """Return what the scores show about epsilon at delta."""
        self._score_blocks(self.squares > 0, schedule)
        model = attack.Model(self.scores, self.present)
        return attack.run("canary_audit", model, promise=promise, seed=bits(source, 32))

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Coins and scores, for a checkpoint."""
        return {f"canaries.{name}": torch.from_numpy(getattr(self, name)) for name in _FIELDS}

    @classmethod
    def of(cls, tensors: dict[str, Tensor]) -> Canaries:
        """Return the canaries of a checkpoint."""
        return cls(*(tensors[f"canaries.{name}"].numpy().copy() for name in _FIELDS))

    def faults(self, squares: float, schedule: Schedule) -> list[str]:
        """Return what is wrong with noise of such a sum of squares, and with samples, in words."""
        return [
            *(["is used in more than one step"] if self.repeats_noise(squares) else []),
            *(["is on samples of another rate than the accounted one"] if self.misses_rate(schedule) else []),
        ]

    def misses_rate(self, schedule: Schedule) -> bool:
        """Whether canaries were sampled more or less often than the rate of Poisson samples says."""
        sampled, trials = self.samples.sum(), self.trials.sum()
        if schedule.steps_per_pass is not None or not trials:
            return False
        law = stats.binom(trials, float(schedule.rate))
        return bool(min(law.cdf(sampled), law.sf(sampled - 1)) < ALARM / 2)

    def repeats_noise(self, squares: float) -> bool:
        """Whether sums of the noises over the steps vary otherwise than independent noises of the same squares do."""
        low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], len(self.noises))
        spread = float(np.square(self.noises).sum()) * len(self.noises) / squares if squares else low
        return not low <= spread <= high


def noise_ratio(squares: float, numbers: int) -> tuple[float, float, float]:
    """Return measured over stated deviation of the noise, and an interval that is wrong with probability ALARM."""
    least, most = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], numbers)
    return math.sqrt(squares / numbers), math.sqrt(squares / most), math.sqrt(squares / least)
