"""The secret number by which a unit's rows and groups are chosen where it has more than are counted.

It is made once for a folder, from the operating system's randomness, and readable by its owner alone. It is not noise:
answers would be private without it. It keeps the choice from depending on the order of the data, or on anything that
an analyst could arrange.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from tacit.curator.catalog_file import unavailable
from tacit.mechanisms.randomness import SYSTEM, bits
from tacit.privacy.errors import CatalogInvalid, LedgerReadOnly

FILE: Final = "salt"
BITS: Final = 62


def salt_of(folder: Path) -> int:
    """Return the salt of a folder, making it if there is none; of two processes at once, one makes it for both."""
    path = folder / FILE
    try:
        if not path.exists():
            _make(path)
        return _read(path)
    except PermissionError:
        raise LedgerReadOnly(
            f"{path} is for one account alone, which makes and reads it; ask as the account that owns {folder}"
        ) from None
    except OSError as error:
        raise unavailable(path, error) from None


def _make(path: Path) -> None:
    """Write a salt aside and link it into place, whole or not at all; a salt that is there already stays."""
    aside = path.with_name(f"{FILE}.{os.getpid()}.{bits(SYSTEM, 32)}")
    handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{bits(SYSTEM, BITS)}\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(aside, path)
    finally:
        aside.unlink()


def _read(path: Path) -> int:
    text = path.read_text(encoding="ascii", errors="replace").strip()
    if not text.isdigit() or int(text) >= 2**BITS:
        raise CatalogInvalid(f"{path} should hold one whole number and does not; restore it from a copy", name="salt")
    return int(text)
