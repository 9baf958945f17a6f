"""The routes of the REST interface; each module has a `router`."""

from typing import Final

from fastapi import APIRouter

from tacit.server.routes import accounts, budgets, operations, queries, statistics, tables

ROUTERS: Final[tuple[APIRouter, ...]] = (
    operations.router,
    accounts.router,
    tables.router,
    budgets.router,
    queries.router,
    statistics.router,
)
