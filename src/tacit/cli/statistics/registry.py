"""The table of statistics: the name of each, its columns, its own options, and how its function is called.

An entry is all that a statistic needs to become a command. Bounds and keys are stated of columns before the function is
called (`parsing`), so an entry passes on only its own arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

if TYPE_CHECKING:
    from tacit.stats import Answer, TableColumn


class Named(Protocol):
    """An entry of the table of statistics."""

    @property
    def name(self) -> str:
        """The name of its command."""
        ...

    @property
    def function(self) -> str:
        """The name of its function in `tacit.stats`."""
        ...


def call_by_name(functions: Any, entry: Named, columns: Sequence[TableColumn], asked: Mapping[str, Any]) -> Answer:
    """Call the function of the entry's name with the columns in order."""
    answer: Answer = getattr(functions, entry.function)(*columns, **asked)
    return answer


def call_quantiles(functions: Any, entry: Named, columns: Sequence[TableColumn], asked: Mapping[str, Any]) -> Answer:
    """One share has one answer, several have one each, under one price."""
    (column,), shares = columns, asked["q"]
    others: Any = {name: value for name, value in asked.items() if name != "q"}
    is_one = len(shares) == 1
    call = functions.quantile if is_one else functions.quantiles
    answer: Answer = call(column, shares[0] if is_one else list(shares), **others)
    return answer


def call_histogram(functions: Any, entry: Named, columns: Sequence[TableColumn], asked: Mapping[str, Any]) -> Answer:
    """Edges are read as what the column holds; with bins, keys that the catalog has are of no use."""
    from tacit.cli.statistics.parsing import edges_of

    (column,) = columns
    edges = edges_of(column.declared.kind, asked["edges"]) if "edges" in asked else None
    return call_by_name(functions, entry, columns, {**asked, "edges": edges})


def call_chi_squared(functions: Any, entry: Named, columns: Sequence[TableColumn], asked: Mapping[str, Any]) -> Answer:
    """Expected shares are numbers in the order of the keys."""
    from tacit.cli.statistics.parsing import numbers_of

    expected = numbers_of("expected", asked["expected"]) if "expected" in asked else None
    return call_by_name(functions, entry, columns, {**asked, "expected": expected})


def call_marginals(functions: Any, entry: Named, columns: Sequence[TableColumn], asked: Mapping[str, Any]) -> Answer:
    """Columns have names, and cells as `domains` reads them."""
    from tacit.cli.statistics.parsing import domain_of, numbers_of

    others: Any = {name: value for name, value in asked.items() if name not in ("bins", "edges")}
    domain = domain_of(columns, asked["bins"], asked["edges"], most=10)
    ways = numbers_of("ways", asked["ways"])
    named = {one.declared.name: one for one in columns}
    answer: Answer = functions.marginals(named, domain=domain, **{**others, "ways": ways})
    return answer


def call_line_counts(functions: Any, entry: Named, columns: Sequence[TableColumn], asked: Mapping[str, Any]) -> Answer:
    """Ask for many counts along one column, and show all of them or those that were picked."""
    from tacit.cli.statistics.parsing import below, domain_of, levels_of, picked
    from tacit.cli.statistics.presentation import SelectedRanges
    from tacit.privacy.bounds import Categories

    (column,) = columns
    name = column.declared.name
    own: dict[str, Any] = {
        key: value for key, value in asked.items() if key not in ("bins", "edges", "picks", "levels")
    }
    levels = levels_of(asked.get("levels", ()))
    if levels:
        own["levels"] = levels
    if levels and isinstance(levels[-1], dict) and column.declared.facts is None and not asked["bins"]:
        edges: Any = Categories(levels[-1])
    else:
        periods = [one for one in levels if isinstance(one, str)]
        bins = asked["bins"] or (("day",) if periods and not asked["edges"] else ())
        edges = domain_of(columns, bins, asked["edges"], most=128, by_period=bool(periods))[name]
    read = below if entry.name == "prefixes" else picked
    picks = read(column, edges, asked.get("picks", ()))
    answer = call_by_name(functions, entry, columns, {**own, "edges": edges, "name": name})
    return SelectedRanges.select(answer, name, picks) if picks else answer


def q_option() -> list[click.Parameter]:
    """The shares of quantiles."""
    return [
        click.Option(
            ["--q"],
            type=float,
            multiple=True,
            required=True,
            metavar="SHARE",
            help="Which quantile, such as 0.9; may be given several times.",
        )
    ]


def histogram_options() -> list[click.Parameter]:
    """The bins of a histogram."""
    return [
        bins_option("Number of equal bins between the bounds; 10 by default."),
        click.Option(["--edges"], metavar="A,B,C", help="Edges of the bins, instead of a number."),
    ]


def bins_option(words: str) -> click.Parameter:
    """A number of bins."""
    return click.Option(["--bins"], type=click.IntRange(1, 10_000), metavar="N", help=words)


def cdf_options() -> list[click.Parameter]:
    """How finely a distribution is told."""
    return [bins_option("Number of points of the curve; 64 by default.")]


def k_option() -> list[click.Parameter]:
    """How many values are the most frequent."""
    return [click.Option(["--k"], type=click.IntRange(1), required=True, metavar="N", help="Number of values.")]


def mean_option() -> list[click.Parameter]:
    """What one mean is held against."""
    return [
        click.Option(
            ["--mean", "popmean"], type=float, help="Instead of two groups: the mean to compare one column with."
        )
    ]


def expected_option() -> list[click.Parameter]:
    """What one column's shares are held against."""
    return [
        click.Option(
            ["--expected"], metavar="A,B", help="For one column: the expected shares of its keys; equal by default."
        )
    ]


def cells_options() -> list[click.Parameter]:
    """The cells of columns, as `domains` reads them."""
    return [
        click.Option(
            ["--bins"],
            multiple=True,
            metavar="[COLUMN=]N",
            help="Number of equal bins between a column's bounds; or LOW:HIGH:N; or day, month, year.",
        ),
        click.Option(
            ["--edges"], multiple=True, metavar="[COLUMN=]A,B,C", help="Edges of the bins, instead of a number."
        ),
    ]


def marginals_options() -> list[click.Parameter]:
    """Which tables are made."""
    ways = click.Option(
        ["--ways"], default="1,2", show_default=True, metavar="N,N", help="Numbers of columns of the tables."
    )
    return [ways, *cells_options()]


def ranges_options() -> list[click.Parameter]:
    """Which ranges are shown."""
    pick = click.Option(
        ["--range", "picks"],
        multiple=True,
        metavar="FROM:TO",
        help="Show this range, from one edge to another; others of the same release cost nothing later.",
    )
    return [pick, *cells_options()]


def prefixes_options() -> list[click.Parameter]:
    """Below which edges is counted."""
    pick = click.Option(["--below", "picks"], multiple=True, metavar="EDGE", help="Show the count below this edge.")
    return [pick, *cells_options()]


def hierarchy_options() -> list[click.Parameter]:
    """How cells are grouped, level by level."""
    level = click.Option(
        ["--levels"],
        multiple=True,
        required=True,
        metavar="LEVEL,LEVEL",
        help="From the coarsest: year, quarter, month or day of dates; or the group of each value, a=north,b=north, or "
        "@FILE with a pair a line; may be given several times.",
    )
    return [level, *cells_options()]


Call = Callable[[Any, Named, Sequence["TableColumn"], Mapping[str, Any]], "Answer"]


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
    call: Call = call_by_name

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
        options=q_option,
        call=call_quantiles,
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
        options=cdf_options,
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
        options=histogram_options,
        call=call_histogram,
    ),
    Statistic(
        "mode",
        COUNTS,
        "The most frequent value.",
        "visits ward --keys a,b,c --epsilon 0.5",
        is_grouped=False,
        bounds=(),
        has_keys=True,
        more="Without keys it is shown only if it leads by enough; the budget then needs a delta above 0.",
    ),
    Statistic(
        "top-k",
        COUNTS,
        "The most frequent values with their counts.",
        "visits ward --k 3 --epsilon 0.5",
        is_grouped=False,
        bounds=(),
        has_keys=True,
        more="Without keys only values that enough units have are shown; the budget then needs a delta above 0.",
        options=k_option,
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
        options=mean_option,
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
        options=expected_option,
        call=call_chi_squared,
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
        options=marginals_options,
        call=call_marginals,
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
        options=ranges_options,
        call=call_line_counts,
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
        options=prefixes_options,
        call=call_line_counts,
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
        options=hierarchy_options,
        call=call_line_counts,
    ),
)


def statistic(name: str) -> Statistic | None:
    """Return a statistic by the name of its command."""
    return next((one for one in STATISTICS if one.name == name), None)
