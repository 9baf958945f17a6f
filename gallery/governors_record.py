"""The governor's record (Sweeney 1997, 2000).

Massachusetts gave researchers the hospital stays of 135,000 state employees, without names, but with ZIP code, date of
birth and sex. The voter list of Cambridge, for sale, had the same three columns with names. Six voters had the birth
date of governor William Weld, three of them were men, and one lived in his ZIP code: his record could be read. Sweeney
estimated that 87 % of the people in the census of 1990 are unique by these columns; Golle (2006) found 63 % for 2000.

Here both lists are generated. Similar figures come out under a model of independent columns, with ZIP codes of one size
and of skewed sizes; it is the method of neither paper, and the median size is assumed: the last rows vary it. With
TACIT_DATA, the uniqueness of the people of UCI Adult is shown as well.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.attacks.data import (
    EMPLOYEES,
    QUASI_IDENTIFIERS,
    ZIP_MEAN,
    ZIP_MEDIAN,
    ZIP_MEDIANS,
    employees_and_voters,
    like_the_governor,
    population,
    zip_sizes,
)
from bench.attacks.linkage import SHARED, mean_interval
from gallery.common import NAMES, Exhibit, Row, adult, command, ranked
from tacit import attack
from tacit.attack.confidence import clopper_pearson
from tacit.report.rendering import Spec, plot

TITLE: Final = "The governor's record"
ADULT_COLUMNS: Final = ("age", "sex", "race", "native_country", "education", "occupation", "hours_per_week")
WORDS: Final = {"zip": "ZIP code", "born": "birth date", "sex": "sex"}


def run(small: bool) -> Exhibit:
    """Link employees with voters, and measure how unique people are."""
    lists = 3 if small else 40
    shared, published = like_the_governor(lists), SHARED["birth date"]
    table = employees_and_voters(np.random.default_rng(3), employees=10_000 if small else EMPLOYEES)
    linked = attack.run("linkage", table, seed=1)
    links = linked.details["linked"]
    right = linked.measured("links_right").value
    zips = 6 if small else 120
    equal, by_median = _linked(np.full(zips, ZIP_MEAN)), {one: _linked(zip_sizes(zips, one)) for one in ZIP_MEDIANS}
    skewed = by_median[ZIP_MEDIAN]
    rows = [
        *(
            Row(
                f"voters with his {name}, mean of {lists} lists", float(found.mean()), mean_interval(found), f"{stated}"
            )
            for (name, stated), found in zip(SHARED.items(), shared.T, strict=True)
        ),
        Row(
            f"lists with {published} voters of his birth date or more, share", float((shared[:, 0] >= published).mean())
        ),
        Row("lists on which he is the only one left, share", float((shared[:, -1] == 1).mean())),
        Row(f"records of {table.records.size:,} employees linked to one voter", links),
        Row("links that are right", right, clopper_pearson(round(right * links), links, 0.025)),
        _unique_row("ZIP codes of one size", equal, "87 %"),
        *(_unique_row(f"median ZIP code {median:,}, assumed", one, "63 %") for median, one in by_median.items()),
    ]
    shares = {
        " + ".join(WORDS[one] for one in name.split(" + ")): share
        for name, share in skewed.details["uniqueness"].items()
    }
    people_of = (
        f"{skewed.details['records']:,} generated people, ZIP codes of skewed sizes, median {ZIP_MEDIAN:,} assumed"
    )
    plots = {"governors_record": _plot(shares, people_of)}
    if (people := adult()) is not None:
        known = {
            f"{'+ ' if count > 1 else ''}{ADULT_COLUMNS[count - 1].replace('_', ' ')}": _unique(people, count)
            for count in range(1, len(ADULT_COLUMNS) + 1)
        }
        rows.append(Row(f"UCI Adult, unique by {len(ADULT_COLUMNS)} columns", list(known.values())[-1]))
        plots["governors_record_adult"] = _plot(
            known, f"{len(people):,} people of UCI Adult, one column more each time"
        )
    return Exhibit(TITLE, rows, plots)


def _linked(sizes: NDArray[np.int64]) -> attack.Finding:
    people = population(sizes, np.random.default_rng(1))
    return attack.run("linkage", attack.Table(people, quasi_identifiers=QUASI_IDENTIFIERS), seed=1)


def _unique_row(name: str, found: attack.Finding, published: str) -> Row:
    """Return a row with the share of unique people under the model."""
    unique = found.measured("unique_records")
    theory = "" if unique.predicted is None else f"{unique.predicted:.3g}"
    return Row(f"unique by ZIP, birth date, sex, {name}", unique.value, published=published, theory=theory)


def _unique(people: Any, columns: int) -> float:
    """Return the share of unique people of Adult by the first columns."""
    table = attack.Table(people, quasi_identifiers=ADULT_COLUMNS[:columns])
    return attack.run("linkage", table, seed=1).measured("unique_records").value


def _plot(shares: dict[str, float], people: str) -> Spec:
    """Return a plot of the share of unique people by columns."""
    return plot(
        "Who is the only one?",
        [people],
        x={
            "scale": {"domain": [0, 1]},
            "axis": {"title": "share of people whom nobody equals in these columns", "format": ".0%"},
        },
        y=NAMES,
        layers=ranked([(share, name) for name, share in shares.items()], 0.0, "{:.1%}".format),
    )


if __name__ == "__main__":
    command(run)()
