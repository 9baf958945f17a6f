"""What is not understood is refused with its name, its place and what would be."""

from __future__ import annotations

import pytest

from tacit.privacy.errors import NotAllowed, TacitError, TooWide, WrongKind
from tests.unit.query.scalars.clinic import of

WRONG = {
    "name + 1": "+ takes numbers and got a text; use CAST to change it",
    "smokes * 2": "* takes numbers and got a boolean; use CAST to change it",
    "-name": "- takes numbers and got a text; use CAST to change it",
    "name = 5": "= takes values of one kind and got a text and an integer; use CAST",
    "age > 'old'": "> takes values of one kind and got a text and an integer; use CAST",
    "born > 'soon'": "'soon' is not a date; write it as '2024-01-31' or '2024-01-31 23:59:59'",
    "DATE '2020-02-30'": "'2020-02-30' is not a date; write it as '2024-01-31' or '2024-01-31 23:59:59'",
    "smokes AND n": "AND takes truth values and got an integer",
    "NOT name": "NOT takes truth values and got a text; use CAST to change it",
    "CASE WHEN n THEN 1 END": "WHEN takes truth values and got an integer",
    "IF(smokes, n, day)": "CASE takes dates or times and got an integer",
    "UPPER(age)": "UPPER takes texts and got an integer",
    "SQRT(born)": "SQRT takes numbers and got a date",
    "YEAR(age)": "YEAR takes dates or times and got an integer",
    "HOUR(born)": "HOUR takes a time and got a date",
    "x // 2": "// takes integers whose bounds are known, and got a real; FLOOR(a / b) takes any numbers",
    "CAST(born AS INT)": "CAST cannot turn a date into an integer; EXTRACT, DATE_DIFF and EPOCH make numbers of dates",
    "seen - day": "- takes two dates; the time between two times is DATE_DIFF('second', start, end)",
    "seen + 1": "+ and - shift a time by an interval; write INTERVAL '1' DAY",
    "n IS 5": "IS takes NULL, TRUE or FALSE on its right; use = to compare values",
}
NOT_ALLOWED = [
    *("CURRENT_DATE", "NOW()", "RANDOM()", "HASH(name)", "MD5(name)", "REPEAT(name, 9)", "LPAD(name, 9, 'x')"),
    *("REPLACE(name, 'a', 'bb')", "REGEXP_MATCHES(name, 'a')", "name ~ 'a'", "name SIMILAR TO 'a'", "GETENV('HOME')"),
    *("READ_CSV('/etc/passwd')", "SUM(age)", "COUNT(*)", "ROW_NUMBER() OVER ()", "(SELECT 1)", "EXISTS (SELECT 1)"),
    *("age IN (SELECT 1)", "[1, 2]", "(age, n)", "{'a': 1}", "age & 1", "age << 2", "x -> x + 1", "TRY(age)"),
    *(
        "INTERVAL 1 DAY",
        "born + INTERVAL (n) DAY",
        "born + INTERVAL '1.5' DAY",
        "born + n",
    ),
    *(
        "CAST(born AS TIMESTAMPTZ)",
        "CAST(age AS HUGEINT)",
        "name LIKE name",
        "name LIKE '%a%b%c%d%e%'",
        "name COLLATE NOCASE",
    ),
    *("name LIKE 'a#%' ESCAPE '#'", "age BETWEEN SYMMETRIC 9 AND 1", "SUBSTRING(name, n)", "SUBSTRING(name, 0)"),
    *(
        "LEFT(name, -1)",
        "ROUND(x, n)",
        "ROUND(x, 400)",
        "LOG(3, x)",
        "WIDTH_BUCKET(x, 1, 0, 5)",
        "WIDTH_BUCKET(x, 0, y, 5)",
    ),
    *(
        "DATE_TRUNC('century', born)",
        "DATE_TRUNC('hour', born)",
        "DATE_DIFF('microsecond', seen, seen)",
        "TRIM(name, 'x')",
    ),
    *("EXTRACT(timezone FROM seen)", "$1", "?", "name[1]", "COLUMNS('a')", "name LIKE ANY ('a', 'b')", "AGE(born)"),
]


@pytest.mark.parametrize(("sql", "sentence"), WRONG.items(), ids=WRONG)
def test_a_wrong_kind_is_named_in_one_sentence(sql: str, sentence: str) -> None:
    with pytest.raises(WrongKind) as caught:
        of(sql)
    assert str(caught.value) == f"at 1:8: {sentence}"


@pytest.mark.parametrize("sql", NOT_ALLOWED)
def test_what_has_no_rule_is_refused_with_its_place(sql: str) -> None:
    with pytest.raises(NotAllowed) as caught:
        of(sql)
    assert str(caught.value).startswith("at 1:8: ")
    assert caught.value.accepted


def test_a_slip_is_answered_with_what_comes_nearest() -> None:
    with pytest.raises(NotAllowed, match="COALESCE"):
        of("COALESC(n, 1)")


def test_texts_in_a_query_are_limited() -> None:
    assert of(f"'{'x' * 10_000}'").domain == ("x" * 10_000,)
    with pytest.raises(TooWide, match="10,000 characters"):
        of(f"'{'x' * 10_001}'")


def test_guards_that_repeat_what_they_guard_do_not_grow_without_limit() -> None:
    nested = "n"
    for _ in range(25):
        nested = f"NULLIF({nested}, 3)"
    with pytest.raises(TooWide):
        of(nested)


def test_sums_and_products_without_bounds_grow_in_step_with_the_query() -> None:
    short, long = (of(" + ".join(["x * y"] * count)).text for count in (10, 40))
    assert len(long) < 5 * len(short)


def test_no_refusal_is_a_bare_error() -> None:
    for sql in (*WRONG, *NOT_ALLOWED):
        with pytest.raises(TacitError):
            of(sql)
