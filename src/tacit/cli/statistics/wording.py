"""Refusals that name keywords of Python, put into the options of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tacit.privacy.errors import InvalidInput, QueryRefused

OPTIONS: Final = (
    (r'\bbounds="learn"', "--bounds learn"),
    (r"\bbounds=\(low, high\)", "--bounds LOW:HIGH"),
    (r"\bbounds=\(0, 120\)", "--bounds 0:120"),
    (r"\b(?:other_)?keys=\[\.\.\.\]", "--keys A,B,C"),
    (r"\bpopmean=", "--mean"),
    (r"\brows_per_unit=(\d+)", r"--rows-per-unit \1"),
    (r"\b(by|bins|edges|expected|epsilon|rho)=(?=[\w.\[(\"'])", r"--\1 "),
    (r"\b(by|bins|edges|expected|epsilon|rho)=", r"--\1"),
    (r", or a second array\b", ""),
)
"""What is written in Python, and what is typed instead."""


@contextmanager
def in_options() -> Iterator[None]:
    """Raise what is raised within, in the words of the command line."""
    try:
        yield
    except (InvalidInput, QueryRefused) as error:
        text = error.message
        for written, typed in OPTIONS:
            text = re.sub(written, typed, text)
        if text == error.message:
            raise
        raise type(error)(text) from error
