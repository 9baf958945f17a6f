"""The names of `tacit.learn`: listed, described, and where they are said to be."""

from __future__ import annotations

import pytest

from tacit import learn


def test_listed_described_and_imported_names_are_the_same() -> None:
    imported = [name for names in learn._HOMES.values() for name in names]
    assert sorted(learn.__all__) == sorted(imported)
    assert not [name for name in learn.__all__ if name not in str(learn.__doc__)]


@pytest.mark.parametrize("name", learn.__all__)
def test_a_public_name_is_defined_in_its_module(name: str) -> None:
    (home,) = (home for home, names in learn._HOMES.items() if name in names)
    assert getattr(learn, name).__module__ == home
