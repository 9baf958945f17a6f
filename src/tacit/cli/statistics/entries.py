"""The table of statistics: what each is called, what it is about, and how it is asked.

An entry is all that a statistic needs to become a command. Bounds and keys are stated of columns before an entry is
asked (`stating`), so an entry passes on only what is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from tacit.stats import Answer, Column

Asking = Callable[["Statistic", Sequence["Column"], Mapping[str, Any]], "Answer"]


def _asked(entry: Statistic, columns: Sequence[Column], asked: Mapping[str, Any]) -> Answer:
    """Call the function of the same name with the columns in order."""
    from tacit import stats

    function = getattr(stats, entry.function)
    answer: Answer = function(*columns, **asked)
    return answer


@dataclass(frozen=True)
class Statistic:
    """A statistic as a command."""

    name: str
    family: str
    explanation: str
    """What it says, in one line."""
    example: str
    """What follows the command's name in an example."""
    columns: tuple[str, ...] = ("column",)
    """What the columns are called that it is about; a name that ends in ... stands for several."""
    is_grouped: bool = True
    """Whether it can be asked by group."""
    is_bounded: bool = True
    """Whether it takes bounds of its columns."""
    has_keys: bool = False
    """Whether it takes keys of its columns, also without groups."""
    as_bars: bool = False
    """Whether its numbers are drawn as bars from 0."""
    more: str = ""
    """What a caller could get wrong."""
    options: Callable[[], list[click.Parameter]] = field(default=list)
    """Its own options, made anew for each command; their names are those of the function's keywords."""
    ask: Asking = _asked

    @property
    def function(self) -> str:
        """The name of the function in `tacit.stats`."""
        return self.name.replace("-", "_")

    @property
    def is_there(self) -> bool:
        """Whether `tacit.stats` has it."""
        from tacit import stats

        return hasattr(stats, self.function)


SUMS: Final = "Counts, sums and spreads"
TWO: Final = "Two columns"

STATISTICS: Final[tuple[Statistic, ...]] = (
    Statistic(
        "count",
        SUMS,
        "How many rows have a value in a column.",
        "visits age --by ward --keys a,b,c --epsilon 0.5",
        is_bounded=False,
        as_bars=True,
    ),
    Statistic("sum", SUMS, "The sum of a column.", "visits cost --bounds 0:5000 --epsilon 0.5", as_bars=True),
    Statistic("mean", SUMS, "The mean of a column.", "visits age --by sex --epsilon 0.5"),
    Statistic("variance", SUMS, "The variance of a column.", "visits age --epsilon 0.5"),
    Statistic("std", SUMS, "The standard deviation of a column.", "visits age --epsilon 0.5"),
    Statistic(
        "covariance",
        TWO,
        "The covariance of two columns.",
        "visits age weight --epsilon 1",
        columns=("column", "other"),
    ),
    Statistic(
        "correlation",
        TWO,
        "Pearson's correlation of two columns.",
        "visits age weight --bounds weight=20:200 --epsilon 1",
        columns=("column", "other"),
    ),
    Statistic(
        "trend",
        TWO,
        "The slope of a column over another, by least squares.",
        "visits weight age --epsilon 1",
        columns=("column", "over"),
    ),
)


def statistic(name: str) -> Statistic | None:
    """Return a statistic by the name of its command."""
    return next((one for one in STATISTICS if one.name == name), None)
