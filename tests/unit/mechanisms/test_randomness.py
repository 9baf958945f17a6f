"""Randomness: from the operating system, never kept, and marked where it can be replayed."""

import inspect
import os
import subprocess
import sys
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit.mechanisms
from tacit.mechanisms import (
    AboveThreshold,
    ApproximateBounds,
    Exponential,
    KeySelection,
    Laplace,
    RandomizedResponse,
    SmoothMedian,
    SparseVector,
    StableMode,
    TopK,
)
from tacit.mechanisms.randomness import SYSTEM, bits, words
from tacit.mechanisms.simulation import SeededSource, is_simulated, remove_mark
from tacit.privacy.errors import TacitError


def test_production_randomness_is_the_operating_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    monkeypatch.setattr(os, "urandom", counted)
    Laplace(1, 1).release(np.zeros(5000, dtype=np.int64))
    assert asked[0] == 2 * 5000


def test_every_release_draws_from_the_system_unless_told_otherwise() -> None:
    for name in tacit.mechanisms.__all__:
        release = getattr(getattr(tacit.mechanisms, name), "release", None)
        if release is not None:
            parameter = inspect.signature(release).parameters["source"]
            assert parameter.default is SYSTEM
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY


def test_the_seeded_source_is_not_among_the_public_mechanisms() -> None:
    assert not any("seed" in name.lower() for name in dir(tacit.mechanisms))


def test_a_seed_is_not_taken_for_a_source() -> None:
    with pytest.raises((AttributeError, TypeError)):
        Laplace(1, 1).release(0, source=42)  # type: ignore[arg-type]


def test_a_seeded_source_replays_and_other_seeds_differ() -> None:
    def draw(seed: int) -> list[int]:
        return [int(x) for x in Laplace(1, 0.01).release(np.zeros(20, dtype=int), source=SeededSource(seed))]

    assert draw(7) == draw(7)
    assert draw(7) != draw(8)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(TacitError):
        SeededSource(-1)


def test_what_a_seeded_source_touched_says_so() -> None:
    source = SeededSource(1)
    released = [
        Laplace(1, 1).release(3, source=source),
        Laplace(1.0, 1).release(3.0, source=source),
        Laplace(1.0, 1).release([3.0, 4.0], source=source),
        Exponential(1, 1).release([1, 2], source=source),
        TopK(1, 1, 1).release([1, 2], source=source),
        SmoothMedian(1, 0, 1).release([0.5], source=source),
        SparseVector(1, 1, 0).release([100], source=source),
    ]
    assert all(is_simulated(one) for one in released)
    assert all("simulated" in repr(one) for one in released)


@pytest.mark.parametrize("value", ["a", True, 3, 2.5, Fraction(1, 3), date(2026, 1, 2), ("a", 1)], ids=repr)
def test_a_value_of_any_type_is_marked_and_equal_to_itself(value: Any) -> None:
    released = StableMode(5, 0.01).release([value] * 99, source=SeededSource(1))
    assert is_simulated(released)
    assert repr(released) != repr(value)
    assert tuple(map(remove_mark, released)) == value if isinstance(value, tuple) else remove_mark(released) == value
    if not isinstance(value, tuple):
        assert type(remove_mark(released)) is type(value)


def test_answers_of_a_session_and_truth_values_are_marked() -> None:
    source = SeededSource(1)
    for released in (
        SparseVector(1, 1.0, 0).start(source=source).ask(1),
        AboveThreshold(1, 1.0, 0).first([10**6], source=source),
        RandomizedResponse(1.0).release(True, source=source),
        KeySelection(1.0, 0.01).release([99], source=source),
        *ApproximateBounds(1, 1.0).release([9] * 128, source=source),
    ):
        assert is_simulated(released)
        assert "simulated" in repr(released)
    assert repr(RandomizedResponse(50.0).release(True, source=source)) == "True (simulated)"


def test_what_the_system_touched_does_not() -> None:
    assert not is_simulated(Laplace(1, 1).release(3))
    assert type(Laplace(1.0, 1).release([3.0])) is np.ndarray


def test_a_forked_process_draws_other_noise() -> None:
    program = (
        "import os, numpy as np\n"
        "from tacit.mechanisms import Laplace\n"
        "noise = lambda: Laplace(1, 1e-6).release(np.zeros(8, dtype=np.int64)).tolist()\n"
        "noise()\n"
        "read, write = os.pipe()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.write(write, repr(noise()).encode()); os._exit(0)\n"
        "mine = repr(noise())\n"
        "os.waitpid(child, 0)\n"
        "print(mine != os.read(read, 4096).decode())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_words_and_bits_use_every_bit() -> None:
    source = SeededSource(3)
    for width in (1, 2, 4, 8):
        drawn = words(source, 400, width)
        assert np.bitwise_or.reduce(drawn) == 2 ** (8 * width) - 1
    assert max(bits(source, 5) for _ in range(400)) == 31
    assert min(bits(source, 5) for _ in range(400)) == 0
