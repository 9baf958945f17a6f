"""What is public about a result: its kind, range, domain, whether it can be NULL, and whether it shows the unit."""

from __future__ import annotations

import math
from datetime import date, datetime
from fractions import Fraction

import pytest

from tacit.privacy.tables import Kind
from tacit.query.expressions import Constant, Range
from tacit.query.scalars import FUNCTION_NAMES, clamp
from tests.unit.query.scalars.clinic import of, range_of

EXACT = {
    "age": (0, 120),
    "age + points": (-10, 130),
    "age - points": (-10, 130),
    "age * points": (-1200, 1200),
    "-age": (-120, 0),
    "ABS(points)": (0, 10),
    "ABS(points - 20)": (10, 30),
    "kg + 1": (1.5, 301),
    "kg * -2": (-600, -1),
    "age / 4": (0, 30),
    "1 / kg": (1 / 300, 2),
    "age // 7": (0, 17),
    "age // points": (-120, 120),
    "12 // points": (-12, 12),
    "age % 7": (0, 6),
    "points % 7": (-6, 6),
    "n % 7": (-6, 6),
    "x % 7": (-7, 7),
    "FLOOR(kg)": (0, 300),
    "CEIL(kg)": (1, 300),
    "ROUND(kg)": (1, 300),
    "TRUNC(kg)": (0, 300),
    "ROUND(kg, -2)": (0, 300),
    "ROUND(age / 7, 1)": (0, 17.2),
    "SIGN(points)": (-1, 1),
    "SIGN(kg)": (1, 1),
    "LEAST(age, 65)": (0, 65),
    "GREATEST(age, 18)": (18, 120),
    "GREATEST(age, points)": (-10, 120),
    "LEAST(GREATEST(n, 0), 9)": (0, 9),
    "CASE WHEN smokes THEN age ELSE points END": (-10, 120),
    "COALESCE(age, -1)": (-1, 120),
    "WIDTH_BUCKET(x, 0, 1, 5)": (0, 6),
    "CAST(smokes AS INT)": (0, 1),
    "CAST(kg AS INT)": (0, 300),
    "CAST(x AS INT)": (-(2**53), 2**53),
    "grade": (1, 5),
    "LENGTH(sex)": (1, 1),
    "MONTH(day)": (1, 12),
    "EXTRACT(dow FROM seen)": (0, 6),
    "EXTRACT(hour FROM seen)": (0, 23),
    "DAYOFYEAR(day)": (1, 366),
    "QUARTER(born)": (1, 4),
    "YEAR(day)": (2020, 2020),
    "day - DATE '2020-01-01'": (0, 365),
    "DATE_DIFF('month', day, '2021-01-01')": (1, 12),
    "DATE_DIFF('week', '2020-01-01', day)": (0, 52),
    "POWER(points, 0)": (1, 1),
}
NONE = ["n", "x", "n + 1", "-n", "ABS(n)", "age + n", "x / age", "1 / points", "LN(x)", "EXP(age * 1000)", "YEAR(born)"]
NONE += [
    "CASE WHEN smokes THEN age ELSE n END",
    "GREATEST(n, 0)",
    "POWER(age, 0.5)",
    "kg * 1e308 * 1e308",
]
AROUND = {
    "SQRT(age)": (0, math.sqrt(120)),
    "SQRT(points)": (0, math.sqrt(10)),
    "LN(age)": (0, math.log(120)),
    "LN(kg)": (math.log(0.5), math.log(300)),
    "LOG(age)": (0, math.log10(120)),
    "LOG2(kg)": (-1, math.log2(300)),
    "EXP(points)": (math.exp(-10), math.exp(10)),
    "POWER(points, 2)": (0, 100),
    "POWER(points, 3)": (-1000, 1000),
    "EXTRACT(epoch FROM day)": (1577836800, 1609372800),
}


@pytest.mark.parametrize(("sql", "expected"), EXACT.items(), ids=EXACT)
def test_a_range_is_exact_where_engines_are(sql: str, expected: tuple[float, float]) -> None:
    assert range_of(sql) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(("sql", "expected"), AROUND.items(), ids=AROUND)
def test_a_range_is_a_little_wider_where_engines_may_round(sql: str, expected: tuple[float, float]) -> None:
    found = range_of(sql)
    assert found == pytest.approx(expected, rel=1e-14)
    assert found is not None
    assert found[0] <= expected[0]
    assert found[1] >= expected[1]


@pytest.mark.parametrize("sql", NONE)
def test_a_range_that_is_not_certain_is_none(sql: str) -> None:
    assert of(sql).range is None


DOMAINS: dict[str, tuple[Constant, ...] | None] = {
    "sex": ("F", "M"),
    "grade": (1, 2, 5),
    "'a'": ("a",),
    "NULL": (),
    "COALESCE(sex, 'unknown')": ("F", "M", "unknown"),
    "CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'child' END": ("child", "adult"),
    "IF(smokes, 3, 1)": (3, 1),
    "IF(smokes, 3, age)": None,
    "LOWER(sex)": ("f", "m"),
    "LEFT(COALESCE(sex, 'unknown'), 1)": ("F", "M", "u"),
    "RIGHT('abc' || sex, 2)": ("cF", "cM"),
    "sex || '-' || sex": ("F-F", "F-M", "M-F", "M-M"),
    "UPPER(COALESCE(sex, 'ß'))": None,
    "TRIM(COALESCE(sex, ' - '))": ("F", "M", "-"),
    "CAST(grade AS TEXT)": ("1", "2", "5"),
    "CAST(smokes AS TEXT)": ("false", "true"),
    "smokes": None,
    "age": None,
    "DATE_TRUNC('quarter', day)": tuple(date(2020, month, 1) for month in (1, 4, 7, 10)),
    "DATE_TRUNC('year', seen)": (datetime(2020, 1, 1),),
    "DATE_TRUNC('second', seen)": None,
    "DATE_TRUNC('month', born)": None,
    "CAST(DATE_TRUNC('year', seen) AS DATE)": (date(2020, 1, 1),),
}


@pytest.mark.parametrize(("sql", "expected"), DOMAINS.items(), ids=DOMAINS)
def test_a_domain_lists_what_can_be_shown(sql: str, expected: tuple[Constant, ...] | None) -> None:
    assert of(sql).domain == expected


def test_days_and_weeks_are_listed() -> None:
    days, weeks = of("DATE_TRUNC('day', day)").domain, of("DATE_TRUNC('week', day)").domain
    assert days is not None
    assert weeks is not None
    assert (len(days), days[0], days[-1]) == (366, date(2020, 1, 1), date(2020, 12, 31))
    assert (len(weeks), weeks[0], weeks[-1]) == (53, date(2019, 12, 30), date(2020, 12, 28))


KINDS = {
    Kind.INTEGER: ["age + 1", "age // 2", "n % 3", "FLOOR(kg)", "ROUND(age / 7)", "IF(smokes, 1, 2)", "day - born"],
    Kind.REAL: [
        "n + 1",
        "age / 2",
        "age + 0.5",
        "FLOOR(x)",
        "POWER(age, 2)",
        "12345678901234567890",
        "COALESCE(n, 0.5)",
    ],
    Kind.DATE: [
        "day + 7",
        "DATE_TRUNC('month', day)",
        "CAST(seen AS DATE)",
        "LAST_DAY(seen)",
        "COALESCE(day, '2020-01-01')",
    ],
    Kind.TIME: ["day + INTERVAL 1 DAY", "DATE_TRUNC('month', seen)", "COALESCE(day, seen)", "TIMESTAMP '2020-01-01'"],
    Kind.TEXT: ["name || 'a'", "CAST(age AS VARCHAR)", "NULL"],
    Kind.BOOLEAN: ["age > 1", "CAST(age AS BOOLEAN)", "name IS NULL"],
}


@pytest.mark.parametrize(("kind", "sql"), [(kind, sql) for kind, texts in KINDS.items() for sql in texts])
def test_the_kind_of_a_result(kind: Kind, sql: str) -> None:
    assert of(sql).kind is kind


@pytest.mark.parametrize(
    "sql", ["age IS NULL", "COALESCE(age, 0)", "CONCAT(name, sex)", "IF(smokes, 1, 2)", "n IS DISTINCT FROM 1"]
)
def test_what_is_never_null(sql: str) -> None:
    assert not of(sql).nullable


@pytest.mark.parametrize(
    "sql",
    ["1 / 0", "1 / points", "1 % points", "SQRT(points)", "CAST('a' AS INT)", "x + 1", "CASE WHEN 1 = n THEN 2 END"],
)
def test_what_can_be_null(sql: str) -> None:
    assert of(sql).nullable


def test_the_mark_of_the_unit_stays_except_through_is_null() -> None:
    marked = ["patient", "UPPER(patient)", "patient = 'a'", "patient IN ('a', 'b')", "NOT (smokes OR patient > 'a')"]
    marked += ["CASE WHEN patient = 'a' THEN 1 ELSE 2 END", "COALESCE(patient, '')", "patient IS DISTINCT FROM name"]
    assert all(of(sql).unit for sql in marked)
    assert not of("patient IS NULL").unit
    assert not of("patient IS NOT NULL AND smokes").unit


def test_clamping_meets_the_range_that_is_there() -> None:
    assert clamp(of("age"), Range.of(18, 200)).range == Range.of(18, 120)
    assert clamp(of("age"), Range.of(-5, 200)) == of("age")
    assert clamp(of("n"), Range(Fraction(1, 2), Fraction(7, 2))).range == Range.of(1, 3)
    assert clamp(of("x"), Range(Fraction(1, 3), Fraction(1))).range == Range(
        Fraction(math.nextafter(1 / 3, 1)), Fraction(1)
    )
    assert clamp(of("age"), Range.of(500, 600)).range == Range.of(500, 500)


def test_every_function_is_named_once_in_order() -> None:
    assert list(FUNCTION_NAMES) == sorted(set(FUNCTION_NAMES))
    assert {"ABS", "CASE", "DATE_TRUNC", "LIKE", "WIDTH_BUCKET"} <= set(FUNCTION_NAMES)
