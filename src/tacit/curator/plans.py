"""Plans that were made before: a plan depends on nothing but the question, the catalog and what budgets allow.

Whoever asks the same again, or asks what she has just previewed, does not wait for it to be planned again. No data are
in a plan, so nothing here needs to be forgotten but for room.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from tacit.privacy.tables import Schema
from tacit.query import Plan, Settings, Target, Tariff

PLANS_MAX: Final = 256

Key = tuple[str, Target, str]


@dataclass(frozen=True, slots=True)
class Made:
    """A plan, and what it was made for."""

    schema: Schema
    tariff: Tariff
    plan: Plan


class Plans:
    """The plans that were used last; threads may share them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[Key, Made] = OrderedDict()

    def known(self, key: Key | None, schema: Schema) -> Made | None:
        """Return the plan of a question under the catalog as it is."""
        with self._lock:
            made = None if key is None else self._made.get(key)
            if key is None or made is None or made.schema is not schema:
                return None
            self._made.move_to_end(key)
            return made

    def keep(self, key: Key | None, made: Made) -> Plan:
        """Remember a plan, and return it."""
        if key is None:
            return made.plan
        with self._lock:
            self._made[key] = made
            self._made.move_to_end(key)
            while len(self._made) > PLANS_MAX:
                self._made.popitem(last=False)
        return made.plan


def key_of(sql: str, target: Target, settings: Settings) -> Key | None:
    """Return what identifies a question as it was written; None where its text does not tell it from others."""
    keys = settings.keys
    if keys is not None and not (type(keys) is dict and all(type(one) in (list, tuple) for one in keys.values())):
        return None  # an array, for one, is written with dots in its middle
    return sql, target, repr((settings.limits, keys, settings.other))
