"""Attribute linkage: what a table without names tells about the sensitive value of somebody who is in it.

homogeneity   everybody who is alike in the quasi-identifiers has one sensitive value (Machanavajjhala et al. 2007)
background    one value is left once the attacker can rule out one other
skewness      the shares of values among those alike differ from the shares in the whole table (Li, Li,
              Venkatasubramanian 2007): the greatest share, and the greatest total variation distance (t)
composition   two tables about the same people leave one value that is possible in both (Ganta et al. 2008)

Whose a record is, the table shows by `entity`; otherwise each is somebody's own. Candidates for a person are those
whose records all agree with what is known of that person, and a value is certain if every candidate has it. A person
alone in a group is the only candidate, and each of their values is certain.

With a register, what is measured is about its people. A person who fits records may be in none of them. So a share is a
bound where the truth says so: of people whose values are known, those of whom a certain value is one (by all of their
rows in the register, or by one of them). Or where the
register is complete: of the people in the table, those with a certain value who must be in it, because as many fit the
same people of the register as these are. Other candidates for these are then ruled out.

In composition a person has one value only where neither table has an `entity` and the truth names nobody twice;
otherwise the values that are certain by one of the tables are counted. The other table counts for a bound where
the truth says so, or the person must be in it.

A sensitive cell that is missing or generalised stands for the values of the tables that fit it, in proportion to how
often these occur, and unless it lists its values also for one that occurs nowhere (`UNSEEN`): it makes nothing certain.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tacit.attack.candidates import (
    CANDIDATES,
    ONE_RECORD,
    Holders,
    Row,
    by_pseudonym,
    in_both,
    is_candidate,
    owners,
    people_of,
    pseudonyms,
    register_holders,
    require_fitting,
    require_room,
)
from tacit.attack.cells import fits, is_generalised, list_of
from tacit.attack.finding import Measurement, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack, power_of_share, stated
from tacit.attack.records import Records
from tacit.attack.targets import DoesNotFit, Table
from tacit.privacy.errors import InvalidInput

UNSEEN: Final = object()
"""A value that is shown in no record."""


@attack(
    "attribute_linkage",
    Table,
    paper="Machanavajjhala et al. 2007; Li, Li, Venkatasubramanian 2007; Ganta, Kasiviswanathan, Smith 2008",
    summary="sensitive values that follow from what is known of a person, without a unique record",
    needs=("quasi_identifiers", "sensitive"),
)
def infer(target: Table, setting: Setting) -> Outcome:
    """Return how many people have one possible sensitive value, and how much the others' became likelier."""
    meaning, whose = _Meaning([target] if target.other is None else [target, target.other]), owners(target)
    everybody = Counter[Any]()
    for cell in target.records[stated(target.sensitive, "sensitive")].tolist():
        everybody.update(meaning.of(cell))
    people, members = _known(target, target, meaning)
    joint = people if target.other is None else _in_both(target, target.other, people, members, meaning)
    known = [one for one in joint.values() if one.values]
    if not known:
        raise DoesNotFit("no person of the register fits a record of the table", name="register")
    alone = sum(bool(one.certain) for one in known) / len(known)
    two_left = sum(len(one.values) == 2 and not one.certain for one in known) / len(known)
    guessed, distance = zip(*(_skew(one.values, everybody) for one in known), strict=True)
    expected, prior = sum(guessed) / len(known), _likeliest(everybody)[1] / target.records.size
    measurements = [
        Measurement("share of people with one possible value", alone, baseline=0.0, key="one_value_left"),
        Measurement("share of people with one of two values left", two_left, key="two_values_left"),
        Measurement("values guessed right, expected", expected, baseline=prior, key="values_guessed_right_expected"),
        Measurement("t-closeness", max(distance), key="t_closeness"),
    ]
    if target.other is not None:
        fitting = [one for one in people.values() if one.values]
        before = sum(bool(one.certain) for one in fitting) / len(fitting)
        measurements.append(
            Measurement("share with one possible value, from one table", before, key="one_value_from_one_table")
        )
    bound: float | None = None if is_candidate(target) else alone
    if isinstance(target.truth, list):
        true = _true_values(target, target.truth, whose)
        judged = [(joint[person], values) for person, values in true.items() if values]
        right = sum(str(_likeliest(one.values)[0]) in values for one, values in judged)
        measurements.append(
            Measurement("values guessed right", right / max(len(judged), 1), baseline=prior, key="values_guessed_right")
        )
        found = sum(not values.isdisjoint(map(str, one.certain)) for one, values in judged)
        bound = found / max(len(judged), 1)
    elif target.register is not None and target.complete_register:
        bound = sum(bool(joint[person].certain) for person in members) / len(set(whose))
    return Outcome(
        ThreatModel("the published table" + (" and another one" if target.other else ""), _knowledge(target), 0),
        tuple(measurements),
        bound,
        "everybody was attacked: the share is exact",
        power_of_share("a table in which every value is certain", setting),
        worst=_worst(target, joint),
        assumptions=() if target.entity or isinstance(target.truth, list) else (ONE_RECORD,),
        details={
            "people": len(known),
            "values": len(everybody.keys() - {UNSEEN}),
        },
        bounds="a share of people whose value is certain",
        unbounded=CANDIDATES if is_candidate(target) else "",
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """Pseudonyms with the same rows: whose they are, the values of their records, and those that each certainly has."""

    rows: frozenset[Row]
    pseudonyms: tuple[Any, ...]
    owners: frozenset[Any]
    values: Counter[Any]
    of_each: frozenset[Any]
    of_some: frozenset[Any]


@dataclass(frozen=True, slots=True)
class _Known:
    """What a table tells of a person: possible values by their weights, and those that the person certainly has."""

    values: Counter[Any]
    certain: frozenset[Any]

    @classmethod
    def by(cls, groups: Sequence[_Group]) -> _Known:
        """Return what is known of a person whose records are those of one pseudonym of some groups."""
        if not groups:
            return cls(Counter(), frozenset())
        if len(groups) == 1 and len(groups[0].pseudonyms) == 1:
            return cls(groups[0].values, groups[0].of_some)
        values = Counter[Any]()
        for one in groups:
            values.update(one.values)
        if len(frozenset().union(*(one.owners for one in groups))) == 1:
            return cls(values, frozenset().union(*(one.of_some for one in groups)))
        return cls(values, frozenset.intersection(*(one.of_each for one in groups)))


def _groups(table: Table, meaning: _Meaning) -> list[_Group]:
    rows = table.records.rows(stated(table.quasi_identifiers, "quasi_identifiers"))
    cells, whose = table.records[stated(table.sensitive, "sensitive")].tolist(), owners(table)
    alike: dict[frozenset[Row], list[tuple[Any, list[int]]]] = defaultdict(list)
    for one, places in by_pseudonym(table).items():
        alike[frozenset(rows[place] for place in places)].append((one, places))
    found = []
    for having, members in alike.items():
        values = Counter[Any]()
        certain: list[frozenset[Any]] = []
        for _, places in members:
            meanings = [meaning.of(cells[place]) for place in places]
            for one in meanings:
                values.update(one)
            certain.append(frozenset().union(*(one for one in meanings if len(one) == 1 and UNSEEN not in one)))
        found.append(
            _Group(
                having,
                tuple(one for one, _ in members),
                frozenset(whose[places[0]] for _, places in members),
                values,
                frozenset.intersection(*certain),
                frozenset().union(*certain),
            )
        )
    return found


def _known(table: Table, about: Table, meaning: _Meaning) -> tuple[dict[Any, _Known], set[Any]]:
    """Return what a table tells of each person of a register, or of its own people, and who must be in it."""
    columns, groups = stated(table.quasi_identifiers, "quasi_identifiers"), _groups(table, meaning)
    fitting: dict[Any, list[int]]
    if about.register is None:
        members = {one for group in groups for one in group.pseudonyms}
        having = ((row, place) for place, group in enumerate(groups) for row in group.rows)
        rows, places = zip(*having, strict=True)
        holders = Holders(rows, places, columns, is_certain=False)
        own = [sorted(holders.of_all(group.rows)) for group in groups]
        fitting = {one: own[place] for place, group in enumerate(groups) for one in group.pseudonyms}
    else:
        holders = register_holders(about, about.register, is_certain=False)
        if table is about:
            require_fitting(table, holders, table.records.rows(columns))
        fitting, members = _fitting(about, about.register, groups, holders)
    shared: dict[tuple[int, ...], _Known] = {}
    for one in map(tuple, fitting.values()):
        if one not in shared:
            shared[one] = _Known.by([groups[place] for place in one])
    found = {person: shared[tuple(places)] for person, places in fitting.items()}
    if about.register is not None and isinstance(about.truth, list):
        _add_by_single_rows(found, about, about.register, groups)
    return found, members


def _add_by_single_rows(found: dict[Any, _Known], about: Table, register: Records, groups: Sequence[_Group]) -> None:
    """Add what is certain of people with several rows in a register by one of these; the truth says what is right."""
    columns = stated(about.quasi_identifiers, "quasi_identifiers")
    held = list(zip(people_of(register, about.identity), register.rows(columns), strict=True))
    several = Counter(person for person, _ in held)
    having = ((row, place) for place, group in enumerate(groups) for row in group.rows)
    rows, places = zip(*having, strict=True)
    holders = Holders(rows, places, columns, is_certain=False)
    certain: dict[Row, frozenset[Any]] = {}
    for person, row in held:
        if several[person] > 1:
            if row not in certain:
                certain[row] = _Known.by([groups[place] for place in sorted(holders.of(row))]).certain
            found[person] = _Known(found[person].values, found[person].certain | certain[row])


def _fitting(
    about: Table, register: Records, groups: Sequence[_Group], holders: Holders
) -> tuple[dict[Any, list[int]], set[Any]]:
    """Return the groups that fit each person of a register, and the people who must be in a table if it is complete."""
    fitting: dict[Any, list[int]] = {person: [] for person in people_of(register, about.identity)}
    candidates = [
        holders.of_all(group.rows) or set().union(*(holders.of(row) for row in group.rows)) for group in groups
    ]
    for place, people in enumerate(candidates):
        for person in people:
            fitting[person].append(place)
    members: set[Any] = set()
    if about.complete_register and not in_both(about):
        left = {place: set(people) for place, people in enumerate(candidates) if people}
        while _settle(left, fitting, members, groups):
            pass
    return fitting, members


def _settle(
    left: dict[int, set[Any]], fitting: dict[Any, list[int]], members: set[Any], groups: Sequence[_Group]
) -> bool:
    """Find groups with as many pseudonyms as people who fit them; these people fit no other group any more."""
    classes: dict[frozenset[Any], list[int]] = defaultdict(list)
    for place, people in left.items():
        classes[frozenset(people)].append(place)
    sizes = {people: sum(len(groups[place].pseudonyms) for place in places) for people, places in classes.items()}
    require_room(sizes, len(fitting) - len(members))
    settled = [one for one in classes if 0 < len(one) == sizes[one]]
    for one in settled:
        members |= one
        for place in classes[one]:
            del left[place]
        for person in one:
            for place in fitting[person]:
                if place in left:
                    left[place].discard(person)
            fitting[person] = classes[one]
    return bool(settled)


def _in_both(
    target: Table, other: Table, people: Mapping[Any, _Known], members: set[Any], meaning: _Meaning
) -> dict[Any, _Known]:
    """Return what two tables tell of each person of a register."""
    if target.register is None:
        raise DoesNotFit("two tables about the same people need a register of them", name="other")
    others, in_other = _known(other, target, meaning)
    whose = owners(target)
    has_one = target.entity is None and other.entity is None and len(set(whose)) == len(whose)
    found = {}
    for person, one in people.items():
        another = others[person]
        if person in members and person not in in_other:
            found[person] = one
        elif has_one:
            both = {value: min(one.values[value], another.values[value]) for value in one.values & another.values}
            found[person] = _Known(Counter(both), frozenset(both) - {UNSEEN} if len(both) == 1 else frozenset())
        else:
            found[person] = _Known(one.values + another.values, one.certain | another.certain)
    return found


class _Meaning:
    """The values that a sensitive cell stands for, each with a share of 1."""

    def __init__(self, tables: Sequence[Table]) -> None:
        cells = [one for table in tables for one in table.records[stated(table.sensitive, "sensitive")].tolist()]
        self._shown = Counter(one for one in cells if not is_generalised(one))
        texts = set(map(str, self._shown))
        self._shown.update({part: 0 for cell in cells for part in list_of(cell) or () if part not in texts})
        self._known: dict[Any, Counter[Any]] = {}

    def of(self, cell: Any) -> Counter[Any]:
        """Return the shares of the values; a generalised cell's are those of the tables, none of them 0."""
        if not is_generalised(cell):
            return Counter({cell: 1})
        if cell not in self._known:
            fitting: list[Any] = [one for one in self._shown if fits(cell, one)]
            fitting += [UNSEEN] if list_of(cell) is None else []
            total = sum(self._shown[one] + 1 for one in fitting)
            self._known[cell] = Counter({one: (self._shown[one] + 1) / total for one in fitting})
        return self._known[cell]


def _likeliest(values: Counter[Any]) -> tuple[Any, float]:
    """Return the likeliest of the values that are shown, and its weight; UNSEEN and 0 if there are none."""
    shown = [(one, weight) for one, weight in values.most_common() if one is not UNSEEN]
    return shown[0] if shown else (UNSEEN, 0.0)


def _skew(values: Counter[Any], everybody: Counter[Any]) -> tuple[float, float]:
    """Return the share of the likeliest value, and the total variation distance from the whole table."""
    held, whole = values.total(), everybody.total()
    distance = sum(abs(values[one] / held - everybody[one] / whole) for one in everybody) / 2
    return _likeliest(values)[1] / held, distance


def _true_values(target: Table, truth: list[Any], whose: Sequence[Any]) -> dict[Any, set[str]]:
    """Return each person's sensitive values as texts: as stated, or those of the records that are the person's."""
    cells: Sequence[Any]
    register = target.register
    people = whose if register is None else people_of(register, target.identity)
    if in_both(target):
        held, cells = whose, target.records[stated(target.sensitive, "sensitive")].tolist()
    else:
        held, cells = people, truth
    if len(held) != len(cells):
        raise InvalidInput("truth must hold the sensitive value of each person", name="truth")
    found: dict[Any, set[str]] = {person: set() for person in people}
    for person, cell in zip(held, cells, strict=True):
        if person in found and not is_generalised(cell):
            found[person].add(str(cell))
    return found


def _knowledge(target: Table) -> str:
    columns = ", ".join(target.quasi_identifiers or ())
    return f"{columns} of {'a register' if target.register is not None else 'everybody in it'}"


def _worst(target: Table, people: Mapping[Any, _Known]) -> tuple[dict[str, Any], ...]:
    where = target.register if target.register is not None else target.records
    whose = pseudonyms(target) if target.register is None else people_of(target.register, target.identity)
    columns = target.quasi_identifiers or ()
    shown: dict[Any, dict[str, Any]] = {}
    for row, person in zip(where.rows(columns), whose, strict=True):
        if people[person].certain and person not in shown and len(shown) < 5:
            revealed = sorted(people[person].certain, key=str)
            named = revealed[0] if len(revealed) == 1 else ", ".join(map(str, revealed))
            shown[person] = {**dict(zip(columns, row, strict=True)), "revealed": named}
    return tuple(shown.values())
