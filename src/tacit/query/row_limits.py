"""Public limits on the number of rows and the work per unit, so that run time reveals little about one unit.

Joins multiply the rows of a unit by one another, and the analyst may choose the unit: with n rows, a join of four
tables on the unit has n^4, and the time that it takes is an exact answer. So every scope knows two public limits: how
many rows there are for each row that a unit has in storage (`FromScope.fan_out`), and how many it has in all, where
that is limited (`FromScope.rows_max`). Both are worked out here and in `joins`:

                                        fan_out                             rows_max
    a table                             1                                   its rows_per_unit, if declared
    private with private                the lesser of one side's fan_out    the product; a side without a limit is
                                        times the other side's rows_max     first limited to JOINED_ROWS_PER_UNIT
        on a key of one side            that of the other side              that of the other side
    private with public                 times the rows of the public table  the same
        on what identifies its rows     that of the private side            that of the private side
    UNION ALL                           the sum                             the sum
    grouped by the unit                 1                                   1

A key is the target of a foreign key, or what a table is `identified_by`. A question is refused whose fan_out passes
AMPLIFICATION_MAX, or in which a join of private tables passes JOINED_ROWS_MAX.

Rows are not work by themselves: a hundred conditions on long texts cost a thousand times as much as a sum. So the
product is bounded as well: the rows that become of STORED_ROWS stored ones, times the steps that the question takes
for one row (`trees.work`), by WORK_MAX; and times the characters of the texts that are grouped, sorted or told apart,
which engines hold in memory, by HELD_CHARACTERS_MAX. A server lets the work choose the time class in which an answer
leaves, so that a unit with no more stored rows than that does not make it late. One with more adds work in proportion.

Which rows of a unit are kept is decided by a hash of the row with a secret salt, equal hashes by the values: a function
of the set of the unit's own rows, so that the promise of `relations` holds and sensitivities stay what they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from shlex import quote
from typing import Final

from sqlglot import exp

from tacit.engines.protocol import ROWS, SALT, UNIT
from tacit.privacy.errors import Place, TooWide
from tacit.privacy.tables import TEXT_LENGTH_MAX, Kind, Table
from tacit.query.expressions import Expression
from tacit.query.relations import FromScope, project, select_from_subquery, unit_column
from tacit.query.scalars.trees import CHARACTERS_READ, COLUMN_SIZE, column_for, expanded_size

JOINED_ROWS_PER_UNIT: int = 64
"""How many rows of a unit are joined at most, of a side for which no limit was declared."""

AMPLIFICATION_MAX: Final = 16_384
"""How many rows may become of one stored row of a unit. Three joined tables without declared limits have 64 * 64, one
public table of an unknown number of rows has 10,000; two of those, or four joined tables, are refused."""

JOINED_ROWS_MAX: Final = 2**20
"""How many joined rows one unit has at most: an engine goes through so many in some hundredths of a second."""

STORED_ROWS: Final = 64
"""How many rows in storage the work of a unit is bounded for."""

HELD_STEPS: Final = 2
"""How many steps a character takes that is grouped, sorted or told apart: it is hashed, copied and compared."""

WORK_MAX: Final = 2**30
"""How many steps a question takes at most for one unit. `server.jobs` says how long a step takes."""

HELD_CHARACTERS_MAX: Final = 2**26
"""How many characters of one unit are grouped, sorted or told apart at most: 64 to 256 megabytes."""

STORED_STEPS: Final = {
    Kind.BOOLEAN: 128,
    Kind.INTEGER: 768,
    Kind.REAL: 1_024,
    Kind.TEXT: 0,
    Kind.DATE: 512,
    Kind.TIME: 640,
}
"""How many steps it takes to read a stored text as each kind. Engines take texts of more than 1,000 characters for no
number, and those of more than 64 for no date; a text that stays one is counted where it is named."""

PUBLIC_CHARACTERS: Final = 64
"""How long the texts of a public table are taken to be on average."""

RELATION_MAX: Final = 20_000
"""How many nodes a subquery has at most, after names were replaced by what they stand for: common table expressions,
and columns of subqueries, which optimisers write out wherever they are used."""

ROW_TEXT_MAX: Final = 65_536
"""How many characters all computed texts of one row have at most."""

PUBLIC_ROWS: Final = 10_000
"""How many rows a public table is taken to have whose number is not stated."""


def require_bounded_fan_out(scope: FromScope, place: Place | None) -> FromScope:
    """Return a scope, or raise TooWide if too many rows could become of one stored row of a unit."""
    if scope.unit is not None and scope.fan_out > AMPLIFICATION_MAX:
        raise TooWide(
            f"one stored row of a unit could become {scope.fan_out:,} rows by joining {_table_names(scope)}; the limit "
            f"is {AMPLIFICATION_MAX:,}",
            accepted=_remedies(scope),
            place=place,
        )
    return scope


def require_bounded_join(scope: FromScope, place: Place | None) -> FromScope:
    """Return a join of private rows, or raise TooWide if one unit could have too many of them."""
    if scope.rows_max is not None and scope.rows_max > JOINED_ROWS_MAX:
        raise TooWide(
            f"one unit could have {scope.rows_max:,} joined rows of {_table_names(scope)}, and at most "
            f"{JOINED_ROWS_MAX:,} are joined",
            accepted=_remedies(scope),
            place=place,
        )
    return scope


def unit_rows(scope: FromScope) -> int:
    """Return how many rows a unit has in a scope at most, if it has no more than STORED_ROWS in storage."""
    rows = scope.fan_out * STORED_ROWS
    return rows if scope.rows_max is None else min(rows, scope.rows_max)


def limiting_steps(table: Table) -> int:
    """Return the steps that one unit takes where its rows are chosen by a hash of all columns (`rows_per_unit`)."""
    if table.limits.rows_per_unit is None:
        return 0
    texts = sum(1 for column in table.columns if column.kind is Kind.TEXT)
    return STORED_ROWS * (len(table.columns) + texts * TEXT_LENGTH_MAX // CHARACTERS_READ)


def reading_steps(table: Table, statements: Iterable[exp.Expr]) -> int:
    """Return the steps that one unit takes where statements read a table whose source holds its columns as texts.

    They are cast once for each stored row. All columns are read where rows are chosen by a hash of them
    (`rows_per_unit`), and otherwise those that a statement names.
    """
    named = {column.name.lower() for tree in statements for column in tree.find_all(exp.Column)}
    is_limited = table.limits.rows_per_unit is not None
    read = [one for one in table.columns if is_limited or one.name.lower() in named]
    return STORED_ROWS * sum(STORED_STEPS[one.kind] for one in read)


def require_bounded_work(work: int, steps: int, rows: int) -> None:
    """Raise TooWide if a question takes too many steps for one unit, of so many for each of its rows."""
    if work > WORK_MAX:
        raise TooWide(
            f"one unit could have {rows:,} rows here, and the query takes {steps:,} steps for each: more than "
            f"{WORK_MAX:,} in all",
            accepted=f"simplify the query, or cut texts with LEFT before searching them; {_remedies()}",
        )


def held_characters(scope: FromScope, values: Iterable[Expression], place: Place | None = None) -> int:
    """Return how many characters of one unit's texts are held, or raise TooWide if they could take too much memory."""
    characters = unit_rows(scope) * sum(_text_length(scope, one) for one in values if one.kind is Kind.TEXT)
    if scope.unit is not None and characters > HELD_CHARACTERS_MAX:
        raise TooWide(
            f"the texts of one unit could have {characters:,} characters together, and at most {HELD_CHARACTERS_MAX:,} "
            "are grouped or sorted",
            accepted=f"cut them with LEFT, or select fewer columns in a subquery; {_remedies(scope)}",
            place=place,
        )
    return characters if scope.unit is not None else 0


def require_bounded_size(name: str, *trees: exp.Expr) -> None:
    """Raise TooWide if queries or values would be too large with every name replaced by what it stands for."""
    if (size := sum(map(expanded_size, trees))) > RELATION_MAX:
        raise TooWide(
            f"{name} is too large: with its subqueries written out it has {size:,} parts of at most {RELATION_MAX:,}",
            accepted="compute less from level to level, and use each computed column fewer times",
        )


def require_bounded_row_text(name: str, values: Iterable[Expression]) -> None:
    """Raise TooWide if the texts that are computed for one row would be too long together."""
    texts = [one.length for one in values if one.kind is Kind.TEXT and expanded_size(one.tree) > COLUMN_SIZE]
    if sum(texts) > ROW_TEXT_MAX:
        raise TooWide(
            f"the computed texts of one row of {name} could have {sum(texts):,} characters, and at most "
            f"{ROW_TEXT_MAX:,} are computed",
            accepted="cut them with LEFT or SUBSTRING",
        )


def named_fields(scope: FromScope, names: frozenset[str] | None) -> list[Expression]:
    """Return the fields of a scope that a query names (None: all), and its units."""
    return [
        value
        for source in scope.sources
        for name, value in source.fields.items()
        if names is None or name in names | source.units
    ]


def _text_length(scope: FromScope, value: Expression) -> int:
    """Return how many characters are counted for a text; a column of a public table is taken to hold short ones."""
    public = {one.alias for one in scope.sources if one.table is not None and not one.table.is_private}
    is_public = isinstance(value.tree, exp.Column) and value.tree.table in public  # computed texts are as long as asked
    return min(value.length, PUBLIC_CHARACTERS) if is_public else value.length


def _remedies(scope: FromScope | None = None) -> str:
    """Return the ways out, the one that costs no noise first."""
    ways = ["add up each table by unit in a subquery first", "join on a foreign key", "state a smaller rows_per_unit"]
    for one in () if scope is None else scope.sources:
        if one.table is not None and not one.table.is_private and not one.table.identified_by:
            name = quote(one.table.name)
            command = f"tacit table edit {name} --identified-by COLUMN, or identified_by= in add_table"
            ways.insert(0, f"join {one.table.name} on what identifies its rows, and say so ({command})")
            break
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


def _table_names(scope: FromScope) -> str:
    return " and ".join(sorted(scope.tables))


def require_bounded_pairs(scope: FromScope, inner: FromScope, place: Place | None) -> None:
    """Raise TooWide if a row would be compared with too many rows of a subquery, one by one."""
    rows = compared_rows(inner)
    if scope.fan_out * rows > AMPLIFICATION_MAX:
        raise TooWide(
            f"EXISTS would compare {scope.fan_out * rows:,} pairs of rows for each row of a unit, of at most "
            f"{AMPLIFICATION_MAX:,}",
            accepted="set columns equal instead of comparing them with <, > or <>",
            place=place,
        )


def compared_rows(inner: FromScope) -> int:
    """Return with how many rows of a subquery one row is compared at most, one by one."""
    return max(inner.fan_out if inner.unit is None else inner.rows_max or JOINED_ROWS_PER_UNIT, 1)


def limit_rows_per_unit(
    scope: FromScope, alias: str, names: frozenset[str] | None, keys: Sequence[Expression] = ()
) -> FromScope:
    """Return at most JOINED_ROWS_PER_UNIT rows of each unit (with equal keys), with the named columns (None: all)."""
    kept = [
        [(name, value) for name, value in source.fields.items() if names is None or name in names | source.units]
        for source in scope.sources
    ]
    held_characters(scope, named_fields(scope, names))
    values = [value.tree for fields in kept for _, value in fields]
    tree = _first_rows(scope, values, [exp.column(f"c{values.index(key.tree)}") for key in keys])
    renamed = {
        value.sql(dialect="duckdb"): column_for(exp.column(f"c{index}", table=alias), value)
        for index, value in reversed(list(enumerate(values)))
    }
    sources = tuple(
        replace(
            source,
            fields={name: replace(value, tree=renamed[value.text].copy()) for name, value in fields},
            unit=unit_column(alias) if source.unit is not None else None,
            table=None,
            alias=alias,
        )
        for source, fields in zip(scope.sources, kept, strict=True)
    )
    unique = frozenset(
        frozenset(renamed[one].sql(dialect="duckdb") for one in key) for key in scope.unique if key <= set(renamed)
    )
    item = exp.alias_(exp.Subquery(this=tree), alias, table=True)
    rows_max = None if keys else JOINED_ROWS_PER_UNIT
    return FromScope(
        sources,
        exp.select().from_(item),
        scope.rows_per_unit,
        None,
        scope.tables,
        fan_out=min(scope.fan_out, rows_max or scope.fan_out),
        rows_max=rows_max,
        unique=unique,
    )


def _first_rows(scope: FromScope, values: Sequence[exp.Expression], keys: Sequence[exp.Column]) -> exp.Query:
    """Return SELECT c0, c1, ..., _unit of so many rows of each unit; units that have no more are not looked at."""
    columns = [exp.column(f"c{index}") for index in range(len(values))]
    shown = [*columns, exp.column(UNIT)]
    within = [exp.column(UNIT), *keys]

    def first(tree: exp.Select) -> exp.Select:
        found = first_by_salted_hash(tree, "place", within, [*within, *columns], JOINED_ROWS_PER_UNIT)
        return found.select(*(one.copy() for one in shown), append=False)

    if scope.stored is None:
        return first(project(scope, values))
    rows = exp.alias_(exp.Subquery(this=project(scope, values)), "w", table=True)
    light = exp.LTE(this=exp.column(ROWS), expression=exp.Literal.number(JOINED_ROWS_PER_UNIT))
    heavy = exp.Is(this=exp.paren(light.copy()), expression=exp.true()).not_()
    few = exp.select(*(one.copy() for one in shown)).from_(rows).where(light)
    many = exp.select(*(one.copy() for one in shown)).from_(rows.copy()).where(heavy)
    return exp.union(few, first(many), distinct=False)


def first_by_salted_hash(
    tree: exp.Select,
    name: str,
    within: Sequence[exp.Expression],
    hashed: Sequence[exp.Expression],
    most: int,
    *,
    dense: bool = False,
) -> exp.Select:
    """Keep the first `most` within each part, in the order of a salted hash; equal hashes are told apart by value.

    `name` is the column of the place in that order, and no column of the tree is called so.
    """
    digest = exp.Anonymous(
        this="hash", expressions=[*(one.copy() for one in hashed), exp.Parameter(this=exp.var(SALT))]
    )
    order = [digest, *(one.copy() for one in hashed if one not in within)]
    window = exp.Window(
        this=exp.DenseRank() if dense else exp.RowNumber(),
        partition_by=[one.copy() for one in within],
        order=exp.Order(expressions=[exp.Ordered(this=one) for one in order]),
    )
    numbered = select_from_subquery(tree, "p").select(exp.Star(), exp.alias_(window, name))
    return select_from_subquery(numbered, "q").select(exp.Star()).where(exp.column(name) <= most)
