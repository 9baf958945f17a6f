"""Small text files that are replaced atomically under a lock: the catalog, data versions, source history.

Promise: a change is written aside, synced and renamed over the file, with the file's permissions; a new file is
readable by its owner only. A process that dies before the rename leaves the old file. Changes of several processes are
serialized by a lock file, so none is lost, and an editor that saves in between is noticed. Errors of the file system
are raised as `StorageUnavailable` and its subclasses.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tacit.privacy.errors import (
    CatalogInvalid,
    StorageBusy,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
    TooLarge,
)
from tacit.storage.files import sync

FILE_BYTES_MAX: Final = 64 * 2**20
LOCK_TIMEOUT_S: Final = 10.0
LOCK_PAUSE_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The text of a file and the version by which a later change is noticed; a missing file is an empty text."""

    text: str
    version: tuple[int, int, int] | None


class LockedFile:
    """A small text file in a folder, with a lock file beside it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder: Final = folder
        self.path: Final = folder / name

    def version(self) -> tuple[int, int, int] | None:
        """Return modification time, size and inode of the file, or None if there is no file."""
        try:
            facts = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise storage_error(self.path, error) from None
        return facts.st_mtime_ns, facts.st_size, facts.st_ino

    def read(self) -> Snapshot:
        """Return the present text of the file."""
        version = self.version()  # first, so that a change during the read is noticed later
        if version is None:
            return Snapshot("", None)
        try:
            with self.path.open("rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise storage_error(self.path, error) from None
        if len(data) > FILE_BYTES_MAX:
            raise CatalogInvalid(f"{self.path} is larger than {FILE_BYTES_MAX:,} bytes")
        try:
            return Snapshot(data.decode("utf-8-sig"), version)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise CatalogInvalid(f"{self.path}, line {line}: save the file as UTF-8", value=line) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the exclusive lock for changes of the file during the block."""
        try:
            descriptor = os.open(self.folder / f".{self.path.stem}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise storage_error(self.folder, error) from None
        try:
            deadline_s = time.monotonic() + LOCK_TIMEOUT_S
            while not _lock(descriptor):
                if time.monotonic() >= deadline_s:
                    raise StorageBusy(
                        f"another program has held the lock of {self.path} for {LOCK_TIMEOUT_S:g} s; try again"
                    )
                time.sleep(LOCK_PAUSE_S)
            yield
        finally:
            os.close(descriptor)

    def replace(self, text: str, since: Snapshot) -> None:
        """Replace the file atomically, unless it was changed since it was read; for the holder of the lock."""
        data = text.encode()
        if len(data) > FILE_BYTES_MAX:
            raise TooLarge(f"{self.path.name} is limited to {FILE_BYTES_MAX:,} bytes", name="catalog")
        target = Path(os.path.realpath(self.path))
        aside = target.with_name(f".{self.path.name}.new")
        try:
            _write(aside, data, like=target)
            if self.version() != since.version:
                aside.unlink()
                raise StorageBusy(f"{self.path} was changed by another program just now; try again")
            os.replace(aside, target)
            sync(target.parent)
        except OSError as error:
            raise storage_error(self.path, error) from None


def make_private_folder(folder: Path) -> None:
    """Create a folder that only its owner can open; an existing one is unchanged."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def open_folder_warning(folder: Path) -> str:
    """Return a warning, with the command to run, if others can open a folder; otherwise an empty text."""
    try:
        mode = folder.stat().st_mode & 0o777
    except OSError:
        return ""
    if not mode & 0o077:
        return ""
    return (
        f"others on this machine can open the folder {folder} (mode {mode:o}), which holds rows, answers and the "
        f"ledger; unless that is intended, run: chmod 700 {shlex.quote(str(folder))}"
    )


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(aside: Path, data: bytes, *, like: Path) -> None:
    aside.unlink(missing_ok=True)  # left by a process that died; its mode may differ
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if like.exists():
            os.fchmod(file.fileno(), like.stat().st_mode & 0o7777)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def storage_error(path: Path, error: OSError) -> StorageUnavailable:
    """Return the storage error for an error of the file system on a file of the curator."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return StorageFull(f"the disk is full; {path} was not changed")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StorageReadOnly(f"{path} cannot be read or written by this user; change its permissions")
    return StorageUnavailable(f"{path} cannot be used: {error.strerror or error}")
