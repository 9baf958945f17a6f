"""Views of Spark that are read row by row, and without failing for a row.

A view is computed whenever it is read, with the settings of the session that made it: one that was made under ANSI
rules fails for a text that is no number, whatever this session says. So a view that leads to a unit is accepted only if
its analysed plan, views that it reads included, selects and filters rows by columns, constants and comparisons; what
Spark casts along the way must fit. Behind Spark Connect no plan can be looked at, and views are refused.

Not here: tables, and views of public rows, which may be computed in any way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tacit.engines.spark.sessions import Session, context_of

_NODES: Final = frozenset(
    {
        *("SubqueryAlias", "View", "Project", "Filter", "Union", "Sort", "LogicalRelation", "HiveTableRelation"),
        *("DataSourceV2Relation", "LocalRelation", "LogicalRDD", "Range", "OneRowRelation"),
    }
)
_EXPRESSIONS: Final = frozenset(
    {
        *("AttributeReference", "Alias", "Literal", "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual"),
        *("GreaterThan", "GreaterThanOrEqual", "And", "Or", "Not", "IsNull", "IsNotNull", "In", "InSet"),
        *("SortOrder",),
    }
)


def is_row_by_row(session: Session, name: str, frame: Any) -> bool:
    """Return whether each row of a table or view comes from one row of a table, and none can fail to be read."""
    told = session.catalog.getTable(name)
    if "VIEW" not in str(told.tableType).upper() and not told.isTemporary:
        return True
    if context_of(session) is None:
        return False
    can_cast = session._jvm.org.apache.spark.sql.catalyst.expressions.Cast.canUpCast
    return all(
        node.getClass().getSimpleName().rstrip("$") in _NODES
        and all(_is_harmless(one, can_cast) for part in _each(node.expressions()) for one in _tree(part))
        for node in _tree(frame._jdf.queryExecution().analyzed())
    )


def _is_harmless(expression: Any, can_cast: Any) -> bool:
    name = expression.getClass().getSimpleName().rstrip("$")
    if name == "Cast":
        return bool(can_cast(expression.child().dataType(), expression.dataType()))
    return name in _EXPRESSIONS


def _tree(node: Any) -> Iterator[Any]:
    yield node
    for child in _each(node.children()):
        yield from _tree(child)


def _each(sequence: Any) -> Iterator[Any]:
    """Yield what a Scala sequence holds."""
    return (sequence.apply(index) for index in range(sequence.size()))
