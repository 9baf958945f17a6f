"""Certified integer arithmetic: exponentials enclosed to any number of bits.

Promise: the two integers returned enclose the real number times 2^bits. No floating point is used, so that whatever
double precision left undecided can be decided here.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final, NamedTuple

_GUARD_BITS: Final = 64


class Enclosure(NamedTuple):
    """Two integers between which a real number times 2^bits lies."""

    low: int
    high: int

    def times(self, other: Enclosure, bits: int) -> Enclosure:
        """Enclose the product of two numbers of at least 0, all of them times 2^bits."""
        return Enclosure(self.low * other.low >> bits, -(-self.high * other.high >> bits))


def exp_negative(exponent: Fraction, bits: int) -> Enclosure:
    """Enclose e^-exponent times 2^bits for an exponent of at least 0.

    The exponent is halved until it is below 2^-8, its exponential summed as a Taylor series, and squared back. Every
    floor loses less than one unit at bits + 64; at most 2^40 units are lost in all for up to 2^14 bits.
    """
    if exponent == 0:
        return Enclosure(1 << bits, 1 << bits)
    if exponent >= bits + 1:  # e^-x <= 2^-x
        return Enclosure(0, 1)
    precision = bits + _GUARD_BITS
    halvings = max(0, (exponent.numerator // exponent.denominator).bit_length() + 8)
    argument = (exponent.numerator << precision) // (exponent.denominator << halvings)
    term = total = 1 << precision
    index = 1
    while term:
        term = (term * argument >> precision) // index
        total += -term if index & 1 else term
        index += 1
    for _ in range(halvings):
        total = total * total >> precision
    rounded = total >> _GUARD_BITS
    return Enclosure(max(0, rounded - 1), min(1 << bits, rounded + 2))
