"""Reconstruction of a database from published counts, means and medians, by constraint solving.

Garfinkel, Abowd, Martindale 2018: every published number is a constraint on the records of a group of people,
suppressed cells are small counts, and a solver lists the databases that fit all of them. Records that are in all of
these are certain. Numbers with noise are intervals (`count=(3, 9)`), which many databases fit. Needs the extra
`attack`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any, Final

from tacit.attack.finding import Measurement, Power, Series, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack
from tacit.attack.targets import Statistics
from tacit.privacy.errors import EmptyInput, InvalidInput, OutOfRange, TacitError, TimedOut
from tacit.privacy.extras import import_extra
from tacit.privacy.numbers import whole

DATABASES_MAX: Final = 10_000
"""How many databases are listed before the count is given as at least that many."""
PEOPLE_MAX: Final = 100
SOLVE_S: Final = 20.0
"""Time limit of one search."""

Record = tuple[Any, ...]
Where = Mapping[str, Any]
"""Conditions by attribute: a value, a list of values, or a pair (low, high) of numbers with None for an open end."""


@dataclass(frozen=True)
class Published:
    """The statistics of one group: its count, or the range of its count, and means and medians of attributes.

    A suppressed cell has no count but a range, as in count=(0, 2). A mean is read as the whole sum nearest to count
    times mean; a mean that is a pair is a range of sums.
    """

    name: str
    where: Where = field(default_factory=dict)
    count: int | tuple[int, int] | None = None
    mean: Mapping[str, float | tuple[float, float]] = field(default_factory=dict)
    median: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.mean or self.median) and not isinstance(self.count, int):
            raise InvalidInput(f"{self.name} has a mean or a median, and needs an exact count", name="count")


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
        if not 1 <= whole("people", self.people) <= PEOPLE_MAX:
            raise OutOfRange(f"tables of 1 to {PEOPLE_MAX} people are reconstructed", name="people", value=self.people)
        if not self.attributes or not self.statistics:
            raise EmptyInput("published tables need attributes and statistics", name="statistics")
        named = [one.where for one in self.statistics] + [one for rule in self.rules for one in rule]
        for name in (name for where in named for name in where):
            if name not in self.attributes:
                raise InvalidInput(f"a statistic names {name}, which is no attribute", name="where")
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
        for name, mean in one.mean.items():
            assert isinstance(one.count, int)
            low, high = (
                (round(one.count * mean),) * 2 if not isinstance(mean, tuple) else (round(mean[0]), round(mean[1]))
            )
            self.model.add_linear_constraint(sum(self._values(name, members)), low, high)
        for name, median in one.median.items():
            assert isinstance(one.count, int)
            self._median(name, members, one.count, median)

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

    def _median(self, name: str, members: Sequence[Any], count: int, median: float) -> None:
        """Add that the middle value, or the mean of the two middle values, of the members is the median."""
        domain = self._domains[name]
        lower = self.model.new_int_var(domain[0], domain[-1], "")
        doubled = round(2 * median)
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
    certain = found.certain
    share = sum(certain.values()) / tables.people
    most = setting.scaled(200, 1_000, 5_000)
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
            Measurement("databases that fit", len(found.found)),
            Measurement("share of people whose record is certain", share, baseline=0.0),
        ),
        share if found.found and found.is_complete else None,
        "all databases that fit, by constraint solving",
        Power("statistics that one database fits", 1.0, 0.0, is_noticed=_is_below(setting, 1.0)),
        series=(
            Series(
                "Databases that fit without one statistic",
                "statistic left out",
                f"databases (at most {most:,})",
                tuple(left_out),
            ),
        ),
        worst=tuple(described),
        details={
            "is_complete": found.is_complete,
            "contradicting_statistics": contradicting,
            "databases": [[list(record) for record in database] for database in found.found[:20]],
        },
        bounds="a share of people with a certain record",
    )


def _is_below(setting: Setting, share: float) -> bool:
    """Return whether a claim of risk would be refuted by a share of certain records, which is exact."""
    return setting.claim is not None and setting.claim.risk is not None and share > setting.claim.risk
