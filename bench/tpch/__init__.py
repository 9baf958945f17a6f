"""TPC-H privately: the queries as files, the tables as tacit knows them, and the benchmark (`benchmark`)."""

from collections.abc import Iterator

from bench.results import Result


def run(quick: bool) -> Iterator[Result]:
    """Measure, having loaded what that needs."""
    from bench.tpch.benchmark import measure

    return measure(quick)
