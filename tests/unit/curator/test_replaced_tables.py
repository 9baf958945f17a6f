"""A table that is replaced keeps its rows until the new one is registered, whatever goes wrong on the way."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tacit
from tacit.curator.catalog import Catalog
from tacit.curator.curator import Curator
from tacit.curator.engine_registry import EngineRegistry
from tacit.engines import frames
from tacit.privacy.errors import InvalidInput, TacitError

OLD = pd.DataFrame({"person": range(7), "age": 40})
NEW = pd.DataFrame({"person": range(90), "age": 50})


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[Curator]:
    with Curator(tmp_path / "clinic") as made:
        made.add_table("t", OLD, unit="person", columns={"age": tacit.Bounds(0, 100)})
        made.set_budget("t", epsilon=1.0)
        yield made


def kept(folder: Path) -> dict[str, bytes]:
    """What the folder holds of rows and statements."""
    files = [folder / "catalog.toml", *(folder / "tables").iterdir()]
    return {path.name: path.read_bytes() for path in files}


def rows(folder: Path) -> int:
    with Curator(folder) as again:
        return again.engines.count_rows(again.catalog.schema.table("t"))


REFUSED: list[dict[str, Any]] = [
    {"unit": "person"},  # the name is taken
    {"unit": "nobody", "replace": True},
    {"replace": True},  # neither private nor public
    {"unit": "person", "replace": True, "columns": {"height": tacit.Bounds(0, 1)}},
    {"unit": "person", "replace": True, "dataset": "a\0b"},
    {"unit": "person", "replace": True, "identified_by": "age"},  # refused by its rows
    {"unit": tacit.Unit("person", (tacit.ForeignKey("age", "nowhere", "id"),)), "replace": True},
]


@pytest.mark.parametrize("arguments", REFUSED, ids=range(len(REFUSED)))
def test_a_refused_frame_leaves_the_registered_one_as_it_was(curator: Curator, arguments: dict[str, Any]) -> None:
    before = kept(curator.folder)
    with pytest.raises(TacitError):
        curator.add_table("t", NEW, **arguments)
    assert kept(curator.folder) == before
    assert curator.engines.count_rows(curator.catalog.schema.table("t")) == rows(curator.folder) == len(OLD)


STEPS = [
    (frames, "_write"),
    (EngineRegistry, "describe"),
    (Catalog, "add"),
    (EngineRegistry, "refresh"),
    (Curator, "_state_public_rows"),
]


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize(("owner", "step"), STEPS, ids=[name for _, name in STEPS])
def test_ctrl_c_at_any_step_leaves_the_registered_frame_as_it_was(
    curator: Curator, owner: Any, step: str, is_after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, real, left = kept(curator.folder), getattr(owner, step), [1]

    def interrupted(*arguments: Any, **options: Any) -> Any:
        if is_after:
            done = real(*arguments, **options)
        if left:
            left.pop()
            raise KeyboardInterrupt
        return done if is_after else real(*arguments, **options)

    monkeypatch.setattr(owner, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        curator.add_table("t", NEW, unit="person", replace=True)
    monkeypatch.undo()
    assert kept(curator.folder) == before
    assert curator.engines.count_rows(curator.catalog.schema.table("t")) == rows(curator.folder) == len(OLD)


def test_a_warning_that_is_an_error_leaves_the_registered_frame_as_it_was(curator: Curator) -> None:
    curator.sql("SELECT COUNT(*) FROM t", epsilon=0.5)
    before = kept(curator.folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="budget of t"):
            curator.add_table("t", NEW, unit="person", dataset="fresh", replace=True)
    assert kept(curator.folder) == before
    assert curator.engines.count_rows(curator.catalog.schema.table("t")) == rows(curator.folder) == len(OLD)


def test_a_replaced_frame_is_gone_and_nothing_else_is(curator: Curator) -> None:
    curator.add_table("t-00000000", OLD, unit="person")
    curator.add_table("T", NEW, unit="person", replace=True)
    used = {Path(curator.catalog.source(name).place) for name in ("t", "t-00000000")}
    assert set((curator.folder / "tables").iterdir()) == used
    assert rows(curator.folder) == len(NEW)


def test_who_replaces_a_table_removes_no_frame_that_another_is_about_to_register(curator: Curator) -> None:
    """Another process has written its frame, and registers it in the moment in which this one looks for leftovers."""
    written, removed = threading.Event(), threading.Event()
    real = EngineRegistry.describe

    def slow(self: EngineRegistry, source: Any) -> Any:
        if threading.current_thread() is other:
            written.set()
            assert removed.wait(60)
        return real(self, source)

    failed: list[BaseException] = []

    def register() -> None:
        try:
            with Curator(curator.folder) as second:
                second.add_table("t", NEW, unit="person", replace=True)
        except TacitError as error:
            failed.append(error)

    other = threading.Thread(target=register)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EngineRegistry, "describe", slow)
        other.start()
        assert written.wait(60)
        curator.add_table("t", OLD, unit="person", replace=True)
        removed.set()
        other.join()
    assert failed == []
    assert rows(curator.folder) == len(NEW)


def test_a_new_table_that_is_refused_leaves_no_file(curator: Curator) -> None:
    before = kept(curator.folder)
    with pytest.raises(InvalidInput):
        curator.add_table("u", NEW, unit="person", identified_by="age")
    assert kept(curator.folder) == before
