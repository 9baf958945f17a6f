"""Settings for every test: generated examples are the same in each run, unless --hypothesis-profile=explore.

A module of tests in which a connection is left open fails: SQLite's locks and files would last until the collector
finds it, and Python 3.13 warns of that in whichever test runs then.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.support import open_connections

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("steady")

open_connections.watch()

# helpers with checks of their own, whose failures show values as those of tests do
pytest.register_assert_rewrite(
    *(f"tests.conformance.query.{name}" for name in ("rows_leaving", "same_numbers", "same_scalars", "same_worlds"))
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.support.scheduling import SparkOnce

    return SparkOnce(config, log)


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    from tests.support.sampling import leave_to_soak
    from tests.support.scheduling import rank

    leave_to_soak(items)
    items.sort(key=rank)


def pytest_collection_finish() -> None:
    """Spare the garbage collector the modules and tests, which last to the end."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.fixture(scope="module", autouse=True)
def _connections_are_closed() -> Iterator[None]:
    yield
    left = open_connections.left_open()
    assert not left, "connections were left open; close them, or use a with statement:\n  " + "\n  ".join(left)
