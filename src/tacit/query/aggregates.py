"""The aggregates of a question, read from SQL into records.

Equal aggregates have equal records, however they are written: COUNT(1) and COUNT(*), COUNT(x) and COUNT(*) FILTER
(WHERE x IS NOT NULL), MEDIAN(x) and PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x). What is not listed is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from sqlglot import exp

from tacit.privacy.errors import NotAllowed, NotSQL, Place, ShowsUnits, WrongKind
from tacit.privacy.tables import Kind
from tacit.query.conditions import bind_condition as row_condition
from tacit.query.expressions import Expression
from tacit.query.parse import Text, function_name, require_only, source_text
from tacit.query.scalars import Bind, conjunction, convert, is_missing, negate

MOMENTS: Final = frozenset(
    {"avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp", "covar_pop", "covar_samp", "corr"}
)
RANKED: Final = frozenset({"quantile", "min", "max"})

_ONE: Final[Mapping[type[exp.Expression], str]] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Min: "min",
    exp.Max: "max",
}
_TWO: Final[Mapping[type[exp.Expression], str]] = {
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.Corr: "corr",
}
_QUANTILES: Final = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)

SHARE_LENGTH_MAX: Final = 30
"""How many characters the share of a quantile has at most, and how many zeros after the decimal point."""

ACCEPTED: Final = (
    "COUNT, SUM, AVG, VAR_POP, VAR_SAMP, STDDEV, STDDEV_POP, COVAR_POP, COVAR_SAMP, CORR, MEDIAN, QUANTILE, "
    "PERCENTILE_CONT, MIN, MAX and MODE are"
)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: its function, the values that it takes, the rows that it is about, and a quantile's share.

    Rows on which a value is NULL are not counted, as in SQL; `count` has a value only where it may be NULL.
    """

    function: str
    arguments: tuple[Expression, ...] = ()
    condition: Expression | None = None
    share: Fraction | None = None
    label: str = ""
    """How the analyst wrote it."""

    @property
    def kind(self) -> Kind:
        """The kind of the answer."""
        if self.function in ("count", "units", "distinct"):
            return Kind.INTEGER
        if self.function in ("sum", "quantile", "min", "max", "mode"):
            return self.arguments[0].kind
        return Kind.REAL

    @property
    def key(self) -> str:
        """The aggregate as text, equal for equal ones."""
        parts = [self.function, *(value.text for value in self.arguments)]
        parts.append(self.condition.text if self.condition else "")
        return " | ".join([*parts, str(self.share or "")])


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate."""
    return isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup) or (
        isinstance(node, exp.IgnoreNulls) and is_aggregate(node.this)
    )


def read_aggregate(node: exp.Expression, bind: Bind, is_unit: Callable[[Expression], bool], text: Text) -> Aggregate:
    """Read an aggregate; `bind` gives the values of rows, and `is_unit` says which of them are the unit itself."""
    place, label = text.place(node), source_text(node)
    condition = None
    if isinstance(node, exp.Filter):
        require_only(node, ("this", "expression"), text)
        condition, node = row_condition(node.expression.this, bind, text, "FILTER"), node.this
    if isinstance(node, exp.IgnoreNulls):
        node = node.this
    if isinstance(node, exp.Count | exp.CountIf | exp.ApproxDistinct):
        return _count(node, bind, is_unit, condition, text, label)
    function, arguments, share = _read_function(node, bind, text)
    for value in arguments:
        _require_kind(function, value, place)
    parts = [condition] if condition else []
    if len(arguments) > 1:  # a row counts if it has all of them; of one value, those that are NULL are not added anyway
        parts += [negate(is_missing(value)) for value in arguments if value.nullable]
    return Aggregate(function, arguments, conjunction(parts) if parts else None, share, label)


def _read_function(node: exp.Expression, bind: Bind, text: Text) -> tuple[str, tuple[Expression, ...], Fraction | None]:
    """Return a function's name, its arguments and its share."""
    if isinstance(node, exp.WithinGroup):
        require_only(node, ("this", "expression"), text)
        inner, ordered = node.this, node.expression.expressions
        if len(ordered) != 1 or not isinstance(inner, (*_QUANTILES, exp.Mode)):
            raise unknown_aggregate(node, text)
        require_only(ordered[0], ("this", "desc", "nulls_first"), text)
        value = bind(ordered[0].this)
        if isinstance(inner, exp.Mode):
            return "mode", (value,), None
        share = _share(inner.this, text)
        return "quantile", (value,), 1 - share if ordered[0].args.get("desc") else share
    if isinstance(node, exp.Median):
        require_only(node, ("this",), text)
        return "quantile", (bind(node.this),), Fraction(1, 2)
    if isinstance(node, _QUANTILES):
        require_only(node, ("this", "expression", "quantile"), text)
        wanted = node.args.get("expression") or node.args.get("quantile")
        return "quantile", (bind(node.this),), _share(wanted, text)
    if isinstance(node, exp.Mode):
        require_only(node, ("this",), text)
        return "mode", (bind(node.this),), None
    if (name := _TWO.get(type(node))) is not None:
        require_only(node, ("this", "expression"), text)
        one, other = bind(node.this), bind(node.expression)
        return name, (one, other) if one.text <= other.text else (other, one), None
    if (name := _ONE.get(type(node))) is not None:
        require_only(node, ("this",), text)
        if isinstance(node.this, exp.Distinct | exp.Order | exp.Star):
            raise unknown_aggregate(node, text)
        value = bind(node.this)
        if value.kind is Kind.BOOLEAN and name in ("sum", "avg"):
            value = convert(value, Kind.INTEGER)
        return name, (value,), None
    raise unknown_aggregate(node, text)


def _count(
    node: exp.Expression,
    bind: Bind,
    is_unit: Callable[[Expression], bool],
    condition: Expression | None,
    text: Text,
    label: str,
) -> Aggregate:
    place = text.place(node)
    require_only(node, ("this", "big_int"), text)
    argument = node.this
    distinct = isinstance(node, exp.ApproxDistinct) or isinstance(argument, exp.Distinct)
    if isinstance(argument, exp.Distinct):
        require_only(argument, ("expressions",), text)
        if len(argument.expressions) != 1:
            raise NotAllowed(
                "COUNT(DISTINCT ...) takes one value",
                accepted="put texts together with ||, as in a || '/' || b",
                place=place,
            )
        argument = argument.expressions[0]
        met = _condition_of_unit(argument, bind, is_unit, text)
        if met is not None:
            return Aggregate("units", (), conjunction([condition, met]) if condition else met, label=label)
    if argument is None or isinstance(argument, exp.Star):
        return Aggregate("count", (), condition, label=label)
    value = bind(argument)
    if isinstance(node, exp.CountIf):
        if value.kind is not Kind.BOOLEAN:
            raise WrongKind(f"COUNT_IF takes a condition, not {value.kind}", place=place)
        return Aggregate("count", (), conjunction([*([condition] if condition else []), value]), label=label)
    if distinct and is_unit(value):
        return Aggregate("units", (), condition, label=label)
    if value.unit:
        raise ShowsUnits(
            "values computed from the unit's own column are not counted",
            accepted="write COUNT(*) or COUNT(DISTINCT unit), with a condition in FILTER (WHERE ...)",
            place=place,
        )
    function = "distinct" if distinct else "count"
    return Aggregate(function, (value,) if distinct or value.nullable else (), condition, label=label)


def _condition_of_unit(
    node: exp.Expression, bind: Bind, is_unit: Callable[[Expression], bool], text: Text
) -> Expression | None:
    """Return the condition of CASE WHEN condition THEN unit END, as units are often counted, None for anything else."""
    if not isinstance(node, exp.Case) or node.this is not None or len(node.args["ifs"]) != 1:
        return None
    default = node.args.get("default")
    if not (default is None or isinstance(default, exp.Null)):
        return None
    branch = node.args["ifs"][0]
    if not isinstance(branch.args["true"], exp.Column) or not is_unit(bind(branch.args["true"])):
        return None
    return row_condition(branch.this, bind, text, "WHEN")


def _require_kind(function: str, value: Expression, place: Place | None) -> None:
    if value.unit:
        raise ShowsUnits(
            "an aggregate of values computed from the unit's own column would show single units",
            accepted="COUNT(DISTINCT unit) counts units, and WHERE may compare them",
            place=place,
        )
    ordered = value.kind.is_number or value.kind in (Kind.DATE, Kind.TIME)
    if function != "mode" and not (value.kind.is_number or (function in RANKED and ordered)):
        takes = "numbers, dates and times" if function in RANKED else "numbers"
        instead = {
            Kind.BOOLEAN: "; CAST it AS INTEGER",
            Kind.DATE: "; MEDIAN, MIN and MAX take dates",
            Kind.TIME: "; MEDIAN, MIN and MAX take times",
            Kind.TEXT: "; COUNT(DISTINCT ...) and MODE take texts",
        }.get(value.kind, "")
        raise WrongKind(f"{function.upper()} takes {takes}, not {value.kind}{instead}", place=place)


def _share(node: exp.Expression | None, text: Text) -> Fraction:
    if isinstance(node, exp.Literal) and not node.is_string and len(node.this) <= SHARE_LENGTH_MAX:
        share = Decimal(node.this)
        if 0 <= share <= 1 and (not share or share.adjusted() >= -SHARE_LENGTH_MAX):
            return Fraction(share)
    place = text.place(node) if node is not None else None
    raise NotSQL("the share of a quantile must be a number from 0 to 1, such as 0.9", place=place)


def unknown_aggregate(node: exp.Expression, text: Text) -> NotAllowed:
    """Return the error for an aggregate, or a function that may be one, that is not supported."""
    inner = node.this
    if isinstance(inner, exp.Distinct | exp.Order | exp.Star):
        what = {exp.Distinct: "DISTINCT", exp.Order: "ORDER BY", exp.Star: "*"}[type(inner)]
        return NotAllowed(
            f"{function_name(node)} does not take {what}", accepted="leave it out", place=text.place(node)
        )
    return NotAllowed(
        f"{function_name(node)} is not supported in private queries", accepted=ACCEPTED, place=text.place(node)
    )
