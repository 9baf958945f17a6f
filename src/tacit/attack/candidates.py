"""Whose the records of a table can be: pseudonyms, the people of a register, and who is consistent with what.

A pseudonym is what the table itself shows of whose a record is: its `entity`, otherwise the record alone. The records
of one pseudonym are of one person, so that only those are candidates who are consistent with all of them. Who the
person is says `truth`, for counting and scoring alone: several pseudonyms may be of one person, never the reverse.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.attack.cells import fits, is_generalised, is_missing, meets
from tacit.attack.kit import stated
from tacit.attack.records import Records
from tacit.attack.targets import Table
from tacit.privacy.errors import InvalidInput

CANDIDATES: Final = (
    "Links to a register are candidates: neither truth nor a complete register says who is in the table; the figures "
    "are shown."
)
ONE_RECORD: Final = "each record is of another person; where a person has several, name the column that says whose"
BITS_MIN: Final = 500
"""From how many people on those who hold all of several rows are found by bits, in the place of sets."""

Row = tuple[Any, ...]


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

    def people(self, record: Row) -> list[int]:
        """Return the people whose values fit a record, by their place in the register."""
        if not any(map(is_generalised, record)):
            return self._exact.get(tuple(map(str, record)), [])
        return self._compared(record, np.arange(self._register.size), is_certain=True)

    def possible(self, record: Row) -> list[int]:
        """Return these people, and those whose own missing or generalised values do not rule them out."""
        if any(map(is_generalised, record)):
            return self._compared(record, np.arange(self._register.size), is_certain=False)
        return [*self.people(record), *self._compared(record, self._vague, is_certain=False)]

    def _compared(self, record: Row, among: NDArray[np.int64], *, is_certain: bool) -> list[int]:
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


class Holders:
    """People by the rows that they have, each of them one or several.

    With `is_certain` a person has a published row if one of their own fits it, otherwise if one can be the same.
    """

    def __init__(self, rows: Iterable[Row], people: Iterable[Any], columns: Sequence[str], *, is_certain: bool) -> None:
        held: dict[Row, set[Any]] = defaultdict(set)
        for row, person in zip(rows, people, strict=True):
            held[row].add(person)
        self._held = list(held.values())
        matcher = Matcher(Records(dict(zip(columns, zip(*held, strict=True), strict=True))), columns)
        self._find = matcher.people if is_certain else matcher.possible
        self._of: dict[Row, Collection[Any]] = {}
        self._places: dict[Any, int] = {}
        self._people: list[Any] = []
        self._bits: dict[Row, int] = {}

    def of(self, row: Row) -> Any:
        """Return the set of people who have a row."""
        if row not in self._of:
            places = self._find(row)
            found = self._held[places[0]] if len(places) == 1 else set().union(*(self._held[one] for one in places))
            self._of[row] = found
        return self._of[row]

    def of_all(self, rows: Collection[Row]) -> set[Any]:
        """Return the people who have all of some rows, leaving out those that nobody has."""
        known = sorted((row for row in rows if self.of(row)), key=lambda row: len(self.of(row)))
        if not known:
            return set()
        first: set[Any] = self.of(known[0])
        if len(known) == 1:
            return first
        if len(first) < BITS_MIN:
            return {one for one in first if all(one in self.of(row) for row in known[1:])}
        bits = self._in_bits(known[0])
        for row in known[1:]:
            bits &= self._in_bits(row)
        flags = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), dtype=np.uint8)
        return {self._people[place] for place in np.flatnonzero(np.unpackbits(flags, bitorder="little"))}

    def _in_bits(self, row: Row) -> int:
        if row not in self._bits:
            places = [self._place(one) for one in self.of(row)]
            flags = np.zeros(len(self._places), dtype=np.uint8)
            flags[places] = 1
            self._bits[row] = int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
        return self._bits[row]

    def _place(self, person: Any) -> int:
        if person not in self._places:
            self._places[person] = len(self._people)
            self._people.append(person)
        return self._places[person]


def is_candidate(target: Table) -> bool:
    """Return whether nothing says that people of the register who fit are in the table."""
    return target.register is not None and not target.complete_register and not isinstance(target.truth, list)


def people_of(register: Records, identity: str | None) -> list[Any]:
    """Return the person of each row of a register: its identity, or the row itself where that is missing."""
    if identity is None:
        raise InvalidInput("a register needs identity, the column that names its people", name="identity")
    return _named(register[identity].tolist())


def pseudonyms(target: Table) -> list[Any]:
    """Return what a table shows of whose each record is: its entity, or the record itself where there is none."""
    if target.entity is None:
        return [(index,) for index in range(target.records.size)]
    return _named(target.records[target.entity].tolist())


def by_pseudonym(target: Table) -> dict[Any, list[int]]:
    """Return the records of each pseudonym."""
    found: dict[Any, list[int]] = defaultdict(list)
    for index, one in enumerate(pseudonyms(target)):
        found[one].append(index)
    return found


def in_both(target: Table) -> set[str]:
    """Return the people of the register who are named by the truth of a record."""
    if target.register is None or target.identity is None or not isinstance(target.truth, list):
        return set()
    if len(target.truth) != target.records.size:
        return set()
    return {one for one in _named(target.truth) if isinstance(one, str)} & set(_texts(target.register[target.identity]))


def owners(target: Table) -> list[Any]:
    """Return whose each record of a table is: by the truth, if it names people of the register, or by its pseudonym."""
    shown = pseudonyms(target)
    if not in_both(target) or not isinstance(target.truth, list):
        return shown
    named: dict[Any, str] = {}
    for one, person in zip(shown, target.truth, strict=True):
        if not is_missing(person) and named.setdefault(one, str(person)) != str(person):
            raise InvalidInput(
                f"entity and truth contradict one another: {target.entity} has one value for records of several people",
                name="entity",
            )
    return [named.get(one, ("nobody of the truth", one)) for one in shown]


def require_fitting(target: Table, holders: Holders, rows: Sequence[Row]) -> None:
    """Raise InvalidInput unless half of the records fit those whom truth, or a complete register, says they are of."""
    known = in_both(target)
    if known:
        judged = [
            person in holders.of(row) for row, person in zip(rows, owners(target), strict=True) if person in known
        ]
        words = "their own person in the register"
    elif target.complete_register:
        judged, words = [bool(holders.of(row)) for row in rows], "a person of the complete register"
    else:
        return
    if 2 * sum(judged) < len(judged):
        raise InvalidInput(f"only {sum(judged):,} of {len(judged):,} records fit {words}; compare their spellings and "
                           "types", name="register")  # fmt: skip


def require_room(fitting: Mapping[frozenset[Any], int], people: int) -> None:
    """Raise InvalidInput if people, by those who fit them, are more than those of a complete register who fit."""
    if sum(fitting.values()) > people or any(count > len(candidates) > 0 for candidates, count in fitting.items()):
        raise InvalidInput(
            "more records fit some people of the complete register than there are people, so somebody has several; "
            "name the column that says whose a record is (entity)",
            name="entity",
        )


def people_by_row(rows: Iterable[Row], whose: Iterable[Any]) -> Counter[Row]:
    """Return how many people have each different row."""
    return Counter(row for row, _ in set(zip(rows, whose, strict=True)))


def register_holders(target: Table, register: Records, *, is_certain: bool) -> Holders:
    """Return the people of a register by their quasi-identifiers."""
    columns = stated(target.quasi_identifiers, "quasi_identifiers")
    return Holders(register.rows(columns), people_of(register, target.identity), columns, is_certain=is_certain)


def _named(names: Iterable[Any]) -> list[Any]:
    return [(index,) if is_missing(one) else str(one) for index, one in enumerate(names)]


def _texts(names: Iterable[Any]) -> Iterable[str]:
    return (str(one) for one in names if not is_missing(one))
