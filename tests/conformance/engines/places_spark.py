"""Spark in this process, over Parquet files that another one writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tacit.engines import Source
from tests.support.spark_session import PLACE, spark_engine

Put = Callable[[str, Mapping[str, str], Sequence[Sequence[Any]]], Source]

__all__ = ["spark_engine", "spark_put"]


def spark_put(files: Put) -> Put:
    """Return what puts rows into files, and names them as Spark reads them."""
    return lambda name, types, rows: Source("spark", PLACE, f"parquet:{files(name, types, rows).place}")
