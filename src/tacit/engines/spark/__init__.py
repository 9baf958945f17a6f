"""Spark: in this process, on a standalone cluster, or behind Spark Connect; rows stay where they are.

    engine      the Engine: what is registered, and which version of it
    sessions    sessions of Spark: where they come from, how they are set, when they end
    java        the Java that a Spark of this process runs on
    sources     tables and files that Spark knows: their columns, and marks that change with their rows
    views       views that are read row by row, without failing for one; all others are refused
    kinds       types of Spark, and casts that never fail
    running     one statement: its time limit, cancelling, progress, and its answer by columns
    failures    what went wrong, without a word of what Spark said

For callers there is `SparkEngine`.
"""

from tacit.engines.spark.engine import SparkEngine

__all__ = ["SparkEngine"]
