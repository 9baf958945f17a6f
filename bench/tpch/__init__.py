"""TPC-H with differential privacy: the queries as files, the tables, and the benchmark (`benchmark`)."""

from collections.abc import Iterator

from bench.results import Result


def run(quick: bool) -> Iterator[Result]:
    """Import the benchmark and run it."""
    from bench.tpch.benchmark import measure

    return measure(quick)
