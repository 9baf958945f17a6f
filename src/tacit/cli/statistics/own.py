"""What single statistics have of their own: options, and ways to ask that differ from calling a function by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import click

if TYPE_CHECKING:
    from tacit.stats import Answer, Column


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


def asked_by_name(entry: Named, columns: Sequence[Column], asked: Mapping[str, Any]) -> Answer:
    """Call the function of the entry's name with the columns in order."""
    from tacit import stats

    answer: Answer = getattr(stats, entry.function)(*columns, **asked)
    return answer


def ask_quantiles(entry: Named, columns: Sequence[Column], asked: Mapping[str, Any]) -> Answer:
    """One share has one answer, several have one each, under one price."""
    from tacit import stats

    (column,), shares = columns, asked["q"]
    others: Any = {name: value for name, value in asked.items() if name != "q"}
    if len(shares) == 1:
        return stats.quantile(column, shares[0], **others)
    return stats.quantiles(column, list(shares), **others)


def ask_histogram(entry: Named, columns: Sequence[Column], asked: Mapping[str, Any]) -> Answer:
    """Edges are read as what the column holds; with bins, keys that the catalog has are of no use."""
    from tacit.cli.statistics.stating import edges_of

    (column,) = columns
    edges = edges_of(column.declared.kind, asked["edges"]) if "edges" in asked else None
    return asked_by_name(entry, columns, {**asked, "edges": edges})


def ask_chi_squared(entry: Named, columns: Sequence[Column], asked: Mapping[str, Any]) -> Answer:
    """Expected shares are numbers in the order of the keys."""
    from tacit.cli.statistics.stating import numbers_of

    expected = numbers_of("expected", asked["expected"]) if "expected" in asked else None
    return asked_by_name(entry, columns, {**asked, "expected": expected})


def ask_marginals(entry: Named, columns: Sequence[Column], asked: Mapping[str, Any]) -> Answer:
    """Columns have names, and cells as `domains` reads them."""
    from tacit import stats
    from tacit.cli.statistics.domains import domain_of
    from tacit.cli.statistics.stating import numbers_of

    others: Any = {name: value for name, value in asked.items() if name not in ("bins", "edges")}
    domain = domain_of(columns, asked["bins"], asked["edges"], most=10)
    ways = numbers_of("ways", asked["ways"])
    return stats.marginals({one.declared.name: one for one in columns}, domain=domain, **{**others, "ways": ways})


def ask_line(entry: Named, columns: Sequence[Column], asked: Mapping[str, Any]) -> Answer:
    """Ask for many counts along one column, and show all of them or those that were picked."""
    from tacit.cli.statistics.domains import below, domain_of, levels_of, picked
    from tacit.cli.statistics.picking import Picked
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
    answer = asked_by_name(entry, columns, {**own, "edges": edges, "name": name})
    return Picked.out_of(answer, name, picks) if picks else answer


def q_option() -> list[click.Parameter]:
    """The shares of quantiles."""
    return [
        click.Option(
            ["--q"],
            type=float,
            multiple=True,
            required=True,
            metavar="SHARE",
            help="Below which share of the values it lies, such as 0.9; may be given several times.",
        )
    ]


def histogram_options() -> list[click.Parameter]:
    """The bins of a histogram."""
    return [
        bins_option("Into how many equal parts the bounds are cut; 10 unless stated."),
        click.Option(["--edges"], metavar="A,B,C", help="Between which edges the bins lie, instead."),
    ]


def bins_option(words: str) -> click.Parameter:
    """A number of bins."""
    return click.Option(["--bins"], type=click.IntRange(1, 10_000), metavar="N", help=words)


def cdf_options() -> list[click.Parameter]:
    """How finely a distribution is told."""
    return [bins_option("For how many numbers the share is told; 64 unless stated.")]


def k_option() -> list[click.Parameter]:
    """How many values are the most frequent."""
    return [click.Option(["--k"], type=click.IntRange(1), required=True, metavar="N", help="How many values.")]


def mean_option() -> list[click.Parameter]:
    """What one mean is held against."""
    return [
        click.Option(
            ["--mean", "popmean"], type=float, help="Instead of two groups: the mean that one column is held against."
        )
    ]


def expected_option() -> list[click.Parameter]:
    """What one column's shares are held against."""
    return [
        click.Option(
            ["--expected"], metavar="A,B", help="Of one column: the expected shares of its keys; equal unless stated."
        )
    ]


def cells_options() -> list[click.Parameter]:
    """The cells of columns, as `domains` reads them."""
    return [
        click.Option(
            ["--bins"],
            multiple=True,
            metavar="[COLUMN=]N",
            help="Into how many equal parts a column's bounds are cut, or with bounds LOW:HIGH:N, or day, month, year.",
        ),
        click.Option(
            ["--edges"], multiple=True, metavar="[COLUMN=]A,B,C", help="Between which edges the bins lie, instead."
        ),
    ]


def marginals_options() -> list[click.Parameter]:
    """Which tables are made."""
    ways = click.Option(
        ["--ways"], default="1,2", show_default=True, metavar="N,N", help="By how many columns the tables are."
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
