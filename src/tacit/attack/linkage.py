"""Record linkage: published records matched with a register of people by what both hold (Sweeney 2000).

A published cell may be missing or generalised (`attack/cells.py`). What the table shows to be of one person (`entity`)
is matched together: a person of the register is a candidate if each of the records fits one of their rows. Records are
linked if there is one candidate, and no record of somebody else is linked to that person; where there is none, a
record that no others equal may link by itself. A person whose own value is
missing or generalised in the register fits the records whose cell stands for it, and no exact one; where the register
is complete, so that a link is a bound, also those that it does not rule out.

Without a register the attacker is taken to know the quasi-identifiers of everybody in the table, and a person is at
risk if nobody else has all of their records. Uniqueness by several columns is predicted from the number of people and
the shares of values, as if columns were independent: a record of probability p is unique among n with probability
(1 - p)^(n - 1).

People are counted, not records: those of `truth`, else those of `entity`. Without either, each record is taken for
somebody's own, and a complete register with fewer people than records is refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any, Final

import numpy as np

from tacit.attack.candidates import (
    CANDIDATES,
    ONE_RECORD,
    Holders,
    Row,
    by_pseudonym,
    in_both,
    is_candidate,
    owners,
    people_by_row,
    people_of,
    pseudonyms,
    register_holders,
    require_fitting,
    require_room,
)
from tacit.attack.cells import is_missing
from tacit.attack.finding import Measurement, Series, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack, power_of_share, stated
from tacit.attack.records import Records
from tacit.attack.targets import Table
from tacit.privacy.errors import InvalidInput

COMBINED_MAX: Final = 4
"""How many columns are combined at most where the uniqueness of every combination is measured."""
COLUMNS_COMBINED_MAX: Final = 8


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
    _require_entity(target)
    columns, records, whose = stated(target.quasi_identifiers, "quasi_identifiers"), target.records, owners(target)
    published = records.rows(columns)
    sizes = people_by_row(published, whose)
    linked = _linked(target, published, whose)
    everybody, found = len(set(whose)), len(linked)
    people = everybody if target.register is None else len(set(people_of(target.register, target.identity)))
    right = None
    if target.register is not None and isinstance(target.truth, list):
        right = sum(owner == person for owner, (_, person) in linked.items())
        share, what = right / len(in_both(target)), "people at risk, by records linked to the right person"
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


def _require_entity(target: Table) -> None:
    """Raise InvalidInput if records of one person, by the truth, would be counted as several people."""
    if target.register is None and target.entity is None and isinstance(target.truth, list):
        known = [str(one) for one in target.truth if not is_missing(one)]
        if len(set(known)) < len(known):
            raise InvalidInput(
                "truth names a person for several records; without a register, name it as entity", name="entity"
            )


def _linked(target: Table, published: list[Row], whose: Sequence[Any]) -> dict[Any, tuple[int, Any]]:
    """Return each person of the table who is found, with the record that says most and the person of the register."""
    columns = stated(target.quasi_identifiers, "quasi_identifiers")
    groups = by_pseudonym(target)
    rows = {one: frozenset(published[index] for index in places) for one, places in groups.items()}
    if target.register is None:
        holders = Holders(published, pseudonyms(target), columns, is_certain=True)
        alone = {one for one in groups if holders.of_all(rows[one]) <= {one}}
        found = {one: one for one in alone}
    else:
        found, holders = _candidates(target, target.register, rows, published)
    claimed: dict[Any, set[Any]] = defaultdict(set)
    for one, person in found.items():
        claimed[person].add(whose[groups[one][0]])
    linked: dict[Any, tuple[int, Any]] = {}
    for one, places in groups.items():
        if one in found and len(claimed[found[one]]) == 1:
            rarest = min(places, key=lambda index: len(holders.of(published[index])))
            linked.setdefault(whose[places[0]], (rarest, found[one]))
    return linked


def _candidates(
    target: Table, register: Records, rows: Mapping[Any, frozenset[Row]], published: list[Row]
) -> tuple[dict[Any, Any], Holders]:
    """Return the person of the register for each pseudonym that only one is consistent with."""
    is_judged = isinstance(target.truth, list)
    if is_judged and len(target.truth or ()) != target.records.size:
        raise InvalidInput("truth must name the person of each record", name="truth")
    is_certain = is_judged or not target.complete_register
    holders = register_holders(target, register, is_certain=is_certain)
    if not any(holders.of(row) for row in set(published)):
        raise InvalidInput(
            "no person of the register fits a record of the table; compare their spellings", name="register"
        )
    if is_judged and not in_both(target):
        raise InvalidInput("no identity of the register is among truth; compare their spellings", name="truth")
    require_fitting(
        target, holders if not is_certain else register_holders(target, register, is_certain=False), published
    )
    fitting = {one: holders.of_all(having) for one, having in rows.items()}
    if not is_certain:
        require_room(
            Counter(frozenset(one) for one in fitting.values()), len(set(people_of(register, target.identity)))
        )
    else:
        sizes = Counter(row for having in rows.values() for row in having)
        for one, having in rows.items():
            if not fitting[one]:  # by no person together: by a row that nobody else has, and one person fits
                own = [holders.of(row) for row in having if sizes[row] == 1]
                fitting[one] = set().union(*(people for people in own if len(people) == 1))
    return {one: next(iter(people)) for one, people in fitting.items() if len(people) == 1}, holders


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


def _worst(target: Table, linked: Mapping[Any, tuple[int, Any]]) -> tuple[dict[str, Any], ...]:
    columns, shown = target.quasi_identifiers or (), []
    for index, person in sorted(linked.values(), key=lambda one: one[0])[:5]:
        one: dict[str, Any] = {name: target.records[name][index] for name in columns}
        if target.sensitive is not None:
            one["revealed"] = target.records[target.sensitive][index]
        if target.register is not None:
            one["person"] = person if isinstance(person, str) else None
        shown.append(one)
    return tuple(shown)
