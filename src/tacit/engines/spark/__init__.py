"""Spark: in this process, on a standalone cluster, or behind Spark Connect; rows stay where they are.

    engine       the Engine: what is registered, and which version of it
    sessions     sessions of Spark: opening, settings, closing; its failures as errors of tacit
    java         the Java that a Spark of this process runs on
    sources      tables, views and files that Spark reads: their columns, and fingerprints of their rows
    kinds        types of Spark, and casts that never fail
    execution    one statement: its time limit, cancellation, progress, and its answer by columns

For callers there is `SparkEngine`.
"""

from tacit.engines.spark.engine import SparkEngine

__all__ = ["SparkEngine"]
