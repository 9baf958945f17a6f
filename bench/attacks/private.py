"""The same people behind tacit: curators in temporary folders, each with one budget for everything that is asked."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import tacit
from bench.attacks.data import BLOCK
from tacit import attack
from tacit.attack.table_reconstruction import Published, PublishedTables, databases
from tacit.curator.curator import PrivacyWarning

TABLE, UNIT, SECRET = "people", "id", "secret"
EPSILON_LEAST: Final = 1e-6
"""The least epsilon of one question, so that many may be asked."""
BLOCK_COLUMNS: Final = ("sex", "race", "married")
BLOCK_LEVEL: Final = 0.95
"""The probability that all intervals of the block hold."""


@contextmanager
def interface(
    people: int, epsilon: float, *, truth: NDArray[np.bool_] | None = None
) -> Iterator[attack.QueryInterface]:
    """Yield counts of people with a secret, of a new curator for each attack, with one epsilon for all questions.

    The attack draws the secrets, unless `truth` states them.
    """
    with ExitStack() as opened:

        def made(secrets: NDArray[np.bool_]) -> tacit.Curator:
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
            curator = opened.enter_context(tacit.Curator(folder / "curator"))
            curator.add_table(TABLE, pd.DataFrame({UNIT: range(len(secrets)), SECRET: secrets}), unit=UNIT)
            curator.set_budget(TABLE, epsilon=epsilon, epsilon_min=EPSILON_LEAST)
            return curator

        known = {"make": made} if truth is None else {"ask": made(truth), "truth": truth}
        yield attack.QueryInterface(people=people, table=TABLE, unit=UNIT, secret=SECRET, epsilon=epsilon, **known)


def block_records() -> list[dict[str, Any]]:
    """Return the one database that fits the published block, without ages."""
    (found,) = databases(BLOCK).found
    return [{name: value for name, value in zip(BLOCK.attributes, one, strict=True) if name != "age"} for one in found]


def block_tables(epsilon: float | None) -> PublishedTables:
    """Return all counts of the block by two of sex, race and marital status: exact, or as intervals of tacit.

    The epsilon is that of all counts together, and all intervals hold at once with probability BLOCK_LEVEL.
    """
    records = block_records()
    domains = {name: list(BLOCK.attributes[name]) for name in BLOCK_COLUMNS}
    pairs = list(combinations(BLOCK_COLUMNS, 2))
    cells = [({one: a, two: b}) for one, two in pairs for a in domains[one] for b in domains[two]]
    if epsilon is None:
        counts: list[Any] = [sum(cell.items() <= one.items() for one in records) for cell in cells]
    else:
        counts = list(_noisy_counts(records, pairs, domains, epsilon, 1 - (1 - BLOCK_LEVEL) / len(cells)))
    named = (" and ".join(f"{name} {value}" for name, value in cell.items()) for cell in cells)
    published = [Published(name, cell, count) for name, cell, count in zip(named, cells, counts, strict=True)]
    return PublishedTables(BLOCK.people, domains, published)


def _noisy_counts(
    records: list[dict[str, Any]],
    pairs: list[tuple[str, str]],
    domains: dict[str, list[str]],
    epsilon: float,
    level: float,
) -> Iterator[tuple[int, int]]:
    columns = {name: tacit.Categories(values) for name, values in domains.items()}
    with tempfile.TemporaryDirectory() as folder, tacit.Curator(Path(folder) / "curator") as curator:
        curator.add_table("block", pd.DataFrame(records), each_row=True, columns=columns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # of an epsilon that is as large as it is meant to be
            curator.set_budget("block", epsilon=epsilon)
        for one, two in pairs:
            question = f"SELECT {one}, {two}, COUNT(*) AS n FROM block GROUP BY {one}, {two}"
            released = curator.sql(question, epsilon / len(pairs))
            found = {
                (row[one], row[two]): interval["n"]
                for row, interval in zip(released.rows, released.intervals(level), strict=True)
            }
            for first in domains[one]:
                for second in domains[two]:
                    interval = found[first, second]
                    assert interval is not None  # counts have intervals
                    yield max(0, round(interval.low)), max(0, round(interval.high))
