"""The routes of the REST interface; each module has a `router`."""

from typing import Final

from fastapi import APIRouter

from tacit.server.routes import budgets, findings, models, operations, people, queries, statistics, tables

ROUTERS: Final[tuple[APIRouter, ...]] = (
    operations.router,
    people.router,
    tables.router,
    budgets.router,
    findings.router,
    queries.router,
    statistics.router,
    models.router,
)
