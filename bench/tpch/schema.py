"""The eight tables as tacit registers them: who is protected, and the public facts of the TPC-H specification.

Every bound and category is stated by the specification (clauses 1.4 and 4.2.3 of version 3.0.1), so that none comes off
the data. Two owners are imagined:

    customer    protects customers: customer, orders and lineitem are private, the other five tables are public.
    supplier    protects suppliers: supplier, partsupp and lineitem are private, the other five tables are public.

No limit on contributions is stated here, beside the one row that a customer or a supplier has by its primary key:
how many rows of a unit a question is about differs by the factor of a hundred between the queries, so each of them has
limits of its own (`limits`).
"""

from __future__ import annotations

from itertools import product
from typing import Any, Final

from tacit.privacy import Bounds, Categories, Column, ForeignKey, Kind, Limits, Schema, Table, Unit

DATASET: Final = "tpch"
"""The data set whose budget is charged for all tables of a unit."""

UNITS: Final = ("customer", "supplier")

NATIONS: Final = (
    "ALGERIA", "ARGENTINA", "BRAZIL", "CANADA", "EGYPT", "ETHIOPIA", "FRANCE", "GERMANY", "INDIA", "INDONESIA", "IRAN",
    "IRAQ", "JAPAN", "JORDAN", "KENYA", "MOROCCO", "MOZAMBIQUE", "PERU", "CHINA", "ROMANIA", "SAUDI ARABIA", "VIETNAM",
    "RUSSIA", "UNITED KINGDOM", "UNITED STATES",
)  # fmt: skip
REGIONS: Final = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
SEGMENTS: Final = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES: Final = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS: Final = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
MODES: Final = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
SYLLABLES: Final = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
CONTAINERS: Final = (
    ("SM", "LG", "MED", "JUMBO", "WRAP"),
    ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"),
)

FIRST_DAY: Final = "1992-01-01"
LAST_ORDER: Final = "1998-08-02"
LAST_DAY: Final = "1998-12-31"
SUPPLIERS_A_SCALE: Final = 10_000
PRICE: Final = (900, 2_099)
"""Bounds of retail prices: (90000 + (key / 10) mod 20001 + 100 (key mod 1000)) / 100."""
QUANTITY: Final = (1, 50)
LINES_AN_ORDER: Final = 7

Columns = dict[str, tuple[Kind, Any]]


def tables(unit: str, scale: float) -> list[Table]:
    """Return the tables, those first to which others lead; only the number of suppliers depends on the scale."""
    columns = _columns(scale)
    units: dict[str, Unit] = _units(unit)
    return [
        Table(
            name,
            tuple(_column(column, units.get(name), *facts) for column, facts in columns[name].items()),
            units.get(name),
            Limits(rows_per_unit=1) if name == unit else Limits(),
            KEYS[name],
            DATASET if name in units else "",
        )
        for name in KEYS
    ]


def schema(unit: str, scale: float = 1) -> Schema:
    """Return the tables as a schema, for planning without rows."""
    return Schema(tables(unit, scale))


KEYS: Final = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "part": ("p_partkey",),
    "supplier": ("s_suppkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "customer": ("c_custkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
"""The primary keys, which identify the rows."""


def _units(unit: str) -> dict[str, Unit]:
    if unit == "supplier":
        return {"supplier": Unit("s_suppkey"), "partsupp": Unit("ps_suppkey"), "lineitem": Unit("l_suppkey")}
    return {
        "customer": Unit("c_custkey"),
        "orders": Unit("o_custkey"),
        "lineitem": Unit("o_custkey", (ForeignKey("l_orderkey", "orders", "o_orderkey"),)),
    }


def _column(name: str, unit: Unit | None, kind: Kind, facts: Any) -> Column:
    """Return a column; the unit, and foreign keys to it, are declared without bounds."""
    if unit is not None and name == unit.column:
        facts = None
    return Column(name, kind, Bounds(*facts) if isinstance(facts, tuple) else facts, nullable=False)


def _columns(scale: float) -> dict[str, Columns]:
    whole, real, text, day = Kind.INTEGER, Kind.REAL, Kind.TEXT, Kind.DATE
    suppliers = (1, max(1, round(scale * SUPPLIERS_A_SCALE)))
    nation, balance = (whole, (0, len(NATIONS) - 1)), (real, (-999.99, 9_999.99))
    most = PRICE[1] * QUANTITY[1]
    return {
        "region": {
            "r_regionkey": (whole, (0, len(REGIONS) - 1)), "r_name": (text, Categories(REGIONS)),
            "r_comment": (text, None),
        },
        "nation": {
            "n_nationkey": nation, "n_name": (text, Categories(NATIONS)),
            "n_regionkey": (whole, (0, len(REGIONS) - 1)), "n_comment": (text, None),
        },
        "part": {
            "p_partkey": (whole, None), "p_name": (text, None),
            "p_mfgr": (text, Categories(f"Manufacturer#{m}" for m in range(1, 6))),
            "p_brand": (text, Categories(f"Brand#{m}{n}" for m in range(1, 6) for n in range(1, 6))),
            "p_type": (text, Categories(map(" ".join, product(*SYLLABLES)))), "p_size": (whole, (1, 50)),
            "p_container": (text, Categories(map(" ".join, product(*CONTAINERS)))),
            "p_retailprice": (real, PRICE), "p_comment": (text, None),
        },
        "supplier": {
            "s_suppkey": (whole, suppliers), "s_name": (text, None), "s_address": (text, None), "s_nationkey": nation,
            "s_phone": (text, None), "s_acctbal": balance, "s_comment": (text, None),
        },
        "partsupp": {
            "ps_partkey": (whole, None), "ps_suppkey": (whole, suppliers), "ps_availqty": (whole, (1, 9_999)),
            "ps_supplycost": (real, (1, 1_000)), "ps_comment": (text, None),
        },
        "customer": {
            "c_custkey": (whole, None), "c_name": (text, None), "c_address": (text, None), "c_nationkey": nation,
            "c_phone": (text, None), "c_acctbal": balance, "c_mktsegment": (text, Categories(SEGMENTS)),
            "c_comment": (text, None),
        },
        "orders": {
            "o_orderkey": (whole, None), "o_custkey": (whole, None),
            "o_orderstatus": (text, Categories(["F", "O", "P"])), "o_totalprice": (real, (0, LINES_AN_ORDER * most)),
            "o_orderdate": (day, (FIRST_DAY, LAST_ORDER)), "o_orderpriority": (text, Categories(PRIORITIES)),
            "o_clerk": (text, None), "o_shippriority": (whole, (0, 0)), "o_comment": (text, None),
        },
        "lineitem": {
            "l_orderkey": (whole, None), "l_partkey": (whole, None), "l_suppkey": (whole, suppliers),
            "l_linenumber": (whole, (1, LINES_AN_ORDER)), "l_quantity": (real, QUANTITY),
            "l_extendedprice": (real, (PRICE[0], most)), "l_discount": (real, (0, 0.1)), "l_tax": (real, (0, 0.08)),
            "l_returnflag": (text, Categories(["A", "N", "R"])), "l_linestatus": (text, Categories(["F", "O"])),
            "l_shipdate": (day, (FIRST_DAY, LAST_DAY)), "l_commitdate": (day, (FIRST_DAY, LAST_DAY)),
            "l_receiptdate": (day, (FIRST_DAY, LAST_DAY)), "l_shipinstruct": (text, Categories(INSTRUCTIONS)),
            "l_shipmode": (text, Categories(MODES)), "l_comment": (text, None),
        },
    }  # fmt: skip
