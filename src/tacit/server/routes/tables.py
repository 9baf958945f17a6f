"""Routes of the catalog: listing, registering, refreshing and removing tables.

A caller who is not an owner may register only files that are meant for it, and learns nothing about hidden tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fastapi import APIRouter

from tacit.curator.engine_registry import related_tables
from tacit.curator.source_history import SourceHistory, files_of, is_own_file, registrations_of, share_rows
from tacit.curator.table_links import unit_keys
from tacit.curator.table_sources import format_of
from tacit.engines.frames import FOLDER as FRAMES
from tacit.engines.protocol import Source
from tacit.privacy import texts
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import InvalidInput, NotPermitted
from tacit.privacy.tables import Column, Kind, Table
from tacit.privacy.units import ForeignKey, Unit
from tacit.server.access import Action, Resource
from tacit.server.catalog_audit import record_changes
from tacit.server.context import Caller, CallerDep, table_resource
from tacit.server.query_requests import limits_of
from tacit.wire.requests import ColumnRequest, TableRequest, UnitRequest
from tacit.wire.responses import (
    ForeignKeyResponse,
    LimitsResponse,
    NewTableResponse,
    RefreshResponse,
    TableColumnResponse,
    TableResponse,
    UnitResponse,
)
from tacit.wire.values import decode, encode

router = APIRouter(prefix="/v1/tables", tags=["tables"])

ELSEWHERE: Final = ("://", "spark:", "env:", "service:", "#", "~", "*", "?", "[")
"""Parts of database addresses, globs and home folders, none of which is a plain path."""
FORMS: Final = ("csv", "parquet")


@router.get("")
def list_tables(caller: CallerDep) -> list[TableResponse]:
    """Return the tables that the caller sees."""
    caller.require(Action.SERVER_READ)
    return [_response(table) for table in caller.tables(Action.CATALOG_READ)]


@router.get("/{name}")
def show_table(caller: CallerDep, name: str) -> TableResponse:
    """Return the public facts about a table."""
    return _response(caller.table(name, Action.CATALOG_READ))


@router.post("", status_code=201)
def add_table(caller: CallerDep, body: TableRequest) -> NewTableResponse:
    """Register a table whose rows the server can read."""
    curator = caller.server.curator
    caller.require(Action.CATALOG_WRITE, Resource(dataset=body.dataset or body.name, table=body.name))
    _require_writable(caller, body.name)
    _require_writable_path(caller, body)
    source = _source(caller, body)
    with record_changes(caller.server.access, curator, [body.name], **caller.origin) as found_warnings:
        table = curator.add_table(
            body.name,
            source,
            unit=_unit(body.unit),
            public=body.public,
            each_row=body.each_row,
            columns={name: _column(name, one) for name, one in body.columns.items() if _has_facts(one)},
            kinds={name: Kind(one.kind) for name, one in body.columns.items() if one.kind is not None},
            limits=limits_of(body.limits),
            identified_by=body.identified_by,
            dataset=body.dataset,
            format=body.format,
            replace=body.replace,
            warn=found_warnings.append,
        )
    return NewTableResponse(**dict(_response(table)), warnings=found_warnings)


@router.post("/{name}/refresh")
def refresh_table(caller: CallerDep, name: str) -> RefreshResponse:
    """Refresh the rows of a table and of the tables linked to it by foreign keys."""
    table = caller.table(name, Action.CATALOG_WRITE)
    catalog = caller.server.curator.catalog
    related = related_tables(catalog, {table.name.lower()})
    _require_all(caller, table, related)
    for one in related:
        _require_own_rows(caller, one, catalog.source(one.name))
    with record_changes(caller.server.access, caller.server.curator, [one.name for one in related], **caller.origin):
        return RefreshResponse(changed=caller.server.curator.refresh(table.name))


@router.delete("/{name}", status_code=204)
def remove_table(caller: CallerDep, name: str) -> None:
    """Remove a table from the catalog; its rows, budget and releases stay."""
    table = caller.table(name, Action.CATALOG_WRITE)
    _require_writable(caller, table.name)
    with record_changes(caller.server.access, caller.server.curator, [table.name], **caller.origin):
        caller.server.curator.remove_table(table.name)


def _require_writable(caller: Caller, name: str) -> None:
    """Raise NotPermitted unless the caller may change a table and those whose foreign keys refer to it."""
    tables = caller.server.curator.catalog.tables
    if (known := tables.get(name.lower())) is not None:
        key = known.name.lower()
        referring = [one for one in tables.values() if any(step.target_table.lower() == key for step in unit_keys(one))]
        _require_all(caller, known, [known, *referring])


def _require_writable_path(caller: Caller, body: TableRequest) -> None:
    """Raise NotPermitted if foreign keys to the unit pass tables or a data set that the caller may not change."""
    for step in body.unit.through if isinstance(body.unit, UnitRequest) else ():
        passed = caller.table(step.target_table, Action.CATALOG_WRITE)
        if passed.is_private:  # the new table joins its data set
            caller.require(Action.CATALOG_WRITE, Resource(dataset=passed.dataset, table=body.name))


def _require_all(caller: Caller, table: Table, tables: Iterable[Table]) -> None:
    """Raise NotPermitted unless the caller may change all tables; hidden ones are not named."""
    for one in tables:
        if not caller.may(Action.CATALOG_WRITE, table_resource(one)):
            caller.record(Action.CATALOG_WRITE, table_resource(one))
            raise NotPermitted(f"you may not change {table.name}, or a table linked to it; ask an owner to do it")


def _source(caller: Caller, body: TableRequest) -> str:
    """Return the source of a table: any for an owner, otherwise a permitted file.

    A permitted file is in the curator's folder itself or below one of the setting `sources`, has a known extension, and
    does not hold the rows of a table that the caller may not change. So a new table gives access to no hidden rows.
    """
    if caller.may(Action.PEOPLE_WRITE):
        return body.source
    server, folder = caller.server, caller.server.settings.folder.resolve()
    resource = Resource(dataset=body.dataset or body.name, table=body.name)
    if any(sign in body.source for sign in ELSEWHERE):
        raise _refusal(caller, resource, "databases, globs and paths from a home folder are registered by owners only")
    resolved = texts.path("source", str(folder / body.source)).resolve()
    meant = resolved.parent == folder or any(resolved.is_relative_to(one.resolve()) for one in server.settings.sources)
    form = format_of(str(resolved), body.format)
    if not meant or format_of(str(resolved), None) not in FORMS or form not in FORMS:
        raise _refusal(
            *(caller, resource),
            "only CSV and Parquet files of the curator's folder, or of the setting `sources`, can be registered",
        )
    _require_unshared(caller, resource, Source(form, str(resolved)), is_own_allowed=False)
    return str(resolved)


def _require_own_rows(caller: Caller, table: Table, source: Source) -> None:
    """Raise NotPermitted if a link or rename has turned the rows of a table into those of another."""
    if not caller.may(Action.PEOPLE_WRITE):
        stored = Path(source.place).is_relative_to(caller.server.settings.folder.absolute() / FRAMES)
        _require_unshared(caller, table_resource(table), source, is_own_allowed=stored)


def _require_unshared(caller: Caller, resource: Resource, source: Source, *, is_own_allowed: bool) -> None:
    """Raise NotPermitted for files of tables, present or past, that the caller may not change, and the folder's own.

    Warnings about other budgets over the same rows therefore name no hidden data set either.
    """
    catalog = caller.server.curator.catalog
    others = [one for one in catalog.tables.values() if not caller.may(Action.CATALOG_WRITE, table_resource(one))]
    earlier = registrations_of(source, SourceHistory(catalog.folder).all())
    is_shared = any(share_rows(source, catalog.source(one.name)) for one in others) or any(
        one.dataset and not caller.may(Action.CATALOG_WRITE, Resource(one.dataset, one.table)) for one in earlier
    )
    is_own = not is_own_allowed and any(is_own_file(path, catalog.folder) for path in files_of(source))
    if is_shared or is_own:
        raise _refusal(caller, resource, "these rows belong to tables that you may not change")


def _refusal(caller: Caller, resource: Resource, what: str) -> NotPermitted:
    caller.record(Action.CATALOG_WRITE, resource)
    return NotPermitted(f"{what}; ask an owner to register it")


def _unit(unit: str | UnitRequest | None) -> str | Unit | None:
    if unit is None or isinstance(unit, str):
        return unit
    steps = (ForeignKey(one.column, one.target_table, one.target_column) for one in unit.through)
    return Unit(unit.column, tuple(steps))


def _has_facts(column: ColumnRequest) -> bool:
    return column.bounds is not None or column.categories is not None or not column.nullable


def _column(name: str, column: ColumnRequest) -> Bounds | Categories | Column:
    if column.bounds is not None and column.categories is not None:
        raise InvalidInput(f"{name} has bounds or categories, not both", name=name)
    facts: Bounds | Categories | None = None
    if column.bounds is not None:
        lower, upper = map(decode, column.bounds)
        facts = Bounds(lower, upper)
    elif column.categories is not None:
        facts = Categories(decode(column.categories))
    if column.nullable and facts is not None:
        return facts
    if column.kind is None:
        raise InvalidInput(f"nullable=false of {name} needs its kind as well", name=name)
    return Column(name, Kind(column.kind), facts, nullable=False)


def _response(table: Table) -> TableResponse:
    unit, limits = table.unit, table.limits
    return TableResponse(
        name=table.name,
        dataset=table.dataset,
        is_private=table.is_private,
        unit=None if unit is None else _unit_response(unit),
        columns=[_column_response(column) for column in table.columns],
        limits=LimitsResponse(
            groups_per_unit=limits.groups_per_unit,
            rows_per_group=limits.rows_per_group,
            rows_per_unit=limits.rows_per_unit,
        ),
        identified_by=sorted(table.identified_by),
    )


def _unit_response(unit: Unit) -> UnitResponse:
    steps = [
        ForeignKeyResponse(column=one.column, target_table=one.target_table, target_column=one.target_column)
        for one in unit.through
    ]
    return UnitResponse(column=unit.column, through=steps)


def _column_response(column: Column) -> TableColumnResponse:
    facts = column.facts
    return TableColumnResponse(
        name=column.name,
        kind=column.kind,
        nullable=column.nullable,
        bounds=encode([facts.lower, facts.upper]) if isinstance(facts, Bounds) else None,
        categories=encode(facts.values) if isinstance(facts, Categories) else None,
    )
