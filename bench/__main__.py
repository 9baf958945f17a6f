"""`python -m bench`: run one benchmark and show its results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final, cast

import click
from rich.console import Console

from bench import peers
from bench.peers import INSTALL_COMMAND
from bench.results import Result, table

Benchmark = Callable[[bool], Iterator[Result]]

PIPE_WIDTH: Final = 160
NOT_BENCHMARKS: Final = frozenset({"__init__", "__main__", "results"})


PART_NAMES: Final = "learn has steps, estimators, methods, mnist, ftrl, pate, randomized, defences and subgroups"
"""The benchmarks with parts; listed here, so that --help imports none of them."""


def benchmark_names() -> list[str]:
    """Return the names of all benchmarks."""
    here = Path(__file__).parent
    folders = [path.parent.name for path in here.glob("*/benchmark.py")]
    return sorted([*folders, *(path.stem for path in here.glob("*.py") if path.stem not in NOT_BENCHMARKS)])


def load(name: str, part: str | None = None) -> Benchmark:
    """Import one benchmark, or one of the parts that its module lists in `PARTS`."""
    module = import_module(f"bench.{name}")
    if part is None:
        return cast(Benchmark, module.run)
    parts: Mapping[str, Benchmark] = getattr(module, "PARTS", {})
    if part not in parts:
        raise click.UsageError(f"{name} has no part {part}; its parts: {', '.join(parts) or 'none'}")
    return parts[part]


@click.command()
@click.argument("name", required=False, type=click.Choice(benchmark_names()))
@click.option("--list", "list_names", is_flag=True, help="Name the benchmarks and stop.")
@click.option("--part", help=f"Measure one part of a benchmark alone; {PART_NAMES}.")
@click.option("--quick", is_flag=True, help="End within 60 seconds, with smaller sizes and fewer repeats.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a line, as soon as it is measured.")
def main(name: str | None, list_names: bool, part: str | None, quick: bool, as_json: bool) -> None:
    """Run the benchmark NAME and show its results with goals and peers."""
    if list_names:
        click.echo("\n".join(benchmark_names()))
        return
    if name is None:
        raise click.UsageError(f"name a benchmark: {', '.join(benchmark_names())}")
    click.echo(f"measuring {name}", err=True)
    results: list[Result] = []
    for result in load(name, part)(quick):
        results.append(result)
        if as_json:
            click.echo(result.to_json())
    if not as_json:
        width = None if sys.stdout.isatty() else PIPE_WIDTH
        Console(highlight=False, width=width).print(table(f"{name}, quick" if quick else name, results))
    missing = {peer for result in results for peer in result.peers} & set(peers.names())
    for peer in sorted(peer for peer in missing if not peers.is_installed(peer)):
        click.echo(f"skipped {peer}: not installed; {INSTALL_COMMAND} {peer}", err=True)


if __name__ == "__main__":
    main(prog_name="python -m bench")
