"""Types of arrays, for annotations; it loads numpy, so it is apart from `numbers`, which checks single numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]
"""Real numbers."""
Whole: TypeAlias = NDArray[np.int64]
"""Whole numbers of 64 bits."""
