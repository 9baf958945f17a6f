"""The registry of statistics: the name of each, its columns, its own options, and how its function is called.

A command is made from each entry. Bounds and keys are applied to the columns before the function is called (`parsing`),
so an entry passes only its own arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from tacit.stats import Answer, TableColumn


def call_by_name(
    functions: Any, entry: Statistic, columns: Sequence[TableColumn], arguments: Mapping[str, Any]
) -> Answer:
    """Call the function of the entry with the columns in order."""
    answer: Answer = getattr(functions, entry.function)(*columns, **arguments)
    return answer


def call_quantiles(
    functions: Any, entry: Statistic, columns: Sequence[TableColumn], arguments: Mapping[str, Any]
) -> Answer:
    """Call `quantile` for one share, `quantiles` for several."""
    (column,), shares = columns, arguments["q"]
    others: Any = {name: value for name, value in arguments.items() if name != "q"}
    is_one = len(shares) == 1
    call = functions.quantile if is_one else functions.quantiles
    answer: Answer = call(column, shares[0] if is_one else list(shares), **others)
    return answer


def call_histogram(
    functions: Any, entry: Statistic, columns: Sequence[TableColumn], arguments: Mapping[str, Any]
) -> Answer:
    """Call `histogram` with the edges parsed by the kind of the column."""
    from tacit.cli.statistics.parsing import edges_of

    (column,) = columns
    edges = edges_of(column.declared.kind, arguments["edges"]) if "edges" in arguments else None
    return call_by_name(functions, entry, columns, {**arguments, "edges": edges})


def call_chi_squared(
    functions: Any, entry: Statistic, columns: Sequence[TableColumn], arguments: Mapping[str, Any]
) -> Answer:
    """Call `chi_squared` with the expected shares parsed, in the order of the keys."""
    from tacit.cli.statistics.parsing import numbers_of

    expected = numbers_of("expected", arguments["expected"]) if "expected" in arguments else None
    return call_by_name(functions, entry, columns, {**arguments, "expected": expected})


def call_marginals(
    functions: Any, entry: Statistic, columns: Sequence[TableColumn], arguments: Mapping[str, Any]
) -> Answer:
    """Call `marginals` with the columns by name and their cells."""
    from tacit.cli.statistics.parsing import domain_of, numbers_of

    others: Any = {name: value for name, value in arguments.items() if name not in ("bins", "edges")}
    domain = domain_of(columns, arguments["bins"], arguments["edges"], most=10)
    ways = numbers_of("ways", arguments["ways"])
    named = {one.declared.name: one for one in columns}
    answer: Answer = functions.marginals(named, domain=domain, **{**others, "ways": ways})
    return answer


def call_line_counts(
    functions: Any, entry: Statistic, columns: Sequence[TableColumn], arguments: Mapping[str, Any]
) -> Answer:
    """Call `ranges`, `prefixes` or `hierarchy`, and return all counts or the selected ranges."""
    from tacit.cli.statistics.parsing import domain_of, levels_of, prefixes_of, ranges_of
    from tacit.cli.statistics.presentation import SelectedRanges
    from tacit.privacy.bounds import Categories

    (column,) = columns
    name = column.declared.name
    own: dict[str, Any] = {
        key: value for key, value in arguments.items() if key not in ("bins", "edges", "picks", "levels")
    }
    levels = levels_of(arguments.get("levels", ()))
    if levels:
        own["levels"] = levels
    if levels and isinstance(levels[-1], dict) and column.declared.facts is None and not arguments["bins"]:
        edges: Any = Categories(levels[-1])
    else:
        periods = [one for one in levels if isinstance(one, str)]
        bins = arguments["bins"] or (("day",) if periods and not arguments["edges"] else ())
        edges = domain_of(columns, bins, arguments["edges"], most=128, by_period=bool(periods))[name]
    parse = prefixes_of if entry.name == "prefixes" else ranges_of
    picks = parse(column, edges, arguments.get("picks", ()))
    answer = call_by_name(functions, entry, columns, {**own, "edges": edges, "name": name})
    return SelectedRanges.select(answer, name, picks) if picks else answer


SHARES: Final = click.Option(
    ["--q"],
    type=float,
    multiple=True,
    required=True,
    metavar="SHARE",
    help="Share of the quantile, such as 0.9; can be repeated.",
)
K: Final = click.Option(
    ["-k", "--k"], type=click.IntRange(1), required=True, metavar="N", help="Number of values to show."
)
MEAN: Final = click.Option(["--mean", "popmean"], type=float, help="For one group: the mean to compare with.")
EXPECTED: Final = click.Option(
    ["--expected"], metavar="A,B", help="For one column: the expected shares of its values; equal by default."
)
BINS: Final[dict[str, Any]] = {"type": click.IntRange(1, 10_000), "metavar": "N"}
CURVE: Final = click.Option(["--bins"], **BINS, help="Number of points of the curve; 64 by default.")
HISTOGRAM: Final = (
    click.Option(["--bins"], **BINS, help="Number of equal bins between the bounds; 10 by default."),
    click.Option(["--edges"], metavar="A,B,C", help="Edges of the bins, instead of their number."),
)
CELLS: Final = (
    click.Option(
        ["--bins"],
        multiple=True,
        metavar="[COLUMN=]N",
        help="Number of equal bins between the bounds of a column; or LOW:HIGH:N; or day, month or year.",
    ),
    click.Option(
        ["--edges"], multiple=True, metavar="[COLUMN=]A,B,C", help="Edges of the bins, instead of their number."
    ),
)
"""The cells of columns (`parsing.domain_of`)."""
WAYS: Final = click.Option(
    ["--ways"], default="1,2", show_default=True, metavar="N,N", help="How many columns the tables have."
)
RANGE: Final = click.Option(
    ["--range", "picks"],
    multiple=True,
    metavar="FROM:TO",
    help="Show the range between two edges; other ranges of the same release cost nothing later.",
)
BELOW: Final = click.Option(["--below", "picks"], multiple=True, metavar="EDGE", help="Show the count below this edge.")
LEVELS: Final = click.Option(
    ["--levels"],
    multiple=True,
    required=True,
    metavar="LEVEL,LEVEL",
    help="Levels from the coarsest: year, quarter, month or day of dates; or the group of each value, such as "
    "a=north,b=north, or @FILE with a pair per line. Can be repeated.",
)


Call = Callable[[Any, "Statistic", Sequence["TableColumn"], Mapping[str, Any]], "Answer"]


@dataclass(frozen=True)
class Statistic:
    """An entry of the registry: one statistic as a command."""

    name: str
    family: str
    explanation: str
    """The first line of its help."""
    example: str
    """The arguments of its example."""
    columns: tuple[str, ...] = ("column",)
    """The names of its column arguments; one that ends in ? is optional, one that ends in ... takes several."""
    is_grouped: bool = True
    """Whether it takes --by."""
    bounds: tuple[str, ...] = ("bounds",)
    """The keyword arguments for the bounds of its columns, in order."""
    learns: bool = True
    """Whether it can learn unknown bounds."""
    has_keys: bool = False
    """Whether it takes --keys of its own columns."""
    is_test: bool = False
    """Whether it is a hypothesis test, which takes one row per unit and has a p-value."""
    as_bars: bool = False
    """Whether its numbers are drawn as bars from 0."""
    more: str = ""
    """More help."""
    options: tuple[click.Parameter, ...] = ()
    """Its own options; their names are the keyword arguments of the function."""
    call: Call = call_by_name

    @property
    def function(self) -> str:
        """The name of the function in `tacit.stats`."""
        return self.name.replace("-", "_")


SUMS: Final = "Counts, sums and moments"
QUANTILES: Final = "Quantiles and ranges"
COUNTS: Final = "Counts by value"
TWO: Final = "Two columns"
MANY: Final = "Many counts at once, with optimised noise"
TESTS: Final = "Hypothesis tests (p-values include the noise)"
STATISTICS: Final[tuple[Statistic, ...]] = (
    Statistic(
        "count",
        SUMS,
        "The number of rows with a value in a column.",
        "visits age --by ward --keys a,b,c --epsilon 0.5",
        bounds=(),
        as_bars=True,
    ),
    Statistic("sum", SUMS, "The sum of a column.", "visits cost --bounds 0:5000 --epsilon 0.5", as_bars=True),
    Statistic("mean", SUMS, "The mean of a column.", "visits age --by sex --epsilon 0.5"),
    Statistic("variance", SUMS, "The variance of a column.", "visits age --epsilon 0.5"),
    Statistic("std", SUMS, "The standard deviation of a column.", "visits age --epsilon 0.5"),
    Statistic("median", QUANTILES, "The median of a column.", "visits age --by sex --epsilon 0.5"),
    Statistic(
        "quantile",
        QUANTILES,
        "One or several quantiles of a column.",
        "visits age --q 0.25 --q 0.75 --epsilon 0.5",
        options=(SHARES,),
        call=call_quantiles,
    ),
    Statistic(
        "box-plot",
        QUANTILES,
        "The median, the quartiles, and the 5 % and 95 % quantiles.",
        "visits age --by sex --epsilon 1 --plot ages.svg",
    ),
    Statistic(
        "cdf",
        QUANTILES,
        "The cumulative distribution of a column.",
        "visits age --bins 12 --epsilon 0.5",
        as_bars=True,
        options=(CURVE,),
    ),
    Statistic(
        "bounds",
        QUANTILES,
        "Bounds that contain most values, learnt from the data.",
        "visits cost --epsilon 0.2",
        is_grouped=False,
        bounds=(),
    ),
    Statistic(
        "histogram",
        COUNTS,
        "The number of rows in each bin, or with each value.",
        "visits age --bins 12 --epsilon 0.5",
        has_keys=True,
        more="Bins divide the bounds equally, or lie between --edges; text columns are counted by --keys.",
        options=HISTOGRAM,
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
        more="Without --keys, the value is shown only if it leads by enough, and the budget must have a delta above 0.",
    ),
    Statistic(
        "top-k",
        COUNTS,
        "The most frequent values with their counts.",
        "visits ward --k 3 --epsilon 0.5",
        is_grouped=False,
        bounds=(),
        has_keys=True,
        more="Without --keys, only values that enough units have are shown, and the budget must have a delta above 0.",
        options=(K,),
    ),
    Statistic(
        "contingency",
        COUNTS,
        "The number of rows with each pair of values of two columns.",
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
        "The least-squares slope of a column over another.",
        "visits weight age --epsilon 1",
        columns=("column", "over"),
        bounds=("bounds", "time_bounds"),
    ),
    Statistic(
        "t-test",
        TESTS,
        "Whether two groups have the same mean, or one has a given mean.",
        "visits age --by sex --keys F,M --epsilon 1",
        learns=False,
        is_test=True,
        options=(MEAN,),
    ),
    Statistic(
        "chi-squared",
        TESTS,
        "Whether two columns are independent, or one has given shares.",
        "visits sex ward --keys ward=a,b,c --epsilon 1",
        columns=("column", "other?"),
        is_grouped=False,
        bounds=(),
        has_keys=True,
        is_test=True,
        options=(EXPECTED,),
        call=call_chi_squared,
    ),
    Statistic(
        "correlation-test",
        TESTS,
        "Whether the correlation of two columns is zero.",
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
        "Whether the slope of a column over another is zero.",
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
        "All contingency tables of one, two or more of the columns.",
        "visits age sex ward --bins age=12 --keys ward=a,b,c --ways 1,2 --epsilon 1",
        columns=("columns...",),
        is_grouped=False,
        learns=False,
        has_keys=True,
        as_bars=True,
        options=(WAYS, *CELLS),
        call=call_marginals,
    ),
    Statistic(
        "ranges",
        MANY,
        "The number of rows in any range of a column.",
        "visits age --bins 0:120:24 --range 20:65 --range 65:120 --epsilon 1",
        is_grouped=False,
        learns=False,
        has_keys=True,
        as_bars=True,
        more="All ranges are released together: another --range of the same release costs nothing. A range includes "
        "its first edge and excludes its last, except for the last edge of all.",
        options=(RANGE, *CELLS),
        call=call_line_counts,
    ),
    Statistic(
        "prefixes",
        MANY,
        "The number of rows below each edge of a column.",
        "visits age --bins 12 --epsilon 1",
        is_grouped=False,
        learns=False,
        has_keys=True,
        as_bars=True,
        options=(BELOW, *CELLS),
        call=call_line_counts,
    ),
    Statistic(
        "hierarchy",
        MANY,
        "Nested counts, such as by year and month, or by region and city.",
        "visits day --levels year,month --bounds 2024-01-01:2024-12-31 --epsilon 1",
        is_grouped=False,
        learns=False,
        has_keys=True,
        as_bars=True,
        options=(LEVELS, *CELLS),
        call=call_line_counts,
    ),
)


def statistic(name: str) -> Statistic | None:
    """Return the statistic of a command, or None."""
    return next((one for one in STATISTICS if one.name == name), None)
