"""The fields of each kind of record, and what they hold.

`check_fields` is called when a journal is replayed (import, export, full verification, rebuild), so that whatever
passes can be read by everything that reads the journal. A field that the ledger writes and that is missing or of
another form is damage; a field that it does not know was written by a newer tacit.

Not here: what a record does to the rows, and under which conditions (`replay`). A record that is being written is not
checked again: its fields were, where they came in.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from tacit.ledger.amounts import amounts_from_json
from tacit.ledger.caps import Cap
from tacit.ledger.journal import Record
from tacit.ledger.permits import Scope
from tacit.privacy import strict_json
from tacit.privacy.arguments import mapping
from tacit.privacy.errors import InvalidInput, LedgerCorrupt, LedgerTooNew, TooLarge
from tacit.privacy.events import KINDS as EVENT_KINDS
from tacit.privacy.events import from_dict
from tacit.privacy.texts import KEY_LENGTH_MAX, NAME_LENGTH_MAX, NOTE_LENGTH_MAX, PATH_BYTES_MAX, is_unicode

Check: TypeAlias = Callable[[Any], bool]
"""Whether a value is what the ledger writes into a field; it may raise as well."""

DOCUMENT_BYTES_MAX: Final = 256 * 2**10
"""The size of a document as JSON in UTF-8, without spaces."""
DOCUMENT_DEPTH_MAX: Final = 32

_SHA256: Final = re.compile("[0-9a-f]{64}")
_NUMBER_MAX: Final = 2**62


def check_fields(record: Record) -> None:
    """Raise LedgerCorrupt unless a record has the fields of its kind."""
    required, optional = _FIELDS[record.kind]
    body = record.contents
    if unknown := sorted(body.keys() - required.keys() - optional.keys()):
        raise LedgerTooNew(f"record {record.number} has the unknown field {unknown[0][:40]!r}; use a newer tacit")
    for name, check in {**required, **{name: optional[name] for name in optional if name in body}}.items():
        try:
            holds = name in body and check(body[name])
        except (
            InvalidInput,
            LedgerCorrupt,
            ArithmeticError,
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
            RecursionError,
        ):
            holds = False
        if not holds:
            raise LedgerCorrupt(
                f"record {record.number} is impossible: {name} is not what a {record.kind} record holds",
                record=record.number,
                differs="body",
            )


def document_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document as plain values of JSON, or raise unless it is an object within the limits."""
    try:
        written = json.dumps(
            dict(mapping("document", value, "an object of JSON")),
            allow_nan=False,
            ensure_ascii=False,
            separators=(",", ":"),
        )
        size = len(written.encode())
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(
            "document must hold values of JSON: texts in UTF-8, finite numbers, lists and objects", name="document"
        ) from None
    if size > DOCUMENT_BYTES_MAX:
        raise TooLarge(f"document takes at most {DOCUMENT_BYTES_MAX:,} bytes as JSON, not {size:,}", name="document")
    plain: dict[str, Any] = strict_json.loads(written)
    level: list[Any] = [plain]
    for _ in range(DOCUMENT_DEPTH_MAX):
        level = [child for one in level for child in _children(one)]
    if any(isinstance(one, dict | list) for one in level):
        raise TooLarge(f"document may be nested {DOCUMENT_DEPTH_MAX} levels deep at most", name="document")
    return plain


def _children(value: Any) -> Sequence[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()


def _is_text(value: Any, length_max: int, *, empty: bool = False) -> bool:
    """Whether a value is a text that every store holds.

    Names and notes are checked more strictly when they are written (`privacy.texts`), by tables of Unicode that grow:
    what one version of Python refuses, another one wrote.
    """
    if not isinstance(value, str) or len(value) > length_max or not (value or empty) or not is_unicode(value):
        return False
    return value.isprintable() or all(unicodedata.category(character) != "Cc" for character in value)


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _NUMBER_MAX


def _is_sha256(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _is_scope(value: Any) -> bool:
    scope = Scope.from_key(value)
    return _is_name(scope.dataset) and (scope.name == "" if scope.kind == "dataset" else _is_name(scope.name))


def _is_cap(value: Any) -> bool:
    return bool(Cap.from_dict(value))


def _is_cost(value: Any) -> bool:
    """Whether a value is what `permits.cost_to_dict` writes; the first versions wrote integers as well."""
    if not isinstance(value, dict) or value.keys() != {"delta", "epsilon", "rho"}:
        return False
    numbers = [number for number in value.values() if number is not None]
    return all(type(number) in (int, float) and number >= 0 and math.isfinite(number) for number in numbers)


def _is_event(value: Any) -> bool:
    kind = value["kind"]
    if isinstance(kind, str) and kind not in EVENT_KINDS:
        raise LedgerTooNew(f"the journal holds events of the unknown kind {kind[:40]!r}; use a newer tacit")
    return bool(from_dict(value))


def _is_charge(value: Any) -> bool:
    """Whether a value is an object of amounts by scope."""
    return isinstance(value, dict) and all(_is_scope(key) and bool(amounts_from_json(value[key])) for key in value)


def _are(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _is_answer(value: Any) -> bool:
    """Whether a value is the digest of a plan and a version of its data."""
    return isinstance(value, list) and len(value) == 2 and _is_sha256(value[0]) and _is_name(value[1])


def _is_document(value: Any) -> bool:
    return isinstance(value, dict) and document_of(value) == value


_is_name: Final[Check] = partial(_is_text, length_max=NAME_LENGTH_MAX)
_is_note: Final[Check] = partial(_is_text, length_max=NOTE_LENGTH_MAX, empty=True)
_is_place: Final[Check] = partial(_is_text, length_max=PATH_BYTES_MAX, empty=True)
_is_boolean: Final[Check] = lambda value: isinstance(value, bool)  # noqa: E731 - one of a list
_any: Final[Check] = lambda _value: True  # noqa: E731 - checked by `replay`
_CAP: Final = {"cap": _is_cap, "scope": _is_scope}

_FIELDS: Final[Mapping[str, tuple[Mapping[str, Check], Mapping[str, Check]]]] = {
    "budget-created": ({**_CAP, "per_epoch": _is_boolean}, {"epsilon_min": _any}),
    "cap-created": (_CAP, {}),
    "cap-replaced": (_CAP, {"epsilon_min": _any, "per_epoch": _is_boolean}),
    "epoch-added": ({**_CAP, "ends": _or_none(_is_name), "starts": _or_none(_is_name)}, {}),
    "reserved": (
        {
            "analysts": _are(_is_name),
            "charged": _is_charge,
            "cost": _is_cost,
            "dataset": _is_name,
            "epochs": _are(_is_name),
            "event": _is_event,
            "is_plan": _is_boolean,
            "key": _or_none(partial(_is_text, length_max=KEY_LENGTH_MAX)),
            "permit": _is_name,
            "purpose": _is_note,
        },
        {"data_version": _or_none(_is_name), "plan_sha256": _or_none(_is_sha256)},
    ),
    "committed": ({"answer_sha256": _or_none(_is_sha256), "permit": _is_name}, {}),
    "annotated": ({"note": _is_note, "permit": _is_name}, {}),
    "refunded": ({"permit": _is_name, "ran": _or_none(_is_event), "returned": _is_charge}, {}),
    "answer-released": (
        {
            "bytes": _is_whole,
            "data_version": _is_name,
            "permit": _is_name,
            "plan_sha256": _is_sha256,
            "sha256": _is_sha256,
        },
        {},
    ),
    "request-filed": (
        {"analyst": _is_name, "cost": _is_cost, "dataset": _is_name, "reason": _is_note, "request": _is_name},
        {},
    ),
    "request-decided": (
        {"by": _is_name, "granted": _is_boolean, "note": _is_note, "request": _is_name},
        _CAP,
    ),
    "finding-kept": (
        {
            "by": _is_name,
            "dataset": _is_name,
            "document": _is_document,
            "finding": _is_name,
            "permit": _or_none(_is_name),
        },
        {},
    ),
    "checkpoint": ({"scopes": _any}, {}),
    "caches-rebuilt": ({"by": _is_name, "dropped_answers": _are(_is_answer), "reason": _is_note}, {}),
    "imported": ({"records": _is_whole}, {"source": _or_none(_is_place), "source_lost": _or_none(_is_note)}),
    "moved": ({"to": _is_place}, {}),
    "restored": (
        {"by": _is_name, "lost": _is_whole, "noted": _is_whole, "reason": _is_note},
        {
            "aside": _or_none(_is_place),
            "noted_hash": _or_none(_is_place),
            "noted_since": _or_none(_is_place),
        },
    ),
}
"""For each kind the fields that all of its records have, and those that some have."""
