"""How each kind of event is written: its name, its parameters and their defaults, read off its dataclass.

For `notation` and its parser alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, NamedTuple, get_type_hints

from tacit.privacy.events import KINDS, Event
from tacit.privacy.figures import exactly
from tacit.privacy.relations import Relation


class Parameter(NamedTuple):
    """One parameter of a kind of event; the default is MISSING where there is none."""

    name: str
    type: Any
    default: Any

    @property
    def is_required(self) -> bool:
        """Whether an event cannot be made without it."""
        return self.default is MISSING

    @property
    def is_list(self) -> bool:
        """Whether it takes all the events that are left, as the parts of a composition."""
        return bool(self.type == tuple[Event, ...])


@dataclass(frozen=True, slots=True)
class Form:
    """How one kind of event is written."""

    kind: type[Event]
    parameters: tuple[Parameter, ...]
    relation_name: str | None
    """The parameter that states the relation, which the notation leaves out; compound events have none."""

    @property
    def name(self) -> str:
        """The kind's name, with underscores."""
        return name_of(self.kind)

    @property
    def signature(self) -> str:
        """The name with all parameters, for people."""
        return f"{self.name}({', '.join(map(_in_signature, self.parameters))})"

    @property
    def meaning(self) -> str:
        """The first line of what the kind's docstring says."""
        return (self.kind.__doc__ or "").partition("\n")[0]

    def make(self, arguments: dict[str, Any], relation: Relation | None) -> Event:
        """Make an event from its parameters by name, under its usual relation unless one is stated."""
        stated = {self.relation_name: relation} if self.relation_name and relation else {}
        return self.kind(**arguments, **stated)


_FORMS: Final[dict[type[Event], Form]] = {}


def form_of(kind: type[Event]) -> Form:
    """Return how a kind of event is written."""
    if kind not in _FORMS:
        types = get_type_hints(kind)
        parameters = [Parameter(field.name, types[field.name], field.default) for field in fields(kind)]
        _FORMS[kind] = Form(
            kind,
            tuple(parameter for parameter in parameters if parameter.type is not Relation),
            next((parameter.name for parameter in parameters if parameter.type is Relation), None),
        )
    return _FORMS[kind]


def all_forms() -> Iterator[Form]:
    """Yield how every kind of event is written."""
    return map(form_of, KINDS.values())


def name_of(kind: type[Event]) -> str:
    """Return the name of a kind as the notation has it."""
    return kind.kind.replace("-", "_")


def plain_text(value: float | bool) -> str:
    """Write a number or a truth value so that it is read back unchanged."""
    return exactly(value) if isinstance(value, float) else str(value).lower()


def _in_signature(parameter: Parameter) -> str:
    if parameter.is_list:
        return "event, …"
    return parameter.name if parameter.is_required else f"{parameter.name}={plain_text(parameter.default)}"
