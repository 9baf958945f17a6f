"""Events as text: `1000 x sampled(0.01, gaussian(1)) + laplace(0.1)`.

How each kind of event is written: its name, its parameters and their defaults, read off its dataclass.

    plan        = repeated { "+" repeated }              several events on the same data
    repeated    = { whole number "x" } event             the event that often, with fresh randomness
    event       = name "(" argument { "," argument } ")" | "(" plan ")"
    argument    = [ parameter "=" ] ( number | "?" | "true" | "false" | plan )
    number      = decimal [ "/" decimal ]                sampled(256/60000, …)

Names, parameters, their order and their defaults are those of the dataclasses in `events.KINDS`, with underscores, so a
new kind can be written at once. A number means the double that is nearest to it, as in Python; whole numbers are exact.

Promise: `parse(write(event), relation=event.relation) == event`. A text is an event or refused at a position; length,
depth and numbers have limits. The relation is no part of the text: it is stated once for all of it, or each kind has
its usual one; mixed ones are refused.
Not here: the written form that is kept (`events.from_json`), which has versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Final, NamedTuple, get_type_hints

from tacit.privacy.errors import InvalidInput, NotationError, TooLarge
from tacit.privacy.events import EVENT_DEPTH_MAX, KINDS, Composed, Event, Repeated
from tacit.privacy.figures import exactly
from tacit.privacy.units import Relation


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


TEXT_LENGTH_MAX: Final = 1_000_000
NUMBER_LENGTH_MAX: Final = 400
EXPONENT_MAX: Final = 400
EXCERPT_LENGTH: Final = 24
ANY_NUMBER: Final = "? stands for any number above 0"

_TOKEN: Final = re.compile(
    r"[ \t\r\n]*(?:"
    r"(?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z](?:[A-Za-z0-9_]|-(?=[A-Za-z]))*)"
    r"|(?P<sign>[()+,=/?])"
    r"|(?P<end>\Z)"
    r"|(?P<unknown>.))",
    re.ASCII | re.DOTALL,
)
_FLAT: Final = re.compile(r"[A-Za-z_]+\([^()]*\)", re.ASCII)
"""An event whose arguments hold no other: one that is written again in the same text is the same event."""

_TRUTHS: Final = {"true": True, "false": False}


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


class _Argument(NamedTuple):
    value: Any
    position: int
    by_name: bool


class Parser:
    """Recursive descent over one text; every refusal names the column where it stopped."""

    def __init__(self, text: str, relation: Relation | None, hole: float | None) -> None:
        self._text, self._relation, self._hole = text, relation, hole
        self._hole_used = False
        self._depth = 0
        self._known: dict[str, Event] = {}
        self._token = self._token_from(0)

    def read(self) -> Event:
        """Read the whole text as one plan."""
        event = self._plan()
        if self._token.kind != "end":
            raise self._unexpected("+ and another event, or the end")
        if self._hole is not None and not self._hole_used:
            raise self._refusal("nothing is sought; write ? in the place of a number", self._token.position)
        return event

    def _plan(self) -> Event:
        start = self._token.position
        several = [self._repeated()]
        while self._took("+"):
            several.append(self._repeated())
        if len(several) == 1:
            return several[0]
        return self._made(form_of(Composed), {"events": _Argument(several, start, by_name=False)}, start)

    def _repeated(self) -> Event:
        start = self._token.position
        if self._token.text == "?":
            raise self._refusal(f"{ANY_NUMBER}, and a count is a whole one", start)
        if self._token.kind != "number":
            return self._event()
        count = _Argument(self._number(), start, by_name=False)
        if not self._took("x"):
            raise self._unexpected("x and an event after a number, as in 10 x laplace(0.1)")
        self._descend(start)
        inner = _Argument(self._repeated(), start, by_name=False)
        self._depth -= 1
        return self._made(form_of(Repeated), {"event": inner, "count": count}, start)

    def _event(self) -> Event:
        start = self._token.position
        self._descend(start)
        flat = _FLAT.match(self._text, start)
        event = self._known.get(flat[0]) if flat else None
        if event is not None and flat:
            self._token = self._token_from(flat.end())
        else:
            event = self._plan() if self._took("(") else self._called()
            if flat:
                self._known[flat[0]] = event
            if not self._took(")"):
                raise self._unexpected("+ or )")
        self._depth -= 1
        return event

    def _called(self) -> Event:
        """Read a name and its arguments, up to the closing parenthesis."""
        name = self._token
        if name.kind != "name":
            raise self._unexpected("an event such as gaussian(1)")
        kind = KINDS.get(name.text.replace("_", "-")) if "-" not in name.text else None
        if kind is None:
            raise self._refusal(f"no event is called {name.text}; {_nearest(name.text)}", name.position)
        form = form_of(kind)
        self._advance()
        if not self._took("("):
            raise self._unexpected(f"( and the parameters of {form.signature}")
        given: dict[str, _Argument] = {}
        while self._token.text != ")":
            if given and not self._took(","):
                raise self._unexpected("a comma or )")
            self._read_argument(form, given)
        for parameter in form.parameters:
            if parameter.is_required and parameter.name not in given:
                raise self._refusal(f"{parameter.name} is missing in {form.signature}", self._token.position)
        return self._made(form, given, name.position)

    def _read_argument(self, form: Form, given: dict[str, _Argument]) -> None:
        start = self._token
        by_name = start.kind == "name" and self._token_from(start.position + len(start.text)).text == "="
        parameter = self._named(form, given) if by_name else self._next(form, given)
        value = self._value(form, parameter)
        if not parameter.is_list:
            given[parameter.name] = _Argument(value, start.position, by_name)
        else:
            given.setdefault(parameter.name, _Argument([], start.position, by_name)).value.append(value)

    def _named(self, form: Form, given: dict[str, _Argument]) -> Parameter:
        """Read a parameter's name and the = after it."""
        name = self._token
        self._advance()
        self._advance()
        for parameter in form.parameters:
            if parameter.name == name.text and not parameter.is_list:
                if name.text in given:
                    raise self._refusal(f"{name.text} stands twice in {form.signature}", name.position)
                return parameter
        raise self._refusal(f"{name.text} is no parameter of {form.signature}", name.position)

    def _next(self, form: Form, given: dict[str, _Argument]) -> Parameter:
        """Return the parameter whose turn it is."""
        if any(argument.by_name for argument in given.values()):
            raise self._refusal("after a parameter by name, the others are written by name too", self._token.position)
        for parameter in form.parameters:
            if parameter.is_list or parameter.name not in given:
                return parameter
        raise self._refusal(f"there is one argument too many for {form.signature}", self._token.position)

    def _value(self, form: Form, parameter: Parameter) -> Any:
        start = self._token
        if parameter.type is Event or parameter.is_list:
            return self._plan()
        if parameter.type is bool:
            if start.text not in _TRUTHS:
                raise self._unexpected(f"true or false for {parameter.name} of {form.signature}")
            self._advance()
            return _TRUTHS[start.text]
        if self._took("?"):
            return self._sought(parameter, start.position)
        if start.kind != "number":
            raise self._unexpected(f"a number for {parameter.name} of {form.signature}")
        number = self._number()
        return self._as_float(number, start.position) if parameter.type is float else number

    def _sought(self, parameter: Parameter, position: int) -> float:
        if parameter.type is not float:
            raise self._refusal(f"{ANY_NUMBER}, and {parameter.name} is a whole one", position)
        if self._hole is None:
            raise self._refusal("? is for a parameter that is sought; write a number", position)
        self._hole_used = True
        return self._hole

    def _number(self) -> Fraction:
        """Read a decimal number, or one divided by another."""
        number = self._decimal()
        if not self._took("/"):
            return number
        if self._token.kind != "number":
            raise self._unexpected("a number after /")
        position, divisor = self._token.position, self._decimal()
        if divisor == 0:
            raise self._refusal("nothing can be divided by 0", position)
        return number / divisor

    def _decimal(self) -> Fraction:
        token = self._token
        if len(token.text) < 16 and token.text.isdecimal():
            self._advance()
            return Fraction(int(token.text))
        exponent = re.split("[eE]", token.text)[1:]
        too_far = exponent and (len(exponent[0]) > 9 or abs(int(exponent[0])) > EXPONENT_MAX)
        if too_far or len(token.text) > NUMBER_LENGTH_MAX:
            raise self._refusal(
                f"a number has at most {NUMBER_LENGTH_MAX} characters and an exponent of at most {EXPONENT_MAX}",
                token.position,
            )
        self._advance()
        return Fraction(token.text)

    def _as_float(self, number: Fraction, position: int) -> float:
        try:
            return float(number)
        except OverflowError:
            raise self._refusal("the number is too large for a double", position) from None

    def _made(self, form: Form, given: dict[str, _Argument], position: int) -> Event:
        """Make an event, and say where the argument stands that it refuses."""
        arguments = {name: argument.value for name, argument in given.items()}
        try:
            return form.make(arguments, self._relation)
        except InvalidInput as error:
            place = given[error.name].position if error.name in given else position
            raise self._refusal(error.message, place) from error

    def _descend(self, position: int) -> None:
        self._depth += 1
        if self._depth > EVENT_DEPTH_MAX:
            raise self._refusal(f"events can be nested {EVENT_DEPTH_MAX} deep at most", position)

    def _took(self, text: str) -> bool:
        """Go on past the next token if it is `text`."""
        if self._token.text != text:
            return False
        self._advance()
        return True

    def _advance(self) -> None:
        self._token = self._token_from(self._token.position + len(self._token.text))

    def _token_from(self, position: int) -> _Token:
        found = _TOKEN.match(self._text, position)
        assert found is not None, "some group matches at every position"
        kind = str(found.lastgroup)
        text, start = found[kind], found.start(kind)
        if kind == "unknown":
            hint = "is written x, as in 10 x laplace(0.1)" if text in "*×" else "has no meaning in an event"
            raise self._refusal(f"{text!r} {hint}", start)
        return _Token(kind, text, start)

    def _unexpected(self, wanted: str) -> NotationError:
        return self._refusal(f"expected {wanted}", self._token.position)

    def _refusal(self, sentence: str, position: int) -> NotationError:
        rest = self._text[position : position + EXCERPT_LENGTH + 1]
        excerpt = f"{rest[:EXCERPT_LENGTH]}…" if len(rest) > EXCERPT_LENGTH else rest
        place = f"at {excerpt!r}" if excerpt else "at the end"
        return NotationError(f"column {position + 1}, {place}: {sentence}", text=self._text, position=position)


def _nearest(name: str) -> str:
    names = [form.name for form in all_forms()]
    near = get_close_matches(name.lower().replace("-", "_"), names, 1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"


__all__ = ["TEXT_LENGTH_MAX", "parse", "signatures", "write"]


def parse(text: str, *, relation: Relation | None = None, hole: float | None = None) -> Event:
    """Read a plan, all of whose events stand under `relation`, or each kind under its usual one.

    A `?` stands for a number that is sought and is taken to be `hole`; without a hole it is refused, and so is a text
    that has no `?` when there is one.
    """
    if len(text) > TEXT_LENGTH_MAX:
        raise TooLarge(f"an event takes at most {TEXT_LENGTH_MAX:,} characters, not {len(text):,}", name="event")
    return Parser(text, relation, hole).read()


def write(event: Event) -> str:
    """Return the notation of an event, without its relation."""
    match event:
        case Composed(events=several) if len(several) > 1:
            return " + ".join(map(_operand, several))
        case Repeated(event=inner, count=count):
            return f"{count} x {_operand(inner)}"
        case _:
            return f"{form_of(type(event)).name}({', '.join(_arguments(event))})"


def signatures() -> list[tuple[str, str]]:
    """Return how each kind of event is written, with its parameters and their defaults, and what it means."""
    return [(form.signature, form.meaning) for form in all_forms()]


def _operand(event: Event) -> str:
    written = write(event)
    return f"({written})" if isinstance(event, Composed) and len(event.events) > 1 else written


def _arguments(event: Event) -> Iterator[str]:
    """Yield what an event was made with: what has no default by its place, the rest by name where it differs."""
    for parameter in form_of(type(event)).parameters:
        value = getattr(event, parameter.name)
        if parameter.is_list:
            yield from map(write, value)
        elif parameter.is_required:
            yield write(value) if isinstance(value, Event) else plain_text(value)
        elif value != parameter.default:
            yield f"{parameter.name}={plain_text(value)}"
