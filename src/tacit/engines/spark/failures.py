"""What went wrong in Spark, as errors of tacit: found out from kinds and names of errors, and never quoted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tacit.privacy.errors import EngineFailed, NoAccess, NoConnection, SourceMissing

_GONE: Final = (
    "StatusCode.UNAVAILABLE",
    "RETRIES_EXCEEDED",
    "stopped SparkContext",
    "SparkContext was shut down",
    "SESSION_CLOSED",
    "SESSION_CHANGED",
    "SESSION_NOT_FOUND",
    "INVALID_HANDLE",
    "All masters are unresponsive",
    "JAVA_GATEWAY_EXITED",
    "CONNECT_URL_NOT_SET",
)
_GONE_CLASSES: Final = (
    "Py4JNetworkError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "EOFError",
)
_DENIED: Final = (
    "StatusCode.PERMISSION_DENIED",
    "StatusCode.UNAUTHENTICATED",
    "AccessControlException",
    "AccessDeniedException",
    "Permission denied",
    "INSUFFICIENT_PERMISSIONS",
    "AccessDenied",
)
_MISSING: Final = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "CATALOG_NOT_FOUND",
    "PATH_NOT_FOUND",
    "FAILED_READ_FILE",
    "CANNOT_READ_FILE_FOOTER",
    "UNABLE_TO_INFER_SCHEMA",
    "UNRESOLVED_COLUMN",
    "INCOMPATIBLE_COLUMN_CHANGES",
    "FileNotFoundException",
    "STREAM_FAILED_READ",
    "is not a Parquet file",
)


_GONE_SENTENCE: Final = "Spark cannot be reached, or the connection to it was lost; check that it runs"
_MISSING_SENTENCE: Final = "the rows of a table cannot be found or read by Spark any more; register the table anew"


def failed(error: BaseException, sentence: str, otherwise: type[EngineFailed] = EngineFailed) -> EngineFailed:
    """Return the error that an error of Spark stands for; `sentence` is for those of no special kind.

    Where `otherwise` is the special kind that is found, the sentence is for it as well.
    """
    told = list(_told(error))
    if any(name in told for name in _GONE_CLASSES) or _has(told, _GONE):
        return NoConnection(sentence if otherwise is NoConnection else _GONE_SENTENCE)
    if _has(told, _DENIED):
        return NoAccess("Spark may not read the rows of a table; check the rights of the account that it runs under")
    if _has(told, _MISSING):
        return SourceMissing(sentence if otherwise is SourceMissing else _MISSING_SENTENCE)
    return otherwise(sentence)


def _told(error: BaseException | None) -> Iterator[str]:
    """Yield what tells the kind of an error: names of classes, conditions and messages; for looking at only."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield from (one.__name__ for one in type(error).__mro__)
        yield _asked(error, "getCondition") or ""
        yield _asked(error, "__str__") or ""
        error = error.__cause__ or error.__context__


def _asked(error: Any, name: str) -> str | None:
    try:
        found = getattr(error, name)()
    except Exception:  # not every error has one, and some ask a Java that is gone
        return None
    return str(found) if found else None


def _has(told: list[str], words: tuple[str, ...]) -> bool:
    return any(word in one for one in told for word in words)
