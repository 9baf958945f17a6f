"""The server as a database: what PEP 249 asks for, parameters that stay values, and pandas."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from tacit.client import dbapi
from tacit.client.dbapi import Connection, bind_parameters, database_error
from tacit.privacy import errors
from tacit.privacy.errors import TacitError
from tests.unit.client.contract import RELEASE, Served, fine, in_order, refused
from tests.unit.client.serving import Place, served

SQL = "SELECT COUNT(*) AS n FROM visits WHERE age > :age"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with served(tmp_path_factory.mktemp("dbapi") / "clinic") as found:
        yield found


def connection_to(handler: Any, **asked: Any) -> tuple[Connection, Served]:
    served = Served(handler)
    return Connection(served.client, asked), served


def test_the_module_says_which_standard_it_keeps() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "named")
    for name in ("Warning", "Error", "InterfaceError", "DatabaseError", "NotSupportedError"):
        assert getattr(Connection, name) is getattr(dbapi, name)
    assert issubclass(dbapi.Error, Exception)
    assert not issubclass(dbapi.Warning, dbapi.Error)
    for name in dbapi.__all__:
        assert hasattr(dbapi, name)


def test_a_cursor_hands_out_rows_one_some_and_all() -> None:
    connection, _ = connection_to(in_order(fine(RELEASE)), epsilon=0.5)
    cursor = connection.cursor()
    assert (cursor.description, cursor.rowcount, cursor.rownumber, cursor.arraysize) == (None, -1, None, 1)
    assert cursor.execute("SELECT 1") is cursor
    assert [column[:2] for column in cursor.description or ()] == [
        ("sex", "text"),
        ("day", "date"),
        ("at", "time"),
        ("n", "integer"),
        ("mean", "real"),
    ]
    assert {len(column) for column in cursor.description or ()} == {7}
    assert cursor.rowcount == 2
    first = ("F", date(2024, 1, 31), datetime(2024, 1, 31, 12), 601, 3.0)
    second = ("<b>", None, None, 600, None)
    assert (cursor.fetchone(), cursor.fetchone(), cursor.fetchone()) == (first, second, None)
    assert cursor.execute("SELECT 1").fetchmany() == [first]
    assert cursor.fetchmany(5) == [second]
    assert cursor.fetchmany(5) == []
    assert cursor.execute("SELECT 1").fetchall() == list(cursor.execute("SELECT 1")) == [first, second]
    assert cursor.fetchall() == []
    assert cursor.release is not None
    assert cursor.release.cost.epsilon == 0.5
    cursor.setinputsizes([1])
    cursor.setoutputsize(1, 0)


def test_type_codes_equal_the_types_of_the_standard() -> None:
    assert dbapi.NUMBER == "integer"
    assert dbapi.NUMBER == "real"
    assert dbapi.STRING == "text"
    assert dbapi.DATETIME == "time"
    assert dbapi.NUMBER != "text"
    assert dbapi.BINARY != "text"
    assert dbapi.ROWID != dbapi.BINARY
    assert dbapi.TimestampFromTicks(0) == datetime(1970, 1, 1)
    assert dbapi.DateFromTicks(86400) == date(1970, 1, 2)
    assert dbapi.TimeFromTicks(60).minute == 1


def test_before_a_question_and_after_close_there_are_no_rows() -> None:
    connection, served = connection_to(in_order(fine(RELEASE)), epsilon=0.5)
    cursor = connection.cursor()
    for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall):
        with pytest.raises(dbapi.ProgrammingError):
            fetch()
    cursor.execute("SELECT 1")
    cursor.close()
    for use in (cursor.fetchone, lambda: cursor.execute("SELECT 1")):
        with pytest.raises(dbapi.ProgrammingError, match="closed"):
            use()
    other = connection.cursor()
    connection.commit()
    connection.rollback()
    connection.close()
    for use in (connection.cursor, connection.commit, connection.rollback, lambda: other.execute("SELECT 1")):
        with pytest.raises(dbapi.ProgrammingError, match="closed"):
            use()
    assert len(served.requests) == 1


def test_a_failed_statement_leaves_no_rows_of_the_one_before() -> None:
    connection, _ = connection_to(in_order(fine(RELEASE), refused("T300", 402)), epsilon=0.5)
    cursor = connection.cursor().execute("SELECT 1")
    with pytest.raises(dbapi.OperationalError):
        cursor.execute("SELECT 2")
    assert (cursor.release, cursor.rowcount, cursor.description) == (None, -1, None)
    with pytest.raises(dbapi.ProgrammingError):
        cursor.fetchall()


def test_many_at_once_are_refused_because_each_is_charged() -> None:
    connection, served = connection_to(in_order(fine(RELEASE)), epsilon=0.5)
    with pytest.raises(dbapi.NotSupportedError):
        connection.cursor().executemany(SQL, [{"age": 1}, {"age": 2}])
    assert served.requests == []


def test_what_a_statement_may_cost_is_said_by_it_or_by_the_connection() -> None:
    connection, served = connection_to(in_order(fine(RELEASE)), epsilon=0.5, delta=1e-9)
    cursor = connection.cursor()
    cursor.execute("SELECT 1")
    cursor.execute("SELECT 1", epsilon=0.25)
    cursor.execute("SELECT 1", None, rho=0.1, purpose="report")
    prices = [
        {name: one[name] for name in ("epsilon", "rho", "delta", "purpose") if name in one}
        for one in served.bodies("/v1/queries")
    ]
    assert prices == [
        {"epsilon": 0.5, "delta": 1e-9},
        {"epsilon": 0.25, "delta": 1e-9},
        {"rho": 0.1, "delta": 1e-9, "purpose": "report"},
    ]


TREE = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, TacitError)]


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_every_error_of_tacit_is_an_error_of_the_standard(kind: type[TacitError]) -> None:
    found = database_error(kind("it does not work"))
    assert isinstance(found, dbapi.DatabaseError)
    assert found.code == kind.code
    assert "it does not work" in str(found)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("T130", dbapi.ProgrammingError),
        ("T103", dbapi.DataError),
        ("T122", dbapi.IntegrityError),
        ("T203", dbapi.NotSupportedError),
        ("T300", dbapi.OperationalError),
        ("T401", dbapi.OperationalError),
        ("T500", dbapi.InternalError),
        ("T611", dbapi.OperationalError),
        ("T000", dbapi.InternalError),
    ],
)
def test_an_error_keeps_its_code_and_its_cause(code: str, kind: type[Exception]) -> None:
    connection, _ = connection_to(in_order(refused(code, 400)), epsilon=0.5)
    with pytest.raises(kind) as caught:
        connection.cursor().execute("SELECT 1")
    assert type(caught.value) is kind
    assert isinstance(caught.value.__cause__, TacitError)


def literals(sql: str) -> list[str]:
    (statement,) = sqlglot.parse(sql, dialect="duckdb")
    assert statement is not None
    return [one.this for one in statement.find_all(exp.Literal) if one.is_string]


ANY = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)
HOSTILE = st.text("'\"\\;-:$?/*() \n%{}xé", max_size=12)


@given(ANY | HOSTILE)
def test_whatever_a_text_holds_it_stays_one_text(text: str) -> None:
    sql = bind_parameters("SELECT COUNT(*) AS n FROM visits WHERE ward = :ward AND sex = 'F'", {"ward": text})
    assert literals(sql) == [text, "F"]
    plain = bind_parameters("SELECT COUNT(*) AS n FROM visits WHERE ward = :ward AND sex = 'F'", {"ward": "x"})
    (ours,), (theirs,) = sqlglot.parse(sql, dialect="duckdb"), sqlglot.parse(plain, dialect="duckdb")
    assert ours is not None
    assert theirs is not None
    assert [type(one) for one in ours.walk()] == [type(one) for one in theirs.walk()]


@given(
    st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | st.decimals(-1000, 1000, places=5)
)
def test_a_number_stays_the_same_number_behind_a_minus_too(number: Any) -> None:
    sql = bind_parameters("SELECT (1 - :x), (-:x)", {"x": number})
    assert "--" not in sql  # would begin a comment
    difference, negative = eval(sql.removeprefix("SELECT"))  # these letters mean the same in Python
    kind = float if isinstance(number, Decimal) else type(number)
    assert (difference, negative) == (1 - kind(number), -kind(number))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (7, "7"),
        (-7, "(-7)"),
        (1.5, "1.5"),
        (Decimal("1E+3"), "1000"),
        ("O'Hara", "'O''Hara'"),
        (date(2024, 1, 31), "CAST('2024-01-31' AS DATE)"),
        (datetime(2024, 1, 31, 12, tzinfo=UTC), "CAST('2024-01-31 12:00:00' AS TIMESTAMP)"),
        (np.int64(3), "3"),
        (np.float32(0.5), "0.5"),
        (np.bool_(False), "FALSE"),
    ],
)
def test_a_value_is_a_literal_of_its_own_type(value: Any, written: str) -> None:
    assert bind_parameters("SELECT (:x)", {"x": value}) == f"SELECT ({written})"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), b"x", object(), [1], "a\0b"])
def test_what_is_no_value_of_sql_is_refused(value: Any) -> None:
    with pytest.raises(dbapi.DataError):
        bind_parameters("SELECT (:x)", {"x": value})


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        (SQL, {}),
        (SQL, {"sex": "F"}),
        (SQL, {"age": 1, "sex": "F"}),
        (SQL, (60,)),
        (SQL, [60]),
        (SQL, "60"),
        ("SELECT ?", {"x": 1}),
        ("SELECT (:x); SELECT 2", {"x": 1}),
        ("not sql at all (", {"x": 1}),
        ("SELECT " + "(" * 5000, {"x": 1}),
        (42, None),
    ],
)
def test_parameters_that_do_not_fit_the_statement_are_refused(sql: Any, parameters: Any) -> None:
    with pytest.raises(dbapi.ProgrammingError):
        bind_parameters(sql, parameters)


def test_a_colon_in_a_text_or_a_cast_is_no_parameter_and_text_without_parameters_is_left_alone() -> None:
    assert bind_parameters("SELECT ':age', x::INT, :age", {"age": 1}) == "SELECT ':age', CAST(x AS INT), 1"
    assert bind_parameters("select  1 -- as it is", None) == "select  1 -- as it is"
    assert bind_parameters("select  1", ()) == "select  1"


def test_a_statement_with_parameters_has_the_answer_of_the_same_without(place: Place) -> None:
    with (
        Connection(place.client("ana"), {"epsilon": 0.5}) as connection,
        connection.cursor() as cursor,
    ):
        sql = "SELECT COUNT(*) AS n FROM visits WHERE sex = :sex AND day >= :day AND age > -:low"
        rows = cursor.execute(sql, {"sex": "F", "day": date(2024, 3, 1), "low": -30}).fetchall()
        written = "SELECT COUNT(*) AS n FROM visits WHERE sex = 'F' AND day >= DATE '2024-03-01' AND age > 30"
        assert [tuple(row.values()) for row in place.curator.sql(written, 0.5).rows] == rows
        assert place.curator.sql(written, 0.5).cost.epsilon == 0


def test_pandas_reads_from_a_connection(place: Place) -> None:
    import pandas as pd

    connection = Connection(place.client("ana"), {"epsilon": 0.5})
    sql = "SELECT sex, COUNT(*) AS n FROM visits WHERE age > :age GROUP BY sex ORDER BY sex"
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        frame = pd.read_sql(sql, connection, params={"age": 25})  # type: ignore[call-overload]
    local = place.curator.sql(sql.replace(":age", "25"), 0.5)
    assert local.cost.epsilon == 0
    assert frame.equals(local.to_pandas())
    with (
        pytest.warns(UserWarning, match="SQLAlchemy"),
        pytest.raises((dbapi.NotSupportedError, pd.errors.DatabaseError), match="T203"),
    ):
        pd.read_sql("SELECT age FROM visits", connection)  # type: ignore[call-overload]


def test_connecting_checks_what_it_is_given() -> None:
    with pytest.raises(dbapi.ProgrammingError):
        dbapi.connect("nowhere", "token", epsilon=1)
    connection = dbapi.connect("http://127.0.0.1:9", "tacit_x", epsilon=1, retries=0)
    with pytest.raises(dbapi.OperationalError, match="no server answers"):
        connection.cursor().execute("SELECT 1")
    assert "tacit_x" not in repr(connection)
