"""People and statistics that attacks are measured on: generated from a seed, or published in the paper they come from.

Ages follow the census of the United States of 1990, uniform within five years. Nothing else of the results that are
reproduced is put in: how many people are unique, or found by a few ratings, follows from sizes and shares.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tacit import attack
from tacit.attack.table_reconstruction import Published, PublishedTables

Columns = dict[str, Any]

BLOCK: Final = PublishedTables(
    7,
    {"age": range(126), "sex": ["F", "M"], "race": ["B", "W"], "married": ["S", "M"]},
    [
        Published("1A", {}, 7, {"age": 38}, {"age": 30}),
        Published("2A", {"sex": "F"}, 4, {"age": 33.5}, {"age": 30}),
        Published("2B", {"sex": "M"}, 3, {"age": 44}, {"age": 30}),
        Published("2C", {"race": "B"}, 4, {"age": 48.5}, {"age": 51}),
        Published("2D", {"race": "W"}, 3, {"age": 24}, {"age": 24}),
        Published("3A", {"married": "S", "age": (18, None)}, (0, 2)),
        Published("3B", {"married": "M", "age": (18, None)}, 4, {"age": 54}, {"age": 51}),
        Published("4A", {"race": "B", "sex": "F"}, 3, {"age": 36.7}, {"age": 36}),
    ],
    [({"married": "M"}, {"age": (15, None)})],
)
"""The census block of Garfinkel, Abowd and Martindale 2018, table 1; 3A is suppressed, so it is 0 to 2."""

AGE_BANDS: Final = np.array(
    [18.4, 18.1, 17.1, 17.8, 19.0, 21.3, 21.9, 20.0, 17.6, 13.9, 11.4, 10.5, 10.6, 10.1, 8.0, 6.1, 3.9, 3.1]
)
"""Millions of people in five years of age each, the last of fifteen: United States 1990."""
DAYS_OF_YEAR: Final = 365.25
CENSUS_DAY: Final = np.datetime64("1997-01-01")

ZIP_MEAN: Final = 8_476
ZIP_MEDIAN: Final = 2_800
ZIP_LARGEST: Final = 112_167
"""People in a ZIP code: 248.7 million in 29,343 codes, and the largest of 1990. The median is assumed, without a
source. The share of unique people depends on it, and is measured for all of ZIP_MEDIANS."""
ZIP_MEDIANS: Final = (2_000, ZIP_MEDIAN, 4_000)

EMPLOYEES: Final = 135_000
CITY: Final = 95_802
VOTERS: Final = 54_805
STATE: Final = 6_016_425
CITY_ZIPS: Final = {"02138": 0.36, "02139": 0.34, "02140": 0.17, "02141": 0.11, "02142": 0.02}
GOVERNOR: Final = {"zip": "02138", "born": "1945-07-31", "sex": "M"}
QUASI_IDENTIFIERS: Final = ("zip", "born", "sex")

FILMS: Final = 17_770
RATINGS_MEDIAN: Final = 96
RATINGS_SPREAD: Final = 1.25
RATINGS_LEAST, RATINGS_MOST = 20, 2_000
FILM_SHIFT, FILM_POWER = 20.0, 0.9
"""The share of the film at place r is proportional to (r + shift)^-power."""
DAYS: Final = 2_190
SESSION: Final = 6
"""How many films are rated on one day, on average."""

TWO_ANONYMOUS: Final[Columns] = {
    "age": ["5*", "5*", "3*", "3*", "2*", "2*"],
    "zip": ["130**", "130**", "130**", "130**", "148**", "148**"],
    "disease": ["heart disease", "cancer", "flu", "flu", "flu", "asthma"],
}
"""Six records, each with another that is alike in age and ZIP code."""


def zip_sizes(count: int, median: int = ZIP_MEDIAN) -> NDArray[np.int64]:
    """Return sizes of ZIP codes: quantiles of a log-normal law with a mean of ZIP_MEAN, cut at the largest."""
    spread = math.sqrt(2 * math.log(ZIP_MEAN / median))
    quantiles = stats.norm.ppf((np.arange(count) + 0.5) / count)
    return np.asarray(np.clip(median * np.exp(spread * quantiles), 1, ZIP_LARGEST), dtype=np.int64)


def birth_days(count: int, random: np.random.Generator) -> NDArray[np.datetime64]:
    """Return days of birth of people of all ages."""
    band = random.choice(len(AGE_BANDS), count, p=AGE_BANDS / AGE_BANDS.sum())
    years = 5 * band + random.random(count) * np.where(band == len(AGE_BANDS) - 1, 15, 5)
    return np.asarray(CENSUS_DAY - (years * DAYS_OF_YEAR).astype("timedelta64[D]"))


def population(sizes: NDArray[np.int64], random: np.random.Generator) -> Columns:
    """Return people with ZIP code, day of birth (a number) and sex, independent of one another."""
    count = int(sizes.sum())
    return {
        "zip": np.repeat(np.arange(len(sizes)), sizes),
        "born": birth_days(count, random).astype(np.int64),
        "sex": random.integers(0, 2, count),
    }


def employees_and_voters(random: np.random.Generator, *, employees: int = EMPLOYEES) -> attack.Table:
    """Return hospital stays of state employees without names, with the voter list of one city as the register.

    As many of the employees live in the city as its share of the state's people; they are on the voter list if they
    were drawn for it. The governor is the first record and the first voter.
    """
    city: Columns = {
        "zip": random.choice(list(CITY_ZIPS), CITY, p=list(CITY_ZIPS.values())),
        "born": birth_days(CITY, random),
        "sex": random.choice(["F", "M"], CITY),
    }
    adults = np.flatnonzero(city["born"] < CENSUS_DAY - np.timedelta64(round(18 * DAYS_OF_YEAR), "D"))
    voters = random.permutation(adults)[:VOTERS]
    inside = random.permutation(CITY)[: round(employees * CITY / STATE)]
    outside = employees - len(inside)
    elsewhere = {
        "zip": np.char.add("ma", random.integers(0, 500, outside).astype(str)),
        "born": birth_days(outside, random),
        "sex": random.choice(["F", "M"], outside),
    }
    records = {
        name: [GOVERNOR[name], *map(str, city[name][inside[1:]]), *map(str, elsewhere[name])]
        for name in QUASI_IDENTIFIERS
    }
    register = {name: [GOVERNOR[name], *map(str, city[name][voters[1:]])] for name in QUASI_IDENTIFIERS}
    truth = ["governor", *(f"resident {one}" for one in inside[1:]), *["nobody on the list"] * outside]
    return attack.Table(
        {**records, "diagnosis": [f"diagnosis {one}" for one in random.integers(0, 100, employees)]},
        quasi_identifiers=QUASI_IDENTIFIERS,
        sensitive="diagnosis",
        register={**register, "name": ["governor", *(f"resident {one}" for one in voters[1:])]},
        identity="name",
        truth=truth,
    )


def like_the_governor(lists: int) -> NDArray[np.int64]:
    """Return, for some voter lists, how many share the governor's day of birth, also the sex, and also the ZIP code."""
    found = []
    for seed in range(lists):
        voters = employees_and_voters(np.random.default_rng(seed), employees=1_000).register
        assert voters is not None
        born, sex, place = (voters[name] == GOVERNOR[name] for name in ("born", "sex", "zip"))
        found.append([int(alike.sum()) for alike in (born, born & sex, born & sex & place)])
    return np.array(found)


def ratings(
    subscribers: int, victims: int, *, known: int, wrong: int, days_off: int, random: np.random.Generator
) -> attack.Table:
    """Return ratings of films, and what an attacker knows of some subscribers: a few of them, of which some are wrong.

    Subscribers have a log-normal number of ratings, of films by popularity, given in sessions of one day between the
    day they joined and the last day. A wrong item is any film, with any number of stars, on any day.
    """
    popularity = np.cumsum((np.arange(FILMS) + FILM_SHIFT) ** -FILM_POWER)
    sizes = random.lognormal(math.log(RATINGS_MEDIAN), RATINGS_SPREAD, subscribers).astype(np.int64)
    owner = np.repeat(np.arange(subscribers), np.clip(sizes, RATINGS_LEAST, RATINGS_MOST))
    pairs = np.unique(owner * FILMS + _films(len(owner), popularity, random))
    owner, film = pairs // FILMS, pairs % FILMS
    starts = np.searchsorted(owner, np.arange(subscribers + 1))
    joined = random.integers(0, DAYS - 365, subscribers)[owner]
    session = random.integers(0, np.maximum(np.diff(starts) // SESSION, 1)[owner])
    _, place = np.unique(owner * RATINGS_MOST + session, return_inverse=True)
    day = joined + (random.random(place.max() + 1)[place] * (DAYS - joined)).astype(np.int64)
    stars = np.clip(np.round(random.normal(3.6, 1.1, len(owner))), 1, 5).astype(np.int64)
    heard: dict[str, list[Any]] = {"who": [], "film": [], "stars": [], "day": []}
    chosen = random.permutation(subscribers)[:victims]
    for one in chosen:
        rows = starts[one] + random.permutation(starts[one + 1] - starts[one])[:known]
        off = random.integers(-days_off, days_off + 1, known)
        films, values, days = film[rows], stars[rows], day[rows] + off
        films[:wrong] = _films(wrong, popularity, random)
        values[:wrong], days[:wrong] = random.integers(1, 6, wrong), random.integers(0, DAYS, wrong)
        columns = ([f"person {one}"] * known, films.tolist(), values.tolist(), days.tolist())
        for column, items in zip(heard.values(), columns, strict=True):
            column += items
    return attack.Table(
        {"subscriber": owner, "film": film, "stars": stars, "day": day},
        entity="subscriber", item="film", value="stars", when="day", register=heard, identity="who",
        truth={f"person {one}": int(one) for one in chosen},
    )  # fmt: skip


def _films(count: int, popularity: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    return np.asarray(np.searchsorted(popularity, random.random(count) * popularity[-1]))
