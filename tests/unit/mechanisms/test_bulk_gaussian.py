"""Noise for many numbers: the error bound, use of randomness, and what is refused."""

from __future__ import annotations

import copy
import os
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tacit.mechanisms import bulk_gaussian  # noqa: E402
from tacit.mechanisms.bulk_gaussian import BulkGaussian, Scale, rounded_gaussians  # noqa: E402
from tacit.mechanisms.simulation import SeededSource  # noqa: E402
from tacit.privacy.errors import InvalidInput, NotFinite  # noqa: E402

KEY = bytes(range(32))
DEVIATION = 2.0**20


def _exact(words: np.ndarray) -> list[tuple[object, object]]:
    """Return the Gaussians of pairs of words by mpmath, in standard deviations."""
    pairs = []
    with mpmath.workdps(60):
        for radius_word, angle_word in words.T.tolist():
            magnitude = radius_word if radius_word >= 0 else ~radius_word
            radius = mpmath.sqrt(-2 * mpmath.log((mpmath.mpf(magnitude) + 0.5) / 2**63))
            signed = radius if radius_word >= 0 else -radius
            angle = mpmath.pi * (mpmath.mpf(angle_word) + 0.5) / 2**64
            pairs.append((signed * mpmath.cos(angle), signed * mpmath.sin(angle)))
    return pairs


def _words(count: int, seed: int) -> np.ndarray:
    """Return pairs of words, many of them at the ends of the range in which the error is bounded."""
    generator = np.random.default_rng(seed)
    words = generator.integers(-(2**63), 2**63, size=(2, count), dtype=np.int64)
    ends = np.array([2.0**-20 * 1.001, 2.0**-19, 0.5, 1 - 2.0**-18, bulk_gaussian.W_MAX * (1 - 1e-9)])
    words[0, : count // 2] = (np.resize(ends, count // 2) * 2.0**63).astype(np.int64)
    words[1, : count // 8] = np.resize([-(2**63), 0, 1, 2**62, 2**63 - 1], count // 8)
    return words


def test_gaussians_in_doubles_are_within_half_of_the_stated_error(monkeypatch: pytest.MonkeyPatch) -> None:
    words = _words(4000, 1)
    monkeypatch.setattr(bulk_gaussian.np, "rint", lambda values, out: np.copyto(out, values))
    pairs = np.empty(words.shape)
    bulk_gaussian._fill(words, 1.0, pairs, np.empty((5, words.shape[1])), None)
    worst = max(
        abs(mpmath.mpf(got) - want)
        for got_pair, want_pair in zip(pairs.T.tolist(), _exact(words), strict=True)
        for got, want in zip(got_pair, want_pair, strict=True)
    )
    assert worst < bulk_gaussian.ERROR / 2


def test_refined_pairs_are_the_exact_ones() -> None:
    words = _words(200, 2)
    words[0, :4] = [0, -1, 2**63 - 1, -(2**63)]
    more = bulk_gaussian._cipher(KEY, 1)
    for (radius_word, angle_word), exact in zip(words.T.tolist(), _exact(words), strict=True):
        got = bulk_gaussian._refined(radius_word, angle_word, 2.0**10, more)
        if 2**40 < abs(radius_word) < 2**63 - 2**40:
            assert all(abs(one - 2**10 * other) < 0.5001 for one, other in zip(got, exact, strict=True))
        assert max(map(abs, got)) < 20 * 2**10


def test_undecided_numbers_are_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = rounded_gaussians(20_000, DEVIATION, KEY)
    monkeypatch.setattr(bulk_gaussian, "ERROR", 2.0**-27)  # about one number in 64 is computed again
    refined = rounded_gaussians(20_000, DEVIATION, KEY)
    assert np.array_equal(plain, refined)


def test_the_noise_is_widened_for_rounding_by_less_than_a_thousandth() -> None:
    for count, sigma in ((1, 1.0), (795_010, 0.7), (10**8, 20.0)):
        scale = Scale.of(count, sigma * 0.3, 0.3)
        steps_apart = Fraction(0.3) / Fraction(scale.step) + Fraction(np.sqrt(count))
        assert scale.deviation_steps >= Fraction(sigma * 0.3) / Fraction(0.3) * steps_apart
        assert scale.deviation_steps * scale.step < sigma * 0.3 * 1.001


def test_failure_is_below_a_billionth_for_ten_billion_numbers() -> None:
    assert 0 < BulkGaussian().failure(10**10) < 1e-9
    assert BulkGaussian(exact=True).failure(10**10) == 0


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_results_have_the_shape_and_dtype_of_the_sums(dtype: torch.dtype, exact: bool) -> None:
    sums = {"weight": torch.randn(7, 5).to(dtype), "scale": torch.tensor(2.0, dtype=dtype), "none": torch.zeros(0)}
    noisy = BulkGaussian(exact=exact).add(sums, 1e-3, 1e-3)
    for name, part in sums.items():
        assert noisy[name].dtype == part.dtype
        assert noisy[name].shape == part.shape
        assert torch.allclose(noisy[name].double(), part.double(), atol=0.05)


def test_doubles_are_released_on_the_grid() -> None:
    sums = {"weight": torch.randn(1000, dtype=torch.float64)}
    steps = BulkGaussian().add(sums, 1.0, 1.0)["weight"] / Scale.of(1000, 1.0, 1.0).step
    assert torch.equal(steps, steps.round())


def test_no_noise_is_handed_out_twice() -> None:
    noise, zeros = BulkGaussian(), {"weight": torch.zeros(100, dtype=torch.float64)}
    seen = [noise.add(zeros, 1.0, 1.0)["weight"]]
    for other in (noise, copy.deepcopy(noise), copy.copy(noise), pickle.loads(pickle.dumps(noise)), noise):
        seen += [other.add(zeros, 1.0, 1.0)["weight"], other.add(zeros, 2.0, 1.0)["weight"] / 2]
    for index, one in enumerate(seen):
        assert not any((one == other).sum() > 3 for other in seen[:index])


def test_a_forked_process_makes_noise_of_its_own() -> None:
    noise, zeros = BulkGaussian(), {"weight": torch.zeros(4, dtype=torch.float64)}
    noise.add(zeros, 1.0, 1.0)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, noise.add(zeros, 1.0, 1.0)["weight"].numpy().tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(reader, 32))
    assert not np.array_equal(theirs, noise.add(zeros, 1.0, 1.0)["weight"].numpy())


def test_a_seeded_source_replays() -> None:
    zeros = {"weight": torch.zeros(100)}
    runs = []
    for _ in range(2):
        noise = BulkGaussian(SeededSource(5))
        runs.append([noise.add(zeros, deviation, 1.0)["weight"] for deviation in (1.0, 1.0, 2.0)])
    assert all(torch.equal(one, other) for one, other in zip(*runs, strict=True))
    assert not torch.equal(runs[0][0], runs[0][1])


@pytest.mark.parametrize(("deviation", "sensitivity"), [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (float("nan"), 1.0)])
def test_bad_parameters_are_refused(deviation: float, sensitivity: float) -> None:
    with pytest.raises(InvalidInput):
        BulkGaussian().add({"weight": torch.zeros(3)}, deviation, sensitivity)


def test_sums_that_are_not_finite_are_refused() -> None:
    with pytest.raises(NotFinite):
        BulkGaussian().add({"weight": torch.tensor([1.0, torch.nan])}, 1.0, 1.0)
