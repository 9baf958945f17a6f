"""Libraries that come with an extra of the package, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tacit.privacy.errors import Unavailable


def import_extra(module: str, *, extra: str, purpose: str) -> Any:
    """Return a module of an optional library, or raise `Unavailable` with the command that installs it.

    `purpose` begins the sentence: "PostgreSQL" needs psycopg.
    """
    try:
        return import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        raise Unavailable(f"{purpose} needs {library}; run pip install 'tacit[{extra}]'") from None
