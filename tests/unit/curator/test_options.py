"""The arguments of a question: spelt once, refused by name if they do not exist, and before anything is charged."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit
from tacit.privacy.errors import InvalidInput
from tacit.query import QueryOptions, QuerySpec

SQL = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def curator(tmp_path: Path) -> Any:
    with tacit.Curator(tmp_path) as made:
        rows = pd.DataFrame({"patient": range(50)})
        made.add_table("visits", rows, unit="patient", limits=tacit.Limits(rows_per_unit=1))
        made.set_budget("visits", 2.0)
        yield made


@pytest.mark.parametrize(
    ("method", "name", "near"),
    [
        ("sql", "epsilom", "epsilon"),
        ("sql", "analist", "analyst"),
        ("sql", "limit", "limits"),
        (
            "sql",
            "xyzzy",
            "it has epsilon, rho, error, delta, limits, keys, other, purpose, key, timeout_s, progress, analyst",
        ),
        ("preview", "limit", "limits"),
        ("preview", "purpose", "it has epsilon, rho, error, delta, limits, keys, other"),
        ("explain", "analyst", "it has epsilon"),
    ],
)
def test_an_argument_that_does_not_exist_is_refused_by_name_and_nothing_is_charged(
    curator: tacit.Curator, method: str, name: str, near: str
) -> None:
    with pytest.raises(InvalidInput, match=name) as caught:
        getattr(curator, method)(SQL, 0.5, **{name: 1})
    assert near in caught.value.message
    assert caught.value.name == name
    assert curator.budget("visits").spent().epsilon == 0


def test_epsilon_is_given_by_place_or_by_name(curator: tacit.Curator) -> None:
    assert curator.sql(SQL, 0.5).cost.epsilon == pytest.approx(0.5)
    assert curator.preview(SQL, epsilon=0.5).is_released


def test_every_option_is_documented_where_it_is_spelt() -> None:
    lines = Path(inspect.getfile(QuerySpec)).read_text(encoding="utf-8").splitlines()
    for name in QueryOptions.__annotations__:
        at = next(number for number, line in enumerate(lines) if line.startswith(f"    {name}: "))
        assert lines[at + 1].startswith('    """'), name


def test_a_question_from_its_arguments_has_the_defaults_of_those_that_are_left_out() -> None:
    spec = QuerySpec.of(SQL, 0.5, {"purpose": "report", "key": "monday"})
    assert (spec.target.epsilon, spec.settings.other, spec.analyst) == (0.5, False, None)
    assert (spec.release_options.purpose, spec.release_options.key, spec.release_options.timeout_s) == (
        "report",
        "monday",
        None,
    )
