"""Linkage on generated people (`data.py` says how), beside what was published about real ones.

Published figures are of other people than those generated here, so none is a goal.

Sweeney 2000: six voters of Cambridge had the governor's birth date, three of them were men, one lived in his ZIP code;
87 % of the people of the United States (census of 1990) are likely unique by ZIP code, birth date and sex. Golle 2006
found 63 % for the census of 2000. A model in which birth dates and sexes are independent of ZIP codes gives similar
figures for ZIP codes of one size and of skewed sizes; it is the method of neither paper, and the second figure depends
on an assumed median size. Narayanan, Shmatikov 2008: of about 500,000 subscribers, 8 ratings of which 2 may be wrong,
with dates within 14 days, identify 99 %, and 2 ratings within 3 days 68 %, a figure that depends on how many
subscribers there are: it is not shown beside that of fewer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bench.attacks.data import (
    QUASI_IDENTIFIERS,
    TWO_ANONYMOUS,
    ZIP_MEAN,
    ZIP_MEDIANS,
    employees_and_voters,
    like_the_governor,
    population,
    ratings,
    zip_sizes,
)
from bench.results import Result
from tacit import attack
from tacit.attack.confidence import clopper_pearson

SHARED: Final = {"birth date": 6, "birth date, men": 3, "birth date, men in the ZIP code": 1}
KNOWN: Final = (("8 ratings, 2 wrong, within 14 days", 8, 2, 14, 0.99), ("2 ratings within 3 days", 2, 0, 3, None))


def linkage(quick: bool) -> Iterator[Result]:
    """Link employees with voters, measure uniqueness, find subscribers, and infer a disease."""
    yield from _governor(5 if quick else 40)
    yield from _uniqueness(30 if quick else 150)
    yield from _subscribers(*((2_000, 200) if quick else (10_000, 1_000)))
    yield from _two_anonymous()


def _governor(draws: int) -> Iterator[Result]:
    shared = like_the_governor(draws)
    for (label, published), found in zip(SHARED.items(), shared.T, strict=True):
        label = f"voters with the governor's {label}"
        low, high = mean_interval(found)
        yield Result(f"{label}, mean of {draws} lists", float(found.mean()), "people", {"published": published})
        yield Result(f"{label}: low end of the 95 % interval of the mean", low, "people")
        yield Result(f"{label}: high end of the 95 % interval of the mean", high, "people")
    reached = float((shared[:, 0] >= SHARED["birth date"]).mean())
    yield Result(f"lists with {SHARED['birth date']} voters of his birth date or more, of {draws}", reached, "share")
    alone = float((shared[:, -1] == 1).mean())
    yield Result(f"lists on which the governor is the only one left, of {draws}", alone, "share")
    begun_s = time.perf_counter()
    table = employees_and_voters(np.random.default_rng(0))
    found = attack.run("linkage", table, seed=0)
    linked = found.details["linked"]
    right = found.measured("links_right").value
    low, high = clopper_pearson(round(right * linked), linked, 0.025)
    yield Result("135,000 employees × 54,805 voters: records linked", linked, "records")
    yield Result("135,000 employees × 54,805 voters: links that are right", right, "share")
    yield Result("135,000 employees × 54,805 voters: low end of the 95 % interval", low, "share")
    yield Result("135,000 employees × 54,805 voters: high end of the 95 % interval", high, "share")
    yield Result("135,000 employees × 54,805 voters: time", time.perf_counter() - begun_s, "s")


def mean_interval(values: NDArray[np.int64] | NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95 % interval of a mean by Student's law."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def _uniqueness(zips: int) -> Iterator[Result]:
    skewed = ((f"sizes skewed, median {median:,} assumed", zip_sizes(zips, median), 0.63) for median in ZIP_MEDIANS)
    for label, sizes, published in (("all of the mean size", np.full(zips // 2, ZIP_MEAN), 0.87), *skewed):
        begun_s = time.perf_counter()
        table = attack.Table(population(sizes, np.random.default_rng(0)), quasi_identifiers=QUASI_IDENTIFIERS)
        found = attack.run("linkage", table, seed=0)
        label = f"unique by ZIP, birth date, sex under a model; {len(sizes)} ZIPs, {label}"
        unique = found.measured("unique_records")
        yield Result(label, unique.value, "share", {"published": published, "theory": unique.predicted})
        yield Result(f"{label}: time, {sizes.sum():,} people", time.perf_counter() - begun_s, "s")


def _subscribers(subscribers: int, victims: int) -> Iterator[Result]:
    for label, known, wrong, days_off, published in KNOWN:
        random = np.random.default_rng(known)
        table = ratings(subscribers, victims, known=known, wrong=wrong, days_off=days_off, random=random)
        begun_s = time.perf_counter()
        found = attack.run("sparse_linkage", table, seed=0)
        label = f"generated, {subscribers:,} subscribers, {label}"
        value = found.measured("people_at_risk").value
        low, high = clopper_pearson(round(value * victims), victims, 0.025)
        beside = {} if published is None else {"published": published}
        yield Result(f"{label}: identified of {victims:,}", value, "share", beside)
        yield Result(f"{label}: low end of the 95 % interval", low, "share")
        yield Result(f"{label}: high end of the 95 % interval", high, "share")
        yield Result(f"{label}: time, {table.records.size:,} ratings", time.perf_counter() - begun_s, "s")


def _two_anonymous() -> Iterator[Result]:
    begun_s = time.perf_counter()
    table = attack.Table(
        TWO_ANONYMOUS,
        quasi_identifiers=("age", "zip"),
        sensitive="disease",
        register={"name": ["Bob"], "age": [55], "zip": ["13053"]},
        identity="name",
    )
    left = attack.run("attribute_linkage", table, seed=0).measured("two_values_left").value
    yield Result("2-anonymous table: one of two diseases left for Bob, 55", left, "", goal=1, better="higher")
    yield Result("2-anonymous table: time", time.perf_counter() - begun_s, "s")
