"""Each question in its one form: SQL in, canonical SQL out. [age] stands for a column as it is read."""

from __future__ import annotations

import pytest
import sqlglot

from tacit.query.scalars import conjunction, disjunction, literal, negate
from tests.unit.query.scalars.clinic import bind, of, shown

COMPARISONS = """
age >= 18                        | age >= 18
18 <= age                        | age >= 18
age > 17                         | age >= 18
age > 17.5                       | age >= 18
NOT age < 18                     | age >= 18
NOT age <= 17.2                  | age >= 18
age < 0                          | [age] <= -1
age <= 120                       | [age] <= 120
age > 119                        | age >= 120
age = 120                        | [age] = 120
age = 0                          | [age] = 0
age <> 0                         | [age] <> 0
age <= 0                         | age <= 0
age > 0                          | age >= 1
age >= 0                         | [age] >= 0
age = 7.0                        | age = 7
age = 7.5                        | CAST([age] AS DOUBLE) = 7.5e0
n < 1e30                         | CAST(n AS DOUBLE) < 1e+30
kg > 70                          | CASE WHEN kg <> NaN THEN kg END > 70e0
kg > 300                         | [kg] > 300e0
x > y                            | [x] > [y]
y < x                            | [x] > [y]
NOT y < x                        | [x] <= [y]
NOT x < y                        | [x] >= [y]
NOT x < 1                        | [x] >= 1e0
NOT x >= 1                       | [x] < 1e0
NOT x <= 1                       | [x] > 1e0
NOT x > 1                        | [x] <= 1e0
NOT x = 1                        | [x] <> 1e0
x <> 1                           | [x] <> 1e0
1 != x                           | [x] <> 1e0
x < x                            | [x] <> [x]
age BETWEEN 18 AND 65            | age <= 65 AND age >= 18
age NOT BETWEEN 18 AND 65        | age <= 17 OR age >= 66
age IN (3, 1, 2, 1)              | age IN (1, 2, 3)
age IN (3)                       | age = 3
age NOT IN (3, 1)                | NOT age IN (1, 3)
age <> 1 AND 3 <> age            | NOT age IN (1, 3)
age IN (1, NULL)                 | CAST(NULL AS BOOLEAN) OR age = 1
age = 1 OR age = 2 OR age = 2    | age IN (1, 2)
day >= '2020-05-01'              | day >= CAST('2020-05-01' AS DATE)
day > '2020-05-01'               | day >= CAST('2020-05-02' AS DATE)
day < DATE '2020-05-01'          | day <= CAST('2020-04-30' AS DATE)
seen > '2020-05-01'              | seen > CAST('2020-05-01 00:00:00' AS TIMESTAMP)
smokes = TRUE                    | smokes
smokes <> TRUE                   | NOT smokes
smokes IS TRUE                   | COALESCE(smokes, FALSE)
smokes IS NOT TRUE               | NOT COALESCE(smokes, FALSE)
age IS NULL                      | age IS NULL
NOT age IS NOT NULL              | age IS NULL
kg IS NULL                       | CASE WHEN kg <> NaN THEN kg END IS NULL
n IS DISTINCT FROM 5             | n IS DISTINCT FROM 5
NOT 5 IS NOT DISTINCT FROM n     | n IS DISTINCT FROM 5
n IS NOT DISTINCT FROM NULL      | n IS NULL
1 < 2                            | TRUE
'b' < 'a'                        | FALSE
NULL = 1                         | CAST(NULL AS BOOLEAN)
"""
LOGIC = """
NOT (smokes AND age > 17)        | NOT smokes OR age <= 17
NOT (smokes OR NOT age > 17)     | NOT smokes AND age >= 18
NOT NOT smokes                   | smokes
smokes AND smokes                | smokes
smokes AND TRUE                  | smokes
smokes AND 1 > 2                 | FALSE
smokes OR TRUE                   | TRUE
smokes OR (n = 1 OR x > 1)       | [x] > 1e0 OR n = 1 OR smokes
(n = 1 OR smokes) AND n = 2      | (n = 1 OR smokes) AND n = 2
smokes AND NULL                  | CAST(NULL AS BOOLEAN) AND smokes
"""
VALUES = """
1 + age                          | [age] + 1
age + -1                         | [age] - 1
age - 1                          | [age] - 1
age - -1                         | [age] + 1
n + 1                            | CASE WHEN (CAST(n AS DOUBLE) + 1e0) <> NaN THEN CAST(n AS DOUBLE) + 1e0 END
y + x                            | CASE WHEN (x + y) <> NaN THEN x + y END
x + y + x                        | CASE WHEN ((x + y) + x) <> NaN THEN (x + y) + x END
2 * 3 + 1                        | 7
0.1 + 0.2                        | 0.3e0
7 / 2                            | 3.5e0
-7 // 2                          | -3
-7 % 2                           | -1
1 / 0                            | CAST(NULL AS DOUBLE)
age / 2                          | CAST([age] AS DOUBLE) / 2e0
12 // points                     | 12 // CASE WHEN [points] <> 0 THEN [points] END
n // 7                           | n // 7
IFNULL(n, 0)                     | COALESCE(n, 0)
COALESCE(n, NULL, 0, 5)          | COALESCE(n, 0)
COALESCE(NULL, NULL)             | NULL
IF(smokes, 'a', 'b')             | CASE WHEN smokes THEN 'a' ELSE 'b' END
IF(smokes, 1, 2)                 | CAST(CASE WHEN smokes THEN 1 ELSE 2 END AS BIGINT)
CASE n WHEN 1 THEN n END         | CASE WHEN n = 1 THEN n END
CASE WHEN 1 > 2 THEN n ELSE 5 END | 5
NULLIF(n, 3)                     | CASE WHEN n = 3 THEN NULL ELSE n END
CAST(name AS INT)                | TRY_CAST(name AS BIGINT)
TRY_CAST(name AS BIGINT)         | TRY_CAST(name AS BIGINT)
n::DOUBLE                        | CAST(n AS DOUBLE)
CAST(n AS BOOLEAN)               | n <> 0
CAST(kg AS INT)                  | CAST([kg] AS BIGINT)
DATE '2020-01-31' + 1            | CAST('2020-02-01' AS DATE)
DATE '2020-01-31' + INTERVAL 1 MONTH | CAST('2020-02-29 00:00:00' AS TIMESTAMP)
DATE '9999-12-31' + 1            | CAST(NULL AS DATE)
day + INTERVAL '2 weeks'         | CAST([day] AS TIMESTAMP) + INTERVAL '14' DAY
day - DATE '2020-01-01'          | DATE_DIFF('DAY', CAST('2020-01-01' AS DATE), [day])
YEAR(day)                        | EXTRACT(YEAR FROM [day])
DATE_PART('year', day)           | EXTRACT(YEAR FROM [day])
DATE_TRUNC('month', day)         | CAST(DATE_TRUNC('MONTH', [day]) AS DATE)
GREATEST(n, 3, NULL, 5)          | GREATEST(n, 5)
SQRT(kg)                         | SQRT([kg])
LN(points)                       | LN(CASE WHEN CAST([points] AS DOUBLE) > 0e0 THEN CAST([points] AS DOUBLE) END)
FLOOR(kg)                        | CAST(FLOOR([kg]) AS BIGINT)
FLOOR(age)                       | [age]
ABS(-3)                          | 3
SIGN(n)                          | CAST(SIGN(n) AS BIGINT)
"""
TEXTS = """
name LIKE 'ab%'                  | name LIKE 'ab%'
STARTS_WITH(name, 'ab')          | name LIKE 'ab%'
PREFIX(name, 'ab')               | name LIKE 'ab%'
ENDS_WITH(name, 'ab')            | name LIKE '%ab'
CONTAINS(name, 'a%b')            | CONTAINS(name, 'a%b')
name LIKE 'ab'                   | name = 'ab'
name NOT LIKE 'a_'               | NOT (name LIKE 'a_')
name ILIKE 'a%%'                 | name ILIKE 'a%'
LEFT(name, 2)                    | SUBSTRING(name, 1, 2)
CONCAT(name, '-', sex)           | COALESCE(name, '') || '-' || COALESCE([sex], '')
name || NULL                     | CAST(NULL AS TEXT)
UPPER('abc') || LOWER('D')       | 'ABCd'
LENGTH('abc')                    | 3
'it''s'                          | 'it''s'
CHAR_LENGTH(name)                | LENGTH(name)
"""


def cases(*tables: str) -> list[tuple[str, str]]:
    """Return the rows of tables of SQL and what becomes of it."""
    lines = [line for table in tables for line in table.strip().splitlines()]
    return [(left.strip(), right.strip()) for left, _, right in (line.rpartition(" | ") for line in lines)]


@pytest.mark.parametrize(("sql", "canonical"), cases(COMPARISONS, LOGIC, VALUES, TEXTS))
def test_a_question_has_one_form(sql: str, canonical: str) -> None:
    assert shown(sql) == canonical


def test_no_part_is_true_for_and_and_false_for_or() -> None:
    assert conjunction([]) == literal(True)
    assert disjunction([]) == literal(False)


def test_not_of_null_is_null() -> None:
    assert negate(of("NULL")).text == "CAST(NULL AS BOOLEAN)"


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_thousands_of_terms_are_handled_without_recursion(word: str) -> None:
    terms = [f"n > {number}" if number % 2 else f"name <> '{number}'" for number in range(3_000)]
    trees = (sqlglot.parse_one(f" {word} ".join(some), dialect="duckdb") for some in (terms, reversed(terms)))
    forwards, backwards = (bind(tree) for tree in trees)
    assert forwards == backwards
    assert negate(negate(forwards)).text == forwards.text
