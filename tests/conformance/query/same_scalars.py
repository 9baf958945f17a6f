"""Checks that an engine gives the same values of scalar expressions as DuckDB."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from sqlglot import exp

from tacit.privacy.errors import InvalidInput, QueryRefused
from tacit.privacy.tables import Column, Kind, Table
from tacit.query.expressions import Expression
from tacit.query.scalars import scalar
from tacit.query.scalars.facts import is_null
from tacit.query.scalars.trees import standing_alone
from tests.conformance.engines.conftest import Place
from tests.conformance.query.engines import TYPES, place
from tests.property.query.scalar_sql import COLUMNS, TRAPS, built, database, scalars

TABLE = Table("data", (Column("row_number", Kind.INTEGER), *(Column(one.name, one.kind) for one in COLUMNS)))
MORE = """
ROUND(r) ; ROUND(wide) ; ROUND(kg) ; ROUND(r, 1) ; ROUND(r, -1) ; TRUNC(r) ; CEIL(r) ; r % 0.1e0 ; wide % kg
r % wide ; kg * wide ; r * r ; r * 5e-324 ; r * 1e300 ; r / 7e0 ; r / 1e-300 ; wide / r ; r / wide ; r + wide
r - r * 2 ; r + 1e308 ; LOG2(kg) ; LOG10(r) ; POWER(kg, r) ; POWER(i, -1) ; POWER(r, 0.5e0) ; POWER(-2, i) ; EXP(r)
EXP(kg) ; SIGN(r) ; SQRT(kg) ; CAST(r AS VARCHAR) ; CAST(r / 3 AS VARCHAR) ; CAST(r * 1e15 AS VARCHAR)
CAST(t AS VARCHAR) ; CAST(d AS VARCHAR) ; LOWER(s) ; UPPER(s) ; TRIM(s) ; LTRIM(s) ; RIGHT(s, 2) ; CONTAINS(s, 'a')
ENDS_WITH(s, s) ; STARTS_WITH(s, sex) ; s < 'a' ; s >= sex ; GREATEST(s, sex) ; LEAST(s, 'M') ; s ILIKE '%I%'
s LIKE '_' ; s || sex ; CONCAT(s, sex) ; s IN ('F', 'ß') ; EXTRACT(week FROM d) ; EXTRACT(isodow FROM t)
EXTRACT(doy FROM t) ; EXTRACT(second FROM t) ; EXTRACT(epoch FROM d) ; DATE_DIFF('quarter', d, t)
DATE_DIFF('month', t, d) ; DATE_DIFF('minute', t, seen) ; DATE_TRUNC('quarter', t) ; d IN (DATE '2020-01-01')
NOT b ; b IS NOT TRUE ; b AND i > 0 OR r < 0 ; COALESCE(b, d > t) ; LEAST(i, r) ; GREATEST(d, t)
"""
TOGETHER = 12
"""How many expressions are computed by one statement."""


def rows() -> list[tuple[Any, ...]]:
    """Return bad rows, as Python holds them: far dates are moved to the ends, and NUL is left out of texts."""
    ends = {
        Kind.DATE: "LEAST(GREATEST({0}, DATE '0001-01-01'), DATE '9999-12-31')",
        Kind.TIME: "LEAST(GREATEST({0}, TIMESTAMP '0001-01-01'), TIMESTAMP '9999-12-31 23:59:59.999999')",
    }
    items = [
        f"CASE WHEN {one.name} IS NOT NULL THEN {ends.get(one.kind, '{0}').format(one.name)} END" for one in COLUMNS
    ]
    found = database().execute(f"SELECT DISTINCT row_number, {', '.join(items)} FROM data").fetchall()
    return [tuple(one.replace("\0", "") if isinstance(one, str) else one for one in row) for row in found]


@cache
def shown(engine: str) -> Place:
    there = place(engine)
    types = {column.name: TYPES[column.kind] for column in TABLE.columns}
    there.engine.register(TABLE, there.put("data", types, rows()), {})
    return there


def values(engine: str, trees: list[exp.Expr]) -> list[list[Any]]:
    """Return the values of several expressions, in the order of rows."""
    items = [exp.alias_(tree.copy(), f"x{number}") for number, tree in enumerate(trees)]
    row = exp.column("row_number")
    tree = exp.select(row, *items).from_(exp.table_("data", db="tacit_data")).order_by(row.copy())
    there = shown(engine)
    columns = there.engine.run(there.engine.write(tree))
    return [list(columns[f"x{number}"]) for number in range(len(trees))]


def check(engine: str, expressions: dict[str, exp.Expr]) -> None:
    """Check that an engine computes what DuckDB computes."""
    known = list(expressions.items())
    for start in range(0, len(known), TOGETHER):
        some = known[start : start + TOGETHER]
        trees = [tree for _, tree in some]
        for (sql, tree), mine, theirs in zip(some, values("duckdb", trees), values(engine, trees), strict=True):
            different = [(a, b) for a, b in zip(mine, theirs, strict=True) if repr(plain(a)) != repr(plain(b))]
            assert not different, (sql, tree.sql("duckdb"), different[:3])


def plain(value: Any) -> Any:
    """Return a value as Python has it, zeros without their sign."""
    value = value.item() if hasattr(value, "item") else value
    return value + 0.0 if isinstance(value, float) else value


def understood(texts: list[str]) -> dict[str, Expression]:
    found = {}
    for sql in texts:
        try:
            found[sql] = built(sql)
        except (InvalidInput, QueryRefused):
            continue
    return found


TYPE_OF = {"duckdb": "typeof(x{0})", "postgres": "pg_typeof(x{0})::text", "spark": "typeof(x{0})"}
NAMES = {"character varying": "varchar", "text": "varchar", "string": "varchar", "timestamp_ntz": "timestamp"}
NAMES |= {"timestamp without time zone": "timestamp", "double precision": "double"}
CONSTANTS = (
    "5",
    "-7",
    "-2147483648",
    "9007199254740993",
    "-9223372036854775807",
    "COALESCE(i, 9007199254740993)",
    "NULLIF(9007199254740993, i)",
    "NULLIF(5, i)",
    "IF(b, 5, 3)",
    "COALESCE(NULLIF(5, i), 7)",
    "5 % i",
    "7 // i",
    "SIGN(age)",
    "2e0",
)


def types(engine: str, trees: list[exp.Expr]) -> list[str]:
    """Return the types of several expressions as columns of a subquery."""
    items = [exp.alias_(standing_alone(tree), f"x{number}") for number, tree in enumerate(trees)]
    tree = exp.select(*items).from_(exp.table_("data", db="tacit_data")).limit(1)
    there = shown(engine)
    named = ", ".join(f"{TYPE_OF[engine].format(number)} AS y{number}" for number in range(len(trees)))
    columns = there.engine.run(f"SELECT {named} FROM ({there.engine.write(tree)}) AS q")
    return [NAMES.get(str(one[0]).lower(), str(one[0]).lower()) for one in columns.values()]


def check_types(engine: str) -> None:
    """Check that values of every function have the widest type of their kind: a narrower one would overflow."""
    texts = [one.strip() for one in (TRAPS + MORE).replace("\n", " ; ").split(" ; ") if one.strip()]
    known = [(sql, one) for sql, one in understood([*CONSTANTS, *texts]).items() if not is_null(one)]
    assert len(known) > 150
    for start in range(0, len(known), TOGETHER):
        some = known[start : start + TOGETHER]
        for (sql, one), found in zip(some, types(engine, [one.tree for _, one in some]), strict=True):
            assert found == TYPES[one.kind].lower(), sql


ACCEPTED = scalars().filter(lambda sql: bool(understood([sql])))
"""Expressions that are not refused; Hypothesis fails where nearly all of them are."""


EXPONENTS = (-1074, -1073, -1023, -1022, -1021, -540, -512, -500, -1, 0, 52, 53, 54, 500, 512, 540)
EXPONENTS += (*range(958, 974), 998, 999, 1000, 1001, 1021, 1022, 1023)
EXTREMES = sorted(
    {
        sign * math.ldexp(mantissa, exponent)
        for sign in (1, -1)
        for mantissa in (1.0, 1.5, 2 - 2**-52)
        for exponent in EXPONENTS
    }
)
PAIR = Table("pairs", (Column("row_number", Kind.INTEGER), Column("x", Kind.REAL), Column("y", Kind.REAL)))


def pair_column(node: exp.Expression) -> Expression:
    if isinstance(node, exp.Column):
        return Expression(exp.column(node.name), Kind.REAL)
    return scalar(node, pair_column, lambda _: None)


NUMBERS = """
12|+5|-0| 7 |1e5|1.5|2.5|-2.5|.5|5.|1_000|1__0|0x1F|0b101|1e-400|1e400|9223372036854775807.5|9223372036854775806.5|
-9223372036854775808|1e|.|-|- 5|1²|nan|-inf|Infinity|1.8e308|5e-324|2e-324|1.7976931348623157e308|0e5|1e1_0|00012|
true|T|YES|on|0|n
""".replace("\n", "").split("|")
MOMENTS = """
2020-02-29|2020-2-9|2020/02/29|2020-02-30|2021-02-29| 2020-02-29 |20-02-03|0000-01-01|0044-03-15 (BC)|infinity|EPOCH|
9999-12-31|10000-01-01|2020-02-29 12:34:56|2020-02-29T12:34:56.789Z|2020-02-29 12:34|2020-02-29 24:00:00|
2020-02-29 25:00|2020-02-29 12:34:56+02:30|2020-01-01 23:59:59.9999999|2020-02-29 12:60:00|2020-02/29|02/29/2020|
2020-13-01|2020-02-29 1:2:3|2020-02-29 12:34:56 UTC|2020-02-29Z|x|2020\\02\\29|2020-02-29t12:34:56|
2020-02-29 12:34:56.1234567+01
""".replace("\n", "").split("|")


BORDERS = ("2.47032822920623272085e-324", "-2.47032822920623272085e-324", "2.4703282292062327208e-324")
BORDERS += ("2.470328229206232721e-324", "4.9406564584124654e-324", "1.7976931348623158e308", "1.7976931348623159e308")
"""Around the numbers from which on a text is no double: half of the least one, and above the greatest."""


def check_texts_are_read_as_the_same_values(engine: str) -> None:
    """Each text once as the column that is cast: constants would be read by the query engine itself."""
    table = Table("texts", (Column("row_number", Kind.INTEGER), Column("s", Kind.TEXT)))
    texts = [*NUMBERS, *BORDERS, *MOMENTS, "", " ", "e\u0301", "a" * 2_000]
    found = {}
    for name in ("duckdb", engine):
        there = place(name)
        source = there.put("texts", {"row_number": "BIGINT", "s": "VARCHAR"}, list(enumerate(texts)))
        there.engine.register(table, source, {})
        items = [
            exp.alias_(built(f"CAST(s AS {kind})").tree, kind)
            for kind in ("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP")
        ]
        tree = exp.select(exp.column("row_number"), *items).from_(exp.table_("texts", db="tacit_data"))
        columns = there.engine.run(there.engine.write(tree.order_by("row_number")))
        found[name] = {kind: [plain(one) for one in values] for kind, values in columns.items()}
    for kind, mine in found["duckdb"].items():
        pairs = zip(texts, mine, found[engine][kind], strict=True)
        assert [(kind, *one) for one in pairs if repr(one[1]) != repr(one[2])] == []
