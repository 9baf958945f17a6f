"""Benchmarks: measurements of tacit, compared with its goals and with other libraries.

`python -m bench NAME [--quick] [--json]` runs one; `python -m bench --list` names them all. A benchmark is a module of
this folder, or a folder in it with a `benchmark.py`, with a function `run(quick: bool) -> Iterator[Result]`; with
`quick` it ends within 60 seconds.
"""

from bench.results import Result

__all__ = ["Result"]
