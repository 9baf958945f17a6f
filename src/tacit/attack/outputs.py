"""Outputs of a mechanism as rows of numbers, and what the numbers do not tell.

An output may be anything: a number, a vector, a text, a record. Each value in it becomes one number (NaN where it has
none). Everything that this loses is kept in its form: types, containers and keys in their order, texts, signs of zeros,
NaN and infinity, and the digits that a double does not hold. Two outputs with equal numbers and equal forms are equal.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.errors import WrongType

Outputs: TypeAlias = "list[Any] | NDArray[Any] | Readings"
EXACT_MAX: Final = 2**53
"""Up to this size doubles tell whole numbers apart."""
LARGEST: Final = 1e307
"""The size of the largest numbers that are compared as numbers; larger ones are a part of the form."""
DEPTH_MAX: Final = 20
"""How deep outputs are looked into; what is nested deeper is taken as a text."""


@dataclass(frozen=True)
class Readings:
    """Outputs that were read: a row of numbers and a form for each."""

    numbers: NDArray[np.float64]
    forms: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.forms)

    def __getitem__(self, part: slice) -> Readings:
        return Readings(self.numbers[part], self.forms[part])

    @property
    def are_equal(self) -> bool:
        """Whether all outputs are the same."""
        return len(set(self.keys())) == 1

    def keys(self) -> list[Hashable]:
        """Return a value for each output, equal for equal outputs."""
        return [(form, row.tobytes()) for form, row in zip(self.forms, self.numbers, strict=True)]

    def widened(self, width: int) -> NDArray[np.float64]:
        """Return the numbers with as many columns as are asked for, NaN where there are fewer."""
        missing = max(0, width - self.numbers.shape[1])
        return np.pad(self.numbers[:, :width], ((0, 0), (0, missing)), constant_values=math.nan)


def read(outputs: Outputs) -> Readings:
    """Return outputs as numbers and forms."""
    if isinstance(outputs, Readings):
        return outputs
    if isinstance(outputs, np.ndarray) and _is_exact(outputs):
        return _of_array(outputs)
    found = [_of_one(one) for one in outputs]
    numbers = np.full((len(found), max((len(one) for one, _ in found), default=0)), math.nan)
    for row, (one, _) in zip(numbers, found, strict=True):
        row[: len(one)] = one
    forms = np.empty(len(found), dtype=object)
    forms[:] = [form for _, form in found]
    return Readings(numbers, forms)


def _is_exact(outputs: NDArray[Any]) -> bool:
    """Return whether doubles hold every number of an array."""
    if outputs.dtype.kind in "iu":
        return not outputs.size or bool((outputs <= EXACT_MAX).all() and (outputs >= -EXACT_MAX).all())
    return outputs.dtype.kind == "b" or (outputs.dtype.kind == "f" and outputs.dtype.itemsize <= 8)


def _of_array(outputs: NDArray[Any]) -> Readings:
    numbers = outputs.astype(np.float64).reshape(len(outputs), -1)
    special = ~(np.abs(numbers) <= LARGEST) | ((numbers == 0) & np.signbit(numbers))
    forms = np.full(len(numbers), f"{outputs.dtype} {outputs.shape[1:]}", dtype=object)
    for place in np.flatnonzero(special.any(axis=1)):
        forms[place] = (forms[place], *(str(one) for one in numbers[place][special[place]]), special[place].tobytes())
    return Readings(numbers, forms)


def _of_one(output: Any) -> tuple[list[float], Hashable]:
    numbers: list[float] = []
    form: list[Hashable] = []

    def walk(value: Any, depth: int, within: tuple[int, ...] = ()) -> None:
        form.append(type(value).__name__)
        inner = (*within, id(value))
        if depth > DEPTH_MAX or id(value) in within:  # too deep, or a container that holds itself
            form.append(_written(value))
        elif isinstance(value, Mapping):
            for key, one in value.items():
                form.append(_written(key))
                walk(one, depth + 1, inner)
            form.append("end")
        elif isinstance(value, np.ndarray) and value.ndim:
            form.append(f"{value.dtype} {value.shape}")
            for one in value.ravel().tolist() if value.dtype.kind in "biuf" else value.ravel():
                walk(one, depth + 1, inner)
        elif isinstance(value, list | tuple | set | frozenset):
            for one in sorted(value, key=_written) if isinstance(value, set | frozenset) else value:
                walk(one, depth + 1, inner)
            form.append("end")
        elif isinstance(value, complex | np.complexfloating):
            walk(float(value.real), depth)
            walk(float(value.imag), depth)
        else:
            number, rest = _of_leaf(value)
            numbers.append(number)
            form.append(rest)

    walk(output, 0)
    return numbers, tuple(form)


def _of_leaf(value: Any) -> tuple[float, Hashable]:
    """Return a value as a number, and what the number does not tell of it."""
    try:
        number = math.nan if value is None else float(value)
    except OverflowError:
        number = math.inf
    except (TypeError, ValueError, ArithmeticError):
        number = math.nan
    if isinstance(value, bool | np.bool_ | float) or (isinstance(value, np.floating) and value.itemsize <= 8):
        is_plain = abs(number) <= LARGEST and (number or math.copysign(1, number) > 0)
        return number, "" if is_plain else str(number)
    if isinstance(value, int | np.integer) and abs(int(value)) <= EXACT_MAX:
        return number, ""
    if isinstance(value, int | np.integer) and math.isfinite(number):
        return number, int(value) - int(number)
    return number, _text(value)


def _text(value: Any) -> str:
    """Return an object as a text: its own, or its attributes where its own is no more than its address."""
    if getattr(type(value), "__repr__", None) is getattr(object, "__repr__", None):
        return _written(sorted(getattr(value, "__dict__", {}).items(), key=lambda one: one[0]))
    return _written(value)


def _written(value: Any) -> str:
    """Return an output's own text, or raise WrongType where it has none."""
    try:
        return repr(value)
    except Exception as error:
        raise WrongType(
            f"an output of type {type(value).__name__} cannot be written as a text: {type(error).__name__}",
            name="mechanism",
        ) from error


def named(output: Any, name: int, depth: int = 0) -> Any:
    """Return an output that also names its input: within texts, otherwise by a value of its own type beside it."""
    if depth > DEPTH_MAX:
        return f"input {name}", output
    if isinstance(output, str):
        return f"{name}{output}"
    if isinstance(output, bytes):
        return str(name).encode() + output
    if isinstance(output, list | tuple) and output:
        return (named(output[0], name, depth + 1), *output[1:])
    if isinstance(output, Mapping) and output:
        first = next(iter(output))
        return {**output, first: named(output[first], name, depth + 1)}
    if isinstance(output, bool | int | float | complex | Decimal | Fraction | np.number | np.bool_):
        return type(output)(name), output
    return f"input {name}", output
