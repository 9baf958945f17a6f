"""Reconstruction of a database from published counts, means and medians, by constraint solving.

Garfinkel, Abowd, Martindale 2018: every published number is a constraint on the records of a group of people,
suppressed cells are small counts, and a solver lists the databases that fit all of them. Records that are in all of
these are certain. Numbers with noise are intervals (`count=(3, 9)`), which many databases fit. Needs the extra
`attack`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any, Final

from tacit.attack.finding import Measurement, Power, Series, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack
from tacit.attack.targets import Statistics
from tacit.privacy.arguments import instance, instances, mapping
from tacit.privacy.errors import EmptyInput, InvalidInput, OutOfRange, TacitError, TimedOut, TooLarge, WrongType
from tacit.privacy.extras import import_extra
from tacit.privacy.numbers import exact, whole

DATABASES_MAX: Final = 10_000
"""How many databases are listed before the count is given as at least that many."""
PEOPLE_MAX: Final = 100
DECIMALS_MAX: Final = 15
DOMAIN_MAX: Final = 10_000
VALUE_MAX: Final = 2**31
NUMBER_MAX: Final = 2**53
"""Limits of an attribute's domain, of one number, and of sums and codes of records, well within those of the solver."""
SOLVE_S: Final = 20.0
"""Time limit of one search."""

Record = tuple[Any, ...]
Where = Mapping[str, Any]
"""Conditions by attribute: a value, a list of values, or a pair (low, high) of numbers with None for an open end."""


@dataclass(frozen=True)
class Published:
    """The statistics of one group: its count, or the range of its count, and means and medians of attributes.

    A suppressed cell has no count but a range, as in count=(0, 2). Means and medians that were rounded need `decimals`,
    the digits after the point to which they were: each then stands for all numbers that are rounded to it. Without it a
    mean is read as the whole sum nearest to count times mean, and a median as exact. A mean that is a pair is a range
    of sums.
    """

    name: str
    where: Where = field(default_factory=dict)
    count: int | tuple[int, int] | None = None
    mean: Mapping[str, float | tuple[float, float]] = field(default_factory=dict)
    median: Mapping[str, float] = field(default_factory=dict)
    decimals: int | None = None

    def __post_init__(self) -> None:
        instance("name", self.name, str, "a text")
        for part in ("where", "mean", "median"):
            mapping(part, getattr(self, part), "a mapping by the names of attributes")
        object.__setattr__(self, "count", _count(self.count))
        if self.decimals is not None:
            object.__setattr__(self, "decimals", whole("decimals", self.decimals, at_least=0))
            if self.decimals > DECIMALS_MAX:
                raise OutOfRange(f"decimals must be at most {DECIMALS_MAX}", name="decimals", value=self.decimals)
        if (self.mean or self.median) and not (isinstance(self.count, int) and self.count):
            raise InvalidInput(f"{self.name} has a mean or a median, and needs an exact count above 0", name="count")
        for name in self.mean:
            self.sums(name)
        for name in self.median:
            self.doubled_median(name)

    def sums(self, name: str) -> tuple[int, int]:
        """Return the least and the greatest whole sum of an attribute that its mean allows."""
        mean = self.mean[name]
        assert isinstance(self.count, int)
        if isinstance(mean, tuple):
            low, high = (round(_limited("mean", one, NUMBER_MAX)) for one in _pair("mean", mean))
        elif self.decimals is None:
            low = high = round(self.count * _limited("mean", mean))
        else:
            low, high = self._rounded("mean", mean, self.count)
        return _in_order("mean", low, high)

    def doubled_median(self, name: str) -> tuple[int, int]:
        """Return the least and the greatest double of the median of an attribute, a whole number."""
        median = self.median[name]
        if self.decimals is not None:
            return _in_order("median", *self._rounded("median", median, 2))
        doubled = 2 * _limited("median", median)
        if doubled.denominator != 1:
            raise InvalidInput(
                f"a median of whole numbers is whole or a half, not {median}; state decimals if it was rounded",
                name="median",
                value=median,
            )
        return int(doubled), int(doubled)

    def _rounded(self, name: str, value: Any, factor: int) -> tuple[int, int]:
        """Return the whole numbers between which `factor` times a number lies that was rounded to `value`."""
        assert self.decimals is not None
        written, half = Fraction(str(float(_limited(name, value)))), Fraction(1, 2 * 10**self.decimals)
        return math.ceil(factor * (written - half)), math.floor(factor * (written + half))


def _count(count: Any) -> int | tuple[int, int] | None:
    if count is None:
        return None
    low, high = (
        whole("count", one, at_least=0) for one in (_pair("count", count) if _is_pair(count) else (count, count))
    )
    if high > PEOPLE_MAX:
        raise TooLarge(f"count must be at most {PEOPLE_MAX}", name="count", value=count)
    return _in_order("count", low, high) if _is_pair(count) else low


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple | list)


def _pair(name: str, value: Any) -> tuple[Any, Any]:
    if len(value) != 2:
        raise WrongType(f"a range of {name} has two ends", name=name, value=value)
    return value[0], value[1]


def _in_order(name: str, low: int, high: int) -> tuple[int, int]:
    if low > high:
        raise OutOfRange(f"no whole number is within the range of {name}", name=name, value=(low, high))
    return low, high


def _limited(name: str, value: Any, most: int = VALUE_MAX) -> Fraction:
    """Return a number, or raise unless it is finite and within what the solver holds."""
    number = exact(name, value)
    if abs(number) > most:
        raise TooLarge(f"{name} must be at most {most:,} in size", name=name, value=value)
    return number


@dataclass(frozen=True)
class PublishedTables:
    """Published statistics about a number of people with attributes of known domains.

    `attributes` maps a name to a range of whole numbers or a list of values. `rules` are pairs of conditions of which
    the first implies the second, as in ({"married": "M"}, {"age": (15, None)}).
    """

    people: int
    attributes: Mapping[str, Sequence[Any]]
    statistics: Sequence[Published]
    rules: Sequence[tuple[Where, Where]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "people", whole("people", self.people))
        if self.people > PEOPLE_MAX:
            raise OutOfRange(f"tables of 1 to {PEOPLE_MAX} people are reconstructed", name="people", value=self.people)
        mapping("attributes", self.attributes, "a mapping from names to domains")
        instances("statistics", self.statistics, Published, "a list of Published")
        if not self.attributes or not self.statistics:
            raise EmptyInput("published tables need attributes and statistics", name="statistics")
        size = 1
        for name, domain in self.attributes.items():
            size *= _domain_size(name, domain)
        if size > NUMBER_MAX:
            raise TooLarge("the attributes have too many combinations of values", name="attributes")
        if any(not _is_pair(rule) or len(rule) != 2 for rule in self.rules):
            raise WrongType("a rule is a pair of conditions", name="rules")
        named = [one.where for one in self.statistics] + [one for rule in self.rules for one in rule]
        for where in named:
            for name, wanted in mapping("where", where, "a mapping by the names of attributes").items():
                if name not in self.attributes:
                    raise InvalidInput(f"a statistic names {name}, which is no attribute", name="where")
                if isinstance(wanted, tuple) and isinstance(self.attributes[name], range):
                    _require_range(wanted)
        for one in self.statistics:
            for name in (*one.mean, *one.median):
                if not isinstance(self.attributes.get(name), range):
                    raise InvalidInput(
                        f"{one.name} has a mean or median of {name}, which is no range", name="attributes"
                    )

    def without(self, names: Iterable[str]) -> PublishedTables:
        """Return the tables without some statistics."""
        left_out = set(names)
        if unknown := left_out - {one.name for one in self.statistics}:
            raise InvalidInput(f"there is no statistic {sorted(unknown)[0]}", name="statistics")
        return PublishedTables(
            self.people, self.attributes, [one for one in self.statistics if one.name not in left_out], self.rules
        )


def _domain_size(name: str, domain: Any) -> int:
    """Return the number of values of an attribute, or raise for a domain that cannot be searched."""
    if isinstance(domain, str | bytes) or not isinstance(domain, Sequence):
        raise WrongType(f"{name} must be a range of whole numbers or a list of values", name="attributes", value=domain)
    if not domain:
        raise EmptyInput(f"{name} has no values", name="attributes")
    if isinstance(domain, range):
        if domain.step < 0:
            raise OutOfRange(f"the range of {name} must ascend", name="attributes", value=domain)
        if max(abs(domain[0]), abs(domain[-1])) > VALUE_MAX or domain[-1] - domain[0] >= DOMAIN_MAX * domain.step:
            raise TooLarge(f"{name} has at most {DOMAIN_MAX:,} values of up to {VALUE_MAX:,}", name="attributes")
    elif len(domain) > DOMAIN_MAX:
        raise TooLarge(f"{name} has at most {DOMAIN_MAX:,} values", name="attributes")
    elif len(set(map(repr, domain))) < len(domain):
        raise InvalidInput(f"{name} names a value twice", name="attributes")
    return len(domain)


def _require_range(wanted: tuple[Any, ...]) -> None:
    """Raise unless a condition is a pair of numbers in order, of which None is an open end."""
    ends = [exact("where", one) for one in _pair("where", wanted) if one is not None]
    if len(ends) == 2 and ends[0] > ends[1]:
        raise OutOfRange("the range of a condition must ascend", name="where", value=wanted)


@dataclass(frozen=True)
class Databases:
    """The databases that fit published statistics, each a sorted tuple of records."""

    found: tuple[tuple[Record, ...], ...]
    is_complete: bool
    """Whether these are all."""

    @property
    def certain(self) -> Counter[Record]:
        """The records that are in all of them, with how often."""
        if not self.found:
            return Counter()
        return reduce(lambda one, other: one & other, map(Counter, self.found))


def databases(tables: PublishedTables, most: int = DATABASES_MAX) -> Databases:
    """Return the databases that fit, at most so many of them."""
    cp_model = import_extra("ortools.sat.python.cp_model", extra="attack", purpose="table reconstruction")
    model = _Model(cp_model, tables)
    found: set[tuple[Record, ...]] = set()

    class Collect(cp_model.CpSolverSolutionCallback):  # type: ignore[misc,name-defined]
        def on_solution_callback(self) -> None:
            found.add(model.records(self.value))
            if len(found) >= most:
                self.stop_search()

    solver = cp_model.CpSolver()
    solver.parameters.enumerate_all_solutions = True
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = SOLVE_S
    status = solver.solve(model.model, Collect())
    if status == cp_model.UNKNOWN:
        raise TimedOut(f"no database was found within {SOLVE_S:g} s; publish or state more statistics")
    is_complete = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE) and len(found) < most
    return Databases(tuple(sorted(found, key=repr)), is_complete)


def conflict(tables: PublishedTables) -> list[str]:
    """Return the names of statistics that contradict one another, none of which can be spared; empty if none do."""
    if databases(tables, 1).found:
        return []
    kept = [one.name for one in tables.statistics]
    for name in list(kept):
        fewer = [one for one in kept if one != name]
        gone = [one.name for one in tables.statistics if one.name not in fewer]
        if fewer and not databases(tables.without(gone), 1).found:
            kept = fewer
    return kept


class _Model:
    """The constraints of published tables for the solver; every auxiliary variable follows from the records."""

    def __init__(self, cp_model: Any, tables: PublishedTables) -> None:
        self._cp, self._tables = cp_model, tables
        self.model = cp_model.CpModel()
        self._domains = {name: list(values) for name, values in tables.attributes.items()}
        self._people = [
            {
                name: self.model.new_int_var(0, len(values) - 1, f"{name}{person}")
                for name, values in self._domains.items()
            }
            for person in range(tables.people)
        ]
        self._order_people()
        for before, after in tables.rules:
            for person in self._people:
                self.model.add_implication(self._matches(person, before), self._matches(person, after))
        for one in tables.statistics:
            self._publish(one)

    def records(self, value: Any) -> tuple[Record, ...]:
        """Return the records of a solution, sorted."""
        found = (
            tuple(self._domains[name][value(variable)] for name, variable in person.items()) for person in self._people
        )
        return tuple(sorted(found, key=repr))

    def _order_people(self) -> None:
        """Order the people by their records, so that a database is found once and not in every order of its people."""
        codes = []
        for person in self._people:
            code: Any = 0
            for name, variable in person.items():
                code = code * len(self._domains[name]) + variable
            codes.append(code)
        for one, other in pairwise(codes):
            self.model.add(one <= other)

    def _matches(self, person: Mapping[str, Any], where: Where) -> Any:
        """Return a truth value that says whether a person meets all conditions."""
        literals = [self._in_domain(person[name], self._places(name, wanted)) for name, wanted in where.items()]
        return self._all(literals)

    def _all(self, literals: Sequence[Any]) -> Any:
        met = self.model.new_bool_var("")
        self.model.add_bool_and(literals).only_enforce_if(met)
        self.model.add_bool_or([*(one.negated() for one in literals), met])
        return met

    def _places(self, name: str, wanted: Any) -> list[int]:
        """Return the places in the domain of an attribute that a condition allows."""
        domain = self._domains[name]
        if isinstance(wanted, tuple) and len(wanted) == 2 and isinstance(self._tables.attributes[name], range):
            low, high = wanted
            found = [
                place
                for place, value in enumerate(domain)
                if (low is None or value >= low) and (high is None or value <= high)
            ]
        else:
            listed = wanted if isinstance(wanted, list | set | frozenset) else [wanted]
            found = [place for place, value in enumerate(domain) if value in listed]
        if not found:
            raise InvalidInput(f"no value of {name} meets the condition {wanted!r}", name="where", value=wanted)
        return found

    def _in_domain(self, variable: Any, places: Sequence[int]) -> Any:
        inside = self._cp.Domain.from_values(places)
        met = self.model.new_bool_var("")
        self.model.add_linear_expression_in_domain(variable, inside).only_enforce_if(met)
        self.model.add_linear_expression_in_domain(variable, inside.complement()).only_enforce_if(met.negated())
        return met

    def _publish(self, one: Published) -> None:
        members = [self._matches(person, one.where) for person in self._people]
        if one.count is not None:
            low, high = (one.count, one.count) if isinstance(one.count, int) else one.count
            self.model.add_linear_constraint(sum(members), low, high)
        for name in one.mean:
            self.model.add_linear_constraint(sum(self._values(name, members)), *one.sums(name))
        for name in one.median:
            assert isinstance(one.count, int)
            self._median(name, members, one.count, *one.doubled_median(name))

    def _values(self, name: str, members: Sequence[Any]) -> list[Any]:
        """Return the value of each member, 0 for everybody else."""
        found, domain = [], self._domains[name]
        for person, member in zip(self._people, members, strict=True):
            value = self.model.new_int_var(min(0, domain[0]), max(0, domain[-1]), "")
            self.model.add(value == self._number(person, name)).only_enforce_if(member)
            self.model.add(value == 0).only_enforce_if(member.negated())
            found.append(value)
        return found

    def _number(self, person: Mapping[str, Any], name: str) -> Any:
        stated = self._tables.attributes[name]
        assert isinstance(stated, range)
        return stated.start + stated.step * person[name]

    def _median(self, name: str, members: Sequence[Any], count: int, least: int, most: int) -> None:
        """Add that the middle value, or the mean of the two middle values, of the members is half of such a number."""
        domain = self._domains[name]
        lower = self.model.new_int_var(domain[0], domain[-1], "")
        doubled = self.model.new_int_var(least, most, "")
        upper = lower if count % 2 else doubled - lower
        if count % 2:
            self.model.add(2 * lower == doubled)
        else:
            self.model.add(lower <= upper)
        self._at_rank(name, members, (count + 1) // 2, lower)
        if not count % 2:
            self._at_rank(name, members, count // 2 + 1, upper)

    def _at_rank(self, name: str, members: Sequence[Any], rank: int, value: Any) -> None:
        """Add that a value has a rank among the members: fewer than `rank` are below it, and not more above."""
        below: list[Any] = []
        upto: list[Any] = []
        for person, member in zip(self._people, members, strict=True):
            number = self._number(person, name)
            for kept, condition, other in (
                (below, number < value, number >= value),
                (upto, number <= value, number > value),
            ):
                met = self.model.new_bool_var("")
                self.model.add(condition).only_enforce_if(met)
                self.model.add(other).only_enforce_if(met.negated())
                kept.append(self._all([met, member]))
        self.model.add(sum(below) <= rank - 1)
        self.model.add(sum(upto) >= rank)


@attack(
    "table_reconstruction",
    Statistics,
    paper="Garfinkel, Abowd, Martindale 2018",
    summary="databases that fit published counts, means and medians, and the records in all of them",
    needs=("tables",),
)
def reconstruct_tables(target: Statistics, setting: Setting) -> Outcome:
    """List the databases that fit, the records that are certain, and how many more fit without each statistic."""
    tables: PublishedTables = target.tables
    found = databases(tables)
    contradicting = conflict(tables) if not found.found else []
    certain = found.certain if found.is_complete else Counter[Record]()
    share = certain.total() / tables.people if found.is_complete else math.nan
    most, untold = setting.scaled(200, 1_000, 5_000), _certain_untold(tables)
    left_out = []
    for one in tables.statistics if len(tables.statistics) > 1 else ():
        try:
            left_out.append((one.name, float(len(databases(tables.without([one.name]), most).found))))
        except TacitError:
            left_out.append((one.name, float(most)))
    described = [dict(zip(tables.attributes, record, strict=True)) for record in certain.elements()]
    return Outcome(
        ThreatModel("published statistics", "the domains of the attributes", len(tables.statistics)),
        (
            Measurement("databases that fit", len(found.found), is_stopped=not found.is_complete, key="databases"),
            Measurement("share of people whose record is certain", share, baseline=untold, key="certain_records"),
        ),
        share if found.found and found.is_complete else None,
        "all databases that fit, by constraint solving",
        Power("statistics that one database fits", 1.0, untold, is_noticed=_is_below(setting, 1.0)),
        series=(
            Series(
                "Databases that fit without one statistic",
                "statistic left out",
                f"databases (at most {most:,})",
                tuple(left_out),
            ),
        ),
        worst=tuple(described),
        assumptions=_assumed(tables.statistics),
        details={
            "is_complete": found.is_complete,
            "contradicting_statistics": contradicting,
            "databases": [[list(record) for record in database] for database in found.found[:20]],
        },
        bounds="a share of people with a certain record",
        unbounded=_unbounded(found),
    )


def _certain_untold(tables: PublishedTables) -> float:
    """Return the share of people whose record follows from domains and rules alone, without any statistic."""
    alone = PublishedTables(1, tables.attributes, [Published("everybody", {}, 1)], tables.rules)
    return float(len(databases(alone, 2).found) == 1)


def _unbounded(found: Databases) -> str:
    """Return why nothing is known about certain records, or nothing if it is."""
    if not found.is_complete:
        return f"The search stopped after {len(found.found):,} databases that fit, so no record is known to be certain."
    return "" if found.found else "The statistics contradict one another: no database fits them."


def _assumed(statistics: Sequence[Published]) -> tuple[str, ...]:
    """Return how the published figures were read."""
    found = ["published counts are exact, or within their ranges"]
    averaged = [one for one in statistics if one.mean or one.median]
    if any(one.decimals is None for one in averaged):
        found.append("published means and medians are exact, or rounded to the nearest whole sum (no decimals stated)")
    stated = sorted({one.decimals for one in averaged if one.decimals is not None})
    found += [f"published means and medians are rounded to {one} decimals, where that is stated" for one in stated]
    return tuple(found)


def _is_below(setting: Setting, share: float) -> bool:
    """Return whether a claim of risk would be refuted by a share of certain records, which is exact."""
    return setting.claim is not None and setting.claim.risk is not None and share > setting.claim.risk
