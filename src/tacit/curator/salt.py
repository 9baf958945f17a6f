"""The secret salt of a folder, which selects the rows and groups of a unit that has more than are counted.

It is created once from the operating system's randomness and readable by its owner only. It is not noise: answers are
private without it. It makes the selection independent of the order of the rows and of anything an analyst can arrange.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from tacit.curator.locked_file import storage_error
from tacit.mechanisms.randomness import SYSTEM, bits
from tacit.privacy.errors import CatalogInvalid, StorageReadOnly

FILE: Final = "salt"
BITS: Final = 62


def salt_of(folder: Path) -> int:
    """Return the salt of a folder, created if it is missing; concurrent processes get the same one."""
    path = folder / FILE
    try:
        if not path.exists():
            _create(path)
        return _read(path)
    except PermissionError:
        raise StorageReadOnly(f"{path} can be read by one user only; run as the user that owns {folder}") from None
    except OSError as error:
        raise storage_error(path, error) from None


def _create(path: Path) -> None:
    """Create the file atomically; an existing one stays."""
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
        raise CatalogInvalid(f"{path} does not hold a whole number; restore it from a backup", name="salt")
    return int(text)
