"""Noise for many numbers: the error bound, use of randomness, and what is refused."""

from __future__ import annotations

import copy
import os
import pickle

import mpmath
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tacit.mechanisms import bulk_gaussian  # noqa: E402
from tacit.mechanisms.bulk_gaussian import BulkGaussian, Noise, Scale  # noqa: E402
from tacit.mechanisms.simulation import SeededSource  # noqa: E402
from tacit.privacy.errors import InvalidInput, NotFinite  # noqa: E402

KEY = bytes(range(32))
FEW = 1000


@pytest.fixture(params=[0, 1 << 16])
def least_ahead(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make noise ahead from this many numbers on."""
    monkeypatch.setattr(bulk_gaussian, "AHEAD_MIN", request.param)


def _words(count: int, seed: int) -> np.ndarray:
    """Return pairs of words, many of them at the ends of the range in which the error is bounded."""
    words = np.random.default_rng(seed).integers(0, 2**32, size=(2, count), dtype=np.uint32)
    first, end = bulk_gaussian.W_FIRST, bulk_gaussian.W_END
    words[0, : count // 2] = np.resize([first, first + 1, 2 * first, 2**31, end - 2**20, end - 1], count // 2)
    words[1, : count // 8] = np.resize([0, 1, 2**30, 2**31 - 1, 2**31, 2**32 - 1], count // 8)
    return words


def _exact(words: np.ndarray, bits: list[tuple[object, object]]) -> list[list[object]]:
    """Return the Gaussians of pairs of words with further bits, in [0, 1], by mpmath."""
    pairs = []
    with mpmath.workdps(100):
        for (w_word, v_word), (w_bits, v_bits) in zip(words.T.tolist(), bits, strict=True):
            radius = mpmath.sqrt(-2 * mpmath.log((w_word + w_bits) / 2**32))
            angle = 2 * mpmath.pi * ((v_word if v_word < 2**31 else v_word - 2**32) + v_bits) / 2**32
            pairs.append([radius * mpmath.cos(angle), radius * mpmath.sin(angle)])
    return pairs


@pytest.mark.parametrize("deviation", [1.0, 255.9])
@pytest.mark.parametrize("bits", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_gaussians_in_single_precision_are_within_half_of_the_stated_error_for_all_further_bits(
    bits: tuple[int, int], deviation: float
) -> None:
    words = _words(FEW, 1)
    pairs = np.empty(words.shape, np.float32)
    bulk_gaussian._fill(words, deviation, pairs, np.empty_like(pairs))
    worst = max(
        abs(mpmath.mpf(float(got)) / deviation - want)
        for got_pair, want_pair in zip(pairs.T, _exact(words, [bits] * FEW), strict=True)
        for got, want in zip(got_pair, want_pair, strict=True)
    )
    assert worst < bulk_gaussian.ERROR / 2


def test_words_are_consecutive_blocks_of_aes_that_nothing_else_uses() -> None:
    noise = Noise.made(Scale(4 * FEW, 1.0, 200.0), KEY)
    blocks = noise._blocks(bulk_gaussian.STREAM, 2 + np.arange(FEW))
    assert np.array_equal(noise.words.ravel(), blocks.view(np.uint32).ravel())
    others = [noise._blocks(kind, np.arange(FEW)) for kind in (bulk_gaussian.FURTHER, bulk_gaussian.MORE)]
    assert len(np.unique(np.concatenate([blocks, *others]).reshape(-1, 2), axis=0)) == 3 * FEW


def test_words_at_the_ends_are_left_to_further_bits() -> None:
    first, end = bulk_gaussian.W_FIRST, bulk_gaussian.W_END
    words = np.array([[0, first - 1, first, end - 1, end, 2**32 - 1], [5] * 6], np.uint32)
    pairs = np.empty(words.shape, np.float32)
    bulk_gaussian._fill(words, 1.0, pairs, np.empty_like(pairs))
    assert np.isnan(pairs).tolist() == [[True, True, False, False, True, True]] * 2


def test_further_bits_at_the_ends_are_left_to_decimals() -> None:
    """Where the first 42 bits of w are all 0, or all 1."""
    near, whole = 2**54, 2**64
    ends = [(0, 0), (0, near - 8), (2**32 - 1, whole - near + 2**12), (2**32 - 1, whole - 1)]
    inside = [(0, 2 * near), (1, 0), (2**32 - 2, whole - 1), (2**32 - 1, whole - 2 * near)]
    words = np.array([[word for word, _ in (*ends, *inside)], [2**29 + 12345] * 8], np.uint32)
    further = np.array([[bits, 77] for _, bits in (*ends, *inside)], np.uint64)
    _, decided = bulk_gaussian._in_double(words, further, np.zeros(8, int), 200.3, np.zeros(8))
    assert decided.tolist() == [False] * 4 + [True] * 4


def _noise(words: np.ndarray, deviation: float, count: int) -> Noise:
    """Return noise with given words."""
    noise = Noise.made(Scale(2 * words.shape[1], 1.0, deviation), KEY)
    noise.words[:] = words
    bulk_gaussian._fill(words, deviation, noise.gaussians, np.empty_like(noise.gaussians))
    return noise


@pytest.mark.parametrize("shift", [0.0, 2.0**-34])
def test_refined_numbers_are_the_exact_ones_rounded(shift: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """All places, decided in float64, or (with `shift`) put so near to a boundary that decimals decide."""
    words, deviation = _words(FEW // 4, 2), 200.3
    words[0, :4] = [0, 2**32 - 1, 1, 2**32 - 2]
    noise = _noise(words, deviation, words.size)
    pairs = np.arange(words.shape[1])
    further = noise._blocks(bulk_gaussian.FURTHER, pairs).reshape(-1, 2).tolist()
    more = [noise._blocks(bulk_gaussian.MORE, 3 * pair + np.arange(3)).tobytes() for pair in pairs]
    extra = [int.from_bytes(one, "little") for one in more]
    size, mask = bulk_gaussian.MORE_BITS, 2**bulk_gaussian.MORE_BITS - 1
    with mpmath.workdps(100):
        bits = [
            tuple(
                (mpmath.mpf(bits << size | low) + 0.5) / 2 ** (64 + size) for bits, low in zip(own, lows, strict=True)
            )
            for own, lows in zip(further, [(one >> size, one & mask) for one in extra], strict=True)
        ]
        exact = [number * deviation for row in zip(*_exact(words, bits), strict=True) for number in row]
        values = np.random.default_rng(3).normal(0, 1e3, words.size)
        if shift:  # the sum is `shift` below or above a half
            values = np.array([float(mpmath.floor(one) + 0.5 - one) for one in exact]) + np.resize(
                [shift, -shift], words.size
            )
        wanted = [mpmath.mpf(float(value)) + one for value, one in zip(values, exact, strict=True)]
        calls = []
        decimal = bulk_gaussian._in_decimal
        monkeypatch.setattr(bulk_gaussian, "_in_decimal", lambda *given: calls.append(1) or decimal(*given))
        got = noise.rounded(np.arange(words.size), values)
        assert all(one == mpmath.nint(other) for one, other in zip(got.tolist(), wanted, strict=True))
    assert len(calls) >= (words.size if shift else 0)


def test_numbers_that_are_decided_early_are_those_decided_late(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = {"x": 50 * torch.randn(20_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))}
    plain = BulkGaussian(SeededSource(5)).add(sums, 1.0, 1.0)["x"]
    monkeypatch.setattr(bulk_gaussian, "ERROR", 2.0**-11)  # about a quarter is computed again, and a quarter of these
    monkeypatch.setattr(bulk_gaussian, "ERROR_DOUBLE", 0.49)
    refined = BulkGaussian(SeededSource(5)).add({"x": sums["x"][:2000]}, 1.0, 1.0)["x"]
    again = BulkGaussian(SeededSource(5)).add({"x": sums["x"][:2000]}, 1.0, 1.0)["x"]
    monkeypatch.undo()
    assert torch.equal(refined, again)
    assert torch.equal(refined, BulkGaussian(SeededSource(5)).add({"x": sums["x"][:2000]}, 1.0, 1.0)["x"])
    assert torch.equal(plain, BulkGaussian(SeededSource(5)).add(sums, 1.0, 1.0)["x"])


def test_an_error_bound_that_is_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = {"x": torch.zeros(400_000)}
    wanted = BulkGaussian(SeededSource(5)).add(sums, 1.0, 1.0)["x"]
    monkeypatch.setattr(bulk_gaussian, "ERROR", 0.0)
    monkeypatch.setattr(bulk_gaussian, "ADDITION_ERROR", 0.0)
    assert not torch.equal(wanted, BulkGaussian(SeededSource(5)).add(sums, 1.0, 1.0)["x"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_of_any_size_are_rounded_exactly(dtype: torch.dtype) -> None:
    x = torch.tensor([0.0, 1e-30, -1e-3, 77.77, -1e6, 3e9, 1e20], dtype=dtype)
    step = Scale.of(len(x), 1.0).step
    noisy = BulkGaussian(SeededSource(2)).add({"x": x}, 1.0, 1.0)["x"].double()
    assert torch.equal(noisy / step, (noisy / step).round())
    assert ((noisy - x.double()).abs() <= 6 + x.double().abs() * 2.0**-23).all()


def test_the_grid_makes_the_noise_larger_by_less_than_one_part_in_300_000() -> None:
    for deviation in (1e-9, 0.3, 1.0, 1.999, 1e9):
        scale = Scale.of(10, deviation)
        assert scale.deviation_steps * scale.step == deviation
        assert 128 <= scale.deviation_steps < 256
        assert 1 / 12 / scale.deviation_steps**2 / 2 < 1 / 300_000


def test_sums_are_kept_unless_their_memory_may_be_used() -> None:
    sums = {"x": torch.zeros(100), "y": torch.zeros(7, dtype=torch.float64)}
    noisy = BulkGaussian(SeededSource(1)).add(sums, 1.0, 1.0)
    assert not any(part.any() for part in sums.values())
    again = BulkGaussian(SeededSource(1), in_place=True).add(sums, 1.0, 1.0)
    assert all(torch.equal(noisy[name], again[name]) for name in sums)
    assert all(torch.equal(sums[name], again[name]) for name in sums)


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
    steps = BulkGaussian().add(sums, 1.0, 1.0)["weight"] / Scale.of(1000, 1.0).step
    assert torch.equal(steps, steps.round())


@pytest.mark.usefixtures("least_ahead")
def test_no_noise_is_handed_out_twice() -> None:
    noise, zeros = BulkGaussian(), {"weight": torch.zeros(100, dtype=torch.float64)}
    seen = [noise.add(zeros, 1.0, 1.0)["weight"]]
    for other in (noise, copy.deepcopy(noise), copy.copy(noise), pickle.loads(pickle.dumps(noise)), noise):
        seen += [other.add(zeros, 1.0, 1.0)["weight"], other.add(zeros, 2.0, 1.0)["weight"] / 2]
    for index, one in enumerate(seen):
        assert not any((one == other).sum() > 3 for other in seen[:index])


@pytest.mark.usefixtures("least_ahead")
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


@pytest.mark.usefixtures("least_ahead")
def test_a_seeded_source_replays() -> None:
    zeros = {"weight": torch.zeros(100)}
    runs = []
    for _ in range(2):
        noise = BulkGaussian(SeededSource(5))
        runs.append([noise.add(zeros, deviation, 1.0)["weight"] for deviation in (1.0, 1.0, 2.0)])
    assert all(torch.equal(one, other) for one, other in zip(*runs, strict=True))
    assert not torch.equal(runs[0][0], runs[0][1])


@pytest.mark.parametrize(
    ("deviation", "sensitivity"), [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (float("nan"), 1.0), (1e30, 1.0)]
)
def test_bad_parameters_are_refused(deviation: float, sensitivity: float) -> None:
    with pytest.raises(InvalidInput):
        BulkGaussian().add({"weight": torch.zeros(3)}, deviation, sensitivity)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_sums_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(NotFinite):
        BulkGaussian().add({"weight": torch.tensor([1.0, value])}, 1.0, 1.0)
