"""Which training has the hooks of a model: the newest, and none once it is collected.

Hooks note inputs of passes until the next step, so a training that is left behind would hold private rows.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Final

from torch import nn

from tacit.learn.dpsgd.clipping import PerSampleClipper

_NEWEST: Final[weakref.WeakKeyDictionary[nn.Module, weakref.ref[PerSampleClipper]]] = weakref.WeakKeyDictionary()


def take_model(clipper: PerSampleClipper, again: Callable[[], PerSampleClipper]) -> PerSampleClipper:
    """Remove the hooks of the last training of a clipper's model; return the clipper, made again if there was one."""
    found = _NEWEST.get(clipper.model)
    before = None if found is None else found()
    if before is not None:
        clipper.close()
        before.close()
        clipper = again()
    _NEWEST[clipper.model] = weakref.ref(clipper)
    return clipper


def close_with(owner: object, clipper: PerSampleClipper) -> None:
    """Remove the hooks when their training is collected."""
    weakref.finalize(owner, clipper.close).atexit = False
