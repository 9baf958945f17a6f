"""New files that only their owner can read, and that appear under their name only when they are complete."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tacit.privacy.errors import InvalidInput, NameTaken, StorageUnavailable


def touch_private(path: Path) -> None:
    """Create an empty file that only its owner can read; raise FileExistsError if it exists."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield an empty file that only its owner can read, and give it the name `path` when the block ends.

    An existing file is never replaced: its name is refused before anything is written, and again by the file system
    when the name is given.
    """
    if os.path.lexists(path):
        raise _taken(path)
    if not path.parent.is_dir():
        raise InvalidInput(
            f"there is no folder {path.parent}; create it, or name a file elsewhere", name="path", value=str(path)
        )
    aside = path.with_name(f".tacit-{secrets.token_hex(8)}")
    try:
        touch_private(aside)
        yield aside
        sync(aside)
        os.link(aside, path)
        sync(path.parent)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be written: {error.strerror}; no file was created") from None
    finally:
        aside.unlink(missing_ok=True)


def _taken(path: Path) -> NameTaken:
    return NameTaken(f"{path} exists and is not overwritten; name a new file", name="path", value=str(path))


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
