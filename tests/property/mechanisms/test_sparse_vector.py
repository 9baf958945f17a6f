"""What enters a sparse vector: rounding to the grid is inside the distance for which its noise is scaled."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import assume, example, given
from hypothesis import strategies as st

from tacit.mechanisms import SparseVector
from tacit.mechanisms.simulation import SeededSource


@given(
    st.fractions(Fraction(1, 1000), 2**31),
    st.integers(-(2**62), 2**62) | st.floats(-(2.0**40), 2.0**40),
    st.fractions(-1, 1),
    st.sampled_from([Fraction(1, 100), Fraction(1), Fraction(50)]),
)
@example(Fraction(2**30 + 2**18 - 1), 2**61 + 2**17 + 2**8 - 1, Fraction(1), Fraction(1))
def test_rounding_to_the_grid_moves_neighbours_no_further_apart_than_the_noise_allows(
    sensitivity: Fraction, value: float, part: Fraction, epsilon: Fraction
) -> None:
    mechanism = SparseVector(sensitivity, epsilon, 0)
    neighbour = type(value)(value + sensitivity * part)
    assume(abs(Fraction(neighbour) - Fraction(value)) <= sensitivity)
    assume(max(abs(value), abs(neighbour)) <= min(2**50 * mechanism._grid.step, Fraction(2**62)))
    session = mechanism.start(source=SeededSource(3))
    apart = sensitivity // mechanism._grid.step + 1
    assert abs(session._steps(value) - session._steps(neighbour)) <= apart
    assert mechanism._scales[0] > apart / epsilon
    assert mechanism._scales[1] > 2 * apart / epsilon


@given(st.fractions(Fraction(1, 1000), 100), st.integers(1, 50), st.booleans())
def test_the_two_noises_use_up_epsilon_between_them(epsilon: Fraction, positives: int, monotonic: bool) -> None:
    mechanism = SparseVector(1, epsilon, 0, positives, monotonic)
    apart = 1 // mechanism._grid.step + 1
    for_threshold, for_questions = mechanism._scales
    answers = positives * (1 if monotonic else 2)
    assert apart / for_threshold + answers * apart / for_questions == epsilon
