"""Gaussian noise for many numbers at once: rounded Gaussians from a stream cipher, made ahead in a second thread.

Promise of `BulkGaussian.add`: neighbours (of either relation) whose sums, all tensors together, differ by at most
`sensitivity` in L2 get results that are a function of sums with Gaussian noise of standard deviation `deviation`, and
so have that privacy curve (Dwork, Roth 2014, appendix A; Balle and Wang 2018), up to `failure(count)` in delta.

Why the grid costs (almost) nothing. Sums are rounded to whole multiples of a public power of two, the step. That moves
two neighbours further apart by at most one step in each of d coordinates, sqrt(d) steps in L2; the noise is widened by
that share, below 1/1000. To the rounded sum r a rounded Gaussian is added, and r + round(N) = round(r + N) for whole r:
post-processing of r + N. The addition is made in doubles, which round the exact sum of two doubles, and so is the
conversion to the tensor's dtype: post-processing as well.

Why the rounded Gaussians are exact. Let w be uniform in (0, 1), v uniform in (-1/2, 1/2) and b a random sign. Then
b s sqrt(-2 ln w) (cos(pi v), sin(pi v)) are two independent Gaussians of standard deviation s (Box and Muller 1958; the
angle covers a half circle and the sign the other one). A random word of 64 bits gives b and the first 63 bits of w,
another one the first 64 bits of v; the bits that follow are drawn only when they are needed. In doubles each Gaussian
is computed with an error of less than ERROR = 2^-42 standard deviations:

    not knowing the other bits of w, and the conversion to a double, move w by less than 2^-63 + 2^-53 w. Where
    2^-20 <= w and r = sqrt(-2 ln w) >= 2^-9, which is checked, this moves r by less than
    (2^-53 + 2^-43) / r <= 2^-42.9 / 5.2 at the small end of w, and by less than 1.01 * 2^-53 / r <= 2^-43.9 at the
    other one; in between by the sum of the two terms, which is below 2^-43.8
    a logarithm within 8 units in the last place moves r <= 5.3 by less than 2^-47.6, the square root by 2^-50
    the angle is off by less than 2^-52, the polynomial for the sine on [-pi/4, pi/4] by 2^-50 and its evaluation by
    2^-51; doubling the angle (1 - 2 sin^2, 2 sin sqrt(1 - sin^2)) gives less than 2^-47, times r below 2^-44.6
    multiplying with s adds less than 2^-49 standard deviations.

Together this is below 2^-42. A number whose distance to the nearest boundary between two whole numbers is larger than
that is rounded as the infinitely precise Gaussian would be. All others, and those outside of the checked range, about
one in 10^5, are computed again with 192 further bits for w and v each, to 90 digits (`_refined`); that decides but for
a probability below 2^-150 for each number. So the law of n numbers is that of n independent rounded Gaussians up to a
total variation of n 2^-150, for which `failure` states the larger n 2^-100; there is no tail cut. Two things are
assumed: that the bytes of AES-256 in counter mode under a fresh key of the source are random, and that the numerical
library keeps the (generous) error bounds above; tests compare it with exact arithmetic.

Each call has a key of its own, read from the source in the caller's thread, and prepared noise is handed out once: not
after a fork, and not by a copy of the object.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.grid import SENSITIVITY_STEPS_MIN, Grid
from tacit.mechanisms.randomness import SYSTEM, RandomSource
from tacit.privacy.errors import NotFinite, OutOfRange, Unavailable
from tacit.privacy.numbers import parameter

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]

ERROR: Final = 2.0**-42
"""The bound on the error of a Gaussian in doubles, in standard deviations."""
W_MIN: Final = 2.0**-20
W_MAX: Final = math.exp(-(2.0**-19))
"""The range of w within which the bound holds: above it the radius is below 2^-9."""
DEVIATION_MAX: Final = 2**34
"""The widest noise, in steps; one number in 128 is computed again then."""
PAIRS: Final = 1 << 14
"""Pairs that are computed together: their arrays fit into the processor's cache."""
RELEASED_TOGETHER: Final = 1 << 17
"""Numbers to which noise is added together, for the same reason."""
MORE_BITS: Final = 192
DIGITS: Final = 90
PI: Final = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
)
SINE: Final = (
    *(1.5707963267948966, -0.6459640975062443, 0.07969262624604301, -0.004681754132340976),
    *(0.0001604411507421909, -3.59864335298231e-06, 5.633933781537854e-08),
)
"""sin(pi v / 2) / v as a polynomial of v^2, interpolated at Chebyshev nodes of [0, 1/4]; off by less than 2^-55."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The public numbers of a call: how many numbers, the grid's step, and the noise in steps."""

    count: int
    step: float
    deviation_steps: float

    @classmethod
    def of(cls, count: int, deviation: float, sensitivity: float) -> Scale:
        """Return the grid and the noise widened for rounding to it, as `mechanisms.Gaussian` does."""
        spread, bound = math.isqrt(max(count, 1) - 1) + 1, parameter("sensitivity", sensitivity)
        wanted = parameter("deviation", deviation)
        step = Grid.below(bound / (spread * SENSITIVITY_STEPS_MIN)).step
        widened = wanted / bound * (bound / step + spread)
        if widened > DEVIATION_MAX:
            raise OutOfRange("the noise is too wide for the grid; release fewer numbers at once", name="deviation")
        return cls(count, float(step), math.nextafter(float(widened), math.inf))


class BulkGaussian:
    """Adds Gaussian noise to sums of gradients; the noise of the next call is made while the caller computes.

    It is made ahead for calls with the same number of numbers and the same noise as the last one. `exact` uses
    `mechanisms.Gaussian` instead, at about a twentieth of the speed.
    """

    def __init__(self, source: RandomSource = SYSTEM, *, exact: bool = False) -> None:
        self.source: Final = source
        self.exact: Final = exact
        self._thread: ThreadPoolExecutor | None = None
        self._thread_owner = 0
        self._ahead: tuple[Scale, int, Future[Floats]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (self.source, self.exact)

    def failure(self, count: int) -> float:
        """Return what to add to delta for `count` numbers in all: the distance to ideal rounded Gaussians."""
        return 0.0 if self.exact else count * 2.0**-100

    def add(self, sums: Mapping[str, Tensor], deviation: float, sensitivity: float) -> dict[str, Tensor]:
        """Return the sums with noise of standard deviation `deviation`, in the tensors' dtypes.

        `sensitivity` is how far apart, in L2 and over all tensors together, the sums of neighbours can be.
        """
        if self.exact:
            return self._add_exact(sums, deviation, sensitivity)
        scale = Scale.of(sum(part.numel() for part in sums.values()), deviation, sensitivity)
        noise = self._take(scale)
        noisy, start = {}, 0
        for name, part in sums.items():
            noisy[name] = _released(part, noise[start : start + part.numel()], scale.step)
            start += part.numel()
        self._prepare(scale)
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

    def _take(self, scale: Scale) -> Floats:
        """Return the noise made ahead, or make it now where there is none for this call."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[:2] == (scale, os.getpid()):
            return ahead[2].result()
        return rounded_gaussians(scale.count, scale.deviation_steps, self.source.read(32))

    def _prepare(self, scale: Scale) -> None:
        """Make the noise of the next call in the second thread; its key is read here, in the caller's thread."""
        if self._thread is None or self._thread_owner != os.getpid():
            self._thread, self._thread_owner = ThreadPoolExecutor(1, "tacit-noise"), os.getpid()
        key = self.source.read(32)
        made = self._thread.submit(rounded_gaussians, scale.count, scale.deviation_steps, key)
        self._ahead = scale, os.getpid(), made


def rounded_gaussians(count: int, deviation: float, key: bytes) -> Floats:
    """Return `count` independent Gaussians of standard deviation `deviation`, rounded to whole numbers, as doubles."""
    stream, more = _cipher(key, 0), _cipher(key, 1)
    pairs = (count + 1) // 2
    size = min(pairs, PAIRS)
    noise, zeros = np.empty(2 * pairs), np.zeros(16 * size, np.uint8)
    raw, work = np.empty(16 * size + 16, np.uint8), np.empty((5, size))
    for start in range(0, pairs, PAIRS):
        length = min(PAIRS, pairs - start)
        stream.update_into(zeros[: 16 * length], raw)
        words = raw[: 16 * length].view(np.int64).reshape(2, length)
        _fill(words, deviation, noise[2 * start : 2 * (start + length)].reshape(2, length), work[:, :length], more)
    return noise[:count]


def _fill(words: NDArray[np.int64], deviation: float, pairs: Floats, work: Floats, more: Any) -> None:
    """Write two rows of rounded Gaussians, from a row of words for the radius and one for the angle."""
    w, radius, v, z, polynomial = work
    np.multiply(words[0], 2.0**-63, out=radius)
    np.abs(radius, out=w)
    outside = w.min(initial=1.0) < W_MIN or w.max(initial=0.0) > W_MAX
    with np.errstate(divide="ignore", invalid="ignore"):
        np.log(w, out=z)
        z *= -2 * deviation * deviation
        np.sqrt(z, out=z)
    np.copysign(z, radius, out=radius)
    np.multiply(words[1], 2.0**-64, out=v)
    np.multiply(v, v, out=z)
    np.multiply(z, SINE[-1], out=polynomial)
    for coefficient in SINE[-2:0:-1]:
        polynomial += coefficient
        polynomial *= z
    polynomial += SINE[0]
    v *= polynomial  # sin(pi v / 2)
    np.multiply(v, v, out=z)
    np.subtract(1.0, z, out=polynomial)
    np.sqrt(polynomial, out=polynomial)
    polynomial *= v
    np.subtract(0.5, z, out=z)
    radius *= 2.0
    np.multiply(z, radius, out=z)  # r (1 - 2 sin^2)
    polynomial *= radius  # r 2 sin cos
    np.rint(z, out=pairs[0])
    np.rint(polynomial, out=pairs[1])
    z -= pairs[0]
    polynomial -= pairs[1]
    limit = 0.5 - ERROR * deviation
    if outside or max(z.max(), -z.min(), polynomial.max(), -polynomial.min()) > limit:
        undecided = (w < W_MIN) | (w > W_MAX) | (np.abs(z) > limit) | (np.abs(polynomial) > limit)
        for place in np.flatnonzero(undecided):
            pairs[:, place] = _refined(int(words[0, place]), int(words[1, place]), deviation, more)


def _refined(radius_word: int, angle_word: int, deviation: float, more: Any) -> tuple[int, int]:
    """Return one pair from its words and further bits, to 90 digits."""
    extra = int.from_bytes(more.update(bytes(MORE_BITS // 4)), "little")
    first, second = extra >> MORE_BITS, extra & (2**MORE_BITS - 1)
    magnitude = radius_word if radius_word >= 0 else ~radius_word
    with localcontext(prec=DIGITS):
        w = Decimal(2 * (magnitude << MORE_BITS | first) + 1) / Decimal(2 ** (64 + MORE_BITS))
        angle = PI * Decimal(2 * (angle_word << MORE_BITS | second) + 1) / Decimal(2 ** (65 + MORE_BITS))
        radius = (-2 * w.ln()).sqrt() * Decimal(deviation) * (1 if radius_word >= 0 else -1)
        sine = cosine = Decimal(0)
        term, power = Decimal(1), 0
        while abs(term) > Decimal(10) ** -DIGITS:
            signed = -term if power % 4 > 1 else term
            sine, cosine = (sine + signed, cosine) if power % 2 else (sine, cosine + signed)
            power += 1
            term = term * angle / power
        return int((radius * cosine).to_integral_value()), int((radius * sine).to_integral_value())


def _cipher(key: bytes, nonce: int) -> Any:
    """Return AES-256 in counter mode; streams with different nonces have no block of 2^64 in common."""
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError:
        raise Unavailable('fast Gaussian noise needs cryptography: pip install "tacit[learn]"') from None
    return Cipher(algorithms.AES(key), modes.CTR(nonce.to_bytes(8, "big") + bytes(8))).encryptor()


def _released(part: Tensor, noise: Floats, step: float) -> Tensor:
    """Return a tensor rounded to the grid, with noise, in its own dtype; the noise is used up.

    A power of two is multiplied and whole numbers are rounded to without error, in float32 as well.
    """
    import torch

    held = part.detach().flatten().cpu()
    if held.dtype != torch.float32 or not 2.0**-60 < step < 2.0**60:
        held = held.double()
    steps = torch.from_numpy(noise)
    for start in range(0, held.numel(), RELEASED_TOGETHER):
        chunk = slice(start, start + RELEASED_TOGETHER)
        steps[chunk].add_(held[chunk].mul(1 / step).round_())
    if not math.isfinite(steps.sum().item()):
        raise NotFinite("sums must be finite", name="sums")
    return steps.to(held.dtype).mul_(step).to(part.device, part.dtype).view(part.shape)


def _make(source: RandomSource, exact: bool) -> BulkGaussian:
    """Return a new object in the place of a copied or unpickled one: noise made ahead is never handed out twice."""
    return BulkGaussian(source, exact=exact)
