"""The ledger: budgets, filters, reserve and commit, journal, recovery, scopes, epochs, released answers.

In memory, for use as a plain library:

    budget = Budget(epsilon=1.0, delta=1e-6)            # the filter follows from delta, or is named: filter="gdp"
    permit = budget.charge(events.Laplace(0.1))         # or BudgetExceeded, which says what would fit
    budget.spent(), budget.remaining(), budget.report()

Durable, in a folder (SQLite) or in PostgreSQL:

    ledger = Ledger.open("clinic")
    ledger.create_budget("visits", epsilon=3.0, delta=1e-7)
    ledger.create_cap("visits", "ana", epsilon=1.0, delta=1e-8)
    permit = ledger.reserve("visits", event, analyst="ana", key="request-17")
    ledger.commit(permit, answer, plan=plan, data_version=version)
    ledger.budget("visits", analyst="ana")              # the same methods as a budget in memory

The modules, from the inside out:

    caps, amounts, accounts     a cap; exact amounts; one account for each measure of privacy loss
    filters, budget             the OR of accounts, with its proof; a budget in memory, and reports
    journal, anchor             chained records; the latest head, noted outside the database
    record_fields               the fields of each kind of record
    rows, replay                the cached rows; what each kind of record does to them
    stores                      SQLite and PostgreSQL
    transactions, group_commit  one transaction; changes of several threads in one
    verification                journal against tables and noted head
    backup                      restoring a backup; export and import
    admission, administration   reserve and commit; budgets, caps, epochs, requests
    kept_findings               what attacks found, beside the permits that they judge
    stored_journal, ledger      a journal in a store, and the ledger on top of it
    ledger_budget               one scope of a ledger with the methods of a budget
"""

from tacit.ledger.administration import Request
from tacit.ledger.anchor import HEAD_FILE
from tacit.ledger.budget import Budget, Report
from tacit.ledger.caps import FILTERS, Cap
from tacit.ledger.journal import Head, Record
from tacit.ledger.kept_findings import KeptFinding
from tacit.ledger.ledger import Ledger
from tacit.ledger.ledger_budget import LedgerBudget
from tacit.ledger.permits import Permit, Reservation, Scope
from tacit.ledger.stores import PostgresStore, SqliteStore, Store
from tacit.ledger.verification import Verified

__all__ = [
    "FILTERS",
    "HEAD_FILE",
    "Budget",
    "Cap",
    "Head",
    "KeptFinding",
    "Ledger",
    "LedgerBudget",
    "Permit",
    "PostgresStore",
    "Record",
    "Report",
    "Request",
    "Reservation",
    "Scope",
    "SqliteStore",
    "Store",
    "Verified",
]
