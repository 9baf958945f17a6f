"""Structured logs: one JSON object a line, made of names and numbers that the server itself chose.

Promise: no value of the data, no SQL, no token and no password is in a line. Messages are fixed words; what varies
stands in `facts`, which only this package writes: method, route, status, milliseconds, who asked, and codes of errors.
Milliseconds of answers are those after padding.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, TextIO

LOG: Final = logging.getLogger("tacit.server")


class Lines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; of what others wrote only who and where, for their text is not ours to vouch for."""
        ours = record.name.startswith("tacit.")
        facts: dict[str, Any] = getattr(record, "facts", {}) if ours else {"at": f"{record.module}:{record.lineno}"}
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.msg if ours else "message",
            **facts,
        }
        return json.dumps(line, ensure_ascii=False, default=str)


def configure(stream: TextIO | None = None, level: str = "INFO") -> None:
    """Write all logs of this process as lines."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    LOG.setLevel(level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        other = logging.getLogger(name)
        other.handlers.clear()
        other.propagate = True
        other.setLevel(logging.WARNING)


def note(event: str, **facts: Any) -> None:
    """Write a line."""
    LOG.info(event, extra={"facts": facts})
