"""Which rewritings of a query are recognised: the table of the documentation, row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import tacit

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "private-sql.md"


def examples() -> Iterator[tuple[str, str, bool]]:
    """Yield each query of the table with a rewriting, and whether that is recognised."""
    query = ""
    for first, written, recognised in re.findall(r"^\| (?:`(.+?)` )?\| `(.+)` \| (yes|no) \|$", PAGE.read_text(), re.M):
        query = first or query
        yield query, written, recognised == "yes"


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tacit.Curator]:
    rows = pd.DataFrame({"id": range(60), "age": [one % 50 for one in range(60)], "sex": ["F", "M"] * 30})
    with tacit.Curator(tmp_path_factory.mktemp("same")) as curator:
        curator.add_table("t", rows, unit="id", columns={"age": tacit.Bounds(0, 120)})
        curator.set_budget("t", epsilon=4.0, epsilon_min=0)
        yield curator


def test_the_table_has_examples_of_both_kinds() -> None:
    kinds = [recognised for _, _, recognised in examples()]
    assert min(kinds.count(True), kinds.count(False)) >= 5


@pytest.mark.parametrize(("query", "written", "recognised"), list(examples()))
def test_a_rewriting_is_recognised_or_charged_as_the_documentation_says(
    curator: tacit.Curator, query: str, written: str, recognised: bool
) -> None:
    curator.sql(query, epsilon=0.01)
    assert (curator.sql(written, epsilon=0.01).cost.epsilon == 0) is recognised


def test_another_epsilon_is_another_query(curator: tacit.Curator) -> None:
    curator.sql("SELECT COUNT(*) AS n FROM t WHERE age > 7", epsilon=0.01)
    assert curator.sql("SELECT COUNT(*) AS n FROM t WHERE age > 7", epsilon=0.02).cost.epsilon > 0
