"""The style of the code as functions: each takes one source file and names what breaks the rule, with its line."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

ROOT: Final = Path(__file__).parents[2]
MODULE_LINES_MAX: Final = 500
FUNCTION_LINES_MAX: Final = 60

GENERIC_ERRORS: Final = frozenset(
    {"ArithmeticError", "BaseException", "Exception", "IndexError", "KeyError", "LookupError", "RuntimeError"}
    | {"TypeError", "ValueError", "ZeroDivisionError"}
)
MACHINE_PATH: Final = re.compile(r"(?<![\w.~])/(?:work|root|home|Users|opt|mnt)/\w")
CONSTRUCTORS: Final = frozenset({"__init__", "__post_init__"})


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file, read and parsed."""

    path: Path
    text: str

    @classmethod
    @cache
    def of(cls, path: Path) -> Source:
        """Read a file, once for all rules."""
        return cls(path, path.read_text(encoding="utf-8"))

    @property
    def tree(self) -> ast.Module:
        """The syntax tree of the file."""
        return _parsed(self.text)

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the syntax tree."""
        return _nodes(self.text)

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Yield every function and method, nested ones too."""
        return (node for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def _nodes(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(_parsed(text)))


def long_modules(source: Source) -> list[str]:
    """A module that passes the limit is usually two ideas."""
    lines = len(source.text.splitlines())
    return [f"{lines} lines"] if lines > MODULE_LINES_MAX else []


def long_functions(source: Source) -> list[str]:
    """A function that passes the limit does not fit on a screen."""
    lengths = ((function, (function.end_lineno or 0) - function.lineno + 1) for function in source.functions())
    return [f"{function.name}: {lines} lines" for function, lines in lengths if lines > FUNCTION_LINES_MAX]


def missing_module_docstrings(source: Source) -> list[str]:
    """Someone who opens a file knows in ten lines what room it is."""
    return [] if ast.get_docstring(source.tree) else ["no docstring"]


def generic_raises(source: Source) -> list[str]:
    """User input never raises an error without a code."""
    found = []
    for node in source.nodes:
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id in GENERIC_ERRORS:
                found.append(f"line {node.lineno}: raise {raised.id}")
    return found


def prints(source: Source) -> list[str]:
    """Only the command line writes to standard output."""
    return [
        f"line {node.lineno}"
        for node in source.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def asserts_on_arguments(source: Source) -> list[str]:
    """An assertion states what this code ensures itself; it vanishes under -O, so it cannot check a caller's value.

    Named are assertions about a parameter of a public function, and all those in a constructor.
    """
    found = []
    for function in source.functions():
        public = not function.name.startswith("_") or function.name in CONSTRUCTORS
        if not public:
            continue
        arguments = function.args
        parameters = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                named = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
                if function.name in CONSTRUCTORS or named & (parameters - {"self", "cls"}):
                    found.append(f"line {node.lineno}: assert in {function.name}")
    return found


def seeded_randomness(source: Source) -> list[str]:
    """Noise comes from the operating system; generators that can be replayed have no place beside it."""
    found = []
    for node in source.nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = [f"{node.value.id}.{node.attr}".replace("np.", "numpy.", 1)]
        else:
            continue
        found += [f"line {node.lineno}: {name}" for name in names if re.match(r"(random|numpy\.random)(\.|$)", name)]
    return found


def interruptible_locks(source: Source) -> list[str]:
    """A forked child or an interrupted thread must not leave others waiting: no locks that are written in Python.

    Before Python 3.12 `functools.cached_property` has one too, shared by all objects.
    """
    names = {"functools": {"cached_property"}, "threading": {"Barrier", "BoundedSemaphore", "Condition", "Event"}}
    names["threading"] |= {"Semaphore"}
    found = []
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom) and node.module in names:
            found += [f"line {node.lineno}: {one.name}" for one in node.names if one.name in names[node.module]]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            found += [f"line {node.lineno}: {node.attr}"] if node.attr in names[node.value.id] else []
    return found


def machine_paths(text: str) -> list[str]:
    """Nothing in the repository speaks of the machine that it was written on."""
    return [f"line {number}" for number, line in enumerate(text.splitlines(), 1) if MACHINE_PATH.search(line)]


def undocumented(module: ModuleType) -> list[str]:
    """Every public class, function and method has a docstring, or the one of what it overrides or fulfils.

    A class fulfils a protocol that its module names when it has every public member of it.
    """
    things = {name: thing for name, thing in vars(module).items() if not name.startswith("_")}
    protocols = [thing for thing in things.values() if getattr(thing, "_is_protocol", False)]
    found = []
    for name, thing in things.items():
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(thing):
            fulfilled = [protocol for protocol in protocols if all(hasattr(thing, one) for one in _public(protocol))]
            found += [] if _has_own_docstring(thing) else [f"class {name}"]
            found += [f"{name}.{member}" for member in _undocumented_members(thing, [*thing.__mro__, *fulfilled])]
        elif inspect.isfunction(thing) and not thing.__doc__:
            found.append(f"def {name}")
    return found


def _public(kind: type) -> list[str]:
    return [name for name in vars(kind) if not name.startswith("_")]


def _has_own_docstring(kind: type) -> bool:
    docstring = vars(kind).get("__doc__") or ""
    return bool(docstring) and not docstring.startswith(f"{kind.__name__}(")  # what a dataclass writes by itself


def _undocumented_members(kind: type, described_by: list[type]) -> Iterator[str]:
    for name in _public(kind):
        member = vars(kind)[name]
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        documented = any(vars(other)[name].__doc__ for other in described_by if name in vars(other))
        if inspect.isfunction(function) and not documented:
            yield name
