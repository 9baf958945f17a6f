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
│   ├── MixedRelations  T111    events under different neighbouring relations in one composition
│   ├── NotationError   T112    an event's notation cannot be read, from a stated place on
│   ├── UnknownName     T120    the ledger knows nothing by this name
│   ├── NameTaken       T121    the name stands for something else already
│   ├── KeyReused       T122    an idempotency key stands for another request already
│   └── AlreadySettled  T123    a permit or a request was settled before, in another way
├── QueryRefused        T200    the question cannot be answered privately as asked (exit code 3)
│   └── Exhausted       T201    an interactive mechanism has given all the answers it paid for
├── BudgetExceeded      T300    it could be answered, but not within what is left (exit code 3)
│   └── NotPriced       T301    no account of the budget can price the event, whatever is left
├── NotPermitted        T400    this actor may not do this to this resource (exit code 3)
├── LedgerCorrupt       T500    the journal does not verify; nothing is admitted (exit code 4)
│   └── NotALedger      T501    the file is something else, or too damaged to be read
├── LedgerUnavailable   T510    the ledger cannot be read or written now; nothing recorded is lost (exit code 4)
│   ├── LedgerFull      T511    no space is left where the ledger lies
│   ├── LedgerReadOnly  T512    the place where the ledger lies cannot be written
│   ├── LedgerBusy      T513    others held the write lock for longer than the time limit
│   └── LedgerTooNew    T514    the ledger was written by a newer tacit
└── Unavailable         T600    a part that the request needs is not installed here (exit code 4)

Codes are stable: a retired code stays reserved and is never given to another error. Every error says in one
sentence what would make the request work, and carries what it is about as attributes.
"""

from __future__ import annotations

from typing import ClassVar, Final, Protocol


class Price(Protocol):
    """What an error about budgets shows; `tacit.accounting.bounds.Cost` is one."""

    @property
    def epsilon(self) -> float:
        """Pure epsilon, or epsilon at `delta`."""

    @property
    def delta(self) -> float:
        """The delta that goes with epsilon."""

    @property
    def rho(self) -> float:
        """Zero-concentrated privacy, infinity where none is known."""


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


class NotationError(InvalidInput):
    """An event's notation cannot be read; the position is where, counted from 0."""

    code = "T112"

    def __init__(self, message: str, *, text: str = "", position: int = 0) -> None:
        super().__init__(message, name="event", value=text)
        self.text: Final = text
        self.position: Final = position


class UnknownName(InvalidInput):
    """The ledger knows no data set, analyst, epoch, permit or request by this name."""

    code = "T120"


class NameTaken(InvalidInput):
    """The name stands for something else already."""

    code = "T121"


class KeyReused(InvalidInput):
    """An idempotency key stands for another request already."""

    code = "T122"


class AlreadySettled(InvalidInput):
    """A permit or a request was settled before, in another way."""

    code = "T123"


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

    def __init__(
        self,
        message: str,
        *,
        asked: Price | None = None,
        remaining: Price | None = None,
        fits: Price | None = None,
        scope: str = "",
    ) -> None:
        super().__init__(message)
        self.asked: Final = asked
        self.remaining: Final = remaining
        self.fits: Final = fits
        self.scope: Final = scope


class NotPriced(BudgetExceeded):
    """No account of the budget can price the event, whatever is left."""

    code = "T301"


class NotPermitted(TacitError):
    """This actor may not do this to this resource."""

    code = "T400"
    exit_code = 3


class LedgerCorrupt(TacitError):
    """The journal does not verify; nothing is admitted until it is settled."""

    code = "T500"

    def __init__(self, message: str, *, record: int | None = None, differs: str | None = None) -> None:
        super().__init__(message)
        self.record: Final = record
        self.differs: Final = differs


class NotALedger(LedgerCorrupt):
    """The file is something else, or too damaged to be read as a ledger."""

    code = "T501"


class LedgerUnavailable(TacitError):
    """The ledger cannot be read or written now; nothing that was recorded is lost."""

    code = "T510"


class LedgerFull(LedgerUnavailable):
    """No space is left where the ledger lies."""

    code = "T511"


class LedgerReadOnly(LedgerUnavailable):
    """The place where the ledger lies cannot be written."""

    code = "T512"


class LedgerBusy(LedgerUnavailable):
    """Others held the write lock for longer than the time limit."""

    code = "T513"


class LedgerTooNew(LedgerUnavailable):
    """The ledger was written by a newer tacit."""

    code = "T514"


class Unavailable(TacitError):
    """A part that the request needs is not installed here."""

    code = "T600"
