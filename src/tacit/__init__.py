"""tacit: answer SQL queries and statistics with differential privacy.

The words of the field stand here by name: `tacit.Bounds`, `tacit.Categories`, `tacit.Relation`, `tacit.Unit` and the
errors. The parts are modules:

    tacit.privacy       the vocabulary: units, relations, bounds, events, errors
    tacit.mechanisms    exact noise and private choices, each with its promise
    tacit.accounting    what events cost
    tacit.ledger        budgets, in memory (`tacit.Budget`) and durable
    tacit.engines       where the rows are and where heavy work runs
    tacit.query         private SQL
    tacit.stats         statistics over arrays, frames and registered tables
    tacit.learn         private machine learning
    tacit.attack        attacks and audits of what was released

and `tacit.Curator` opens a folder that holds a catalog, a durable ledger and released answers; `tacit.connect` has the
same methods for a curator that a server keeps (`tacit.client`).

Everything is loaded when it is first named, so that `import tacit` and the command line start at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tacit.version import __version__

if TYPE_CHECKING:
    from tacit import accounting, attack, client, curator, engines, learn, ledger, mechanisms, privacy, query, stats
    from tacit.accounting import Cost
    from tacit.client import connect
    from tacit.curator import Curator
    from tacit.ledger import Budget
    from tacit.privacy import Bounds, Categories, ForeignKey, Kind, Limits, Relation, Unit
    from tacit.privacy.errors import (
        BudgetExceeded,
        InvalidInput,
        LedgerCorrupt,
        NotPermitted,
        QueryRefused,
        TacitError,
        Unavailable,
    )

__all__ = [
    "Bounds",
    "Budget",
    "BudgetExceeded",
    "Categories",
    "Cost",
    "Curator",
    "ForeignKey",
    "InvalidInput",
    "Kind",
    "LedgerCorrupt",
    "Limits",
    "NotPermitted",
    "QueryRefused",
    "Relation",
    "TacitError",
    "Unavailable",
    "Unit",
    "__version__",
    "accounting",
    "attack",
    "client",
    "connect",
    "curator",
    "engines",
    "learn",
    "ledger",
    "mechanisms",
    "privacy",
    "query",
    "stats",
]

_PARTS: Final = (
    *("accounting", "attack", "client", "curator", "engines", "learn", "ledger", "mechanisms", "privacy", "query"),
    "stats",
)
_HOMES: Final = (
    "tacit.privacy",
    "tacit.privacy.errors",
    "tacit.accounting",
    "tacit.ledger",
    "tacit.curator",
    "tacit.client",
)
"""Where the names of `__all__` that are not parts come from."""


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"tacit.{name}")
    if name in __all__:
        for home in _HOMES:
            if hasattr(module := import_module(home), name):
                return getattr(module, name)
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
