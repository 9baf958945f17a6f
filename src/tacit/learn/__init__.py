"""Private machine learning: DP-SGD for PyTorch, PATE, and estimators with the contract of scikit-learn.

PyTorch and scikit-learn come with the extra `learn` (`pip install "tacit[learn]"`); they are imported when a name that
needs them is first used.
"""

from typing import TYPE_CHECKING, Any, Final

from tacit.privacy.extras import import_extra

if TYPE_CHECKING:
    from tacit.learn.dpsgd.private_training import PrivateTraining
    from tacit.learn.dpsgd.schedule import AdaptiveClip
    from tacit.learn.dpsgd.training import make_private, resume

__all__ = ["AdaptiveClip", "PrivateTraining", "make_private", "resume"]

_HOMES: Final = {
    "AdaptiveClip": "tacit.learn.dpsgd.schedule",
    "PrivateTraining": "tacit.learn.dpsgd.private_training",
    "make_private": "tacit.learn.dpsgd.training",
    "resume": "tacit.learn.dpsgd.training",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tacit.learn' has no attribute {name!r}")
    import_extra("torch", extra="learn", purpose="private training")
    return getattr(import_extra(_HOMES[name], extra="learn", purpose="private training"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
