"""What tests of `tacit table` share: the columns of their files, typical options, and how commands are run."""

from __future__ import annotations

from pathlib import Path

from tacit.cli.app import run
from tacit.curator.catalog import Catalog
from tacit.engines.protocol import SourceColumn
from tacit.privacy.tables import Kind, Table

FOUND = [
    SourceColumn("id", Kind.INTEGER, "BIGINT"),
    SourceColumn("patient_id", Kind.INTEGER, "BIGINT"),
    SourceColumn("age", Kind.INTEGER, "INTEGER"),
    SourceColumn("sex", Kind.TEXT, "VARCHAR"),
    SourceColumn("birth_date", Kind.DATE, "DATE"),
    SourceColumn("smokes", Kind.BOOLEAN, "BOOLEAN"),
    SourceColumn("scan", None, "BLOB"),
]

ADD = ("add", "visits", "visits.parquet")
FULL = (
    *("--bounds", "AGE=0:120", "--bounds", "birth_date=1900-01-01:2024-12-31", "--categories", 'sex=F, M,"a, b"'),
    *("--kind", "smokes=text", "--kind", "scan=text", "--never-missing", "Patient_ID", "--identified-by", "id"),
    *("--rows-per-unit", "20", "--groups-per-unit", "5", "--rows-per-group", "4", "--dataset", "hospital"),
)


def run_table(*arguments: str) -> int:
    return run(["table", *arguments, "--folder", "clinic"])


def registered(folder: Path, name: str = "visits") -> Table:
    return Catalog.open(folder).schema.table(name)
