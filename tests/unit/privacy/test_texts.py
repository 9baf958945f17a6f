"""Texts of people: short, one line, nothing hidden in them."""

import pytest

from tacit.privacy import texts
from tacit.privacy.errors import EmptyInput, InvalidInput, TooLarge, WrongType


@pytest.mark.parametrize("name", ["visits", "Besuche 2024", "Åsa", "分析者", "a/b:c", "o'brien"])
def test_names_of_people_and_tables_are_taken_as_they_are(name: str) -> None:
    assert texts.name("dataset", name) == name


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("", EmptyInput),
        (" a", InvalidInput),
        ("a\n", InvalidInput),
        ("a\x00b", InvalidInput),
        ("a\u202eb", InvalidInput),
        ("a\u200bb", InvalidInput),
        ("a\u2028b", InvalidInput),
        ("a\ud800b", InvalidInput),
        ("a\x1b[31m", InvalidInput),
        ("x" * 129, TooLarge),
        (None, WrongType),
        (b"a", WrongType),
    ],
)
def test_names_that_hide_something_are_refused(value: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        texts.name("dataset", value)


def test_a_refused_control_character_is_named_with_its_place() -> None:
    with pytest.raises(InvalidInput, match=r"U\+202E at place 3"):
        texts.note("reason", "ab\u202e")


def test_a_required_note_is_not_blank() -> None:
    assert texts.note("reason", "") == ""
    with pytest.raises(EmptyInput):
        texts.note("reason", "  ", required=True)


def test_a_plan_may_have_lines_and_must_be_text() -> None:
    assert texts.plan("SELECT 1\nFROM t") == "SELECT 1\nFROM t"
    with pytest.raises(InvalidInput):
        texts.plan("\ud800")
    with pytest.raises(TooLarge):
        texts.plan("x" * (2**20 + 1))
    with pytest.raises(WrongType):
        texts.plan(b"SELECT 1")


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(EmptyInput):
        texts.key("")
