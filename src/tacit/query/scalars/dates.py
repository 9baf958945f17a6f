"""Dates and times: parts, truncation, shifts by an interval of the query, and differences.

Promise: every date and time that is read lies within the years 1 to 9999, and so does every result here: what would
leave them is NULL. The condition is on the operand, so that an engine never computes a date that it cannot hold.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from typing import Final

from sqlglot import exp

from tacit.privacy.errors import NotAllowed, WrongKind
from tacit.privacy.tables import Kind
from tacit.query.expressions import Constant, Expression, Range, position
from tacit.query.scalars import trees, value_ranges
from tacit.query.scalars.facts import (
    Bind,
    Rule,
    as_temporal,
    as_time,
    derive,
    is_known,
    is_null,
    literal,
    null,
    value_of,
    whole_literal,
)
from tacit.query.scalars.trees import Tree

KEYS_MAX: Final = 10_000
"""The greatest number of dates in a domain."""

CALENDAR_STEPS: Final = 12
"""How many steps it takes to find a date in the calendar: PostgreSQL computes its parts as decimal numbers."""

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
TIME_UNITS: Final = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
YEAR_MAX: Final = 9_999
FIRST, LAST = datetime.min, datetime.max
_ZERO: Final = Fraction(0)

_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12, "DECADE": 120, "CENTURY": 1_200}
_SECONDS: Final = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600}
_DAYS: Final = {"DAY": 1, "WEEK": 7}
_SHORT: Final = {"YR": "YEAR", "MON": "MONTH", "HR": "HOUR", "MIN": "MINUTE", "SEC": "SECOND", "CENTURIE": "CENTURY"}


def part(name: str, operand: Expression) -> Expression:
    """Return a part of a date or time as a number."""
    operand = as_temporal(operand, name)
    name = _OTHER_NAMES.get(name, name)
    if name != "YEAR" and name != "EPOCH" and name not in PARTS:
        names = ", ".join(sorted(("YEAR", "EPOCH", *PARTS))).lower()
        raise NotAllowed(f"a date has no part called {name.lower()}", accepted=f"its parts are {names}")
    if name in _OF_TIMES and operand.kind is Kind.DATE and not is_null(operand):
        raise WrongKind(f"{name} takes a time and got a date")
    if is_null(operand):
        return null(Kind.REAL if name == "EPOCH" else Kind.INTEGER)
    if name == "EPOCH":
        return _epoch(as_time(operand))
    tree = trees.add_work(exp.Extract(this=exp.Var(this=name), expression=operand.tree.copy()), CALENDAR_STEPS)
    range_ = _years(operand) if name == "YEAR" else Range.of(*PARTS[name])
    return derive(tree, Kind.INTEGER, (operand,), range=range_)


def extract(node: Tree, bind: Bind) -> Expression:
    """EXTRACT(part FROM date)."""
    return part(time_unit(node.this), bind(node.expression))


def date_part(node: Tree, bind: Bind) -> Expression:
    """DATE_PART('part', date)."""
    if len(node.expressions) != 2:
        raise WrongKind("DATE_PART takes the name of a part, and a date")
    name, operand = node.expressions
    return part(time_unit(name), bind(operand))


def _part_rule(name: str, *called: str) -> Rule:
    return Rule(lambda node, bind: part(name, bind(node.this)), called or (name,), ("this",))


def truncate(node: Tree, bind: Bind) -> Expression:
    """DATE_TRUNC('unit', date): the start of the unit; a date stays a date."""
    unit = time_unit(node.args.get("unit"))
    operand = as_temporal(bind(node.this), "DATE_TRUNC")
    allowed = TIME_UNITS[:5] if operand.kind is Kind.DATE else TIME_UNITS
    if unit not in allowed:
        names = ", ".join(allowed).lower()
        raise NotAllowed(
            f"DATE_TRUNC does not support {unit.lower() or 'this unit'}", accepted=f"its units are {names}"
        )
    if is_null(operand):
        return null(operand.kind)
    tree = trees.add_work(exp.TimestampTrunc(this=operand.tree.copy(), unit=exp.Var(this=unit)), CALENDAR_STEPS)
    range_, domain = None, None
    if operand.range is not None:
        lower, upper = (_unit_start(unit, one, operand.kind) for one in (operand.range.lower, operand.range.upper))
        range_ = Range.of(lower, upper)
        domain = _unit_starts(unit, lower, upper)
    return derive(trees.cast(tree, operand.kind), operand.kind, (operand,), range=range_, domain=domain)


def last_day(node: Tree, bind: Bind) -> Expression:
    """LAST_DAY(date): the last day of the month."""
    operand = as_temporal(bind(node.this), "LAST_DAY")
    if is_null(operand):
        return null(Kind.DATE)
    range_ = None
    if operand.range is not None:
        ends = [_unit_start("MONTH", one, operand.kind) for one in (operand.range.lower, operand.range.upper)]
        range_ = Range.of(_month_end(ends[0]), _month_end(ends[1]))
    tree = trees.cast(trees.add_work(exp.LastDay(this=operand.tree.copy()), CALENDAR_STEPS), Kind.DATE)
    return derive(tree, Kind.DATE, (operand,), range=range_)


def _month_end(begin: date) -> date:
    return date(begin.year, begin.month, calendar.monthrange(begin.year, begin.month)[1])


def _epoch(operand: Expression) -> Expression:
    range_ = None
    if operand.range is not None:
        range_ = value_ranges.slack(operand.range.lower / 10**6, operand.range.upper / 10**6)
    seconds = exp.Extract(this=exp.Var(this="EPOCH"), expression=operand.tree.copy())
    tree = trees.cast(trees.add_work(seconds, CALENDAR_STEPS), Kind.REAL)
    return derive(tree, Kind.REAL, (operand,), range=range_)


def _years(operand: Expression) -> Range | None:
    if operand.range is None:
        return None
    at = day_at if operand.kind is Kind.DATE else moment_at
    return Range.of(at(operand.range.lower).year, at(operand.range.upper).year)


def _unit_start(unit: str, place: Fraction, kind: Kind) -> date:
    """Return the start of the unit of time that holds a position."""
    value = moment_at(place if kind is Kind.TIME else place * value_ranges.DAY)
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


def _unit_starts(unit: str, lower: date, upper: date) -> tuple[Constant, ...] | None:
    """Return the starts of a unit of time between two of them, None if they are too many."""
    listed: list[Constant] = []
    for value in _starts_from(unit, lower):
        if position(value) > position(upper):
            break
        listed.append(value)
        if len(listed) > KEYS_MAX:
            return None
    return tuple(listed)


def _starts_from(unit: str, value: date) -> Iterator[date]:
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


def time_unit(node: Tree | None) -> str:
    """Return the unit of time that a node names, in capitals and without the plural's s."""
    name = "" if node is None else node.name.upper()
    name = name.removesuffix("S") if len(name) > 1 else name
    return _SHORT.get(name, name)


def shift_by_interval(operand: Expression, interval: exp.Interval, *, sign: int) -> Expression:
    """Return a date or time shifted by an interval of the query."""
    operand = as_time(as_temporal(operand, "an interval"))
    amount, unit = _amount(interval)
    amount *= sign
    if unit in _MONTHS:
        return _shift_by_months(operand, amount * _MONTHS[unit])
    step = timedelta(days=1) if unit in _DAYS else timedelta(seconds=1)
    return _shift_by_steps(operand, amount * (_DAYS | _SECONDS)[unit], "DAY" if unit in _DAYS else "SECOND", step)


def days_later(day: Expression, amount: Expression, *, sign: int) -> Expression:
    """Return a date shifted by a literal number of days."""
    if day.kind is Kind.TIME:
        raise WrongKind("+ and - shift a time by an interval; write INTERVAL '1' DAY")
    if is_null(day):
        return null(Kind.DATE)
    limit = YEAR_MAX * 366
    count = sign * whole_literal(amount, "the number of days must be a literal", -limit, limit)
    step = Fraction(count)
    if is_known(day):
        return _shift_constant(day, count, timedelta(days=1))
    lower, upper = position(FIRST.date()) - min(step, _ZERO), position(LAST.date()) - max(step, _ZERO)
    if lower > upper:
        return null(Kind.DATE)
    operator = exp.Add if count >= 0 else exp.Sub
    held, range_ = _null_outside(day, lower, upper)
    moved = None if range_ is None else Range(range_.lower + step, range_.upper + step)
    tree = trees.binary(operator, held.tree, trees.constant(abs(count)))
    return derive(tree, Kind.DATE, (held,), range=moved)


def days_between(a: Expression, b: Expression) -> Expression:
    """Return a - b in days."""
    a, b = as_temporal(a, "-"), as_temporal(b, "-")
    if Kind.TIME in (a.kind, b.kind):
        raise WrongKind("- takes two dates; the time between two times is DATE_DIFF('second', start, end)")
    return difference("DAY", b, a)


def difference(unit: str, start: Expression, end: Expression) -> Expression:
    """Return how many boundaries of a unit of time lie between two dates or times."""
    start, end = as_temporal(start, "DATE_DIFF"), as_temporal(end, "DATE_DIFF")
    if is_null(start) or is_null(end):
        return null(Kind.INTEGER)
    if unit not in TIME_UNITS:
        names = ", ".join(one.lower() for one in TIME_UNITS)
        raise NotAllowed(f"DATE_DIFF does not support {unit.lower() or 'this unit'}", accepted=f"its units are {names}")
    if unit in _SECONDS or Kind.TIME in (start.kind, end.kind):
        start, end = as_time(start), as_time(end)
    range_ = None
    if start.range is not None and end.range is not None:
        numbers = [_unit_numbers(unit, one, start.kind) for one in (start.range, end.range)]
        slack = 1 if unit in _SECONDS else 0  # engines may cut off towards 1970
        lower, upper = numbers[1][0] - numbers[0][1] - slack, numbers[1][1] - numbers[0][0] + slack
        range_ = Range(Fraction(lower), Fraction(upper))
    return derive(_difference(unit, start.tree, end.tree), Kind.INTEGER, (start, end), range=range_)


def _difference(unit: str, start: Tree, end: Tree) -> Tree:
    if unit == "WEEK":  # engines count weeks in ways of their own; the days between two Mondays are whole weeks
        mondays = [exp.TimestampTrunc(this=one.copy(), unit=exp.Var(this=unit)) for one in (start, end)]
        return trees.binary(exp.IntDiv, _difference("DAY", *mondays), trees.constant(7))
    counted = exp.DateDiff(this=end.copy(), expression=start.copy(), unit=exp.Var(this=unit))
    return trees.add_work(counted, 2 * CALENDAR_STEPS)


def date_diff(node: Tree, bind: Bind) -> Expression:
    """DATE_DIFF(unit, start, end)."""
    return difference(time_unit(node.args.get("unit")), bind(node.expression), bind(node.this))


def date_add(node: Tree, bind: Bind) -> Expression:
    """DATE_ADD(date, INTERVAL n unit)."""
    interval = trees.without_parentheses(node.expression)
    if not isinstance(interval, exp.Interval):
        raise NotAllowed("DATE_ADD takes an INTERVAL", accepted="write INTERVAL '1' DAY")
    return shift_by_interval(bind(node.this), interval, sign=1)


def moment_at(place: Fraction) -> datetime:
    """Return the time so many microseconds after 1970."""
    return datetime(1970, 1, 1) + timedelta(microseconds=int(place))


def day_at(place: Fraction) -> date:
    """Return the date so many days after 1970."""
    return date(1970, 1, 1) + timedelta(days=int(place))


def _amount(interval: exp.Interval) -> tuple[int, str]:
    unit = time_unit(interval.args.get("unit"))
    text = interval.this.name if isinstance(interval.this, exp.Literal) else ""
    known = unit in _MONTHS or unit in _DAYS or unit in _SECONDS
    try:
        amount = int(text)
    except ValueError:
        known = False
        amount = 0
    if not known or abs(amount) > 10**12:
        accepted = "write a whole number of one unit, such as INTERVAL '3' MONTH"
        raise NotAllowed("the interval is not supported", accepted=accepted)
    return amount, unit


def _shift_by_steps(operand: Expression, amount: int, unit: str, step: timedelta) -> Expression:
    """Return a time moved by a number of steps of the same length."""
    if is_null(operand):
        return operand
    micros = Fraction(amount * (step // timedelta(microseconds=1)))
    if is_known(operand):
        return _shift_constant(operand, amount, step)
    lower, upper = position(FIRST) - min(micros, _ZERO), position(LAST) - max(micros, _ZERO)
    if lower > upper:
        return null(Kind.TIME)
    held, range_ = _null_outside(operand, lower, upper)
    moved = None if range_ is None else Range(range_.lower + micros, range_.upper + micros)
    return derive(_shift_tree(held.tree, amount, unit), Kind.TIME, (held,), range=moved)


def _shift_by_months(operand: Expression, months: int) -> Expression:
    if is_null(operand):
        return operand
    if is_known(operand):
        value = value_of(operand)
        assert isinstance(value, datetime)
        return literal(months_later(value, months))
    first, last = (max(1 * 12, 12 - months), min(YEAR_MAX * 12 + 11, YEAR_MAX * 12 + 11 - months))
    if first > last:
        return null(Kind.TIME)
    ends = datetime(first // 12, first % 12 + 1, 1), _end_of_month(last // 12, last % 12 + 1)
    held, range_ = _null_outside(operand, position(ends[0]), position(ends[1]))
    moved = None if range_ is None else _months_range(range_, months)
    return derive(_shift_tree(held.tree, months, "MONTH"), Kind.TIME, (held,), range=moved)


def _months_range(range_: Range, months: int) -> Range:
    """Return the range of times that are shifted by months.

    Days keep their order, but several can come to the last day of a month, each with its own time of day: there the
    shift is not monotone, and the range is widened to the whole day.
    """
    lower, upper = (months_later(moment_at(one), months) for one in (range_.lower, range_.upper))
    if lower is not None and lower.date() == _end_of_month(lower.year, lower.month).date():
        lower = datetime.combine(lower, time.min)
    if upper is not None and upper.date() == _end_of_month(upper.year, upper.month).date():
        upper = datetime.combine(upper, time.max)
    return Range.of(lower or FIRST, upper or LAST)


def months_later(value: datetime, months: int) -> datetime | None:
    """Return the time some months later, or on the last day of that month; None beyond the years 1 to 9999."""
    month = value.year * 12 + value.month - 1 + months
    year, month = month // 12, month % 12 + 1
    if not 1 <= year <= YEAR_MAX:
        return None
    return value.replace(year=year, month=month, day=min(value.day, calendar.monthrange(year, month)[1]))


def _null_outside(operand: Expression, lower: Fraction, upper: Fraction) -> tuple[Expression, Range | None]:
    """Return the operand with NULL outside of an interval, unless its range lies inside, and the remaining range."""
    range_ = operand.range
    if range_ is not None and lower <= range_.lower and range_.upper <= upper:
        return operand, range_
    at = day_at if operand.kind is Kind.DATE else moment_at
    inside = exp.And(
        this=trees.binary(exp.GTE, operand.tree, trees.constant(at(lower))),
        expression=trees.binary(exp.LTE, operand.tree, trees.constant(at(upper))),
    )
    left = None
    if range_ is not None:
        left = Range(min(max(range_.lower, lower), upper), max(min(range_.upper, upper), lower))
    tree = trees.case((inside, operand.tree))
    return derive(tree, operand.kind, (operand,), nullable=True, makes_null=True), left


def _shift_tree(tree: Tree, amount: int, unit: str) -> Tree:
    interval = exp.Interval(this=exp.Literal.string(str(abs(amount))), unit=exp.Var(this=unit))
    kind = exp.Add if amount >= 0 else exp.Sub
    return trees.add_work(kind(this=trees.operand(tree), expression=interval), CALENDAR_STEPS)


def _shift_constant(operand: Expression, amount: int, step: timedelta) -> Expression:
    value = value_of(operand)
    assert isinstance(value, date)
    try:
        return literal(value + amount * step)
    except OverflowError:
        return null(operand.kind)


def _unit_numbers(unit: str, range_: Range, kind: Kind) -> tuple[int, int]:
    """Return the number of the unit of time in which each end of a range lies."""
    return _unit_number(unit, range_.lower, kind), _unit_number(unit, range_.upper, kind)


def _unit_number(unit: str, place: Fraction, kind: Kind) -> int:
    if unit in _SECONDS:
        return int(place // (_SECONDS[unit] * 1_000_000))
    day = day_at(place if kind is Kind.DATE else Fraction(place // value_ranges.DAY))
    match unit:
        case "YEAR":
            return day.year
        case "QUARTER":
            return day.year * 4 + (day.month - 1) // 3
        case "MONTH":
            return day.year * 12 + day.month
        case "WEEK":
            return (day.toordinal() - 1) // 7
    return day.toordinal()


def _end_of_month(year: int, month: int) -> datetime:
    return datetime(year, month, calendar.monthrange(year, month)[1], 23, 59, 59, 999_999)


RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Extract: Rule(extract, ("EXTRACT",), ("this", "expression")),
    exp.Year: _part_rule("YEAR"),
    exp.Quarter: _part_rule("QUARTER"),
    exp.Month: _part_rule("MONTH"),
    exp.Week: _part_rule("WEEK"),
    exp.WeekOfYear: _part_rule("WEEK", "WEEKOFYEAR"),
    exp.Day: _part_rule("DAY"),
    exp.DayOfMonth: _part_rule("DAY", "DAYOFMONTH"),
    exp.DayOfWeek: _part_rule("DOW", "DAYOFWEEK"),
    exp.DayOfWeekIso: _part_rule("ISODOW"),
    exp.DayOfYear: _part_rule("DOY", "DAYOFYEAR"),
    exp.Hour: _part_rule("HOUR"),
    exp.Minute: _part_rule("MINUTE"),
    exp.Second: _part_rule("SECOND"),
    exp.TimeToUnix: _part_rule("EPOCH"),
    exp.TimestampTrunc: Rule(truncate, ("DATE_TRUNC",), ("this", "unit")),
    exp.DateTrunc: Rule(truncate, (), ("this", "unit")),
    exp.LastDay: Rule(last_day, ("LAST_DAY",), ("this",)),
    exp.DateDiff: Rule(date_diff, ("DATE_DIFF", "DATEDIFF"), ("this", "expression", "unit")),
    exp.DateAdd: Rule(date_add, ("DATE_ADD",), ("this", "expression")),
}
NAMED: Final = {"DATE_PART": Rule(date_part, ("DATE_PART",)), "DATEPART": Rule(date_part, ("DATEPART",))}
