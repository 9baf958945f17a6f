"""The state of a running total as bytes, and as a file that one process at a time goes on with.

A state is a header, all noise that will ever be used, and one record a step. Noise is drawn and stored before the first
step, so that a step that is told again gets the very same noise, whatever happened in between. The header names the
permit that paid, and has a secret, so that a digest of the state tells nothing of it (`pipeline.steps`). The file is
made in one piece (written beside its place, synced, linked), and grows by a record that is synced before the total is
released. A record that was cut off by a crash was never released; it is dropped when the file is read.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import struct
import weakref
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.errors import EngineFailed, InvalidInput

MAGIC: Final = b"tacit running total 2\n"
RECORD: Final = struct.Struct("<q16sI")
_LENGTH: Final = struct.Struct("<Q")
_DIGEST: Final = 32

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class State:
    """What is read back: the header, the noises, and the steps with what was measured of them."""

    header: Mapping[str, Any]
    noises: tuple[Whole, ...]
    steps: tuple[tuple[int, int], ...]
    size: int
    """How many bytes are whole."""


def written(header: Mapping[str, Any], noises: Sequence[Whole]) -> bytes:
    """Return the state before the first step."""
    text = json.dumps({**header, "noises": [len(one) for one in noises]}, sort_keys=True).encode()
    body = _LENGTH.pack(len(text)) + text + b"".join(one.astype("<i8").tobytes() for one in noises)
    return MAGIC + hashlib.sha256(body).digest() + body


def record(step: int, value: int, measured: int) -> bytes:
    """Return the record of a step."""
    wide = measured.to_bytes(16, "little", signed=True)
    return RECORD.pack(value, wide, zlib.crc32(struct.pack("<Qq16s", step, value, wide)))


def read(data: bytes) -> State:
    """Read a state, or refuse what is none; a last record that was cut off is left out."""
    start = len(MAGIC) + _DIGEST
    if not data.startswith(MAGIC) or len(data) < start + _LENGTH.size:
        raise InvalidInput("this is not the state of a running total", name="state")
    (length,) = _LENGTH.unpack_from(data, start)
    try:
        header = json.loads(data[start + _LENGTH.size : start + _LENGTH.size + length])
        sizes = [int(size) for size in header["noises"]]
    except (ValueError, KeyError, TypeError):
        raise _damaged() from None
    at = start + _LENGTH.size + length
    end = at + 8 * sum(sizes)
    if hashlib.sha256(data[start:end]).digest() != data[len(MAGIC) : start]:
        raise _damaged()
    noises = []
    for size in sizes:
        noises.append(np.frombuffer(data, dtype="<i8", count=size, offset=at).astype(np.int64))
        at += 8 * size
    steps: list[tuple[int, int]] = []
    while at + RECORD.size <= len(data):
        value, wide, check = RECORD.unpack_from(data, at)
        if zlib.crc32(struct.pack("<Qq16s", len(steps), value, wide)) != check:
            if at + 2 * RECORD.size <= len(data):
                raise _damaged()
            break
        steps.append((value, int.from_bytes(wide, "little", signed=True)))
        at += RECORD.size
    return State(header, tuple(noises), tuple(steps), at)


class StateFile:
    """A file with a state, locked for as long as it is open."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._owner = os.getpid()
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            raise InvalidInput(f"there is no state of a running total at {path}", name="path", value=path) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise InvalidInput(f"another process goes on with {path}; stop it first", name="path", value=path) from None
        # One that was forgotten gives its lock back when it is collected, and can be opened again.
        self._closing = weakref.finalize(self, os.close, self._file)
        self._size = os.fstat(self._file).st_size

    @classmethod
    def create(cls, path: Path, state: bytes) -> StateFile:
        """Put a new state into its place in one piece; never over another one."""
        beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(state)
                file.flush()
                os.fsync(file.fileno())
            os.link(beside, path)
            _synced(path.parent)
        except FileExistsError:
            raise taken(path) from None
        except OSError:
            raise EngineFailed(
                "the state of the running total could not be written; what was charged is spent"
            ) from None
        finally:
            with contextlib.suppress(OSError):
                os.unlink(beside)
        return cls(path)

    def load(self) -> State:
        """Read the state, and cut off what a crash left behind the last whole record."""
        with open(self.path, "rb") as file:
            state = read(file.read())
        if state.size != self._size:
            os.ftruncate(self._file, state.size)
            os.fsync(self._file)
            self._size = state.size
        return state

    def require_own(self) -> None:
        """Raise InvalidInput unless this process holds the lock: of two that go on, the noise would cancel out."""
        if os.getpid() != self._owner:
            raise InvalidInput("a forked process cannot go on with a running total; open it there", name="path")
        if not self._closing.alive:
            raise InvalidInput("this running total was closed; go on with it by RunningCount.open", name="path")

    def append(self, data: bytes) -> None:
        """Store a record for good, or nothing of it."""
        self.require_own()
        try:
            done = 0
            while done < len(data):
                done += os.pwrite(self._file, data[done:], self._size + done)
            os.fsync(self._file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise EngineFailed("the step could not be stored, so nothing was released; tell it again") from None
        self._size += len(data)

    def drop_last(self) -> None:
        """Take back the record that was stored last, of a step that was never released."""
        self.require_own()
        self._size -= RECORD.size
        os.ftruncate(self._file, self._size)
        os.fsync(self._file)

    def close(self) -> None:
        """Give the lock back."""
        self._closing()


def taken(path: Path) -> InvalidInput:
    """A refusal: there is a file already."""
    return InvalidInput(f"{path} exists already; go on with it by RunningCount.open", name="path", value=path)


def _damaged() -> InvalidInput:
    return InvalidInput("the state of the running total is damaged; nothing more can be released of it", name="state")


def _synced(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
