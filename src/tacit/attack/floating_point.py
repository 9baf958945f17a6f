"""The low bits of floating-point noise (Mironov 2012).

Noise from a formula in doubles leaves holes: which multiples of tiny powers of two can be reached depends on the true
value that was added. The attack looks at nothing but the exponent of an output and that of its lowest bit. Noise on a
public grid has the same lowest bits for neighbouring values, or differs by what its epsilon allows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.attack.confidence import clopper_pearson, epsilon_of_counts
from tacit.attack.finding import Measurement, Power, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack
from tacit.attack.mechanism_audit import find_event
from tacit.attack.targets import Mechanism
from tacit.privacy.errors import InvalidInput


def lowest_bits(outputs: Any) -> NDArray[np.float64]:
    """Return a number for the exponents of outputs and of their lowest bits; equal for equal pairs of them."""
    numbers = np.asarray(outputs, dtype=np.float64).ravel()
    mantissa, exponent = np.frexp(np.where(np.isfinite(numbers), numbers, 0.0))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    trailing = np.where(whole == 0, 64, np.log2(np.maximum(whole & -whole, 1)).astype(np.int64))
    return np.asarray((exponent + trailing - 53) * 4096.0 + exponent)


@attack(
    "floating_point",
    Mechanism,
    paper="Mironov 2012; Haney, Desfontaines, Hartman, Shrestha, Hay 2022",
    summary="whether the low bits of noisy numbers tell what was added to the noise",
)
def inspect_bits(target: Mechanism, setting: Setting) -> Outcome:
    """Audit a mechanism by the lowest bits of its outputs alone."""
    wanted = target.samples or setting.scaled(10_000, 100_000, 500_000)
    x, neighbour = target.pairs[0]
    try:
        ones, others = (lowest_bits(target.sample(one, wanted, setting.random)) for one in (x, neighbour))
    except (TypeError, ValueError):
        raise InvalidInput("floating_point needs a mechanism that releases numbers", name="target") from None
    half_ones, half_others = len(ones) // 2, len(others) // 2
    event = find_event(ones[:half_ones], others[:half_others], setting.delta, setting.confidence)
    first, second = event.contains(ones[half_ones:]), event.contains(others[half_others:])
    counts = (int(first.sum()), len(first), int(second.sum()), len(second))
    bound = epsilon_of_counts(*counts, setting.delta, setting.confidence)
    again = event.contains(lowest_bits(target.sample(x, wanted, setting.random)))
    nothing = epsilon_of_counts(*counts[:2], int(again.sum()), len(again), setting.delta, setting.confidence)
    leaked = epsilon_of_counts(len(first), len(first), 0, len(second), setting.delta, setting.confidence)
    error = (1 - setting.confidence) / 2
    return Outcome(
        ThreatModel("outputs of the mechanism, all bits", "both inputs", 2 * wanted),
        (
            Measurement(
                "outputs in the event, first input", counts[0] / counts[1], clopper_pearson(*counts[:2], error)
            ),
            Measurement(
                "outputs in the event, second input", counts[2] / counts[3], clopper_pearson(*counts[2:], error)
            ),
        ),
        bound,
        "Clopper-Pearson bounds of one event, found on other outputs",
        Power("an output whose low bits name its input", leaked, nothing, setting.refutes(leaked)),
        details={"samples": wanted},
    )
