"""One module for each kind of resource; each has a `router`, and all of them stand in ROUTERS."""

from typing import Final

from fastapi import APIRouter

from tacit.server.routes import (
    audit,
    budgets,
    health,
    jobs,
    ledger,
    logins,
    people,
    questions,
    releases,
    requests,
    statistics,
    tables,
    tokens,
)

ROUTERS: Final[tuple[APIRouter, ...]] = (
    health.router,
    logins.router,
    people.router,
    tokens.router,
    tables.router,
    budgets.router,
    questions.router,
    statistics.router,
    requests.router,
    releases.router,
    jobs.router,
    ledger.router,
    audit.router,
)
