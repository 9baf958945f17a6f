"""What a function costs grows no faster than its input, up to a logarithm: no single row and no unit takes for ever.

A function whose cost is quadratic makes the time of a statement tell whether one long text, or one unit with many rows,
is there. Time is the least of several runs; four times the input may take eight times as long, above a floor that
covers starting a statement. The short form looks at what was quadratic once, and at one of each family; the long one at
everything.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.privacy.tables import TEXT_LENGTH_MAX
from tacit.query.scalars import FUNCTION_NAMES
from tests.conformance.engines.conftest import PLACES, Place

FLOOR_S = {"postgres": 0.25, "spark": 4.0}
"""Below this a statement is fast enough, whatever it does; a machine that others use as well is slow at times."""

COPIES = {"postgres": 40, "spark": 400}
UNIT_ROWS = 20_000
RUNS = 3

TEXTS = {
    "UPPER": "LENGTH(UPPER(s))",
    "LOWER": "LENGTH(LOWER(s))",
    "TRIM": "LENGTH(TRIM(s))",
    "LTRIM": "LENGTH(LTRIM(s))",
    "RTRIM": "LENGTH(RTRIM(s))",
    "SUBSTRING": "LENGTH(SUBSTRING(s, 2, 4000))",
    "SUBSTR": "LENGTH(SUBSTRING(s, 3))",
    "LEFT": "LENGTH(SUBSTRING(s, 1, 4000))",
    "RIGHT": "LENGTH(RIGHT(s, 4000))",
    "LENGTH": "LENGTH(s)",
    "LEN": "LENGTH(s)",
    "CHAR_LENGTH": "LENGTH(s)",
    "STRPOS": "STRPOS(s, 'aaaaab')",
    "POSITION": "STRPOS(s, 'b' || SUBSTRING(s, 1, 2000))",
    "INSTR": "STRPOS(s, 'b')",
    "||": "LENGTH(s || s || s)",
    "CONCAT": "LENGTH(s || COALESCE(s, ''))",
    "LIKE": "CASE WHEN s LIKE '%a%a%a%b' THEN 1 ELSE 0 END",
    "ILIKE": "CASE WHEN s ILIKE '%a_a%a_%a%b' THEN 1 ELSE 0 END",
    "STARTS_WITH": "CASE WHEN STARTS_WITH(s, s) THEN 1 ELSE 0 END",
    "PREFIX": "CASE WHEN STARTS_WITH(s, 'aab') THEN 1 ELSE 0 END",
    "ENDS_WITH": "CASE WHEN ENDS_WITH(s, s) THEN 1 ELSE 0 END",
    "SUFFIX": "CASE WHEN ENDS_WITH(s, 'b') THEN 1 ELSE 0 END",
    "CONTAINS": "CASE WHEN CONTAINS(s, SUBSTRING(s, 1, 2000) || 'b') THEN 1 ELSE 0 END",
    "CAST": "TRY_CAST(s AS BIGINT)",
    "TRY_CAST": "TRY_CAST(s AS DOUBLE)",
    "DATE": "CASE WHEN TRY_CAST(s AS DATE) IS NULL THEN 0 ELSE 1 END",
    "TRUE": "CASE WHEN TRY_CAST(s AS BOOLEAN) THEN 0 ELSE 1 END",
    "EPOCH": "CASE WHEN TRY_CAST(s AS TIMESTAMP) IS NULL THEN 0 ELSE 1 END",
    "=": "CASE WHEN s = s || '' THEN 1 ELSE 0 END",
    "<": "CASE WHEN s < s || 'x' THEN 1 ELSE 0 END",
    "IN": "CASE WHEN s IN ('a', 'b') THEN 1 ELSE 0 END",
    "GREATEST": "LENGTH(GREATEST(s, s || 'x'))",
    "LEAST": "LENGTH(LEAST(s, s || 'x'))",
    "COALESCE": "LENGTH(COALESCE(s, s))",
    "NULLIF": "LENGTH(NULLIF(s, 'a'))",
    "IS DISTINCT FROM": "CASE WHEN s IS DISTINCT FROM 'a' THEN 1 ELSE 0 END",
    "CASE": "LENGTH(CASE WHEN s = 'a' THEN s ELSE s || s END)",
}
_FIXED = """
% * ** + - / // <= <> > >= ABS AND BETWEEN CEIL DATEDIFF DATEPART DATE_ADD DATE_DIFF DATE_PART DATE_TRUNC DAY DAYOFMONTH
DAYOFWEEK DAYOFYEAR EXP EXTRACT FALSE FLOOR HOUR IF IFNULL IIF IS ISODOW LAST_DAY LN LOG LOG10 LOG2 MINUTE MOD MONTH NOT
NULL NVL OR PI POW POWER QUARTER ROUND SECOND SIGN SQRT TRUNC WEEK WEEKOFYEAR WIDTH_BUCKET YEAR ^
"""
FIXED = {*_FIXED.split(), "IS NOT DISTINCT FROM"}
"""Names whose arguments have a fixed size, and those that are written as others are."""

CONTENTS = {
    "letters": "a",
    "letters beyond ASCII": "éΣж",
    "digits": "1",
    "digits with a sign": "1_",
    "spaces": " ",
    "a date and spaces": "2024-01-01 10:00:00Z" + " " * 80,
}
WINDOWS = {
    "COUNT": "COUNT(n) OVER (PARTITION BY _unit)",
    "COUNT DISTINCT": "COUNT(DISTINCT n) OVER (PARTITION BY _unit)",
    "COUNT DISTINCT of texts": "COUNT(DISTINCT s) OVER (PARTITION BY _unit)",
    "SUM": "SUM(n) OVER (PARTITION BY _unit)",
    "MIN": "MIN(n) OVER (PARTITION BY _unit)",
    "MAX": "LENGTH(MAX(s) OVER (PARTITION BY _unit))",
    "MEDIAN": "MEDIAN(CAST(n AS DOUBLE)) OVER (PARTITION BY _unit)",
    "MEDIAN of some": "MEDIAN(CAST(n AS DOUBLE)) FILTER (WHERE n > 7) OVER (PARTITION BY _unit)",
    "running SUM": "SUM(n) OVER (PARTITION BY _unit ORDER BY n, s)",
    "running MIN": "MIN(n) OVER (PARTITION BY _unit ORDER BY n DESC, s)",
    "running MAX": "MAX(n) OVER (PARTITION BY _unit ORDER BY n, s)",
    "running COUNT": "COUNT(*) OVER (PARTITION BY _unit ORDER BY n, s)",
    "running COUNT of some": "COUNT(CASE WHEN n > 7 THEN 1 END) OVER (PARTITION BY _unit ORDER BY n, s)",
    "BOOL_AND": "CASE WHEN BOOL_AND(n > 3) OVER (PARTITION BY _unit) THEN 1 ELSE 0 END",
    "ROW_NUMBER": "ROW_NUMBER() OVER (PARTITION BY _unit ORDER BY n, s)",
    "RANK": "RANK() OVER (PARTITION BY _unit ORDER BY n)",
    "DENSE_RANK": "DENSE_RANK() OVER (PARTITION BY _unit ORDER BY n)",
    "LAG": "LAG(n, 1000) OVER (PARTITION BY _unit ORDER BY n, s)",
    "LEAD": "LEAD(n, 1000) OVER (PARTITION BY _unit ORDER BY n, s)",
}
AGGREGATES = {
    "MEDIAN": "MEDIAN(CAST(n AS DOUBLE))",
    "COUNT DISTINCT": "COUNT(DISTINCT s)",
    "SUM": "SUM(n)",
    "MAX": "LENGTH(MAX(s))",
    "BOOL_OR": "CASE WHEN BOOL_OR(n > 3) THEN 1 ELSE 0 END",
}
SHORT_TEXTS = ("POSITION", "UPPER", "LOWER", "ILIKE", "LIKE", "TRY_CAST", "EPOCH")
SHORT_WINDOWS = ("MEDIAN", "COUNT DISTINCT")
SHORT_CONTENTS = {"UPPER": "letters beyond ASCII", "LOWER": "letters beyond ASCII", "EPOCH": "a date and spaces"}


def test_every_function_is_looked_at() -> None:
    assert set(FUNCTION_NAMES) == set(TEXTS) | FIXED
    assert not set(TEXTS) & FIXED


def texts(content: str, size: int, copies: int) -> list[list[object]]:
    """Return rows with texts of a size, of the content over and over; each ends with a sign of its own."""
    start = CONTENTS[content]
    return [
        [number, number, (start * (size // len(start) + 1))[: size - 6] + f"x{number:05}"] for number in range(copies)
    ]


@pytest.fixture(scope="module", params=["postgres", "spark"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Place]]:
    folder: Path = tmp_path_factory.mktemp("cost")
    made = PLACES[request.param](folder)
    types = {"id": "BIGINT", "n": "BIGINT", "s": "VARCHAR"}
    for index, content in enumerate(CONTENTS):
        for size in (TEXT_LENGTH_MAX // 4, TEXT_LENGTH_MAX):
            made.show(f"t{index}_{size}", types, texts(content, size, COPIES[request.param]), unit="id")
    for size in (UNIT_ROWS // 4, UNIT_ROWS):
        made.show(f"u{size}", types, [[1, number * 7919 % 10_007, f"w{number}"] for number in range(size)], unit="id")
    yield request.param, made
    made.engine.close()


def seconds(place: Place, sql: str, floor_s: float) -> float:
    """Return how long a statement takes at best; one that is below the floor is run once."""
    best = float("inf")
    for _ in range(RUNS):
        started_s = time.perf_counter()
        place.run(sql, timeout_s=120)
        best = min(best, time.perf_counter() - started_s)
        if best < floor_s:
            break
    return best


def check(engine: str, place: Place, small: str, large: str) -> None:
    floor_s = FLOOR_S[engine]
    longest_s = seconds(place, large, floor_s)
    if longest_s > floor_s:
        assert longest_s <= 8 * max(seconds(place, small, 0.0), floor_s / 8), large


def over_texts(name: str, content: str) -> list[str]:
    index = list(CONTENTS).index(content)
    sizes = (TEXT_LENGTH_MAX // 4, TEXT_LENGTH_MAX)
    return [f"SELECT COUNT({TEXTS[name]}) AS c FROM tacit_data.t{index}_{size}" for size in sizes]


def over_rows(item: str) -> list[str]:
    sizes = (UNIT_ROWS // 4, UNIT_ROWS)
    return [
        f"SELECT COUNT(*) AS c FROM (SELECT {item} AS x FROM tacit_data.u{size}) AS q WHERE x > 3" for size in sizes
    ]


def of_groups(item: str) -> list[str]:
    sizes = (UNIT_ROWS // 4, UNIT_ROWS)
    inner = "SELECT COUNT(*) AS c FROM (SELECT _unit, {0} AS x FROM tacit_data.u{1} GROUP BY _unit) AS q WHERE x > 3"
    return [inner.format(item, size) for size in sizes]


@pytest.mark.sampled(12, each="name")
@pytest.mark.parametrize("name", SHORT_TEXTS)
def test_functions_of_texts_take_time_in_proportion(place: tuple[str, Place], name: str) -> None:
    check(*place, *over_texts(name, SHORT_CONTENTS.get(name, "letters")))


@pytest.mark.parametrize(
    "name", [name if name in SHORT_WINDOWS else pytest.param(name, marks=pytest.mark.soak) for name in WINDOWS]
)
def test_windows_take_time_in_proportion_to_the_rows_of_a_unit(place: tuple[str, Place], name: str) -> None:
    check(*place, *over_rows(WINDOWS[name]))


@pytest.mark.parametrize("name", ["UPPER", "LOWER", "ILIKE"])
def test_letters_beyond_ascii_change_their_case_in_little_time(place: tuple[str, Place], name: str) -> None:
    engine, there = place
    _, large = over_texts(name, "letters beyond ASCII")
    assert seconds(there, large, FLOOR_S[engine]) < 2 * FLOOR_S[engine]  # it took 50 ms a text on PostgreSQL once


@pytest.mark.soak
@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", TEXTS)
def test_every_function_takes_time_in_proportion(place: tuple[str, Place], name: str, content: str) -> None:
    check(*place, *over_texts(name, content))


@pytest.mark.soak
@pytest.mark.parametrize("name", AGGREGATES)
def test_every_aggregate_takes_time_in_proportion(place: tuple[str, Place], name: str) -> None:
    check(*place, *of_groups(AGGREGATES[name]))
