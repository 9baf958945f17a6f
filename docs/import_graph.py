"""The graph of imports between the packages of tacit, as a Mermaid diagram in ARCHITECTURE.md, and sizes of the tree.

`python -m docs.import_graph` prints modules, lines and the median length of a module for each package.
"""

from __future__ import annotations

import ast
import re
import statistics
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = ROOT / "src" / "tacit"
PAGE: Final = ROOT / "ARCHITECTURE.md"
BEGIN: Final = "<!-- import graph: made by `make docs` -->"
END: Final = "<!-- end of the import graph -->"


def page() -> str:
    """Return ARCHITECTURE.md with the graph as it is now."""
    text = PAGE.read_text(encoding="utf-8")
    section = f"{BEGIN}\n\n```mermaid\n{diagram(reduced(imports()))}\n```\n\n{END}"
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: section, text, flags=re.DOTALL)


def packages() -> dict[str, list[Path]]:
    """Return the modules of each package, by its name."""
    return {
        folder.name: sorted(folder.rglob("*.py")) for folder in sorted(PACKAGE.iterdir()) if any(folder.glob("*.py"))
    }


def imports() -> dict[str, set[str]]:
    """Return which packages each package imports from, lazy imports and those for type checking included."""
    names = packages()
    return {
        name: {one for path in paths for one in imported(path)} & (names.keys() - {name})
        for name, paths in names.items()
    }


def imported(path: Path) -> set[str]:
    """Return the packages of tacit that a module names in its imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            parts = node.module.split(".")
            if parts[0] == "tacit":
                found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("tacit.")}
    return found


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return a graph without the edges that follow from others, so that it can be read."""
    return {
        name: {one for one in inner if not any(one in _reached(graph, other) for other in inner - {one})}
        for name, inner in graph.items()
    }


def diagram(graph: dict[str, set[str]]) -> str:
    """Return a graph as a flowchart of Mermaid, from the surfaces down to the kernel."""
    edges = [f"    {name} --> {one}" for name, inner in sorted(graph.items()) for one in sorted(inner)]
    return "\n".join(["flowchart TD", *edges])


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        new = graph[left.pop()] - found
        found |= new
        left += new
    return found


def sizes() -> str:
    """Return the modules, lines and median length of each package, a line each, and of all together."""
    lines = {
        name: [path.read_text(encoding="utf-8").count("\n") for path in paths] for name, paths in packages().items()
    }
    lines["all"] = [one for counts in lines.values() for one in counts]
    return "\n".join(
        f"{name:12} {len(counts):4} modules {sum(counts):7,} lines, median {statistics.median(counts):.0f}"
        for name, counts in lines.items()
    )


if __name__ == "__main__":
    print(sizes())
