"""A text notation of events: `1000 x sampled(0.01, gaussian(1)) + laplace(0.1)`.

    plan        = repeated { "+" repeated }              several events on the same data
    repeated    = { whole number "x" } event             the event that often, with fresh randomness
    event       = name "(" argument { "," argument } ")" | "(" plan ")"
    argument    = [ parameter "=" ] ( number | "?" | "true" | "false" | plan )
    number      = decimal [ "/" decimal ]                sampled(256/60000, …)

Names, parameters, their order and their defaults are read off the dataclasses in `events.KINDS`, with underscores, so a
new kind needs no parser. A number means the double that is nearest to it, as in Python; whole numbers are exact.

Promise: `parse(write(event), relation=event.relation) == event`. A text is an event, or is refused at a position;
length, depth and numbers have limits. The relation is not part of the text: it is given once for all of it, or every
kind has its default; mixed relations are refused.
The stored form of events is JSON, which has versions (`events.from_json`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from functools import cache
from typing import Any, Final, NamedTuple, get_type_hints

from tacit.privacy.errors import InvalidInput, NotationError, TooLarge
from tacit.privacy.events import EVENT_DEPTH_MAX, KINDS, Composed, Event, Repeated
from tacit.privacy.figures import exactly, nearby_decimal
from tacit.privacy.texts import did_you_mean
from tacit.privacy.units import Relation

__all__ = ["NOTATION_LENGTH_MAX", "parse", "signatures", "write"]

NOTATION_LENGTH_MAX: Final = 1_000_000
NUMBER_LENGTH_MAX: Final = 400
EXPONENT_MAX: Final = 400
EXCERPT_LENGTH: Final = 24
COSTS: Final = ("epsilon", "delta", "rho")
"""The parameters of events that cost more the larger they are."""
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
"""An event without events as arguments; it is parsed once for all its occurrences in a text."""

_TRUTHS: Final = {"true": True, "false": False}


def parse(text: str, *, relation: Relation | None = None, placeholder: float | None = None) -> Event:
    """Return the event of a text, under `relation`, or each kind under its default relation.

    A `?` stands for the number `placeholder`; without a placeholder it is refused, and with one it is required.
    """
    if len(text) > NOTATION_LENGTH_MAX:
        raise TooLarge(f"an event takes at most {NOTATION_LENGTH_MAX:,} characters, not {len(text):,}", name="event")
    return Parser(text, relation, placeholder).read()


def write(event: Event, *, short: bool = False) -> str:
    """Return the notation of an event, without its relation.

    With `short`, for people: an epsilon, delta or rho is the decimal just above it, if there is one
    (`figures.nearby_decimal`), so that the text reads back as an event of no smaller cost.
    """
    match event:
        case Composed(events=several) if len(several) > 1:
            return " + ".join(_operand(one, short) for one in several)
        case Repeated(event=inner, count=count):
            return f"{count} x {_operand(inner, short)}"
        case _:
            return f"{syntax_of(type(event)).name}({', '.join(_arguments(event, short))})"


def signatures() -> list[tuple[str, str]]:
    """Return the signature of each kind of event, with parameters and defaults, and its meaning."""
    return [(syntax.signature, syntax.meaning) for syntax in map(syntax_of, KINDS.values())]


def _operand(event: Event, short: bool) -> str:
    written = write(event, short=short)
    return f"({written})" if isinstance(event, Composed) and len(event.events) > 1 else written


def _arguments(event: Event, short: bool) -> Iterator[str]:
    """Yield the arguments of an event: required ones by position, others by name unless they have their default."""
    for parameter in syntax_of(type(event)).parameters:
        value = getattr(event, parameter.name)
        if short and parameter.name in COSTS:
            value = max(value, nearby_decimal(value))
        if parameter.is_list:
            yield from (write(one, short=short) for one in value)
        elif parameter.is_required:
            yield write(value, short=short) if isinstance(value, Event) else _literal(value)
        elif value != parameter.default:
            yield f"{parameter.name}={_literal(value)}"


class Parameter(NamedTuple):
    """One parameter of a kind of event; a required one has the default MISSING."""

    name: str
    type: Any
    default: Any

    @property
    def is_required(self) -> bool:
        """Whether the parameter has no default."""
        return self.default is MISSING

    @property
    def is_list(self) -> bool:
        """Whether the parameter takes all remaining events, as in a composition."""
        return bool(self.type == tuple[Event, ...])


@dataclass(frozen=True, slots=True)
class EventSyntax:
    """The name and the parameters of one kind of event."""

    kind: type[Event]
    parameters: tuple[Parameter, ...]
    relation_name: str | None
    """The parameter for the relation, which the notation leaves out; compound events have none."""

    @property
    def name(self) -> str:
        """The kind's name, with underscores."""
        return self.kind.kind.replace("-", "_")

    @property
    def signature(self) -> str:
        """The name with all parameters and their defaults."""
        return f"{self.name}({', '.join(map(_in_signature, self.parameters))})"

    @property
    def meaning(self) -> str:
        """The first line of the kind's docstring."""
        return (self.kind.__doc__ or "").partition("\n")[0]

    def make(self, arguments: dict[str, Any], relation: Relation | None) -> Event:
        """Return an event from its parameters by name, under the kind's default relation unless one is given."""
        stated = {self.relation_name: relation} if self.relation_name and relation else {}
        return self.kind(**arguments, **stated)


@cache
def syntax_of(kind: type[Event]) -> EventSyntax:
    """Return the syntax of a kind of event, read off its dataclass."""
    types = get_type_hints(kind)
    parameters = [Parameter(field.name, types[field.name], field.default) for field in fields(kind)]
    return EventSyntax(
        kind,
        tuple(parameter for parameter in parameters if parameter.type is not Relation),
        next((parameter.name for parameter in parameters if parameter.type is Relation), None),
    )


def _literal(value: float | bool) -> str:
    """Return a number or a boolean in the notation, with all its digits."""
    return exactly(value) if isinstance(value, float) else str(value).lower()


def _in_signature(parameter: Parameter) -> str:
    if parameter.is_list:
        return "event, …"
    return parameter.name if parameter.is_required else f"{parameter.name}={_literal(parameter.default)}"


class _Token(NamedTuple):
    kind: str
    text: str
    position: int


class _Argument(NamedTuple):
    value: Any
    position: int
    by_name: bool


class Parser:
    """A recursive-descent parser of one text; every error names the column where it stopped."""

    def __init__(self, text: str, relation: Relation | None, placeholder: float | None) -> None:
        self._text, self._relation, self._placeholder = text, relation, placeholder
        self._placeholder_used = False
        self._depth = 0
        self._parsed: dict[str, Event] = {}
        self._token = self._token_at(0)

    def read(self) -> Event:
        """Return the event of the whole text."""
        event = self._parse_plan()
        if self._token.kind != "end":
            raise self._expected("+ and another event, or the end")
        if self._placeholder is not None and not self._placeholder_used:
            raise self._error("there is no ?; write it in place of the number that is sought", self._token.position)
        return event

    def _parse_plan(self) -> Event:
        start = self._token.position
        several = [self._parse_repeated()]
        while self._accept("+"):
            several.append(self._parse_repeated())
        if len(several) == 1:
            return several[0]
        return self._make_event(syntax_of(Composed), {"events": _Argument(several, start, by_name=False)}, start)

    def _parse_repeated(self) -> Event:
        start = self._token.position
        if self._token.text == "?":
            raise self._error(f"{ANY_NUMBER}, and a count is a whole number", start)
        if self._token.kind != "number":
            return self._parse_event()
        count = _Argument(self._parse_number(), start, by_name=False)
        if not self._accept("x"):
            raise self._expected("x and an event after a number, as in 10 x laplace(0.1)")
        self._enter(start)
        inner = _Argument(self._parse_repeated(), start, by_name=False)
        self._depth -= 1
        return self._make_event(syntax_of(Repeated), {"event": inner, "count": count}, start)

    def _parse_event(self) -> Event:
        start = self._token.position
        self._enter(start)
        flat = _FLAT.match(self._text, start)
        event = self._parsed.get(flat[0]) if flat else None
        if event is not None and flat:
            self._token = self._token_at(flat.end())
        else:
            event = self._parse_plan() if self._accept("(") else self._parse_call()
            if flat:
                self._parsed[flat[0]] = event
            if not self._accept(")"):
                raise self._expected("+ or )")
        self._depth -= 1
        return event

    def _parse_call(self) -> Event:
        """Parse a name and its arguments, up to the closing parenthesis."""
        name = self._token
        if name.kind != "name":
            raise self._expected("an event such as gaussian(1)")
        kind = KINDS.get(name.text.replace("_", "-")) if "-" not in name.text else None
        if kind is None:
            names = [syntax_of(one).name for one in KINDS.values()]
            hint = did_you_mean(name.text.replace("-", "_"), names, f"there are {', '.join(names)}")
            raise self._error(f"no event is called {name.text}; {hint}", name.position)
        syntax = syntax_of(kind)
        self._advance()
        if not self._accept("("):
            raise self._expected(f"( and the parameters of {syntax.signature}")
        given: dict[str, _Argument] = {}
        while self._token.text != ")":
            if given and not self._accept(","):
                raise self._expected("a comma or )")
            self._parse_argument(syntax, given)
        for parameter in syntax.parameters:
            if parameter.is_required and parameter.name not in given:
                raise self._error(f"{parameter.name} is missing in {syntax.signature}", self._token.position)
        return self._make_event(syntax, given, name.position)

    def _parse_argument(self, syntax: EventSyntax, given: dict[str, _Argument]) -> None:
        start = self._token
        by_name = start.kind == "name" and self._token_at(start.position + len(start.text)).text == "="
        parameter = self._read_parameter_name(syntax, given) if by_name else self._next_positional(syntax, given)
        value = self._parse_value(syntax, parameter)
        if not parameter.is_list:
            given[parameter.name] = _Argument(value, start.position, by_name)
        else:
            given.setdefault(parameter.name, _Argument([], start.position, by_name)).value.append(value)

    def _read_parameter_name(self, syntax: EventSyntax, given: dict[str, _Argument]) -> Parameter:
        """Parse a parameter's name and the = after it."""
        name = self._token
        self._advance()
        self._advance()
        for parameter in syntax.parameters:
            if parameter.name == name.text and not parameter.is_list:
                if name.text in given:
                    raise self._error(f"duplicate parameter {name.text} in {syntax.signature}", name.position)
                return parameter
        raise self._error(f"{name.text} is not a parameter of {syntax.signature}", name.position)

    def _next_positional(self, syntax: EventSyntax, given: dict[str, _Argument]) -> Parameter:
        """Return the parameter of the next positional argument."""
        if any(argument.by_name for argument in given.values()):
            raise self._error("positional argument follows a named one", self._token.position)
        for parameter in syntax.parameters:
            if parameter.is_list or parameter.name not in given:
                return parameter
        raise self._error(f"too many arguments for {syntax.signature}", self._token.position)

    def _parse_value(self, syntax: EventSyntax, parameter: Parameter) -> Any:
        start = self._token
        if parameter.type is Event or parameter.is_list:
            return self._parse_plan()
        if parameter.type is bool:
            if start.text not in _TRUTHS:
                raise self._expected(f"true or false for {parameter.name} of {syntax.signature}")
            self._advance()
            return _TRUTHS[start.text]
        if self._accept("?"):
            return self._placeholder_value(parameter, start.position)
        if start.kind != "number":
            raise self._expected(f"a number for {parameter.name} of {syntax.signature}")
        number = self._parse_number()
        return self._as_float(number, start.position) if parameter.type is float else number

    def _placeholder_value(self, parameter: Parameter, position: int) -> float:
        if parameter.type is not float:
            raise self._error(f"{ANY_NUMBER}, and {parameter.name} is a whole number", position)
        if self._placeholder is None:
            raise self._error("? is for calibration only; write a number", position)
        self._placeholder_used = True
        return self._placeholder

    def _parse_number(self) -> Fraction:
        """Parse a decimal number, or one divided by another."""
        number = self._parse_decimal()
        if not self._accept("/"):
            return number
        if self._token.kind != "number":
            raise self._expected("a number after /")
        position, divisor = self._token.position, self._parse_decimal()
        if divisor == 0:
            raise self._error("division by 0", position)
        return number / divisor

    def _parse_decimal(self) -> Fraction:
        token = self._token
        if len(token.text) < 16 and token.text.isdecimal():
            self._advance()
            return Fraction(int(token.text))
        exponent = re.split("[eE]", token.text)[1:]
        too_far = exponent and (len(exponent[0]) > 9 or abs(int(exponent[0])) > EXPONENT_MAX)
        if too_far or len(token.text) > NUMBER_LENGTH_MAX:
            raise self._error(
                f"a number has at most {NUMBER_LENGTH_MAX} characters and an exponent of at most {EXPONENT_MAX}",
                token.position,
            )
        self._advance()
        return Fraction(token.text)

    def _as_float(self, number: Fraction, position: int) -> float:
        try:
            return float(number)
        except OverflowError:
            raise self._error("the number is too large for a double", position) from None

    def _make_event(self, syntax: EventSyntax, given: dict[str, _Argument], position: int) -> Event:
        """Return an event, or raise an error at the position of the argument that it refuses."""
        arguments = {name: argument.value for name, argument in given.items()}
        try:
            return syntax.make(arguments, self._relation)
        except InvalidInput as error:
            place = given[error.name].position if error.name in given else position
            raise self._error(error.message, place) from error

    def _enter(self, position: int) -> None:
        self._depth += 1
        if self._depth > EVENT_DEPTH_MAX:
            raise self._error(f"events can be nested {EVENT_DEPTH_MAX} deep at most", position)

    def _accept(self, text: str) -> bool:
        """Return whether the next token is `text`, and move past it if so."""
        if self._token.text != text:
            return False
        self._advance()
        return True

    def _advance(self) -> None:
        self._token = self._token_at(self._token.position + len(self._token.text))

    def _token_at(self, position: int) -> _Token:
        found = _TOKEN.match(self._text, position)
        assert found is not None, "some group matches at every position"
        kind = str(found.lastgroup)
        text, start = found[kind], found.start(kind)
        if kind == "unknown":
            hint = "is written x, as in 10 x laplace(0.1)" if text in "*×" else "has no meaning in an event"
            raise self._error(f"{text!r} {hint}", start)
        return _Token(kind, text, start)

    def _expected(self, wanted: str) -> NotationError:
        return self._error(f"expected {wanted}", self._token.position)

    def _error(self, sentence: str, position: int) -> NotationError:
        rest = self._text[position : position + EXCERPT_LENGTH + 1]
        excerpt = f"{rest[:EXCERPT_LENGTH]}…" if len(rest) > EXCERPT_LENGTH else rest
        place = f"at {excerpt!r}" if excerpt else "at the end"
        return NotationError(f"column {position + 1}, {place}: {sentence}", text=self._text, position=position)
