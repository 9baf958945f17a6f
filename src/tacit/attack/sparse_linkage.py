"""De-anonymisation of sparse records by a scoreboard (Narayanan, Shmatikov 2008).

A record is a set of items with values and times (ratings, purchases, visits). The attacker knows a few items of a
person, some of them wrong. Each published entity scores the weights of the known items that it has, rare items more,
each by how near value and time are; one that is not stated or missing (`?`, empty) counts as near, so that an item in
common counts by itself.
The best entity is named only if it stands out: if it leads the second by at least ECCENTRICITY standard deviations of
all scores. Otherwise the attack abstains.

Names that are right by chance identify nobody. If a share s of the people is identified and the others are named by
chance c, s + (1 - s) c are right; the bound is that on s. The chance is one over the number of entities, or the share
of people of the commonest entity where several people have the same one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final

import numpy as np

from tacit.attack.cells import is_missing
from tacit.attack.confidence import clopper_pearson
from tacit.attack.finding import Measurement, Power, ThreatModel
from tacit.attack.kit import Outcome, Setting, attack, stated
from tacit.attack.targets import DoesNotFit, Table
from tacit.privacy.errors import InvalidInput, WrongType

ECCENTRICITY: Final = 1.5
VALUE_SCALE: Final = 1.5
"""The difference of values over which the score of an item falls to 1/e."""
DAYS_SCALE: Final = 30.0

Facts = tuple[float | None, float | None]


class Scoreboard:
    """Published entities by item, and the score of each for what is known of a person."""

    def __init__(self, entities: Mapping[Any, Mapping[Any, Facts]]) -> None:
        self._names = list(entities)
        self._by_item: dict[Any, list[tuple[int, float | None, float | None]]] = defaultdict(list)
        for place, items in enumerate(entities.values()):
            for item, (value, day) in items.items():
                self._by_item[item].append((place, value, day))

    def best(self, known: Mapping[Any, Facts]) -> tuple[Any, float]:
        """Return the entity with the greatest score, and by how many standard deviations it leads."""
        scores = np.zeros(len(self._names))
        for item, (value, day) in known.items():
            having = self._by_item.get(item, ())
            weight = 1 / math.log(max(len(having), 2))
            for place, other, other_day in having:
                scores[place] += weight * (_near(value, other, VALUE_SCALE) + _near(day, other_day, DAYS_SCALE))
        order = np.argpartition(-scores, 1)[:2] if len(scores) > 1 else np.array([0])
        order = order[np.argsort(-scores[order], kind="stable")]
        spread = float(scores.std())
        lead = float(scores[order[0]] - (scores[order[1]] if len(order) > 1 else 0.0))
        return self._names[int(order[0])], lead / spread if spread else 0.0


def _near(one: float | None, other: float | None, scale: float) -> float:
    return 1.0 if one is None or other is None else math.exp(-abs(one - other) / scale)


@attack(
    "sparse_linkage",
    Table,
    paper="Narayanan, Shmatikov 2008",
    summary="people whose ratings, purchases or visits are found by a few that are known",
    needs=("entity", "item", "register", "identity", "truth"),
)
def deanonymize(target: Table, setting: Setting) -> Outcome:
    """Name the entity of each person of the register, or abstain."""
    register, entity = stated(target.register, "register"), stated(target.entity, "entity")
    if not isinstance(target.truth, Mapping):
        raise InvalidInput("truth must be a mapping from identities to entities", name="truth")
    entities = _facts(target, target.records.columns, entity)
    people = _facts(target, register.columns, stated(target.identity, "identity"))
    if not entities or not people:
        raise DoesNotFit("no row names both an entity or a person and an item", name="records")
    if not target.truth.keys() & people.keys() or not set(target.truth.values()) & entities.keys():
        raise InvalidInput(
            "truth must map identities of the register to entities of the records; compare their spellings and types",
            name="truth",
        )
    board = Scoreboard(entities)
    alone, named, right, first, worst = 1 / len(entities), 0, 0, 0, []
    for person, known in people.items():
        found, lead = board.best(known)
        is_right = found == target.truth.get(person)  # an entity is never missing
        first += is_right
        if lead < ECCENTRICITY:
            continue
        named += 1
        if is_right:
            right += 1
            worst.append({"person": person, "entity": found, "lead": lead})
    low, high = clopper_pearson(right, len(people), (1 - setting.confidence) / 2)
    whose = Counter(target.truth[one] for one in people if one in target.truth)
    most = max(whose.values())
    chance = max(alone, most / len(people) if most > 1 else 0.0)

    def bound(found: int) -> float:
        sure = clopper_pearson(found, len(people), (1 - setting.confidence) / 2)[0]
        return max(0.0, (sure - chance) / (1 - chance)) if chance < 1 else 0.0

    planted = {person: _some(entities.get(target.truth.get(person), {}), len(known), setting)
               for person, known in people.items()}  # fmt: skip
    copied = bound(_recognised(board, planted, target.truth))
    others = dict(zip(people, setting.random.permutation(np.array([*planted.values()], dtype=object)), strict=True))
    mixed = bound(_recognised(board, others, target.truth))
    risk = None if setting.claim is None else setting.claim.risk
    return Outcome(
        ThreatModel(
            "the published rows",
            f"{np.median([len(one) for one in people.values()]):g} items of each of {len(people):,} people",
            0,
        ),
        (
            Measurement("share of people identified", right / len(people), (low, high), alone, key="people_at_risk"),
            Measurement("names that are right", right / named if named else 0.0, key="names_right"),
            Measurement("share abstained from", 1 - named / len(people), key="abstained"),
            Measurement("share ranked first", first / len(people), baseline=alone, key="ranked_first"),
        ),
        bound(right),
        f"Clopper-Pearson bound, beyond a chance of {chance:.3g}",
        Power("as many published rows of each person", copied, mixed, risk is not None and copied > risk),
        worst=tuple(sorted(worst, key=lambda one: -one["lead"])[:5]),
        details={"entities": len(entities), "people": len(people), "eccentricity": ECCENTRICITY},
        bounds="a share of people identified",
    )


def _some(items: Mapping[Any, Facts], count: int, setting: Setting) -> dict[Any, Facts]:
    """Return some items, all if there are fewer."""
    listed = list(items.items())
    return dict(listed[index] for index in setting.random.permutation(len(listed))[:count])


def _recognised(board: Scoreboard, people: Mapping[Any, Mapping[Any, Facts]], truth: Mapping[Any, Any]) -> int:
    """Return how many people are named, and right."""
    found = ((person, *board.best(known)) for person, known in people.items())
    return sum(lead >= ECCENTRICITY and name == truth.get(person) for person, name, lead in found)


def _facts(target: Table, columns: Mapping[str, Any], whose: str) -> dict[Any, dict[Any, Facts]]:
    """Return the items of each person with their values and days; rows without a person or an item say nothing."""
    size = len(columns[whose])
    values = columns[target.value] if target.value else [None] * size
    days = columns[target.when] if target.when else [None] * size
    found: dict[Any, dict[Any, Facts]] = defaultdict(dict)
    for person, item, value, day in zip(
        columns[whose], columns[stated(target.item, "item")], values, days, strict=True
    ):
        if is_missing(person) or is_missing(item):
            continue
        found[person][item] = (_number("value", value), _day(day))
    return found


def _number(name: str, cell: Any) -> float | None:
    """Return a cell as a finite number, or None for a missing one."""
    if is_missing(cell):
        return None
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        wanted = "finite numbers" if name == "value" else "dates, ISO texts of dates or numbers of days"
        raise WrongType(f"the column of {name} must hold {wanted}, not {cell!r}", name=name)
    return number


def _day(cell: Any) -> float | None:
    """Return the day of a date, of its text as ISO 8601 writes it, or a number of days."""
    if isinstance(cell, str):
        try:
            cell = datetime.fromisoformat(cell.strip())
        except ValueError:
            return _number("when", cell)
    return float(cell.toordinal()) if isinstance(cell, date) else _number("when", cell)
