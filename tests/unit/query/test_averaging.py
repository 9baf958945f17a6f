"""Averaging by asking one question in many ways: asked again it is the same one, and its answer the same answer."""

from __future__ import annotations

from tests.unit.query.people import planned

EQUAL = [
    ("COUNT(*) FROM people", "COUNT(1) FROM people AS p"),
    ("COUNT(*) FROM people WHERE TRUE", "COUNT(*) FROM people WHERE 1 < 2"),
    ("COUNT(*) FROM people WHERE b", "COUNT(*) FROM people WHERE b = TRUE"),
    ("COUNT(*) FROM people WHERE b", "COUNT(*) FROM people WHERE NOT NOT b"),
    ("COUNT(*) FROM people WHERE NOT b", "COUNT(*) FROM people WHERE b = FALSE"),
    ("COUNT(*) FROM people WHERE b AND i > 3", "COUNT(*) FROM people WHERE i > 3 AND b"),
    ("COUNT(*) FROM people WHERE b OR i > 3", "COUNT(*) FROM people WHERE i > 3 OR b"),
    ("COUNT(*) FROM people WHERE b AND i > 3", "COUNT(*) FROM people WHERE b AND b AND i > 3"),
    ("COUNT(*) FROM people WHERE b AND (i > 3 AND s = 'a')", "COUNT(*) FROM people WHERE (s = 'a' AND b) AND i > 3"),
    ("COUNT(*) FROM people WHERE i > 3", "COUNT(*) FROM people WHERE 3 < i"),
    ("COUNT(*) FROM people WHERE i > 3", "COUNT(*) FROM people WHERE i >= 4"),
    ("COUNT(*) FROM people WHERE i > 3", "COUNT(*) FROM people WHERE NOT i <= 3"),
    ("COUNT(*) FROM people WHERE i > 3", "COUNT(*) FROM people WHERE i > 3.5"),
    ("COUNT(*) FROM people WHERE i > 3", "COUNT(*) FROM people WHERE i > 1 + 2"),
    ("COUNT(*) FROM people WHERE i BETWEEN 1 AND 5", "COUNT(*) FROM people WHERE i >= 1 AND i <= 5"),
    ("COUNT(*) FROM people WHERE i BETWEEN 1 AND 5", "COUNT(*) FROM people WHERE 6 > i AND i > 0"),
    ("COUNT(*) FROM people WHERE i IN (1, 2)", "COUNT(*) FROM people WHERE i IN (2, 1, 2)"),
    ("COUNT(*) FROM people WHERE i IN (1, 2)", "COUNT(*) FROM people WHERE i = 2 OR i = 1"),
    ("COUNT(*) FROM people WHERE i NOT IN (1, 2)", "COUNT(*) FROM people WHERE i <> 1 AND i <> 2"),
    ("COUNT(*) FROM people WHERE i IN (1)", "COUNT(*) FROM people WHERE i = 1"),
    ("COUNT(*) FROM people WHERE s LIKE 'a'", "COUNT(*) FROM people WHERE s = 'a'"),
    ("COUNT(*) FROM people WHERE s LIKE 'a%'", "COUNT(*) FROM people WHERE STARTS_WITH(s, 'a')"),
    ("COUNT(*) FROM people WHERE s LIKE '%a%'", "COUNT(*) FROM people WHERE s LIKE '%%a%%'"),
    ("COUNT(*) FROM people WHERE s IS NOT NULL", "COUNT(*) FROM people WHERE NOT s IS NULL"),
    ("COUNT(*) FROM people WHERE d >= '2024-01-01'", "COUNT(*) FROM people WHERE d >= DATE '2024-01-01'"),
    ("COUNT(*) FROM people WHERE d > '2024-01-01'", "COUNT(*) FROM people WHERE d >= '2024-01-02'"),
    ("COUNT(*) FROM people WHERE NOT (b OR i > 3)", "COUNT(*) FROM people WHERE NOT b AND i <= 3"),
    ("COUNT(*) FILTER (WHERE b) FROM people", "COUNT_IF(b) FROM people"),
    ("SUM(age) FROM people", "SUM((age)) FROM people WHERE TRUE"),
    ("SUM(age + i) FROM people", "SUM(i + age) FROM people"),
    ("SUM(age * kg) FROM people", "SUM(kg * age) FROM people"),
    ("AVG(age) FROM people", "MEAN(age) AS m FROM people"),
    ("MEDIAN(age) FROM people", "QUANTILE_CONT(age, 0.5) FROM people"),
    ("MEDIAN(age) FROM people", "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) FROM people"),
    ("QUANTILE_CONT(age, 0.25) FROM people", "PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY age DESC) FROM people"),
    ("STDDEV(age) FROM people", "STDDEV_SAMP(age) FROM people"),
    ("VARIANCE(age) FROM people", "VAR_SAMP(age) FROM people"),
    ("CORR(age, kg) FROM people", "CORR(kg, age) FROM people"),
    ("sex, COUNT(*) FROM people GROUP BY sex", "COUNT(*), sex FROM people GROUP BY 2"),
    (
        "sex, COUNT(*) FROM people GROUP BY sex",
        "sex AS k, COUNT(*) AS n FROM people GROUP BY k ORDER BY n DESC LIMIT 3",
    ),
    ("sex, COUNT(*) FROM people GROUP BY sex", "sex, COUNT(*) * 2 FROM people GROUP BY sex HAVING COUNT(*) > 5"),
    ("sex, COUNT(*) FROM people GROUP BY sex", "sex, COUNT(*) FROM people GROUP BY ALL"),
    ("COUNT(*) FROM people p JOIN cities ON i = id", "COUNT(*) FROM people JOIN cities c ON c.id = people.i"),
    ("COUNT(*) FROM people WHERE CASE WHEN b THEN i > 3 END", "COUNT(*) FROM people WHERE IF(b, i > 3, NULL)"),
    ("COUNT(*) FROM people WHERE i = 1 OR FALSE", "COUNT(*) FROM people WHERE i = 1 AND TRUE"),
]
DIFFERENT = [
    ("COUNT(*) FROM people", "COUNT(*) FROM few"),
    ("COUNT(*) FROM people", "COUNT(s) FROM people"),
    ("COUNT(*) FROM people", "COUNT(DISTINCT uid) FROM people"),
    ("COUNT(DISTINCT s) FROM people", "COUNT(DISTINCT i) FROM people"),
    ("COUNT(*) FROM people WHERE i > 3", "COUNT(*) FROM people WHERE i >= 3"),
    ("COUNT(*) FROM people WHERE r > 3", "COUNT(*) FROM people WHERE r >= 4"),
    ("COUNT(*) FROM people WHERE b AND i > 3", "COUNT(*) FROM people WHERE b OR i > 3"),
    ("COUNT(*) FROM people WHERE s = 'a'", "COUNT(*) FROM people WHERE s = 'A'"),
    ("COUNT(*) FROM people WHERE s LIKE 'a%'", "COUNT(*) FROM people WHERE s ILIKE 'a%'"),
    ("COUNT(*) FROM people WHERE s = 'a'", "COUNT(*) FROM people WHERE s = 'a '"),
    ("COUNT(*) FROM people WHERE i IN (1, 2)", "COUNT(*) FROM people WHERE i IN (1, 2, 3)"),
    ("COUNT(*) FROM people WHERE i NOT IN (1, 2)", "COUNT(*) FROM people WHERE i <> 1 OR i <> 2"),
    ("SUM(age) FROM people", "AVG(age) FROM people"),
    ("SUM(age) FROM people", "SUM(age + 1) FROM people"),
    ("SUM(age) FROM people", "SUM(-age) FROM people"),
    ("SUM(age) FROM people", "SUM(age) FILTER (WHERE b) FROM people"),
    ("SUM(LEAST(i, 5)) FROM people", "SUM(LEAST(i, 6)) FROM people"),
    ("VAR_POP(age) FROM people", "VAR_POP(kg) FROM people"),
    ("MEDIAN(age) FROM people", "QUANTILE_CONT(age, 0.51) FROM people"),
    ("MIN(age) FROM people", "MAX(age) FROM people"),
    ("MODE(sex) FROM people", "MODE(b) FROM people"),
    ("sex, COUNT(*) FROM people GROUP BY sex", "s, COUNT(*) FROM people GROUP BY s"),
    ("sex, COUNT(*) FROM people GROUP BY sex", "sex, b, COUNT(*) FROM people GROUP BY sex, b"),
    ("COUNT(*) FROM people JOIN cities ON i = id", "COUNT(*) FROM people LEFT JOIN cities ON i = id"),
    ("COUNT(*) FROM people WHERE i = 1", "COUNT(*) FROM people WHERE i IS NOT DISTINCT FROM 2"),
]


def test_the_answer_to_a_question_that_was_asked_in_another_way_is_the_same_answer() -> None:
    for one, other in EQUAL:
        assert planned(f"SELECT {one}").canonical == planned(f"SELECT {other}").canonical, (one, other)
    assert len(EQUAL) >= 40


def test_questions_that_differ_are_told_apart() -> None:
    for one, other in DIFFERENT:
        assert planned(f"SELECT {one}").canonical != planned(f"SELECT {other}").canonical, (one, other)
    assert len(DIFFERENT) >= 20
