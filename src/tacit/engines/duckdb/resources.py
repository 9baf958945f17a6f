"""How much memory and disk a connection may take: less than the machine or its container has.

DuckDB itself allows each database four fifths of the memory and nine tenths of the free disk. An engine has two, one
that stores rows and one that answers questions, which together would be killed with the whole process.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Final

MEMORY_SHARE: Final = Fraction(2, 5)
"""Of memory; the two databases of an engine leave a fifth to everything else."""
SPILL_SHARE: Final = Fraction(1, 4)
"""Of the disk that is free when a connection is made."""
SPILL_MAX_BYTES: Final = 200 << 30
CGROUP_FILES: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_UNLIMITED_BYTES: Final = 1 << 60
_UNKNOWN_BYTES: Final = 4 << 30


def memory_limit() -> str:
    """Return the memory that a connection may take, as DuckDB reads it."""
    return _text(memory_bytes() * MEMORY_SHARE)


def spill_limit(folder: str) -> str:
    """Return the disk that rows may take that do not fit into memory, in a folder that need not be there yet."""
    there = next((one for one in (Path(folder), *Path(folder).parents) if one.exists()), Path("/"))
    free = Fraction(_UNKNOWN_BYTES)
    with suppress(OSError):
        free = shutil.disk_usage(there).free * SPILL_SHARE
    return _text(min(free, Fraction(SPILL_MAX_BYTES)))


def memory_bytes() -> int:
    """Return the memory of the machine, or of the container that this process runs in."""
    found = []
    with suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in CGROUP_FILES:
        with suppress(OSError, ValueError):
            found.append(int(Path(path).read_text()))
    return min((one for one in found if 0 < one < _UNLIMITED_BYTES), default=_UNKNOWN_BYTES)


def _text(size: Fraction) -> str:
    return f"{max(int(size) >> 10, 1)}KiB"
