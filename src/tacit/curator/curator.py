"""The curator of one folder: whose data, which budgets, which analysts.

Promise: everything that is charged goes through the one ledger of the folder. What a budget promises is said when it is
set, and a delta that promises too little is said loudly.
Not here: data and questions about them, which need a catalog and engines.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tacit.ledger import Budget, Ledger, LedgerBudget, Store
from tacit.privacy.errors import EmptyInput, WrongType
from tacit.privacy.relations import Relation


class PrivacyWarning(UserWarning):
    """A setting is allowed, and promises less than people will expect of it."""


class Curator:
    """A folder with its ledger; the ledger may lie in a database instead (`store`)."""

    def __init__(self, folder: Path | str, *, store: Store | None = None) -> None:
        """Open the folder, and make it if it is missing."""
        self.folder: Final = Path(folder)
        self.ledger: Final = Ledger.open(self.folder if store is None else store)

    def set_budget(
        self,
        dataset: str,
        epsilon: object,
        delta: object = 0.0,
        *,
        filter: str | None = None,
        order: object = None,
        relation: Relation = Relation.ADD_REMOVE,
        per_epoch: bool = False,
        units: int | None = None,
    ) -> LedgerBudget:
        """Give a data set its budget, once and for all.

        `units` is how many units the data hold, if that is public; delta is then held against it.
        """
        for sentence in Budget(epsilon, delta, filter=filter, order=order, relation=relation).warnings(units):
            warnings.warn(sentence, PrivacyWarning, stacklevel=2)
        return self.ledger.create_budget(
            dataset, epsilon, delta, filter=filter, order=order, relation=relation, per_epoch=per_epoch
        )

    def add_analyst(self, name: str, budgets: Mapping[str, Budget]) -> None:
        """Let an analyst, or a group, spend up to a cap on each of some data sets."""
        if not budgets:
            raise EmptyInput("an analyst is added with a budget on at least one data set", name="budgets")
        for dataset, budget in budgets.items():
            if not isinstance(budget, Budget):
                raise WrongType(f"what {name} may spend on {dataset} is a Budget", name="budgets", value=budget)
        self.ledger.create_caps(name, {dataset: budget.cap for dataset, budget in budgets.items()})

    def budget(self, dataset: str, analyst: str | None = None, *, epoch: str | None = None) -> LedgerBudget:
        """Return the budget of a data set, of an analyst on it, or of one of its epochs."""
        return self.ledger.budget(dataset, analyst=analyst, epoch=epoch)

    def close(self) -> None:
        """Let go of the folder."""
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Curator({str(self.folder)!r})"
