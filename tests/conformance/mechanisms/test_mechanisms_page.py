"""The page about mechanisms has a row for each of them, and says of relations and events what the code does."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import pytest

from tacit.mechanisms.smooth_sensitivity import median_smooth_bound
from tacit.privacy.errors import OutOfRange
from tacit.privacy.units import Relation
from tests.conformance.mechanisms.examples import EXAMPLES
from tests.style.rules import ROOT

PAGE = (ROOT / "docs/explanation/mechanisms.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("` "): [cell.strip() for cell in cells]
    for line in re.findall(r"^\| (`\w+` \|.*) \|$", PAGE, re.MULTILINE)
    for cells in [line.split(" | ")]
}
examples = pytest.mark.parametrize("mechanism", [one for one, *_ in EXAMPLES], ids=lambda one: type(one).__name__)


def under(mechanism: Any, relation: Relation) -> Any:
    """Return the mechanism under a relation, or None where it is refused."""
    try:
        return dataclasses.replace(mechanism, relation=relation)
    except OutOfRange:
        return None


def test_every_mechanism_has_one_row_and_every_row_a_mechanism() -> None:
    assert sorted(ROWS) == sorted(type(mechanism).__name__ for mechanism, *_ in EXAMPLES)
    assert all(len(cells) == 7 and all(cells) for cells in ROWS.values())
    assert len(ROWS) == 19  # the README says nineteen


@examples
def test_the_relations_of_a_row_are_those_that_are_not_refused(mechanism: Any) -> None:
    neighbours = ROWS[type(mechanism).__name__][2]
    allowed = {relation for relation in Relation if under(mechanism, relation) is not None}
    assert allowed == (set(Relation) if neighbours.startswith("both") else {Relation(neighbours)})
    assert hasattr(mechanism, "monotonic") == ("`monotonic`" in neighbours)


@examples
def test_the_event_of_a_row_is_the_one_that_is_charged(mechanism: Any) -> None:
    named = re.findall(r"`(\w+)`", ROWS[type(mechanism).__name__][4])
    charged = [one.event for relation in Relation if (one := under(mechanism, relation)) is not None]
    kinds = [type(event).__name__ for event in charged]
    inner = [type(event.event).__name__ for event in charged if hasattr(event, "event")]
    assert set(named) == {*kinds, *inner}
    assert ROWS[type(mechanism).__name__][4].startswith(f"`{kinds[0]}`")


@examples
def test_the_theorem_of_a_row_is_that_of_the_module(mechanism: Any) -> None:
    """The years that a row names stand in the docstring of the module, or of the bound that the median uses."""
    theorem = ROWS[type(mechanism).__name__][6]
    if theorem.startswith("as "):
        assert re.search(r"`(\w+)`", theorem).group(1) in ROWS  # type: ignore[union-attr]
        return
    module = inspect.getmodule(type(mechanism))
    documented = f"{inspect.getdoc(module)} {inspect.getdoc(median_smooth_bound)}"
    for year in re.findall(r"\d{4}", theorem):
        assert year in documented, (theorem, year)
