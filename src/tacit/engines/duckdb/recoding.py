"""CSV files that are not in UTF-8, as copies that are: DuckDB's own decoders refuse a whole file for one byte.

Promise: a byte changes nothing but the characters that it stands in. In Latin-1 every byte is a character; in UTF-16
what is none is U+FFFD. Copies lie in a folder that only its owner can read, and are removed when the rows have been
read (`clear`), or by the next process (`prepared.Store.sweep`).
"""

from __future__ import annotations

import codecs
import gzip
import os
import shutil
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from tacit.engines.names import digest
from tacit.privacy.errors import EngineFailed, SourceMissing

UTF8: Final = "utf-8"
_PIECE_BYTES: Final = 1 << 20
_NUMBERS: Final = count()


class Recoder:
    """The copies of one engine, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, str] = {}

    def readable(self, path: str, encoding: str) -> str:
        """Return where a file can be read in UTF-8: where it is, or in a copy of what it holds now."""
        if encoding == UTF8 or path.endswith(".zst"):  # packed in a way that Python may not know
            return path
        try:
            status = os.stat(path)
        except OSError:
            raise _unread(path) from None
        key = digest(path, encoding, status.st_size, status.st_mtime_ns, status.st_ino)
        if key not in self._made:
            self._made[key] = self._copied(path, encoding)
        return self._made[key]

    def clear(self) -> None:
        """Remove all copies."""
        self._made.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _copied(self, path: str, encoding: str) -> str:
        copy = self._folder / f"{next(_NUMBERS)}.csv"
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as written:
                for piece in _pieces(path):
                    written.write(decoder.decode(piece, not piece).encode(UTF8, "replace"))
        except OSError:
            raise EngineFailed(f"a copy of {path} cannot be written in {self._folder}; is the disk full?") from None
        return str(copy)


def _pieces(path: str) -> Iterator[bytes]:
    """Yield what a file holds, and nothing at its end."""
    try:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece
    except (OSError, EOFError, zlib.error):
        raise _unread(path) from None
    yield b""


def _unread(path: str) -> SourceMissing:
    return SourceMissing(f"{path} cannot be read; check its permissions, and that it is complete")
