"""Parts of dates and times, and their beginnings: EXTRACT, YEAR, DATE_TRUNC, LAST_DAY."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Final

from sqlglot import exp

from tacit.privacy.errors import NotAllowed, WrongKind
from tacit.privacy.tables import Kind
from tacit.query.expressions import Constant, Expression, Range, position
from tacit.query.scalars import intervals, trees
from tacit.query.scalars.constants import is_null, null
from tacit.query.scalars.durations import day_at, moment_at, months_later, unit_named
from tacit.query.scalars.facts import made, temporal, time
from tacit.query.scalars.rule import Bind, Rule
from tacit.query.scalars.trees import Tree

KEYS_MAX: Final = 10_000
"""A list of dates that is longer than this is not made."""

PARTS: Final = {
    "QUARTER": (1, 4),
    "MONTH": (1, 12),
    "WEEK": (1, 53),
    "DAY": (1, 31),
    "DOW": (0, 6),
    "ISODOW": (1, 7),
    "DOY": (1, 366),
    "HOUR": (0, 23),
    "MINUTE": (0, 59),
    "SECOND": (0, 59),
}
"""Parts whose values are the same for every date."""

_OTHER_NAMES: Final = {"DAYOFWEEK": "DOW", "WEEKDAY": "DOW", "DAYOFYEAR": "DOY", "WEEKOFYEAR": "WEEK", "MIN": "MINUTE"}
_OF_TIMES: Final = ("HOUR", "MINUTE", "SECOND")
_BEGINNINGS: Final = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")


def part(name: str, operand: Expression) -> Expression:
    """Return a part of a date or time as a number."""
    operand = temporal(operand, name)
    name = _OTHER_NAMES.get(name, name)
    if name != "YEAR" and name != "EPOCH" and name not in PARTS:
        names = ", ".join(sorted(("YEAR", "EPOCH", *PARTS))).lower()
        raise NotAllowed(f"a date has no part called {name.lower()}", accepted=f"its parts are {names}")
    if name in _OF_TIMES and operand.kind is Kind.DATE and not is_null(operand):
        raise WrongKind(f"{name} takes a time and got a date")
    if is_null(operand):
        return null(Kind.REAL if name == "EPOCH" else Kind.INTEGER)
    if name == "EPOCH":
        return _epoch(time(operand))
    tree = exp.Extract(this=exp.Var(this=name), expression=operand.tree.copy())
    range_ = _years(operand) if name == "YEAR" else Range.of(*PARTS[name])
    return made(tree, Kind.INTEGER, (operand,), range=range_)


def extract(node: Tree, bind: Bind) -> Expression:
    """EXTRACT(part FROM date)."""
    return part(unit_named(node.this), bind(node.expression))


def date_part(node: Tree, bind: Bind) -> Expression:
    """DATE_PART('part', date)."""
    if len(node.expressions) != 2:
        raise WrongKind("DATE_PART takes the name of a part, and a date")
    name, operand = node.expressions
    return part(unit_named(name), bind(operand))


def _named(name: str, *called: str) -> Rule:
    return Rule(lambda node, bind: part(name, bind(node.this)), called or (name,), ("this",))


def truncate(node: Tree, bind: Bind) -> Expression:
    """DATE_TRUNC('unit', date): where the unit begins; a date stays a date."""
    unit = unit_named(node.args.get("unit"))
    operand = temporal(bind(node.this), "DATE_TRUNC")
    allowed = _BEGINNINGS[:5] if operand.kind is Kind.DATE else _BEGINNINGS
    if unit not in allowed:
        names = ", ".join(allowed).lower()
        raise NotAllowed(f"DATE_TRUNC knows no {unit.lower() or 'such unit'}", accepted=f"it knows {names}")
    if is_null(operand):
        return null(operand.kind)
    tree = exp.TimestampTrunc(this=operand.tree.copy(), unit=exp.Var(this=unit))
    range_, domain = None, None
    if operand.range is not None:
        lower, upper = (_begin(unit, one, operand.kind) for one in (operand.range.lower, operand.range.upper))
        range_ = Range.of(lower, upper)
        domain = _listed(unit, lower, upper)
    return made(trees.cast(tree, operand.kind), operand.kind, (operand,), range=range_, domain=domain)


def last_day(node: Tree, bind: Bind) -> Expression:
    """LAST_DAY(date): the last day of the month."""
    operand = temporal(bind(node.this), "LAST_DAY")
    if is_null(operand):
        return null(Kind.DATE)
    range_ = None
    if operand.range is not None:
        ends = [_begin("MONTH", one, operand.kind) for one in (operand.range.lower, operand.range.upper)]
        range_ = Range.of(_month_end(ends[0]), _month_end(ends[1]))
    tree = trees.cast(exp.LastDay(this=operand.tree.copy()), Kind.DATE)
    return made(tree, Kind.DATE, (operand,), range=range_)


def _month_end(begin: date) -> date:
    return date(begin.year, begin.month, calendar.monthrange(begin.year, begin.month)[1])


def _epoch(operand: Expression) -> Expression:
    range_ = None
    if operand.range is not None:
        range_ = intervals.slack(operand.range.lower / 10**6, operand.range.upper / 10**6)
    tree = trees.cast(exp.Extract(this=exp.Var(this="EPOCH"), expression=operand.tree.copy()), Kind.REAL)
    return made(tree, Kind.REAL, (operand,), range=range_)


def _years(operand: Expression) -> Range | None:
    if operand.range is None:
        return None
    at = day_at if operand.kind is Kind.DATE else moment_at
    return Range.of(at(operand.range.lower).year, at(operand.range.upper).year)


def _begin(unit: str, place: Fraction, kind: Kind) -> date:
    """Return where the unit of time around a place begins."""
    value = moment_at(place if kind is Kind.TIME else place * intervals.DAY)
    day = datetime(value.year, value.month, value.day)
    match unit:
        case "YEAR":
            day = day.replace(month=1, day=1)
        case "QUARTER":
            day = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "MONTH":
            day = day.replace(day=1)
        case "WEEK":
            day -= timedelta(days=day.weekday())
        case "HOUR":
            day = value.replace(minute=0, second=0, microsecond=0)
        case "MINUTE":
            day = value.replace(second=0, microsecond=0)
        case "SECOND":
            day = value.replace(microsecond=0)
    return day if kind is Kind.TIME else day.date()


def _listed(unit: str, lower: date, upper: date) -> tuple[Constant, ...] | None:
    """Return every beginning of a unit between two of them, if there are not too many."""
    listed: list[Constant] = []
    for value in _from(unit, lower):
        if position(value) > position(upper):
            break
        listed.append(value)
        if len(listed) > KEYS_MAX:
            return None
    return tuple(listed)


def _from(unit: str, value: date) -> Iterator[date]:
    months = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}.get(unit)
    step = timedelta(weeks=unit == "WEEK", days=unit == "DAY", hours=unit == "HOUR", minutes=unit == "MINUTE")
    yield value
    while True:
        try:
            value = value + (step or timedelta(seconds=1)) if months is None else _months_after(value, months)
        except OverflowError:
            return
        yield value


def _months_after(value: date, months: int) -> date:
    after = months_later(datetime(value.year, value.month, value.day), months) or datetime.max
    return after if isinstance(value, datetime) else after.date()


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Extract: Rule(extract, ("EXTRACT",), ("this", "expression")),
    exp.Year: _named("YEAR"),
    exp.Quarter: _named("QUARTER"),
    exp.Month: _named("MONTH"),
    exp.Week: _named("WEEK"),
    exp.WeekOfYear: _named("WEEK", "WEEKOFYEAR"),
    exp.Day: _named("DAY"),
    exp.DayOfMonth: _named("DAY", "DAYOFMONTH"),
    exp.DayOfWeek: _named("DOW", "DAYOFWEEK"),
    exp.DayOfWeekIso: _named("ISODOW"),
    exp.DayOfYear: _named("DOY", "DAYOFYEAR"),
    exp.Hour: _named("HOUR"),
    exp.Minute: _named("MINUTE"),
    exp.Second: _named("SECOND"),
    exp.TimeToUnix: _named("EPOCH"),
    exp.TimestampTrunc: Rule(truncate, ("DATE_TRUNC",), ("this", "unit")),
    exp.DateTrunc: Rule(truncate, (), ("this", "unit")),
    exp.LastDay: Rule(last_day, ("LAST_DAY",), ("this",)),
}
NAMED: Final = {"DATE_PART": Rule(date_part, ("DATE_PART",)), "DATEPART": Rule(date_part, ("DATEPART",))}
