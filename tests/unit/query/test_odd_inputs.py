"""Inputs that fail only after the charge: each is refused at planning with a code, or answered whatever the data hold.

The way is that of production: `ask`, then `plan_of`, then the statements, noise, rows, intervals and card.
"""

from __future__ import annotations

from typing import cast

import pytest
from sqlglot import exp

from tacit.accounting.conversions import Cost
from tacit.privacy.errors import NotAllowed, TacitError
from tacit.query import BudgetTerms, PlanSettings, Release, Target, ask, plan_of, run
from tacit.query.expressions import Expression
from tacit.query.scalars import SCALARS, Bind, Rule
from tests.unit.query.people import POISON, SCHEMA, engine, person

EMPTY, POISONED = engine(), engine(person(1), person(2), POISON, POISON)
LONG = "9" * 5_000
ANSWERED = [
    "SELECT COUNT(*) FROM people WHERE d + INTERVAL '999999999999' SECOND > DATE '2024-01-01'",
    "SELECT COUNT(*) FROM people WHERE d - INTERVAL '999999999999' YEAR > DATE '2024-01-01'",
    "SELECT COUNT(*) FROM people WHERE d + INTERVAL '999999999999' HOUR > DATE '2024-01-01'",
    "SELECT COUNT(*) FROM people WHERE d > DATE '2020-01-01' - INTERVAL '2147483648' DAY",
    "SELECT COUNT(*) FROM people WHERE d > DATE '2020-01-01' + INTERVAL '999999999999' HOUR",
    "SELECT COUNT(*) FROM people WHERE d > DATE '2020-01-01' + INTERVAL '999999999999' CENTURY",
    "SELECT COUNT(*) FROM people WHERE d + 3655000 > DATE '2020-01-01'",
    "SELECT COUNT(*) FROM people WHERE d - 3655000 > DATE '2020-01-01'",
    "SELECT COUNT(*) FROM people WHERE d > DATE '2020-01-01' + 3655000",
    "SELECT POWER(age, 1e308) AS k, COUNT(*) FROM people GROUP BY k",
    "SELECT SUM(POWER(age, 64)) FROM people",
    "SELECT AVG(EXP(age)) FROM people",
    "SELECT SUM(EXP(EXP(age))) FROM people",
    "SELECT SUM(1e308 * 10) FROM people",
    "SELECT AVG(age / 1e-320) FROM people",
    "SELECT AVG(kg * 1e-320) FROM people",
    "SELECT SUM(kg * 1e300) FROM people",
    "SELECT VAR_POP(kg * 5e-324) FROM people",
    "SELECT MEDIAN(kg * 1e-300) FROM people",
    f"SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY {LONG}",
    f"SELECT SUM(age * {LONG}) FROM people",
    f"SELECT SUM(age + 1e{LONG}) FROM people",
    f"SELECT COUNT(*) FROM people WHERE i = {LONG}",
    f"SELECT COUNT(*) FROM people WHERE i IN ({LONG}, 1e400, -1e400)",
    "SELECT COUNT(*) FROM people WHERE s = '\\x00'",
    f"SELECT COUNT(*) FROM people WHERE i IN ({', '.join(map(str, range(4500)))})",
    f"SELECT COUNT(*) FROM people WHERE s IN ({', '.join(repr(str(x)) for x in range(4500))})",
    "SELECT " + "CASE WHEN age > 1 THEN " * 30 + "1" + " END" * 30 + " AS k, COUNT(*) FROM people GROUP BY k",
    "SELECT " + " + ".join(["COUNT(*)"] * 60) + " FROM people",
    "SELECT SUM(" + "+".join(["age"] * 70) + ") FROM people",
    "SELECT MEDIAN(LEAST(GREATEST(d, DATE '0001-01-01'), DATE '9999-12-31')) FROM people",
    "SELECT MAX(LEAST(GREATEST(t, TIMESTAMP '0001-01-01'), TIMESTAMP '9999-12-31')) FROM people",
    "SELECT DATE_TRUNC('week', DATE '0001-01-01') AS k, COUNT(*) FROM people GROUP BY k",
    "SELECT DATE_TRUNC('week', LEAST(GREATEST(d, DATE '0001-01-01'), DATE '0001-01-09')) AS k, "
    "COUNT(*) FROM people GROUP BY k",
    "SELECT LAST_DAY(LEAST(GREATEST(d, DATE '9999-12-01'), DATE '9999-12-31')) AS k, COUNT(*) FROM people GROUP BY k",
    "SELECT LEAST(GREATEST(d, DATE '9999-12-01'), DATE '9999-12-31') + 5 AS k, COUNT(*) FROM people GROUP BY k",
    "SELECT SUM(age) FROM people WHERE uid = 99999999999999999999999",
    "SELECT COUNT(*) FROM people WHERE uid IN (99999999999999999999, 1e300, 0.5)",
    "SELECT COUNT(*) FROM people WHERE CAST(i AS DECIMAL(38,99999999999)) > 1",
    "SELECT COUNT(*) FROM people WHERE CAST(i AS VARCHAR(5)) > '1'",
    f"SELECT COUNT(*) FROM people WHERE CAST('{LONG}' AS BIGINT) > 1",
    f"SELECT COUNT(*) FROM people WHERE CAST('{LONG}' AS DOUBLE) > 1",
    "SELECT sex, LAG(COUNT(*), 999999999) OVER (ORDER BY sex) FROM people GROUP BY sex",
    "SELECT sex, COUNT(*) OVER (PARTITION BY SUM(age)) FROM people GROUP BY sex",
    "SELECT SUM(SUM(age)) OVER () FROM people",
    "SELECT sex, FIRST_VALUE(sex) OVER (ORDER BY COUNT(*)) FROM people GROUP BY sex",
    "SELECT SQRT(COUNT(*)), LN(COUNT(*)), COUNT(*) // 0, COUNT(*) % 0, 1 / COUNT(*), EXP(COUNT(*)) FROM people",
    "SELECT POWER(COUNT(*), COUNT(*)), ABS(COUNT(*)), -COUNT(*), CAST(COUNT(*) AS VARCHAR), "
    "COUNT(*) * COUNT(*) * COUNT(*) FROM people",
    "SELECT CAST(AVG(kg) * 1e300 AS BIGINT), FLOOR(AVG(kg) * 1e300), ROUND(AVG(kg)*1e308*10) FROM people",
    "SELECT MEDIAN(age) FILTER (WHERE FALSE) FROM people",
    "SELECT MIN(age - age), MAX(0), MEDIAN(5), MODE(sex), MODE('x') FROM people",
    "SELECT NULL, COUNT(*) FROM people GROUP BY NULL",
    "SELECT COUNT(DISTINCT NULL) FROM people",
    "SELECT 1, COUNT(*) FROM people GROUP BY 1",
    "SELECT 'x' AS k, COUNT(*) FROM people GROUP BY k",
    "SELECT TRUE AS k, COUNT(*) FROM people GROUP BY k",
]
REFUSED = [
    "SELECT WIDTH_BUCKET(r, -1e308, 1e308, 1) AS k, COUNT(*) FROM people GROUP BY k",
    "SELECT WIDTH_BUCKET(r, -1e308, 1e308, 10000) AS k, COUNT(*) FROM people GROUP BY k",
    f"SELECT COUNT(*) FROM people LIMIT {LONG}",
    f"SELECT COUNT(*) FROM people OFFSET {LONG}",
    f"SELECT sex, COUNT(*) FROM people GROUP BY {LONG}",
    f"SELECT COUNT(x) FROM (SELECT LAG(i, {LONG}) OVER (PARTITION BY uid ORDER BY i) AS x FROM few) p",
    f"SELECT sex, SUM(COUNT(*)) OVER (ROWS {LONG} PRECEDING) FROM people GROUP BY sex",
    "SELECT PERCENTILE_CONT(1e9999999) WITHIN GROUP (ORDER BY age) FROM people",
    "SELECT QUANTILE(age, 1e-999999) FROM people",
    f"SELECT QUANTILE(age, 0.{LONG}) FROM people",
    f"SELECT COUNT(*) FROM people WHERE d + INTERVAL '{LONG}' DAY > d",
    "SELECT COUNT(*) FROM people WHERE d + INTERVAL '1e5' DAY > d",
    "SELECT COUNT(*) FROM people WHERE d > '99999-01-01'",
    "SELECT COUNT(*) FROM people WHERE d > DATE '0000-01-01'",
    "SELECT COUNT(*) FROM people WHERE d > DATE '10000-01-01'",
    "SELECT COUNT(*) FROM people WHERE t > TIMESTAMP '0001-01-01 00:00:00+14:00'",
    "SELECT COUNT(*) FROM people WHERE t > '9999-12-31 23:59:59-14:00'",
    "SELECT COUNT(*) FROM people WHERE s = '\ud800'",
    "SELECT COUNT(*) FROM people WHERE s = '\0'",
    "SELECT COUNT(*) FROM people WHERE s LIKE '%\ud800%'",
    'SELECT COUNT(*) AS "\ud800" FROM people',
    'SELECT COUNT(*) AS "a\0b" FROM people',
    "SELECT COUNT(*) FROM people WHERE s = E'\\x00'",
    "SELECT COUNT(*) FROM people WHERE s = E'\\uD800'",
    "SELECT COUNT(*) FROM people WHERE s = CHR(0)",
    "SELECT COUNT(*) FROM people WHERE s = x'00'",
    "SELECT COUNT(*) FROM people WHERE " + "(" * 200 + "age > 1" + ")" * 200,
    "SELECT COUNT(*) FROM people WHERE " + "NOT " * 120 + "b",
    "SELECT COUNT(*) FROM people WHERE " + "-".join(["age"] * 90) + " > 1",
    "SELECT " + " + ".join(["COUNT(*)"] * 200) + " FROM people",
    "SELECT COUNT(*) FROM people HAVING " + " + ".join(["COUNT(*)"] * 200) + " > 3",
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY " + " + ".join(["n"] * 200),
    "SELECT AVG(n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS q WHERE "
    + " + ".join(["n"] * 200)
    + " > 3",
    "SELECT SUM(" + "+".join(["age"] * 200) + ") FROM people",
    "SELECT SUM(" + "+".join(["r"] * 70) + ") FROM people",
    "SELECT COUNT(DISTINCT " + "||".join(["LEFT(s, 1)"] * 200) + ") FROM people",
    "SELECT MODE(" + "||".join(["sex"] * 9) + ") FROM people",
    "SELECT ROUND(AVG(kg), 400) FROM people",
    "SELECT WIDTH_BUCKET(r, 0, 1e-320, 10000) AS k, COUNT(*) FROM people GROUP BY k",
    "SELECT MEDIAN(d) FROM people",
    "SELECT COUNT(*) FROM people WHERE LEFT(s, 99999999999) = 'x'",
    "SELECT COUNT(*) FROM people WHERE SUBSTRING(s, 0, -1) = 'x'",
    "SELECT COUNT(*) FROM people WHERE CAST('x' AS DATE) > d",
    "SELECT COUNT(*) FROM people WHERE '2024-13-45' < d",
    "SELECT COUNT(*) FROM people WHERE s > 'f\u0000'",
    "SELECT NTILE(99999999999999999999) OVER () FROM people",
    "SELECT sex, NTILE(0) OVER (ORDER BY COUNT(*)) FROM people GROUP BY sex",
    "SELECT sex, NTILE(-1) OVER (ORDER BY COUNT(*)) FROM people GROUP BY sex",
    "SELECT sex, NTILE(COUNT(*)) OVER (ORDER BY sex) FROM people GROUP BY sex",
    "SELECT sex, SUM(COUNT(*)) OVER (ORDER BY sex RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM people GROUP BY sex",
    "SELECT sex, SUM(COUNT(*)) OVER (ORDER BY sex ROWS BETWEEN CURRENT ROW AND UNBOUNDED "
    "PRECEDING) FROM people GROUP BY sex",
    "SELECT sex, SUM(COUNT(*)) OVER (ORDER BY sex ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT "
    "ROW) FROM people GROUP BY sex",
    "SELECT sex, SUM(COUNT(*)) OVER (GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM people GROUP BY sex",
    "SELECT sex, RANK() OVER () FROM people GROUP BY sex",
    "SELECT sex || COUNT(*) FROM people GROUP BY sex",
    "SELECT CAST(COUNT(*) AS DATE) FROM people",
    "SELECT DATE '2024-01-01' + COUNT(*) FROM people",
    "SELECT sex FROM people GROUP BY sex HAVING sex LIKE '%' || sex",
    "SELECT CHR(COUNT(*)) FROM people",
    "SELECT LEFT(sex, COUNT(*)) FROM people GROUP BY sex",
    "SELECT ROUND(AVG(age), COUNT(*)) FROM people",
    "SELECT WIDTH_BUCKET(COUNT(*), 0, 1, 5), MAX(d) + INTERVAL '9000' YEAR FROM people",
    "SELECT MODE(NULL) FROM people",
    "SELECT SUM(NULL), AVG(NULL), COUNT(NULL) FROM people",
    "SELECT MAX(NULL) FROM people",
    "SELECT uid = 5 AS k, COUNT(*) FROM people GROUP BY k",
]


def answered(sql: str, settings: PlanSettings) -> bool:
    """Return whether a question is planned; if so, it is answered over no rows and over bad ones."""
    try:
        plan = plan_of(ask(sql, SCHEMA), SCHEMA, Target(epsilon=1.0), BudgetTerms(delta=1e-6), settings)
        assert plan.canonical
    except TacitError:
        return False
    for held in (EMPTY, POISONED):
        release = Release(plan, run(plan, held, 5), Cost(1.0, 0.0, 1.0), ())
        assert len(release.intervals()) == len(release.rows)
        assert release.card
        assert release.explain()
    return True


@pytest.mark.parametrize("sql", ANSWERED, ids=range(len(ANSWERED)))
def test_an_odd_question_is_answered_whatever_the_data_hold(sql: str) -> None:
    assert answered(sql, PlanSettings())


@pytest.mark.parametrize("sql", REFUSED, ids=range(len(REFUSED)))
def test_a_question_that_cannot_be_answered_is_refused_with_a_code(sql: str) -> None:
    assert not answered(sql, PlanSettings())


def test_a_number_that_a_rule_cannot_hold_is_refused_with_a_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def overflow(node: exp.Expression, bind: Bind) -> Expression:
        raise OverflowError("int too large to convert to float")

    monkeypatch.setitem(cast(dict[type[exp.Expression], Rule], SCALARS), exp.Sqrt, Rule(overflow, ("SQRT",), ("this",)))
    with pytest.raises(NotAllowed, match="SQRT would compute a number or date that is out of range"):
        ask("SELECT COUNT(*) FROM people WHERE SQRT(r) > 1", SCHEMA)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1e308 * 10"])
def test_an_infinite_end_is_answered(number: str) -> None:
    assert answered(f"SELECT SUM(GREATEST(LEAST(r, {number}), 5)) FROM people", PlanSettings())


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "\udfff x"])
def test_a_character_that_is_none_is_refused_before_anything_is_charged(text: str) -> None:
    assert not answered(f"SELECT COUNT(*) FROM people WHERE s = '{text}'", PlanSettings())
    assert not answered("SELECT s, COUNT(*) FROM people GROUP BY s", PlanSettings(keys={"s": [text]}))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("terms", [2, 20, 60, 70, 80, 100, 200, 300])
def test_a_long_sum_is_answered_and_a_longer_one_refused_with_a_code(terms: int) -> None:
    assert answered(f"SELECT SUM({'+'.join(['age'] * terms)}) FROM people", PlanSettings()) == (terms <= 70)
    assert answered(f"SELECT {'+'.join(['COUNT(*)'] * terms)} FROM people", PlanSettings()) == (terms <= 70)
