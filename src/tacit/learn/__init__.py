"""Private machine learning: PATE. Names load when they are first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tacit.learn.pate.aggregators import ConfidentGNMax, GNMax, InteractiveGNMax, LNMax
    from tacit.learn.pate.report import SanitisedReport
    from tacit.learn.pate.student import PATE, PrivatePrediction

_HOMES: Final = {
    "PATE": "tacit.learn.pate.student",
    "PrivatePrediction": "tacit.learn.pate.student",
    "LNMax": "tacit.learn.pate.aggregators",
    "GNMax": "tacit.learn.pate.aggregators",
    "ConfidentGNMax": "tacit.learn.pate.aggregators",
    "InteractiveGNMax": "tacit.learn.pate.aggregators",
    "SanitisedReport": "tacit.learn.pate.report",
}

__all__ = ["PATE", "ConfidentGNMax", "GNMax", "InteractiveGNMax", "LNMax", "PrivatePrediction", "SanitisedReport"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tacit.learn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
