"""Record linkage: published records matched with a register of people by what both hold (Sweeney 2000).

A published cell may be missing or generalised (`attack/cells.py`).
A record is linked if exactly one person of the register fits it, and no record of somebody else is linked to that
person. A person whose own value is missing or generalised in the register fits the records whose cell stands for it,
and no exact one.

Without a register the attacker is taken to know the quasi-identifiers of everybody in the table, and a person is at
risk if nobody else has one of their records. Uniqueness by several columns is predicted from the number of people and
the shares of values, as if columns were independent: a record of probability p is unique among n with probability
(1 - p)^(n - 1).

A person may have several records: `entity`, or else `truth`, says whose each is. Records are then counted by people:
equal records of one person are one, and k is a number of people. Without either, each record is taken for somebody's
own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.attack.cells import fits, is_generalised, is_missing, meets
from tacit.attack.finding import Measurement, Series, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack, power_of_share, stated
from tacit.attack.records import Records
from tacit.attack.targets import Table
from tacit.privacy.errors import InvalidInput

COMBINED_MAX: Final = 4
"""How many columns are combined at most where the uniqueness of every combination is measured."""
COLUMNS_COMBINED_MAX: Final = 8
CANDIDATES: Final = (
    "Links to a register are candidates: neither truth nor a complete register says who is in the table; the figures "
    "are shown."
)
ONE_RECORD: Final = "each record is of another person; where a person has several, name the column that says whose"


class Matcher:
    """The people of a register that fit published records.

    Without a generalised or missing cell a record is looked up; otherwise each of its cells is compared.
    """

    def __init__(self, register: Records, columns: Sequence[str]) -> None:
        self._register, self._columns = register, columns
        self._exact: dict[tuple[str, ...], list[int]] = defaultdict(list)
        vague = []
        for index, row in enumerate(register.rows(columns)):
            if any(map(is_generalised, row)):
                vague.append(index)
            else:
                self._exact[tuple(map(str, row))].append(index)
        self._vague = np.array(vague, dtype=np.int64)
        self._fitting: dict[tuple[str, Any, bool], NDArray[np.bool_]] = {}
        self._coded: dict[str, tuple[list[Any], NDArray[np.int64]]] = {}

    def people(self, record: tuple[Any, ...]) -> list[int]:
        """Return the people whose values fit a record, by their place in the register."""
        if not any(map(is_generalised, record)):
            return self._exact.get(tuple(map(str, record)), [])
        return self._compared(record, np.arange(self._register.size), is_certain=True)

    def possible(self, record: tuple[Any, ...]) -> list[int]:
        """Return these people, and those whose own missing or generalised values do not rule them out."""
        if any(map(is_generalised, record)):
            return self._compared(record, np.arange(self._register.size), is_certain=False)
        return [*self.people(record), *self._compared(record, self._vague, is_certain=False)]

    def _compared(self, record: tuple[Any, ...], among: NDArray[np.int64], *, is_certain: bool) -> list[int]:
        for name, cell in zip(self._columns, record, strict=True):
            if not len(among):
                break  # the next column has as many comparisons as values
            among = among[self._fits(name, cell, is_certain)[among]]
        return list(map(int, among))

    def _fits(self, name: str, cell: Any, is_certain: bool) -> NDArray[np.bool_]:
        key = (name, cell, is_certain)
        if key not in self._fitting:
            if name not in self._coded:
                places: dict[Any, int] = {}
                codes = np.array([places.setdefault(one, len(places)) for one in self._register[name]])
                self._coded[name] = list(places), codes
            values, codes = self._coded[name]
            agree = fits if is_certain else meets
            self._fitting[key] = np.array([agree(cell, value) for value in values])[codes]
        return self._fitting[key]


def owners(target: Table) -> list[Any]:
    """Return whose each record of a table is, by its entity or by the truth; otherwise each is somebody's own."""
    size = target.records.size
    if target.entity is not None:
        named = target.records[target.entity].tolist()
    elif isinstance(target.truth, list) and target.register is not None and len(target.truth) == size:
        named = target.truth
    else:
        return list(range(size))
    return [(index,) if is_missing(one) else str(one) for index, one in enumerate(named)]


def people_by_row(rows: Iterable[tuple[Any, ...]], whose: Iterable[Any]) -> Counter[tuple[Any, ...]]:
    """Return how many people have each different row."""
    return Counter(row for row, _ in set(zip(rows, whose, strict=True)))


def uniqueness(records: Records, columns: Sequence[str], whose: Sequence[Any] | None = None) -> float:
    """Return the share of people with a record that, in some columns, is nobody else's; each is a person by default."""
    rows = records.rows(columns)
    whose = range(records.size) if whose is None else whose
    sizes = people_by_row(rows, whose)
    alone = {one for row, one in zip(rows, whose, strict=True) if sizes[row] == 1}
    return len(alone) / len(set(whose))


def predicted_uniqueness(records: Records, columns: Sequence[str], random: np.random.Generator) -> float:
    """Return the expected share of unique records if the columns were independent, each record somebody's own.

    The share of a record's own value is counted over the other records; with the record itself it would be too large
    where most values are rare.
    """
    if records.size < 2:
        return 1.0
    drawn, share = 10_000, np.ones(10_000)
    for name in columns:
        counts = np.array(list(Counter(records[name].tolist()).values()))
        share *= (random.choice(counts, size=drawn, p=counts / records.size) - 1) / (records.size - 1)
    return float(np.mean((1 - share) ** (records.size - 1)))


@attack(
    "linkage",
    Table,
    paper="Sweeney 2000; uniqueness: Golle 2006",
    summary="people whose published record is found by what a register knows of them",
    needs=("quasi_identifiers",),
)
def link(target: Table, setting: Setting) -> Outcome:
    """Match records with the register, and measure how unique people are."""
    columns, records, whose = stated(target.quasi_identifiers, "quasi_identifiers"), target.records, owners(target)
    published = records.rows(columns)
    sizes = people_by_row(published, whose)
    linked, right = _linked(target, published, sizes, whose)
    everybody = len(set(whose))
    people = everybody if target.register is None else len(set(people_of(target.register, target.identity)))
    found = len({whose[index] for index in linked})
    if right is not None:
        share, what = right / len(_in_both(target)), "people at risk, by records linked to the right person"
    elif target.register is None or target.complete_register:
        what = "records linked to one person" if target.register else "unique records"
        share, what = found / everybody, f"people at risk, by {what}"
    else:
        share, what = found / min(people, everybody), "candidates, by records that one person fits"
    is_predicted = len(columns) > 1 and everybody == records.size
    measurements = [
        Measurement(what, share, baseline=1 / people, key="candidates" if is_candidate(target) else "people_at_risk"),
        Measurement(
            "share of unique records" if everybody == records.size else "share of people with a unique record",
            uniqueness(records, columns, whose),
            predicted=predicted_uniqueness(records, columns, setting.random) if is_predicted else None,
            key="unique_records",
        ),
        Measurement("smallest group (k-anonymity)", min(sizes.values()), key="smallest_group"),
    ]
    if right is not None and linked:
        measurements.append(Measurement("links that are right", right / found, key="links_right"))
    return Outcome(
        ThreatModel(
            "the published table",
            f"{', '.join(columns)} of {people:,} people" if target.register else f"{', '.join(columns)} of everybody",
            0,
        ),
        tuple(measurements),
        None if is_candidate(target) else share,
        "everybody in both the table and the register was attacked: the share is exact",
        power_of_share("a table in which every record is linked", setting),
        series=_narrowing(target, columns),
        worst=_worst(target, linked),
        assumptions=() if target.entity or right is not None else (ONE_RECORD,),
        details={
            "uniqueness": _combinations(records, columns, whose),
            "linked": found,
            "records": records.size,
            "people": everybody,
        },
        bounds="a share of people identified",
        unbounded=CANDIDATES if is_candidate(target) else "",
    )


def is_candidate(target: Table) -> bool:
    """Return whether nothing says that people of the register who fit are in the table."""
    return target.register is not None and not target.complete_register and not isinstance(target.truth, list)


def _in_both(target: Table) -> set[str]:
    """Return the people of the register whose record is in the table, by the truth."""
    assert target.register is not None
    assert isinstance(target.truth, list)
    return _texts(target.register[stated(target.identity, "identity")]) & _texts(target.truth)


def people_of(register: Records, identity: str | None) -> list[Any]:
    """Return the person of each row of a register: its identity, or the row itself where that is missing."""
    if identity is None:
        raise InvalidInput("a register needs identity, the column that names its people", name="identity")
    return [index if is_missing(one) else str(one) for index, one in enumerate(register[identity].tolist())]


def _linked(
    target: Table, published: list[tuple[Any, ...]], sizes: Counter[tuple[Any, ...]], whose: Sequence[Any]
) -> tuple[dict[int, int], int | None]:
    """Return the row of the register, or of the table itself, of each linked record, and how many people are right."""
    if target.register is None:
        own = Matcher(target.records, stated(target.quasi_identifiers, "quasi_identifiers"))
        unique = [index for index, row in enumerate(published) if sizes[row] == 1]
        return {
            index: index for index in unique if {whose[one] for one in own.people(published[index])} <= {whose[index]}
        }, None
    matcher = Matcher(target.register, stated(target.quasi_identifiers, "quasi_identifiers"))
    people = people_of(target.register, target.identity)
    fitting = {row: matcher.people(row) for row in sizes}
    if not any(fitting.values()):
        raise InvalidInput(
            "no person of the register fits a record of the table; compare their spellings", name="register"
        )
    linked = {
        index: fitting[row][0]
        for index, row in enumerate(published)
        if sizes[row] == 1 and len({people[one] for one in fitting[row]}) == 1
    }
    claimed = Counter(person for person, _ in {(people[place], whose[index]) for index, place in linked.items()})
    linked = {index: place for index, place in linked.items() if claimed[people[place]] == 1}
    right = None
    if isinstance(target.truth, list):
        if len(target.truth) != len(published):
            raise InvalidInput("truth must name the person of each record", name="truth")
        if not _in_both(target):
            raise InvalidInput("no identity of the register is among truth; compare their spellings", name="truth")
        right = len(
            {
                whose[index]
                for index, place in linked.items()
                if not is_missing(target.truth[index]) and people[place] == str(target.truth[index])
            }
        )
    return linked, right


def _texts(names: Iterable[Any]) -> set[str]:
    return {str(one) for one in names if not is_missing(one)}


def _narrowing(target: Table, columns: Sequence[str]) -> tuple[Series, ...]:
    """Return how many people fit a record as one column after another is known: the median over records."""
    points = []
    where, whose = target.records, owners(target)
    if target.register is not None:
        where, whose = target.register, people_of(target.register, target.identity)
    for count in range(1, len(columns) + 1):
        rows = where.rows(columns[:count])
        sizes = people_by_row(rows, whose)
        points.append((" + ".join(columns[:count]), float(median(sizes[row] for row in rows))))
    return (Series("People left as more is known", "known", "people that fit (median)", tuple(points)),)


def _combinations(records: Records, columns: Sequence[str], whose: Sequence[Any]) -> dict[str, float]:
    """Return the share of people with a unique record by each combination of columns."""
    chosen = columns[:COLUMNS_COMBINED_MAX]
    return {
        " + ".join(names): uniqueness(records, names, whose)
        for count in range(1, min(COMBINED_MAX, len(chosen)) + 1)
        for names in combinations(chosen, count)
    }


def _worst(target: Table, linked: dict[int, int]) -> tuple[dict[str, Any], ...]:
    columns, shown, whose = target.quasi_identifiers or (), [], owners(target)
    first = {whose[index]: (index, person) for index, person in reversed(linked.items())}
    for index, person in sorted(first.values())[:5]:
        one: dict[str, Any] = {name: target.records[name][index] for name in columns}
        if target.sensitive is not None:
            one["revealed"] = target.records[target.sensitive][index]
        if target.register is not None and target.identity is not None:
            one["person"] = target.register[target.identity][person]
        shown.append(one)
    return tuple(shown)
