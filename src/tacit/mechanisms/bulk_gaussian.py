"""Gaussian noise for many numbers at once: from a stream cipher, made ahead in a second thread, rounded when released.

Promise of `BulkGaussian.add`: neighbours (of either relation) whose sums, all tensors together, differ by at most
`sensitivity` in L2 get results that are a function of sums with Gaussian noise of standard deviation `deviation`, and
so have that privacy curve (Dwork, Roth 2014, appendix A; Balle and Wang 2018), up to `failure(count)` in delta.

Why no number has to be widened for a grid. With x a sum, a double as it was computed, and N a real Gaussian, what is
released is (x + N) / step rounded to a whole number, times a public power of two, the step: post-processing of x + N,
whatever the distance of x to the grid is. The step is between 1/256 and 1/128 of the deviation, which makes the noise
larger by less than one part in 300,000. The conversion to the tensor's dtype is post-processing as well. A float64
number is x = (q + f) step with q whole and |f| <= 1/2, both computed without error, so only f + N / step is rounded.

How the rounding is decided exactly. Let w be uniform in (0, 1) and v uniform in (-1/2, 1/2). Then
sqrt(-2 ln w) (cos(2 pi v), sin(2 pi v)) are two independent Gaussians of standard deviation 1 (Box and Muller 1958). A
random word of 32 bits gives the first bits of w, another one those of v; the bits that follow are drawn only when they
are needed. In float32 each Gaussian is computed with an error of less than ERROR = 2^-18, for words of w in
[W_FIRST, W_END), where 2^-10 <= w and 2^-5 <= r = sqrt(-2 ln w) <= 3.73:

    not knowing the other bits of w, and the conversion to float32, move w by less than 2^-32 + 2^-24 w: r by less than
    (2^-22 + 2^-24) / 3.7 < 2^-23.5 at the small end of w, and by less than 1.01 (2^-25 + 2^-32) / r < 2^-19.9 at the
    other one, where r itself is small; in between by less than the sum of the two terms
    at the small end of w: a logarithm within 4 units in the last place moves r by less than 2^-22 r < 2^-20.1, the
    square root, the factor and the product by less than 2^-22 r < 2^-20.1
    the angle is off by less than 2^-22 (the bits not known 2^-29, the word in float32 2^-23.3, its product with a
    rounded factor 2^-22.7), sine and cosine by four units more, 2^-22: times r together below 2^-19.1.

Together this is below 2^-18 for every r. A number whose distance to the nearest boundary between two whole numbers is
larger than that, in steps, and 2^-14 for the addition of f in float32, is rounded as the infinitely precise number is.
All others, and those outside of the range of w, about one in 250, are computed again in float64 with 64 further
bits for w and v each (`_in_double`), with an error below 2^-33 steps; and those that this does not decide, about one in
2^32 of them, with 192 further bits to 90 digits (`_in_decimal`), which decides but for a probability below 2^-150 for
each number. So the law of n numbers is that of n independent rounded Gaussians up to a total variation of n 2^-150, for
which `failure` states the larger n 2^-100; there is no tail cut. Two things are assumed: that AES-256 under a fresh key
of the source is random on blocks that are all different, and that the numerical library keeps the (generous) error
bounds above; tests compare it with exact arithmetic.

What time shows. How many numbers are computed again is a function of f + N / step but for the errors above, so of
x + N: nothing about x beyond the noisy sum.

Each call has a key of its own, read from the source in the caller's thread, and prepared noise is handed out once: not
after a fork, and not by a copy of the object.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.grid import Grid
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.privacy.errors import NotFinite, OutOfRange, Unavailable
from tacit.privacy.numbers import parameter

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float32] | NDArray[np.float64]
Doubles = NDArray[np.float64]
Places = NDArray[np.int64]

ERROR: Final = 2.0**-18
"""The bound on the error of a Gaussian in float32, in standard deviations."""
W_FIRST, W_END = 1 << 22, (1 << 32) - (1 << 21)
"""The words of w for which the bound holds."""
ADDITION_ERROR: Final = 2.0**-14
"""A bound on the error, in steps, of adding an offset of at most 1/2 to a Gaussian in float32."""
ERROR_DOUBLE: Final = 2.0**-33
"""The bound on the error of a Gaussian with its offset in float64, in steps."""
ENDS: Final = 2.0**-10
"""Words of w that are closer than this to 0 or 2^32, with their further bits, are left to decimal numbers."""
STEPS: Final = 128
"""The least number of steps in one standard deviation."""
DEVIATION_MIN, DEVIATION_MAX = 2.0**-60, 2.0**60
PAIRS: Final = 1 << 15
"""Pairs that are computed together: their arrays fit into the processor's cache."""
RELEASED_TOGETHER: Final = 1 << 16
"""Numbers to which noise is added together, for the same reason."""
AHEAD_MIN: Final = 1 << 16
"""The fewest numbers whose noise is made ahead: to make less takes no longer than to hand it to a second thread."""
MORE_BITS: Final = 192
DIGITS: Final = 90
STREAM, FURTHER, MORE = range(3)
"""The first halves of AES blocks: of the words, of the further bits, and of those for decimal numbers."""
PI: Final = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
)


@dataclass(frozen=True, slots=True)
class Scale:
    """The public numbers of a call: how many numbers, the grid's step, and the noise in steps."""

    count: int
    step: float
    deviation_steps: float

    @classmethod
    def of(cls, count: int, deviation: float) -> Scale:
        """Return the grid for noise of this standard deviation."""
        wanted = parameter("deviation", deviation)
        if not DEVIATION_MIN <= wanted <= DEVIATION_MAX:
            raise OutOfRange("the deviation of the noise must be between 2^-60 and 2^60", name="deviation")
        step = Grid.below(wanted / STEPS).step
        return cls(count, float(step), float(wanted / step))


class BulkGaussian:
    """Adds Gaussian noise to sums of gradients; the noise of the next call is made while the caller computes.

    It is made ahead for calls with the same number of numbers, not below `AHEAD_MIN`, and the same noise as the last
    one. `exact` uses
    `mechanisms.Gaussian` instead, at about a hundredth of the speed. With `in_place` sums are used up by `add`: their
    memory may hold the results.
    """

    def __init__(self, source: RandomSource = SYSTEM, *, exact: bool = False, in_place: bool = False) -> None:
        self.source: Final = source
        self.exact: Final = exact
        self.in_place: Final = in_place
        self._thread: ThreadPoolExecutor | None = None
        self._thread_owner = 0
        self._ahead: tuple[Scale, int, Future[Noise]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (self.source, self.exact, self.in_place)

    def failure(self, count: int) -> float:
        """Return what to add to delta for `count` numbers in all: the distance to ideal rounded Gaussians."""
        return 0.0 if self.exact else count * 2.0**-100

    def add(self, sums: Mapping[str, Tensor], deviation: float, sensitivity: float) -> dict[str, Tensor]:
        """Return the sums with noise of standard deviation `deviation`, in the tensors' dtypes.

        `sensitivity` is how far apart, in L2 and over all tensors together, the sums of neighbours can be; `exact`
        noise is widened for rounding by a share of it.
        """
        parameter("sensitivity", sensitivity)
        if self.exact:
            return self._add_exact(sums, deviation, sensitivity)
        scale = Scale.of(sum(part.numel() for part in sums.values()), deviation)
        noise = self._take(scale)
        noisy = _released(sums, noise, in_place=self.in_place)
        if scale.count >= AHEAD_MIN:
            self._prepare(noise)
        return noisy

    def _add_exact(self, sums: Mapping[str, Tensor], deviation: float, sensitivity: float) -> dict[str, Tensor]:
        import torch

        sigma = Fraction(deviation) / Fraction(sensitivity)
        flat = torch.cat([part.detach().double().flatten().cpu() for part in sums.values()]).numpy()
        released = np.asarray(Gaussian(float(sensitivity), sigma=sigma).release(flat, source=self.source))
        noisy, start = {}, 0
        for name, part in sums.items():
            values = released[start : start + part.numel()].reshape(part.shape)
            noisy[name] = torch.from_numpy(values).to(part.device, part.dtype)
            start += part.numel()
        return noisy

    def _take(self, scale: Scale) -> Noise:
        """Return the noise made ahead, or make it now where there is none for this call."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[:2] == (scale, os.getpid()):
            return ahead[2].result()
        return Noise.made(scale, self.source.read(32))

    def _prepare(self, used: Noise) -> None:
        """Make the noise of the next call in the second thread; its key is read here, in the caller's thread."""
        if self._thread is None or self._thread_owner != os.getpid():
            self._thread, self._thread_owner = ThreadPoolExecutor(1, "tacit-noise"), os.getpid()
        self._ahead = used.scale, os.getpid(), self._thread.submit(used.replaced, self.source.read(32))


@dataclass(frozen=True, slots=True)
class Noise:
    """Independent Gaussians in steps: in float32, and the words and the key that decide them further."""

    scale: Scale
    key: bytes
    raw: NDArray[np.uint8]
    gaussians: NDArray[np.float32]
    """Two rows, one number of each pair in each; NaN where the error of float32 is not bounded."""

    @classmethod
    def made(cls, scale: Scale, key: bytes) -> Noise:
        """Return new noise under a key that is used for nothing else."""
        pairs = (scale.count + 1) // 2
        raw, gaussians = np.empty(8 * pairs + 16, np.uint8), np.empty((2, pairs), np.float32)
        return cls(scale, key, raw, gaussians).replaced(key)

    def replaced(self, key: bytes) -> Noise:
        """Return new noise under a key that is used for nothing else, in the memory of this one, which is used up."""
        pairs = self.gaussians.shape[1]
        zeros = np.zeros(4 * min(pairs, PAIRS), np.uint8)
        work = np.empty((2, len(zeros) // 4), np.float32)
        stream = _cipher(key, STREAM)
        for start in range(0, pairs, PAIRS):
            part = slice(start, min(start + PAIRS, pairs))
            size = part.stop - start
            for first in (start, pairs + start):
                stream.update_into(zeros[: 4 * size], self.raw[4 * first :])
            _fill(self.words[:, part], self.scale.deviation_steps, self.gaussians[:, part], work[:, :size])
        return replace(self, key=key)

    @property
    def words(self) -> NDArray[np.uint32]:
        """A row of words for w and one for v."""
        pairs = self.gaussians.shape[1]
        return self.raw[: 8 * pairs].view(np.uint32).reshape(2, pairs)

    def rounded(self, places: Places, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return values (in steps) plus the Gaussians at these places, rounded to whole numbers, exactly."""
        whole = np.rint(values)
        offsets = values - whole
        rows, pairs = np.divmod(places, self.gaussians.shape[1])
        further, words = self._blocks(FURTHER, pairs).reshape(-1, 2), self.words[:, pairs]
        found, decided = _in_double(words, further, rows, self.scale.deviation_steps, offsets)
        for place in np.flatnonzero(~decided):
            pair = int(pairs[place])
            more = self._blocks(MORE, 3 * pair + np.arange(3)).tobytes()
            bits = [int(word) << 64 for word in (words[0, place], words[1, place].astype(np.int32))]
            gaussian = _in_decimal([one | int(two) for one, two in zip(bits, further[place], strict=True)], more)
            with localcontext(prec=DIGITS):
                exact = Decimal(float(offsets[place])) + gaussian[rows[place]] * Decimal(self.scale.deviation_steps)
            found[place] = float(exact.to_integral_value())
        return whole + found

    def _blocks(self, kind: int, numbers: Places) -> NDArray[np.uint64]:
        """Return the AES blocks of this kind with these numbers, two words each."""
        plain = np.empty((len(numbers), 2), ">u8")
        plain[:, 0], plain[:, 1] = kind, numbers
        return np.frombuffer(_cipher(self.key).update(plain.tobytes()), np.uint64)


@np.errstate(divide="ignore", invalid="ignore")  # for words outside of the range
def _fill(words: NDArray[np.uint32], deviation: float, pairs: NDArray[np.float32], work: NDArray[np.float32]) -> None:
    """Write two rows of Gaussians in float32, from a row of words for w and one for v."""
    radius, angle = work
    np.copyto(radius, words[0], casting="unsafe")
    radius *= np.float32(2.0**-32)
    np.log(radius, out=radius)
    radius *= np.float32(-2 * deviation * deviation)
    np.sqrt(radius, out=radius)
    np.copyto(angle, words[1].view(np.int32), casting="unsafe")
    angle *= np.float32(math.pi * 2.0**-31)
    np.cos(angle, out=pairs[0])
    np.sin(angle, out=pairs[1])
    pairs *= radius
    outside = np.subtract(words[0], np.uint32(W_FIRST), out=angle.view(np.uint32)) >= W_END - W_FIRST
    pairs[:, np.flatnonzero(outside)] = np.nan


def _in_double(
    words: NDArray[np.uint32], further: NDArray[np.uint64], rows: Places, deviation: float, offsets: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return offset plus Gaussian in steps, rounded, from words with 64 further bits; and where that is decided.

    With w = low / 2^32 = 1 - high / 2^32, -ln w has a relative error below 2^-49, from low where it is the smaller one
    and from high otherwise, so the radius, at most 7.8, is off by less than 2^-46; the angle by less than 2^-49, sine
    and cosine within 4 units by 2^-51 more: all together less than 2^-45 standard deviations or 2^-37 steps. The
    product and the sum add less than 2^-40 steps.
    """
    bits = (further.T + 0.5) * 2.0**-64
    low = words[0] + bits[0]
    high = (2.0**32 - 1 - words[0]) + (1 - bits[0])
    with np.errstate(divide="ignore", invalid="ignore"):  # of the one that is not taken, or of an end
        halves = np.where(low < high, -np.log(low * 2.0**-32), -np.log1p(high * -(2.0**-32)))
    angle = (words[1].view(np.int32) + bits[1]) * (math.pi * 2.0**-31)
    gaussians = np.sqrt(2 * halves) * np.where(rows == 0, np.cos(angle), np.sin(angle))
    sums = gaussians * deviation + offsets
    rounded = np.rint(sums)
    return rounded, (np.abs(sums - rounded) <= 0.5 - ERROR_DOUBLE) & (np.minimum(low, high) >= ENDS)


def _in_decimal(words: list[int], more: bytes) -> tuple[Decimal, Decimal]:
    """Return one pair of Gaussians of standard deviation 1, from words of 96 bits and further ones, to 90 digits."""
    extra = int.from_bytes(more, "little")
    size = 97 + MORE_BITS
    with localcontext(prec=DIGITS):
        w = Decimal(2 * (words[0] << MORE_BITS | extra >> MORE_BITS) + 1) / Decimal(2**size)
        turns = Decimal(2 * (words[1] << MORE_BITS | extra & (2**MORE_BITS - 1)) + 1) / Decimal(2**size)
        radius, angle = (-2 * w.ln()).sqrt(), 2 * PI * turns
        sine = cosine = Decimal(0)
        term, power = Decimal(1), 0
        while abs(term) > Decimal(10) ** -DIGITS:
            signed = -term if power % 4 > 1 else term
            sine, cosine = (sine + signed, cosine) if power % 2 else (sine, cosine + signed)
            power += 1
            term = term * angle / power
        return radius * cosine, radius * sine


def _cipher(key: bytes, stream: int | None = None) -> Any:
    """Return AES-256: of single blocks, or of the blocks that begin with `stream`, one after the other from block 2.

    The latter is counter mode as GCM has it, which current processors compute at twice the speed of plain counter mode;
    its tag, which alone uses the blocks 0 and 1, is never asked for, and its end, after 2^32 blocks, is an error.
    """
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError:
        raise Unavailable('fast Gaussian noise needs cryptography: pip install "tacit[learn]"') from None
    mode = modes.ECB() if stream is None else modes.GCM(stream.to_bytes(8, "big") + bytes(4))
    return Cipher(algorithms.AES(key), mode).encryptor()


def _released(sums: Mapping[str, Tensor], noise: Noise, *, in_place: bool) -> dict[str, Tensor]:
    """Return sums with noise, rounded to whole steps, in their own dtypes; the noise is used up."""
    import torch

    available, start = noise.gaussians.reshape(-1), 0
    outputs: dict[str, Floats] = {}
    undecided: list[tuple[Places, Doubles]] = []
    for name, part in sums.items():
        flat = part.detach().flatten().cpu()
        held: Floats = (flat if flat.dtype in (torch.float32, torch.float64) else flat.float()).numpy()
        outputs[name] = held if in_place else np.empty_like(held)
        undecided.append(_add(held, available[start : start + len(held)], outputs[name], noise.scale))
        start += len(held)
    starts = np.cumsum([0, *(len(output) for output in outputs.values())])
    values = np.concatenate([own for _, own in undecided])
    if not np.isfinite(values).all():
        raise NotFinite("sums must be finite", name="sums")
    places = np.concatenate([start + own for start, (own, _) in zip(starts, undecided, strict=False)])
    decided = noise.rounded(places, values) * noise.scale.step
    bounds = np.cumsum([len(own) for own, _ in undecided])[:-1]
    for output, (own, _), numbers in zip(outputs.values(), undecided, np.split(decided, bounds), strict=True):
        output[own] = numbers
    return {
        name: torch.from_numpy(outputs[name]).to(part.device, part.dtype).view(part.shape)
        for name, part in sums.items()
    }


def _add(values: Floats, gaussians: NDArray[np.float32], output: Floats, scale: Scale) -> tuple[Places, Doubles]:
    """Write values plus noise, rounded to whole steps; return where that is not decided, and the values there in steps.

    Where values are not finite it is not. The Gaussians are used up; `output` may be the memory of `values`.
    """
    limit = np.float32(0.5 - ERROR * scale.deviation_steps - ADDITION_ERROR)
    places, left = [np.empty(0, np.int64)], [np.empty(0)]
    work = np.empty((2, min(len(values), RELEASED_TOGETHER)), values.dtype)
    single = work[0] if values.dtype == np.float32 else np.empty(work.shape[1], np.float32)
    with np.errstate(invalid="ignore", over="ignore"):
        for start in range(0, len(values), RELEASED_TOGETHER):
            part = slice(start, start + RELEASED_TOGETHER)
            own, fraction = values[part], gaussians[part]
            (steps, whole), rounded = work[:, : len(own)], single[: len(own)]
            np.multiply(own, 1 / scale.step, out=steps)
            np.rint(steps, out=whole)
            fraction += np.subtract(steps, whole, out=rounded)
            np.rint(fraction, out=rounded)
            fraction -= rounded
            whole += rounded
            np.abs(fraction, out=fraction)
            undecided = np.flatnonzero(~(fraction <= limit))
            places.append(start + undecided)
            left.append(own[undecided].astype(np.float64) / scale.step)
            np.multiply(whole, scale.step, out=output[part])
    return np.concatenate(places), np.concatenate(left)


def _make(source: RandomSource, exact: bool, in_place: bool) -> BulkGaussian:
    """Return a new object in the place of a copied or unpickled one: noise made ahead is never handed out twice."""
    return BulkGaussian(source, exact=exact, in_place=in_place)
