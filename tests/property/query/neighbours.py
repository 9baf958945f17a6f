"""The property that everything rests on: neighbouring data sets are no further apart than was charged for.

For one question and one world, `check` compares what the statements of the plan give on the whole world, in another
order, and on neighbours: every measure in L1 or L2 and by group, the number of groups that differ, the scores of
choices, the bins of learnt bounds, and all of them together against the event. `Violated` says what was found.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import duckdb
import numpy as np

from tacit.engines.protocol import SCHEMA
from tacit.ledger.accounts import Measured, SumAccount
from tacit.mechanisms import Laplace
from tacit.mechanisms.simulation import SeededSource
from tacit.privacy import events
from tacit.privacy.errors import InvalidInput, QueryRefused, TacitError
from tacit.privacy.units import Relation
from tacit.query import Plan
from tacit.query.estimates import answer_rows
from tacit.query.expressions import Range
from tacit.query.learned_bounds import BINS
from tacit.query.run import add_noise
from tests.property.query.questions import Asked, question
from tests.property.query.worlds import SHUFFLED, World, world
from tests.support.plans import plan_sql

SALT: Final = 20_240_229
QUESTIONS: Final = 40
"""How many questions are asked in one world."""

Group = tuple[Any, ...]
Table = dict[Group, list[int]]


class Violated(AssertionError):
    """Neighbours are further apart than was charged for, or a statement fails for what the data hold."""


@dataclass
class Tally:
    """What was tried: questions, refusals, pairs of neighbours, and the features of questions that were answered."""

    questions: int = 0
    refused: int = 0
    pairs: int = 0
    features: Counter[str] = field(default_factory=Counter)
    tight: float = 0.0
    """How near to its limit the furthest pair came."""

    def __add__(self, other: Tally) -> Tally:
        features = self.features + other.features
        return Tally(
            self.questions + other.questions,
            self.refused + other.refused,
            self.pairs + other.pairs,
            features,
            max(self.tight, other.tight),
        )


def trial(seed: int, connection: duckdb.DuckDBPyConnection, questions: int = QUESTIONS, neighbours: int = 12) -> Tally:
    """Put some questions to one world and its neighbours."""
    held, tally = world(seed), Tally()
    held.load(connection)
    pairs = {relation: _neighbours(held, connection, relation, neighbours) for relation in Relation}
    for number in range(questions):
        asked = question(seed * 1_000 + number, held.schema)
        tally.questions += 1
        try:
            plan = plan_sql(asked.sql, held.schema, asked.target, asked.terms, asked.settings)
        except (QueryRefused, InvalidInput):
            tally.refused += 1
            continue
        tally.features.update(asked.features)
        tally.features["gaussian"] += any(not isinstance(one, Laplace) for one in plan.price.noises)
        tally.features["selection"] += plan.price.selection is not None
        tally.features["whole rows"] += plan.bounding.whole_rows is not None
        tally.features["learnt bounds"] += bool(plan.missing)
        tally.features["rest"] += plan.bounding.merges_rest
        names = pairs[asked.cap.relation]
        try:
            check_price(asked, plan)
            apart = check(plan, connection, [name for name, _ in names], thorough=number % 4 == 0)
        except Violated as error:
            raise Violated(_told(error, held, asked, plan, names)) from error.__cause__
        tally.tight = max(tally.tight, apart)
        tally.pairs += len(names)
    return tally


def check(
    plan: Plan, connection: duckdb.DuckDBPyConnection, neighbours: Sequence[str], *, thorough: bool = True
) -> float:
    """Raise `Violated` unless the plan's promise holds; return how near to the limit the furthest neighbour came.

    The rows are read in another order as well; with `thorough` an answer is released and finished.
    """
    tight = 0.0
    learning = [one.sql() for one in plan.learning]
    bins = {name: [executed(connection, one, name) for one in learning] for name in (SCHEMA, *neighbours)}
    for name in neighbours:
        check_bins(plan, bins[SCHEMA], bins[name])
    ranged = plan.ranged(ranges_of(plan, bins[SCHEMA])) if plan.missing else plan
    statements = [one.sql() for one in ranged.statements]
    whole = [executed(connection, one, SCHEMA) for one in statements]
    for name in neighbours:
        found = [executed(connection, one, name) for one in statements]
        tight = max(tight, Pair(ranged, whole, found, bins[SCHEMA], bins[name]).check())
    other_order = [executed(connection, one, SHUFFLED) for one in statements]
    for here, there in zip(whole, other_order, strict=True):
        _require(_by_group(here) == _by_group(there), "the answer depends on the order of rows")
    if thorough:
        check_release(ranged, whole)
    return tight


@dataclass
class Pair:
    """The results of all statements on two neighbours."""

    plan: Plan
    whole: list[dict[str, list[Any]]]
    found: list[dict[str, list[Any]]]
    bins: list[dict[str, list[Any]]]
    other_bins: list[dict[str, list[Any]]]

    def check(self) -> float:
        pure, rho, tight = Fraction(0), Fraction(0), 0.0
        for statement, here, there in zip(self.plan.statements, self.whole, self.found, strict=True):
            for place, index in enumerate(statement.measures):
                moved = self._moved(here, there, f"m{place}", statement.kept)
                self._check_measure(index, moved)
                share, squared = self._spent(index, moved)
                pure, rho = pure + share, rho + squared
            if "units" in here:
                self._check_units(self._moved(here, there, "units"))
            if statement.choice is not None:
                self._check_choice(statement.choice, here, there)
        for mechanism, here, there in zip(self.plan.price.bounds, self.bins, self.other_bins, strict=True):
            moved = _moved(_column(here, "w", "cell"), _column(there, "w", "cell"))
            pure += sum(moved.values(), Fraction(0)) * Fraction(mechanism.epsilon) / Fraction(mechanism.sensitivity)
        for name, spent, charged in (("epsilon", pure, _charged(self.plan)[0]), ("rho", rho, _charged(self.plan)[1])):
            within = spent <= charged * (1 + Fraction(1, 2**40))
            _require(within, f"{name} {float(spent)} was spent, and {float(charged)} charged")
            tight = max(tight, float(spent / charged) if charged else 0.0)
        return tight

    def _moved(
        self, here: dict[str, list[Any]], there: dict[str, list[Any]], name: str, kept: tuple[int, ...] | None = None
    ) -> dict[Group, int]:
        moved = _moved(_column(here, name), _column(there, name))
        return {group: value for group, value in moved.items() if self._is_shown(group, kept)}

    def _is_shown(self, group: Group, kept: tuple[int, ...] | None = None) -> bool:
        """Whether a group can be in the answer: where keys are public, groups of other values are left out of it."""
        if self.plan.domains is None:
            return True
        domains = self.plan.domains if kept is None else [self.plan.domains[index] for index in kept]
        return all(value in domain.values for value, domain in zip(group, domains, strict=True))

    def _check_measure(self, index: int, moved: dict[Group, int]) -> None:
        measure, bounding, noise = self.plan.measures[index], self.plan.bounding, self.plan.price.noises[index]
        l1, squares = sum(moved.values()), sum(value**2 for value in moved.values())
        what = f"measure {index} ({measure.label})"
        _require(l1 <= bounding.l1(measure), f"{what} moves by {l1} in L1, and {bounding.l1(measure)} was allowed")
        far = bounding.l2(measure)
        _require(squares <= far**2, f"{what} moves by {math.sqrt(squares)} in L2, and {float(far)} was allowed")
        most = bounding.per_group(bounding.contribution(measure))
        _require(max(moved.values(), default=0) <= most, f"{what} moves by more than {most} in one group: {moved}")
        limit = Fraction(noise.sensitivity)
        size = Fraction(l1) ** 2 if isinstance(noise, Laplace) else Fraction(squares)
        _require(size <= limit**2, f"{what} moves by the root of {size}, and the noise is for {limit}")
        if measure.how not in ("rows", "sum", "mean") or bounding.whole_rows is None:
            touched = sum(value != 0 for value in moved.values())
            _require(touched <= bounding.groups_changed, f"{what} moves in {touched} groups")

    def _spent(self, index: int, moved: dict[Group, int]) -> tuple[Fraction, Fraction]:
        """Return the epsilon and the rho that the noise of a measure lets out, with its exact sensitivity here."""
        noise = self.plan.price.noises[index]
        if isinstance(noise, Laplace):
            l1 = sum(moved.values())
            return Fraction(l1) * Fraction(noise.epsilon) / Fraction(noise.sensitivity), Fraction(0)
        squares = sum(value**2 for value in moved.values())
        return Fraction(0), Fraction(squares) / (2 * (Fraction(noise.sensitivity) * Fraction(noise.sigma or 0)) ** 2)

    def _check_units(self, moved: dict[Group, int]) -> None:
        touched = sum(value != 0 for value in moved.values())
        limit = self.plan.bounding.groups_changed
        _require(touched <= limit, f"the number of units moves in {touched} groups, and {limit} were allowed")
        _require(max(moved.values(), default=0) <= 1, f"the number of units moves by more than 1: {moved}")

    def _check_choice(self, index: int, here: dict[str, list[Any]], there: dict[str, list[Any]]) -> None:
        choice, mechanism, bounding = self.plan.choices[index], self.plan.price.choices[index], self.plan.bounding
        one, other = _cells(here), _cells(there)
        rows = bounding.rows if bounding.whole_rows is None else bounding.whole_rows
        touched = 0
        for group in filter(self._is_shown, {*one, *other}):
            mine, theirs = one.get(group, {}), other.get(group, {})
            moved = sum(abs(mine.get(cell, 0) - theirs.get(cell, 0)) for cell in {*mine, *theirs})
            touched += moved > 0
            _require(moved <= bounding.per_group(rows * 1024), f"the weights of {choice.label} move by {moved}")
            scores = [choice._scores(_counts(choice.cells, weights), mechanism) for weights in (mine, theirs)]
            apart = int(np.abs(scores[0] - scores[1]).max())
            _require(apart <= mechanism.sensitivity, f"a score of {choice.label} moves by {apart}")
        _require(touched <= bounding.groups_changed, f"{choice.label} moves in {touched} groups")


def check_price(asked: Asked, plan: Plan) -> None:
    """Require that a ledger charges no more than was asked for."""
    if asked.target.rho is not None:
        charged = Measured(plan.event).concentrated[0]
        _require(charged <= asked.target.rho * (1 + 1e-9), f"rho {charged} is charged for {asked.target.rho}")
    else:
        charged = SumAccount.of(asked.cap).approximate(Measured(plan.event))[0]
        _require(charged <= (asked.target.epsilon or 0) * (1 + 1e-9), f"epsilon {charged} is charged: {asked.target}")


def _neighbours(
    held: World, connection: duckdb.DuckDBPyConnection, relation: Relation, count: int
) -> list[tuple[str, str]]:
    """Make neighbours: the units with most rows are the worst, and one of the others."""
    units = [*held.units[: max(1, count - 1)], held.units[-1]][:count]
    replaced = relation is Relation.REPLACE_ONE
    names = []
    for number, unit in enumerate(dict.fromkeys(units)):
        name = f"{'other' if replaced else 'without'}_{number}"
        held.neighbour(connection, name, unit, replaced=replaced)
        names.append((name, unit))
    return names


def executed(connection: duckdb.DuckDBPyConnection, statement: str, schema: str) -> dict[str, list[Any]]:
    sql = statement.replace(f"{SCHEMA}.", f"{schema}.")
    try:
        cursor = connection.execute(sql, {"salt": SALT} if "$salt" in sql else {})
        described = cursor.description or []
        rows = cursor.fetchall()
    except duckdb.Error as error:
        raise Violated(f"the statement fails on {schema}: {error}\n{sql}") from error
    names = [str(one[0]) for one in described]
    for name, kind in ((str(one[0]), str(one[1])) for one in described):
        if name[0] in "mwu":
            _require(kind == "BIGINT", f"{name} is {kind}\n{sql}")
    found = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    for name in names:
        if name[0] in "mwu":
            _require(all(type(value) is int for value in found[name]), f"{name} holds what is no int")
    return found


def _keys(columns: dict[str, list[Any]]) -> list[str]:
    return sorted(name for name in columns if name[0] == "k")


def _by_group(columns: dict[str, list[Any]]) -> dict[Group, list[Any]]:
    names = [*_keys(columns), *(["cell"] if "cell" in columns else [])]
    others = [name for name in columns if name not in names]
    count = len(next(iter(columns.values())))
    return {
        tuple(columns[name][row] for name in names): [columns[name][row] for name in others] for row in range(count)
    }


def _column(columns: dict[str, list[Any]], name: str, *more: str) -> dict[Group, int]:
    keys = [*_keys(columns), *more]
    return {tuple(columns[key][row] for key in keys): value for row, value in enumerate(columns[name])}


def _moved(one: dict[Group, int], other: dict[Group, int]) -> dict[Group, int]:
    return {group: abs(one.get(group, 0) - other.get(group, 0)) for group in {*one, *other}}


def _cells(columns: dict[str, list[Any]]) -> dict[Group, dict[Any, int]]:
    names, found = _keys(columns), dict[Group, dict[Any, int]]()
    for row, weight in enumerate(columns["w"]):
        found.setdefault(tuple(columns[name][row] for name in names), {})[columns["cell"][row]] = weight
    return found


def _counts(cells: Any, weights: dict[Any, int]) -> Any:
    counts = np.zeros(cells.count, dtype=np.int64)
    places = {value: index for index, value in enumerate(cells.values)} if cells.values else None
    for cell, weight in weights.items():
        if places is None or cell in places:
            counts[cell if places is None else places[cell]] = weight
    return counts


def check_bins(plan: Plan, here: list[dict[str, list[Any]]], there: list[dict[str, list[Any]]]) -> None:
    for mechanism, one, other in zip(plan.price.bounds, here, there, strict=True):
        _require(all(-BINS <= cell < BINS for cell in one["cell"]), f"a bin is outside of all: {one['cell']}")
        moved = sum(_moved(_column(one, "w", "cell"), _column(other, "w", "cell")).values())
        _require(moved <= mechanism.sensitivity, f"bins move by {moved}, and {mechanism.sensitivity} was allowed")


def ranges_of(plan: Plan, found: list[dict[str, list[Any]]]) -> list[Range]:
    """Return the ranges that would be learnt without noise."""
    ranges = []
    for mechanism, columns in zip(plan.price.bounds, found, strict=True):
        counts = np.zeros(2 * BINS, dtype=np.int64)
        for cell, weight in zip(columns["cell"], columns["w"], strict=True):
            counts[cell + BINS] = weight
        ranges.append(Range(*mechanism.bounds_from(counts)))
    return ranges


def _charged(plan: Plan) -> tuple[Fraction, Fraction]:
    """Return the epsilon of Laplace noise and the rho of Gaussian noise that the event charges."""
    pure, rho = Fraction(0), Fraction(0)
    for event, times in _parts(plan.event):
        if isinstance(event, events.Laplace | events.DiscreteLaplace):
            pure += times * Fraction(event.epsilon)
        elif isinstance(event, events.Gaussian):
            rho += times / (2 * Fraction(event.sigma) ** 2)
    return pure, rho


def _parts(event: events.Event, times: int = 1) -> Iterator[tuple[events.Event, int]]:
    if isinstance(event, events.Composed):
        for one in event.events:
            yield from _parts(one, times)
    elif isinstance(event, events.Repeated):
        yield from _parts(event.event, times * event.count)
    else:
        yield event, times


def check_release(plan: Plan, found: list[dict[str, list[Any]]]) -> None:
    """Finish the answer once, as nothing may fail after the noise either."""
    try:
        answer_rows(plan, add_noise(plan, found, SeededSource(7)))  # type: ignore[arg-type]
    except (TacitError, duckdb.Error, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise Violated(f"the answer cannot be finished: {type(error).__name__}: {error}") from error


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Violated(otherwise)


def _told(error: Violated, held: World, asked: Asked, plan: Plan, names: Sequence[tuple[str, str]]) -> str:
    """Return everything that is needed to see a violation again."""
    lines = [str(error), "", f"world {held.seed}, unit left out or exchanged: {names}", asked.sql, f"{plan.bounding}"]
    lines += [statement.sql() for statement in (*plan.learning, *plan.statements)]
    for rows in held.tables.values():
        lines.append(f"{rows.table.name}: {rows.table.limits} {[(c.name, c.facts) for c in rows.table.columns]}")
        lines += [f"    {row}" for row in rows.rows]
    return "\n".join(lines)
