"""Which of the cases of a parametrised test `make test` runs: all, or those of a fixed sample; `make soak` the rest."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

import pytest


def leave_to_soak(items: Sequence[pytest.Item]) -> None:
    """Mark as soak all but `keep` cases of each test with the marker `sampled(keep, each=...)`.

    At least one case of every value of the parameter that `each` names is kept. The sample follows from the names of
    the cases alone, so it is the same in every run and on every worker.
    """
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    markers: dict[str, pytest.Mark] = {}
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None:
            test = item.nodeid.partition("[")[0]
            cases[test].append(item)
            markers[test] = marker
    for test, found in cases.items():
        ordered = sorted(found, key=_place)
        each, keep = markers[test].kwargs.get("each"), int(markers[test].args[0])
        first = {_value(item, each): item for item in reversed(ordered)} if each is not None else {}
        kept = list(dict.fromkeys([*first.values(), *ordered]))[: max(keep, len(first))]
        for item in found:
            if item not in kept:
                item.add_marker(pytest.mark.soak)


def _value(item: pytest.Item, parameter: str) -> str:
    """Return the value of a parameter of a case, as a text that is equal for equal values."""
    assert isinstance(item, pytest.Function)
    return repr(item.callspec.params[parameter])


def _place(item: pytest.Item) -> bytes:
    return hashlib.sha256(item.nodeid.encode()).digest()
