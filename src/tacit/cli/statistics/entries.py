"""The table of statistics: what each is called, what it is about, and how it is asked.

An entry is all that a statistic needs to become a command. Bounds and keys are stated of columns before an entry is
asked (`stating`), so an entry passes on only what is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click

from tacit.cli.statistics import own

if TYPE_CHECKING:
    from tacit.stats import Answer, Column

Asking = Callable[[own.Named, Sequence["Column"], Mapping[str, Any]], "Answer"]


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
    bounds: tuple[str, ...] = ("bounds",)
    """The keywords of the bounds of its columns, in order; none, where they have none."""
    learns: bool = True
    """Whether it can learn bounds of which nothing is known."""
    has_keys: bool = False
    """Whether it takes keys of its columns, also without groups."""
    is_test: bool = False
    """Whether it is a test, which takes one row of each unit and has a p-value."""
    as_bars: bool = False
    """Whether its numbers are drawn as bars from 0, although its plan does not say so."""
    more: str = ""
    """What a caller could get wrong."""
    options: Callable[[], list[click.Parameter]] = field(default=list)
    """Its own options, made anew for each command; their names are those of the function's keywords."""
    ask: Asking = own.asked_by_name

    @property
    def function(self) -> str:
        """The name of the function in `tacit.stats`."""
        return self.name.replace("-", "_")


SUMS: Final = "Counts, sums and spreads"
PLACES: Final = "Where values lie"
COUNTS: Final = "Counts by value"
TWO: Final = "Two columns"
MANY: Final = "Many counts at once, for the least error"
TESTS: Final = "Tests, whose p-values count the noise"

STATISTICS: Final[tuple[Statistic, ...]] = (
    Statistic(
        "count",
        SUMS,
        "How many rows have a value in a column.",
        "visits age --by ward --keys a,b,c --epsilon 0.5",
        bounds=(),
        as_bars=True,
    ),
    Statistic("sum", SUMS, "The sum of a column.", "visits cost --bounds 0:5000 --epsilon 0.5", as_bars=True),
    Statistic("mean", SUMS, "The mean of a column.", "visits age --by sex --epsilon 0.5"),
    Statistic("variance", SUMS, "The variance of a column.", "visits age --epsilon 0.5"),
    Statistic("std", SUMS, "The standard deviation of a column.", "visits age --epsilon 0.5"),
    Statistic("median", PLACES, "The value in the middle.", "visits age --by sex --epsilon 0.5"),
    Statistic(
        "quantile",
        PLACES,
        "The values below which given shares of all values lie.",
        "visits age --q 0.25 --q 0.75 --epsilon 0.5",
        options=own.q_option,
        ask=own.ask_quantiles,
    ),
    Statistic(
        "box-plot",
        PLACES,
        "Median, quartiles, and the 5 % and 95 % quantiles.",
        "visits age --by sex --epsilon 1 --plot ages.svg",
    ),
    Statistic(
        "cdf",
        PLACES,
        "The share of values up to each of some numbers.",
        "visits age --bins 12 --epsilon 0.5",
        as_bars=True,
        options=own.cdf_options,
    ),
    Statistic(
        "bounds",
        PLACES,
        "A range in which most values lie, where nothing is known of it.",
        "visits cost --epsilon 0.2",
        is_grouped=False,
        bounds=(),
    ),
    Statistic(
        "histogram",
        COUNTS,
        "How many rows lie in each bin, or have each value.",
        "visits age --bins 12 --epsilon 0.5",
        has_keys=True,
        more="Bins are equal parts of the bounds, or lie between --edges; texts are counted by --keys.",
        options=own.histogram_options,
        ask=own.ask_histogram,
    ),
    Statistic(
        "mode",
        COUNTS,
        "The most frequent value.",
        "visits ward --keys a,b,c --epsilon 0.5",
        is_grouped=False,
        bounds=(),
        has_keys=True,
        more="Without keys it is shown if it leads by enough, for which the budget needs a delta.",
    ),
    Statistic(
        "top-k",
        COUNTS,
        "The most frequent values with their counts.",
        "visits ward --k 3 --epsilon 0.5",
        is_grouped=False,
        bounds=(),
        has_keys=True,
        more="Without keys those are shown that enough units have, for which the budget needs a delta.",
        options=own.k_option,
    ),
    Statistic(
        "contingency",
        COUNTS,
        "How many rows have each pair of values of two columns.",
        "visits sex ward --keys ward=a,b,c --epsilon 0.5",
        columns=("column", "other"),
        is_grouped=False,
        bounds=(),
        has_keys=True,
    ),
    Statistic(
        "covariance",
        TWO,
        "The covariance of two columns.",
        "visits age weight --epsilon 1",
        columns=("column", "other"),
        bounds=("bounds", "other_bounds"),
    ),
    Statistic(
        "correlation",
        TWO,
        "Pearson's correlation of two columns.",
        "visits age weight --bounds weight=20:200 --epsilon 1",
        columns=("column", "other"),
        bounds=("bounds", "other_bounds"),
    ),
    Statistic(
        "trend",
        TWO,
        "The slope of a column over another, by least squares.",
        "visits weight age --epsilon 1",
        columns=("column", "over"),
        bounds=("bounds", "time_bounds"),
    ),
    Statistic(
        "t-test",
        TESTS,
        "Whether two groups have the same mean, or one mean is as stated.",
        "visits age --by sex --keys F,M --epsilon 1",
        learns=False,
        is_test=True,
        options=own.mean_option,
    ),
    Statistic(
        "chi-squared",
        TESTS,
        "Whether two columns are independent, or one has the expected shares.",
        "visits sex ward --keys ward=a,b,c --epsilon 1",
        columns=("column", "other?"),
        is_grouped=False,
        bounds=(),
        has_keys=True,
        is_test=True,
        options=own.expected_option,
        ask=own.ask_chi_squared,
    ),
    Statistic(
        "correlation-test",
        TESTS,
        "Whether two columns are independent, by their correlation.",
        "visits age weight --bounds weight=20:200 --epsilon 1",
        columns=("column", "other"),
        is_grouped=False,
        bounds=("bounds", "other_bounds"),
        learns=False,
        is_test=True,
    ),
    Statistic(
        "trend-test",
        TESTS,
        "Whether a column is independent of another, by its slope over it.",
        "visits weight age --epsilon 1",
        columns=("column", "over"),
        is_grouped=False,
        bounds=("bounds", "time_bounds"),
        learns=False,
        is_test=True,
    ),
    Statistic(
        "marginals",
        MANY,
        "All tables of counts by one, two or more of some columns.",
        "visits age sex ward --bins age=12 --keys ward=a,b,c --ways 1,2 --epsilon 1",
        columns=("columns...",),
        is_grouped=False,
        learns=False,
        has_keys=True,
        as_bars=True,
        options=own.marginals_options,
        ask=own.ask_marginals,
    ),
    Statistic(
        "ranges",
        MANY,
        "How many rows lie in any range of a column.",
        "visits age --bins 0:120:24 --range 20:65 --range 65:120 --epsilon 1",
        is_grouped=False,
        learns=False,
        has_keys=True,
        as_bars=True,
        more="All ranges are released together: asked again with another --range, the same release costs nothing. A "
        "range begins with one edge and ends before another; the last edge is in it.",
        options=own.ranges_options,
        ask=own.ask_line,
    ),
    Statistic(
        "prefixes",
        MANY,
        "How many rows lie below each edge of a column.",
        "visits age --bins 12 --epsilon 1",
        is_grouped=False,
        learns=False,
        has_keys=True,
        as_bars=True,
        options=own.prefixes_options,
        ask=own.ask_line,
    ),
    Statistic(
        "hierarchy",
        MANY,
        "Counts by year and month, or by region and place.",
        "visits day --levels year,month --bounds 2024-01-01:2024-12-31 --epsilon 1",
        is_grouped=False,
        learns=False,
        has_keys=True,
        as_bars=True,
        options=own.hierarchy_options,
        ask=own.ask_line,
    ),
)


def statistic(name: str) -> Statistic | None:
    """Return a statistic by the name of its command."""
    return next((one for one in STATISTICS if one.name == name), None)
