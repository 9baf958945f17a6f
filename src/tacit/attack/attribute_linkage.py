"""Attribute linkage: what a table without names tells about the sensitive value of somebody who is in it.

homogeneity   everybody who is alike in the quasi-identifiers has one sensitive value (Machanavajjhala et al. 2007)
background    one value is left once the attacker can rule out one other
skewness      the shares of values among those alike differ from the shares in the whole table (Li, Li,
              Venkatasubramanian 2007): the greatest share, and the greatest total variation distance (t)
composition   two tables about the same people leave one value that is possible in both (Ganta et al. 2008)

With a register, what is measured is about its people: the values of all records that fit a person. A person who fits
records may be in none of them. So a share is a bound where the truth says so: of people whose value is known, those for
whom it alone is left. Or where the register is complete: of the people in the table, those with one value left who fit
a row that as many records have as people fit.

A sensitive cell that is missing or generalised stands for the values of the tables that fit it, in proportion to how
often these occur, and unless it lists its values also for one that occurs nowhere (`UNSEEN`): it makes nothing certain.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

from tacit.attack.cells import fits, is_generalised, is_missing, list_of
from tacit.attack.finding import Measurement, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack, power_of_share, stated
from tacit.attack.linkage import (
    CANDIDATES,
    ONE_RECORD,
    Matcher,
    is_candidate,
    owners,
    people_by_row,
    people_of,
)
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
    meaning = _Meaning([target] if target.other is None else [target, target.other])
    everybody = Counter[Any]()
    for cell in target.records[stated(target.sensitive, "sensitive")].tolist():
        everybody.update(meaning.of(cell))
    people = _possible_values(target, target.register, meaning)
    joint = people if target.other is None else _in_both(target, target.other, people, meaning)
    known = [one for one in joint if one]
    if not known:
        raise DoesNotFit("no person of the register fits a record of the table", name="register")
    whose = owners(target) if target.register is None else people_of(target.register, target.identity)
    alone, two_left = _share(joint, whose, _is_certain), _share(joint, whose, lambda one: len(one) == 2)
    guessed, distance = zip(*(_skew(one, everybody) for one in known), strict=True)
    expected, prior = sum(guessed) / len(known), _likeliest(everybody)[1] / target.records.size
    measurements = [
        Measurement("share of people with one possible value", alone, baseline=0.0, key="one_value_left"),
        Measurement("share of people with one of two values left", two_left, key="two_values_left"),
        Measurement("values guessed right, expected", expected, baseline=prior, key="values_guessed_right_expected"),
        Measurement("t-closeness", max(distance), key="t_closeness"),
    ]
    if target.other is not None:
        before = _share(people, whose, _is_certain)
        measurements.append(
            Measurement("share with one possible value, from one table", before, key="one_value_from_one_table")
        )
    bound: float | None = None if is_candidate(target) else alone
    if isinstance(target.truth, list):
        true = _true_values(target, target.truth)
        if len(true) != len(joint):
            raise InvalidInput("truth must hold the sensitive value of each person", name="truth")
        judged = [(owner, one, values) for owner, one, values in zip(whose, joint, true, strict=True) if values]
        right = sum(_likeliest(one)[0] in values for _, one, values in judged)
        measurements.append(
            Measurement("values guessed right", right / max(len(judged), 1), baseline=prior, key="values_guessed_right")
        )
        found = {owner for owner, one, values in judged if _is_certain(one) and values & one.keys()}
        bound = len(found) / max(len({owner for owner, _, _ in judged}), 1)
    elif target.register is not None and target.complete_register:
        found = {whose[one] for one in _members(target, target.register, whose) if _is_certain(joint[one])}
        bound = len(found) / len(set(owners(target)))
    return Outcome(
        ThreatModel("the published table" + (" and another one" if target.other else ""), _knowledge(target), 0),
        tuple(measurements),
        bound,
        "everybody was attacked: the share is exact",
        power_of_share("a table in which every value is certain", setting),
        worst=_worst(target, joint),
        assumptions=() if target.entity or isinstance(target.truth, list) else (ONE_RECORD,),
        details={
            "people": len({whose[place] for place, one in enumerate(joint) if one}),
            "values": len(everybody.keys() - {UNSEEN}),
        },
        bounds="a share of people whose value is certain",
        unbounded=CANDIDATES if is_candidate(target) else "",
    )


def _in_both(target: Table, other: Table, people: Sequence[Counter[Any]], meaning: _Meaning) -> list[Counter[Any]]:
    """Return the values of each person that are possible by two tables."""
    others = _possible_values(other, target.records if target.register is None else target.register, meaning)
    if len(others) != len(people):
        raise DoesNotFit("two tables about the same people need a register of them", name="other")
    return [
        Counter({value: min(one[value], another[value]) for value in one if value in another})
        for one, another in zip(people, others, strict=True)
    ]


def _share(people: Sequence[Counter[Any]], whose: Sequence[Any], is_such: Callable[[Counter[Any]], bool]) -> float:
    """Return the share of people, of those with possible values, with such values in one of their rows."""
    known = {owner for owner, one in zip(whose, people, strict=True) if one}
    return len({owner for owner, one in zip(whose, people, strict=True) if one and is_such(one)}) / max(len(known), 1)


def _members(target: Table, register: Records, whose: Sequence[Any]) -> set[int]:
    """Return the rows of people of a complete register who must be in the table: as many fit a row as have it."""
    columns = stated(target.quasi_identifiers, "quasi_identifiers")
    matcher, sizes = Matcher(register, columns), people_by_row(target.records.rows(columns), owners(target))
    fitting = ((matcher.possible(row), count) for row, count in sizes.items())
    return {place for places, count in fitting if len({whose[one] for one in places}) == count for place in places}


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


def _possible_values(table: Table, people: Records | None, meaning: _Meaning) -> list[Counter[Any]]:
    """Return the sensitive values of the records that fit each person: of the table itself if there is no register."""
    columns, sensitive = stated(table.quasi_identifiers, "quasi_identifiers"), stated(table.sensitive, "sensitive")
    alike: dict[tuple[Any, ...], Counter[Any]] = defaultdict(Counter)
    for row, cell in zip(table.records.rows(columns), table.records[sensitive].tolist(), strict=True):
        alike[row].update(meaning.of(cell))
    asked = (table.records if people is None else people).rows(columns)
    rows = list(dict.fromkeys(asked))
    found = {row: Counter[Any]() for row in rows}
    matcher = Matcher(Records(dict(zip(columns, zip(*rows, strict=True), strict=True))), columns)
    for row, values in alike.items():
        for place in matcher.possible(row):
            found[rows[place]].update(values)
    return [found[row] for row in asked]


def _is_certain(values: Counter[Any]) -> bool:
    return len(values) == 1 and UNSEEN not in values


def _likeliest(values: Counter[Any]) -> tuple[Any, float]:
    """Return the likeliest of the values that are shown, and its weight; UNSEEN and 0 if there are none."""
    shown = [(one, weight) for one, weight in values.most_common() if one is not UNSEEN]
    return shown[0] if shown else (UNSEEN, 0.0)


def _skew(values: Counter[Any], everybody: Counter[Any]) -> tuple[float, float]:
    """Return the share of the likeliest value, and the total variation distance from the whole table."""
    held, whole = values.total(), everybody.total()
    distance = sum(abs(values[one] / held - everybody[one] / whole) for one in everybody) / 2
    return _likeliest(values)[1] / held, distance


def _true_values(target: Table, truth: list[Any]) -> list[set[Any]]:
    """Return each person's sensitive values: as stated, or those of the records with the person's identity."""
    if target.register is not None and target.identity is not None:
        names = target.register[target.identity].tolist()
        if len(truth) == target.records.size and set(names) & set(truth):
            values = defaultdict[Any, set[Any]](set)
            for name, cell in zip(truth, target.records[stated(target.sensitive, "sensitive")].tolist(), strict=True):
                values[name] |= set() if is_generalised(cell) else {cell}
            return [set() if is_missing(name) else values[name] for name in names]
    return [set() if is_generalised(value) else {value} for value in truth]


def _knowledge(target: Table) -> str:
    columns = ", ".join(target.quasi_identifiers or ())
    return f"{columns} of {'a register' if target.register is not None else 'everybody in it'}"


def _worst(target: Table, people: Sequence[Counter[Any]]) -> tuple[dict[str, Any], ...]:
    where = target.register if target.register is not None else target.records
    columns = target.quasi_identifiers or ()
    shown: list[dict[str, Any]] = []
    for row, values in zip(where.rows(columns), people, strict=True):
        if _is_certain(values) and len(shown) < 5:
            shown.append({**dict(zip(columns, row, strict=True)), "revealed": next(iter(values))})
    return tuple(shown)
