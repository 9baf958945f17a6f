"""The attributes of errors in the `details` of an error response: which are sent, and how they are read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tacit.privacy.errors import BudgetExceeded, InvalidInput, Place, TacitError
from tacit.wire.responses import CostResponse

_COSTS: Final = ("asked", "remaining", "fits")


def encode_details(error: TacitError) -> dict[str, Any]:
    """Return the attributes of an error that callers can use."""
    found: dict[str, Any] = {}
    if isinstance(error, BudgetExceeded):
        for name in _COSTS:
            price = getattr(error, name)
            found[name] = None if price is None else CostResponse.of(price).model_dump()
        found["scope"] = error.scope
    if isinstance(error, InvalidInput) and error.name is not None:
        found["name"] = error.name
    if (accepted := getattr(error, "accepted", "")) != "":
        found["accepted"] = accepted
    if (place := getattr(error, "place", None)) is not None:
        found["place"] = list(place)
    if (after_s := getattr(error, "retry_after_s", None)) is not None:
        found["retry_after_s"] = after_s
    return found


def decode_detail(name: str, value: Any) -> Any:
    """Return an attribute of an error; texts are taken as they are."""
    return _DECODERS[name](value) if name in _DECODERS else value


def _place(value: Any) -> Place:
    line, column = value
    return Place(int(line), int(column))


_DECODERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(_COSTS, lambda value: CostResponse.model_validate(value).cost),
    "place": _place,
    "retry_after_s": float,
}
