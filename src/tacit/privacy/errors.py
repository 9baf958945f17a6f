"""The tree of errors.

TacitError                      exit code 4
├── InvalidInput        T100    the caller's value cannot be used (exit code 2)
│   ├── NotPositive     T101    a parameter that must be above zero is not
│   ├── NotFinite       T102    NaN or infinity where a number is needed
│   ├── OutOfRange      T103    a number is outside its allowed range
│   ├── WrongType       T104    neither a number nor an array of numbers, or of the wrong shape
│   ├── EmptyInput      T105    nothing to choose from or to compute on
│   ├── TooLarge        T106    the value does not fit on the public grid, or passes a stated limit
│   ├── UnknownEvent    T110    an event's kind or version is not known to this version of tacit
│   ├── MixedRelations  T111    events under different neighbouring relations in one composition
│   ├── NotationError   T112    an event's notation has a syntax error at a stated position
│   ├── UnknownName     T120    the ledger has no entry of this name
│   ├── NameTaken       T121    the name is taken
│   ├── KeyReused       T122    an idempotency key was used for another request
│   ├── AlreadySettled  T123    a permit or a request was settled before
│   ├── NotSQL          T130    the text is not one SELECT statement, or too large to be read
│   ├── NotInCatalog    T131    the catalog has no such table or column, or several
│   ├── WrongKind       T132    a function is not defined for values of this kind
│   ├── CatalogInvalid  T133    the catalog's file cannot be used as it stands
│   └── CatalogChanged  T134    a table was registered again or removed since the query was planned
├── QueryRefused        T200    the query cannot be answered privately (exit code 3)
│   ├── Exhausted       T201    an interactive mechanism has no charged answers left
│   ├── NotAllowed      T202    a part of SQL for which no private meaning is defined
│   ├── ShowsUnits      T203    the answer would be about single units
│   ├── NotBounded      T204    no public bound limits how far one unit can move the answer
│   ├── MixesUnits      T205    a row of a subquery, join or window would depend on several units
│   ├── NeedsDelta      T206    keys that are not public need a delta, and the budget has none
│   ├── TooWide         T207    the query is too large: groups, joined rows, text lengths or steps exceed a limit
│   ├── TooCheap        T208    the release costs less than the smallest epsilon that the budget admits
│   └── Suspended       T209    too many runs failed on this data set; the owner has to allow further ones
├── BudgetExceeded      T300    the cost exceeds the remaining budget (exit code 3)
│   └── NotPriced       T301    the budget's filter has no bound on the cost of the event
├── NotPermitted        T400    this actor may not do this to this resource (exit code 3)
│   ├── NotKnown        T401    the token, password or cookie is not valid
│   ├── Throttled       T402    too many logins failed; further attempts are accepted later
│   ├── Forged          T403    a browser's request does not prove that a page of the server itself made it
│   └── UnsafeBind      T404    the server would accept remote connections without TLS, which must be confirmed twice
├── StorageFailed       T520    a database of tacit's own cannot be used: the ledger's, or the server's (exit code 4)
│   ├── StorageCorrupt  T521    the database is damaged, or the file is not one
│   │   └── LedgerCorrupt T500  the journal does not verify; nothing is admitted
│   │       ├── NotALedger T501 the file is not a ledger, or too damaged to be read
│   │       └── LedgerRolledBack T502 the ledger is missing, or ends before the head that was noted beside it
│   └── StorageUnavailable T522 the database cannot be read or written now; nothing recorded is lost
│       ├── StorageFull     T523    no disk space is left for the database
│       ├── StorageReadOnly T524    the database is in a location that cannot be written
│       ├── StorageBusy     T525    others held the write lock for longer than the time limit
│       ├── StorageTooNew   T526    the database was written by a newer tacit
│       └── LedgerUnavailable T510  the ledger cannot be read or written now; nothing recorded is lost
│           ├── LedgerFull      T511    no disk space is left for the ledger; also a StorageFull
│           ├── LedgerReadOnly  T512    the ledger is in a location that cannot be written; also a StorageReadOnly
│           ├── LedgerBusy      T513    others held the write lock for too long; also a StorageBusy
│           ├── LedgerTooNew    T514    the ledger was written by a newer tacit; also a StorageTooNew
│           └── LedgerMoved     T515    the ledger was moved to another location; this copy is read-only
├── Unavailable         T600    an optional library that the request needs is not installed (exit code 4)
├── EngineFailed        T610    the engine failed to run the query; what was charged stays charged (exit code 4)
│   ├── TimedOut        T611    the query exceeded its time limit
│   ├── Cancelled       T612    the query was cancelled while it ran
│   ├── SourceMissing   T613    the rows of a table cannot be found or read
│   ├── NoConnection    T614    a database cannot be reached, or the connection was lost
│   └── NoAccess        T615    the database role may not read a table, or cannot log in
├── ServerLimit         T700    a limit of the server is reached (exit code 4)
│   ├── BodyTooLarge    T701    the body of a request is larger than the limit
│   ├── TooManyAtOnce   T702    this person has reached the limit of running queries
│   ├── QueueFull       T703    too many queries are waiting at the server
│   ├── SlowRequest     T704    a request took longer to arrive than the limit
│   ├── AnswersFull     T713    the space for stored answers is used up, for one person or in total
│   ├── HeadersTooLarge T714    the target and headers of a request are larger, or more, than the limit
│   └── WrongHost       T715    a request names a host that is not the server's
└── ServerUnreachable   T710    no server answers at an address (exit code 4)
    ├── NotATacitServer T711    what answers at the address is not a tacit server
    └── ServerFailed    T712    the server failed with an internal error

Codes are stable: a retired code stays reserved and is never given to another error. Every error says in one
sentence what would make the request work, and carries the objects it is about as attributes.
"""

from __future__ import annotations

from typing import Final

from tacit.privacy.error_base import CostLike, at_place
from tacit.privacy.error_base import InvalidInput as InvalidInput
from tacit.privacy.error_base import Place as Place
from tacit.privacy.error_base import TacitError as TacitError
from tacit.privacy.storage_errors import LedgerBusy as LedgerBusy
from tacit.privacy.storage_errors import LedgerCorrupt as LedgerCorrupt
from tacit.privacy.storage_errors import LedgerFull as LedgerFull
from tacit.privacy.storage_errors import LedgerMoved as LedgerMoved
from tacit.privacy.storage_errors import LedgerReadOnly as LedgerReadOnly
from tacit.privacy.storage_errors import LedgerRolledBack as LedgerRolledBack
from tacit.privacy.storage_errors import LedgerTooNew as LedgerTooNew
from tacit.privacy.storage_errors import LedgerUnavailable as LedgerUnavailable
from tacit.privacy.storage_errors import NotALedger as NotALedger
from tacit.privacy.storage_errors import StorageBusy as StorageBusy
from tacit.privacy.storage_errors import StorageCorrupt as StorageCorrupt
from tacit.privacy.storage_errors import StorageFailed as StorageFailed
from tacit.privacy.storage_errors import StorageFull as StorageFull
from tacit.privacy.storage_errors import StorageReadOnly as StorageReadOnly
from tacit.privacy.storage_errors import StorageTooNew as StorageTooNew
from tacit.privacy.storage_errors import StorageUnavailable as StorageUnavailable


class NotPositive(InvalidInput):
    """A parameter that must be above zero is not."""

    code = "T101"


class NotFinite(InvalidInput):
    """A number must be finite, and is NaN or infinity."""

    code = "T102"


class OutOfRange(InvalidInput):
    """A number is outside the range that the guarantee covers."""

    code = "T103"


class WrongType(InvalidInput):
    """The value is of a type or shape that cannot be used here."""

    code = "T104"


class EmptyInput(InvalidInput):
    """The input is empty: there is nothing to choose from or to compute on."""

    code = "T105"


class TooLarge(InvalidInput):
    """The value is beyond a stated limit, or too large for the public grid."""

    code = "T106"


class UnknownEvent(InvalidInput):
    """An event's kind or version is not known to this version of tacit; its cost is never guessed."""

    code = "T110"


class MixedRelations(InvalidInput):
    """Events under different neighbouring relations cannot be composed."""

    code = "T111"


class NotationError(InvalidInput):
    """An event's notation has a syntax error at `position`, counted from 0."""

    code = "T112"

    def __init__(self, message: str, *, text: str = "", position: int = 0) -> None:
        super().__init__(message, name="event", value=text)
        self.text: Final = text
        self.position: Final = position


class UnknownName(InvalidInput):
    """The ledger has no data set, analyst, epoch, permit or request of this name."""

    code = "T120"


class NameTaken(InvalidInput):
    """The name is taken."""

    code = "T121"


class KeyReused(InvalidInput):
    """The idempotency key was used for another request."""

    code = "T122"


class AlreadySettled(InvalidInput):
    """A permit or a request is already settled."""

    code = "T123"


class NotSQL(InvalidInput):
    """The text is not one SELECT statement, or too large to be read."""

    code = "T130"

    def __init__(self, message: str, *, place: Place | None = None) -> None:
        super().__init__(at_place(message, place), name="sql")
        self.place: Final = place


class NotInCatalog(InvalidInput):
    """The catalog has no such table or column, or the name is ambiguous."""

    code = "T131"


class WrongKind(InvalidInput):
    """A function is not defined for values of this kind."""

    code = "T132"

    def __init__(self, message: str, *, place: Place | None = None) -> None:
        super().__init__(at_place(message, place), name="sql")
        self.place: Final = place


class CatalogInvalid(InvalidInput):
    """The catalog's file cannot be used as it stands."""

    code = "T133"


class CatalogChanged(InvalidInput):
    """A table was registered again or removed since the query was planned."""

    code = "T134"


class QueryRefused(TacitError):
    """The query cannot be answered privately; `accepted` says what could be."""

    code = "T200"
    exit_code = 3

    def __init__(self, message: str, *, accepted: str = "", place: Place | None = None) -> None:
        super().__init__(at_place(f"{message}; {accepted}" if accepted else message, place))
        self.accepted: Final = accepted
        self.place: Final = place


class Exhausted(QueryRefused):
    """An interactive mechanism has no charged answers left."""

    code = "T201"


class NotAllowed(QueryRefused):
    """A part of SQL for which no private meaning is defined."""

    code = "T202"


class ShowsUnits(QueryRefused):
    """The answer would be about single units (people)."""

    code = "T203"


class NotBounded(QueryRefused):
    """No public bound limits how much one unit can change the answer."""

    code = "T204"


class MixesUnits(QueryRefused):
    """A row of a subquery, join or window would depend on several units."""

    code = "T205"


class NeedsDelta(QueryRefused):
    """Groups whose keys are not public need a budget with a delta above 0."""

    code = "T206"


class TooWide(QueryRefused):
    """The query is too large: its groups, joined rows, text lengths or steps could exceed a limit."""

    code = "T207"


class TooCheap(QueryRefused):
    """The release costs less than the smallest epsilon that the budget admits."""

    code = "T208"


class Suspended(QueryRefused):
    """Too many runs failed on this data set; the owner has to allow further ones."""

    code = "T209"


class BudgetExceeded(TacitError):
    """The cost of the query exceeds the remaining budget."""

    code = "T300"
    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        asked: CostLike | None = None,
        remaining: CostLike | None = None,
        fits: CostLike | None = None,
        scope: str = "",
    ) -> None:
        super().__init__(message)
        self.asked: Final = asked
        self.remaining: Final = remaining
        self.fits: Final = fits
        self.scope: Final = scope


class NotPriced(BudgetExceeded):
    """The budget's filter has no bound on the cost of this event."""

    code = "T301"


class NotPermitted(TacitError):
    """This actor may not do this to this resource."""

    code = "T400"
    exit_code = 3


class NotKnown(NotPermitted):
    """The token, password or cookie is not valid."""

    code = "T401"


class Throttled(NotPermitted):
    """Too many attempts to log in failed; `retry_after_s` says when to try again."""

    code = "T402"

    def __init__(self, message: str, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s: Final = retry_after_s


class Forged(NotPermitted):
    """A browser's request does not prove that a page of the server itself made it."""

    code = "T403"


class UnsafeBind(NotPermitted):
    """A server would be open to others without protection, which must be confirmed twice."""

    code = "T404"


class Unavailable(TacitError):
    """An optional library that the request needs is not installed."""

    code = "T600"


class EngineFailed(TacitError):
    """The engine failed to run the query; its own message may quote data and is never shown."""

    code = "T610"


class TimedOut(EngineFailed):
    """The query exceeded its time limit."""

    code = "T611"


class Cancelled(EngineFailed):
    """The query was cancelled while it ran."""

    code = "T612"


class SourceMissing(EngineFailed):
    """The rows of a table cannot be found or read."""

    code = "T613"


class NoConnection(EngineFailed):
    """A database cannot be reached, or the connection to it was lost; the message never holds a password."""

    code = "T614"


class NoAccess(EngineFailed):
    """The database role may not read a table, or cannot log in."""

    code = "T615"


class ServerLimit(TacitError):
    """A limit of the server is reached; `retry_after_s` says when to try again, if that would help."""

    code = "T700"

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s: Final = retry_after_s


class BodyTooLarge(ServerLimit):
    """The body of a request is larger than the limit."""

    code = "T701"


class TooManyAtOnce(ServerLimit):
    """This person has reached the limit of running queries."""

    code = "T702"


class QueueFull(ServerLimit):
    """Too many queries are waiting at the server."""

    code = "T703"


class SlowRequest(ServerLimit):
    """A request took longer to arrive than the limit."""

    code = "T704"


class AnswersFull(ServerLimit):
    """The space for stored answers is used up, for one person or in total; nothing was charged."""

    code = "T713"


class HeadersTooLarge(ServerLimit):
    """The target and headers of a request are larger than the limit, or more than the limit."""

    code = "T714"


class WrongHost(ServerLimit):
    """A request names a host that is not the server's, as in a DNS rebinding attack."""

    code = "T715"


class ServerUnreachable(TacitError):
    """No server answers at the address; ask again with the same key to learn whether a running query was charged."""

    code = "T710"


class NotATacitServer(ServerUnreachable):
    """The address does not belong to a tacit server."""

    code = "T711"


class ServerFailed(ServerUnreachable):
    """The server failed with an internal error."""

    code = "T712"
