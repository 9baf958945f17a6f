"""The state of a running total as bytes, and as a file that one process at a time may continue.

A state is a header, the noise of all steps, and one record for each step. Noise is drawn and stored before the first
step, so that a step that is added again gets the same noise, whatever happened in between. The header names the permit
that paid, and has a secret, so that a digest of the state reveals nothing of it (`pipeline.steps`). The file is created
atomically (written under another name, synced, linked), and grows by a record that is synced before the total is
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

from tacit.privacy.arrays import Whole
from tacit.privacy.errors import EngineFailed, InvalidInput, NameTaken
from tacit.storage.files import sync

MAGIC: Final = b"tacit running total 2\n"
RECORD: Final = struct.Struct("<q16sI")
_LENGTH: Final = struct.Struct("<Q")
_DIGEST: Final = 32


@dataclass(frozen=True)
class State:
    """A decoded state: the header, the noises, and for each step its value and what was measured."""

    header: Mapping[str, Any]
    noises: tuple[Whole, ...]
    steps: tuple[tuple[int, int], ...]
    size: int
    """The number of bytes up to the end of the last complete record."""


def encode_state(header: Mapping[str, Any], noises: Sequence[Whole]) -> bytes:
    """Return the bytes of a state before the first step."""
    text = json.dumps({**header, "noises": [len(one) for one in noises]}, sort_keys=True).encode()
    body = _LENGTH.pack(len(text)) + text + b"".join(one.astype("<i8").tobytes() for one in noises)
    return MAGIC + hashlib.sha256(body).digest() + body


def encode_step(step: int, value: int, measured: int) -> bytes:
    """Return the bytes of the record of a step."""
    wide = measured.to_bytes(16, "little", signed=True)
    return RECORD.pack(value, wide, zlib.crc32(struct.pack("<Qq16s", step, value, wide)))


def decode_state(data: bytes) -> State:
    """Return a state, without a last record that was cut off; raise InvalidInput for what is no state."""
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
            raise InvalidInput(f"another process has {path} open; stop it first", name="path", value=path) from None
        # A file that was not closed gives up its lock when it is collected, and can be opened again.
        self._closing = weakref.finalize(self, os.close, self._file)
        self._size = os.fstat(self._file).st_size

    @classmethod
    def create(cls, path: Path, state: bytes) -> StateFile:
        """Create the file of a new state atomically; raise InvalidInput if there is one already."""
        beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(state)
                file.flush()
                os.fsync(file.fileno())
            os.link(beside, path)
            sync(path.parent)
        except FileExistsError:
            raise already_exists(path) from None
        except OSError:
            raise EngineFailed(
                "the state of the running total could not be written; what was charged is spent"
            ) from None
        finally:
            with contextlib.suppress(OSError):
                os.unlink(beside)
        return cls(path)

    def load(self) -> State:
        """Return the state, and truncate the file after its last complete record."""
        with open(self.path, "rb") as file:
            state = decode_state(file.read())
        if state.size != self._size:
            os.ftruncate(self._file, state.size)
            os.fsync(self._file)
            self._size = state.size
        return state

    def require_own(self) -> None:
        """Raise InvalidInput unless this process holds the lock: two processes would release the same noise."""
        if os.getpid() != self._owner:
            raise InvalidInput("a forked process cannot continue a running total; open it there", name="path")
        if not self._closing.alive:
            raise InvalidInput("this running total was closed; continue it with RunningCount.open", name="path")

    def append(self, data: bytes) -> None:
        """Append a record and sync it, or leave the file as it was."""
        self.require_own()
        try:
            done = 0
            while done < len(data):
                done += os.pwrite(self._file, data[done:], self._size + done)
            os.fsync(self._file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise EngineFailed("the step could not be stored, so nothing was released; add it again") from None
        self._size += len(data)

    def drop_last(self) -> None:
        """Remove the last record, of a step that was never released."""
        self.require_own()
        self._size -= RECORD.size
        os.ftruncate(self._file, self._size)
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file and release its lock."""
        self._closing()


def already_exists(path: Path) -> NameTaken:
    """Return the error for a path at which there is a file already."""
    return NameTaken(f"{path} exists already; continue it with RunningCount.open", name="path", value=path)


def _damaged() -> InvalidInput:
    return InvalidInput("the state of the running total is damaged; nothing more can be released of it", name="state")
