"""What can go wrong, as a tree.

TacitError                      exit code 4
├── InvalidInput        T100    the caller's value cannot be used (exit code 2)
│   ├── NotPositive     T101    a parameter that must be above zero is not
│   ├── NotFinite       T102    NaN or infinity where a number is needed
│   ├── OutOfRange      T103    a number outside the range that the promise covers
│   ├── WrongType       T104    neither a number nor an array of numbers, or of the wrong shape
│   ├── EmptyInput      T105    nothing to choose from or to compute on
│   ├── TooLarge        T106    the value does not fit on the public grid, or passes a stated limit
│   ├── UnknownEvent    T110    an event's kind or version is not known here
│   └── MixedRelations  T111    events under different neighbouring relations in one composition
├── QueryRefused        T200    the question cannot be answered privately as asked (exit code 3)
│   └── Exhausted       T201    an interactive mechanism has given all the answers it paid for
├── BudgetExceeded      T300    it could be answered, but not within what is left (exit code 3)
├── NotPermitted        T400    this actor may not do this to this resource (exit code 3)
├── LedgerCorrupt       T500    the journal does not verify; nothing is admitted (exit code 4)
└── Unavailable         T600    a part that the request needs is not installed here (exit code 4)

Codes are stable: a retired code stays reserved and is never given to another error. Every error says in one
sentence what would make the request work, and carries what it is about as attributes.
"""

from __future__ import annotations

from typing import ClassVar, Final


class TacitError(Exception):
    """The root of every error that tacit raises on purpose."""

    code: ClassVar[str] = "T000"
    exit_code: ClassVar[int] = 4

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message: Final = message


class InvalidInput(TacitError):
    """The caller's value cannot be used."""

    code = "T100"
    exit_code = 2

    def __init__(self, message: str, *, name: str | None = None, value: object = None) -> None:
        super().__init__(message)
        self.name: Final = name
        self.value: Final = value


class NotPositive(InvalidInput):
    """A parameter that must be above zero is not."""

    code = "T101"


class NotFinite(InvalidInput):
    """NaN or infinity stands where a number is needed."""

    code = "T102"


class OutOfRange(InvalidInput):
    """A number lies outside the range that the promise covers."""

    code = "T103"


class WrongType(InvalidInput):
    """The value is of a type or shape that cannot be used here."""

    code = "T104"


class EmptyInput(InvalidInput):
    """There is nothing to choose from, or nothing to compute on."""

    code = "T105"


class TooLarge(InvalidInput):
    """The value does not fit on the public grid, or passes a stated limit."""

    code = "T106"


class UnknownEvent(InvalidInput):
    """An event's kind or version is not known here, so its cost is not guessed."""

    code = "T110"


class MixedRelations(InvalidInput):
    """Events under different neighbouring relations cannot be composed."""

    code = "T111"


class QueryRefused(TacitError):
    """The question cannot be answered privately as asked."""

    code = "T200"
    exit_code = 3


class Exhausted(QueryRefused):
    """An interactive mechanism has given all the answers that it paid for."""

    code = "T201"


class BudgetExceeded(TacitError):
    """The question could be answered privately, but not within what is left."""

    code = "T300"
    exit_code = 3


class NotPermitted(TacitError):
    """This actor may not do this to this resource."""

    code = "T400"
    exit_code = 3


class LedgerCorrupt(TacitError):
    """The journal does not verify; nothing is admitted until it is settled."""

    code = "T500"


class Unavailable(TacitError):
    """A part that the request needs is not installed here."""

    code = "T600"
