"""Spark: in this process, on a standalone cluster, or behind Spark Connect; rows stay where they are.

    engine       the Engine: what is registered, and which version of it
    sessions     sessions of Spark: opening, settings, closing; its failures as errors of tacit
    java         the Java that a Spark of this process runs on
    sources      tables, views and files that Spark reads: their columns, and fingerprints of their rows
    file_paths   paths and globs of files as Spark reads them, in one spelling
    row_checks   which sources may hold rows of units: no row changes another, or can fail to be read
    kinds        types of Spark, and casts that never fail
    execution    one statement: its time limit, cancellation, progress, and its answer by columns

For callers there is `SparkEngine`, which is imported when it is first named: paths are compared without an engine.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.engines.spark.engine import SparkEngine

__all__ = ["SparkEngine"]


def __getattr__(name: str) -> Any:
    if name != "SparkEngine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tacit.engines.spark.engine import SparkEngine

    return SparkEngine
