"""The low bits of floating-point noise (Mironov 2012).

Noise from a formula in doubles leaves holes: which multiples of tiny powers of two can be reached depends on the true
value that was added. The attack looks at nothing but the exponent of an output and that of its lowest bit. Noise on a
public grid has the same lowest bits for neighbouring values, or differs by what its epsilon allows.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.attack.confidence import clopper_pearson, epsilon_of_counts
from tacit.attack.finding import Measurement, Power, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack
from tacit.attack.mechanism_audit import assumed, enough_samples, measure, planted_bound
from tacit.attack.power import of_tests
from tacit.attack.targets import DoesNotFit, Mechanism

NUMBERS: Final = "floating_point needs a mechanism that releases numbers with fractions"
TRIED: Final = 100
"""How many outputs are looked at to see whether they have low bits at all."""


def lowest_bits(outputs: Any) -> NDArray[np.float64]:
    """Return a number for the exponents of outputs and of their lowest bits; equal for equal pairs of them.

    An output of several numbers is one row. Raises DoesNotFit for outputs that are no numbers.
    """
    try:
        numbers = np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)
    except (TypeError, ValueError, OverflowError):
        raise DoesNotFit(NUMBERS, name="target") from None
    mantissa, exponent = np.frexp(np.where(np.isfinite(numbers), numbers, 0.0))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    trailing = np.where(whole == 0, 64, np.log2(np.maximum(whole & -whole, 1)).astype(np.int64))
    return np.asarray((exponent + trailing - 53) * 4096.0 + exponent)


def _has_fractions(outputs: Any) -> bool:
    try:
        numbers = np.asarray(outputs, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    return bool((np.isfinite(numbers) & (numbers != np.floor(numbers))).any())


@attack(
    "floating_point",
    Mechanism,
    paper="Mironov 2012; Haney, Desfontaines, Hartman, Shrestha, Hay 2022",
    summary="whether the low bits of noisy numbers tell what was added to the noise",
)
def inspect_bits(target: Mechanism, setting: Setting) -> Outcome:
    """Audit a mechanism by the lowest bits of its outputs alone."""
    wanted = enough_samples(target, setting.scaled(10_000, 100_000, 500_000))
    x, neighbour = target.first_pair(setting.random)
    if not _has_fractions(target.sample(x, TRIED, setting.random)):
        raise DoesNotFit(NUMBERS, name="target")
    ones, others, twin = map(lowest_bits, target.interleaved((x, neighbour, x), wanted, setting.random))
    found = measure(ones, others, setting.delta, setting.confidence)
    counts, again = found.counts, found.event.contains(twin)
    bound = epsilon_of_counts(*counts, setting.delta, setting.confidence)
    nothing = epsilon_of_counts(*counts[:2], int(again.sum()), len(again), setting.delta, setting.confidence)
    leaked = planted_bound(ones, others, setting)
    error = (1 - setting.confidence) / 2
    return Outcome(
        ThreatModel("outputs of the mechanism, all bits", "both inputs", 2 * wanted),
        (
            Measurement(
                "outputs in the event, first input",
                counts[0] / counts[1],
                clopper_pearson(*counts[:2], error),
                key="event_share_first",
            ),
            Measurement(
                "outputs in the event, second input",
                counts[2] / counts[3],
                clopper_pearson(*counts[2:], error),
                key="event_share_second",
            ),
        ),
        bound,
        "Clopper-Pearson bounds of one event, found on other outputs",
        Power(
            "an output whose low bits name its input",
            leaked,
            nothing,
            setting.refutes(leaked),
            least_epsilon=of_tests(setting.claim, setting.confidence, counts[1], counts[3]),
        ),
        assumptions=assumed(ones, others),
        details={"samples": wanted},
    )
