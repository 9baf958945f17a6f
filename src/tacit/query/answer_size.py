"""The size of an answer in JSON, from public facts: groups, keys, measures and choices.

The limit itself is in `ledger.answer_storage`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final

from tacit.ledger.answer_storage import INTEGER_BYTES, json_bytes
from tacit.query.keys import Domain
from tacit.query.private_choices import PrivateChoice

CELL_BYTES: Final = 64
"""The longest number, date or time that a choice among cells shows."""
_NULL_BYTES: Final = len("null,")


def json_value(value: Any) -> Any:
    """Return a key or a chosen value as JSON; dates and times become objects."""
    if isinstance(value, datetime):
        return {"time": value.isoformat()}
    return {"date": value.isoformat()} if isinstance(value, date) else value


def answer_bytes(domains: Sequence[Domain], sets: Sequence[Sequence[int]], group: int) -> int:
    """Return the size of an answer with public keys; `sets` says which keys each measured grouping keeps.

    `group` is how many bytes a group takes beside its keys (`group_bytes`).
    """
    listed = [json_bytes([json_value(value) for value in domain.values]) for domain in domains]
    total = 0
    for kept in sets:
        groups = math.prod(len(domains[index].values) for index in kept)
        keys = sum(groups // len(domains[index].values) * listed[index] for index in kept)
        total += keys + groups * (group + _NULL_BYTES * (len(domains) - len(kept)))
    return total


def group_bytes(measures: int, choices: Sequence[PrivateChoice]) -> int:
    """Return how many bytes the numbers and choices of one group take at most."""
    return measures * INTEGER_BYTES + sum(_choice_bytes(one) for one in choices)


def key_bytes(key: Sequence[Any]) -> int:
    """Return how many bytes one value of each key takes."""
    return json_bytes([json_value(value) for value in key])


def _choice_bytes(choice: PrivateChoice) -> int:
    return max((key_bytes([value]) for value in choice.cells.values), default=CELL_BYTES)
