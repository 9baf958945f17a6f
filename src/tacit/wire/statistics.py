"""The names of the statistics that can be requested over REST."""

import inspect
from typing import Final

from tacit import stats

STATISTICS: Final = tuple(
    name
    for name in stats.__all__
    if inspect.isfunction(getattr(stats, name)) and name not in ("prepare", "preview", "workload")
)
"""All but `workload`, whose arguments are objects of the caller's process."""
