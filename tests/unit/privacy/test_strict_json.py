"""JSON that is read strictly."""

from typing import Any

import pytest

from tacit.privacy import strict_json
from tacit.privacy.errors import InvalidInput


def test_a_key_that_stands_twice_among_many_is_found_in_one_pass() -> None:
    """Counted, not timed: every key is compared with another one a few times, and not with all of them."""
    compared = 0

    class Key(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    pairs: list[tuple[str, Any]] = [(Key(f"a{number}"), 0) for number in range(2000)] + [(Key("z"), 0), (Key("z"), 0)]
    with pytest.raises(InvalidInput, match="twice"):
        strict_json._object_without_duplicates(pairs)
    assert compared < 100


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '[{"b": {"a": 1, "c": 2, "a": 3}}]'])
def test_a_key_that_stands_twice_is_named(text: Any) -> None:
    with pytest.raises(InvalidInput, match=r"names .a. twice"):
        strict_json.loads(text)
