"""Descriptions of teachers, equal in every process: a folder of votes belongs to one of them.

What a function captures, its defaults, and what it names of its module are told by their contents: numbers and texts,
arrays and tensors by their bytes, other objects as they would be pickled. What cannot be told so is refused where it is
captured, and left out where it is only named; so are lists and mappings of a module, to which a teacher may write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import numpy as np

from tacit.privacy.errors import InvalidInput

_CONTENTS: Final = (str, bytes, bool, int, float, tuple, np.ndarray, np.generic)


def describe(teacher: Any) -> str:
    """Return a text that differs between teachers; raise InvalidInput for one that holds what cannot be told."""
    if hasattr(teacher, "get_params"):  # it is cloned, which leaves what was fitted out
        found = [f"{name}={_told(one, name)}" for name, one in sorted(teacher.get_params(deep=False).items())]
        return f"{_name(type(teacher))} {found}"
    return _told(teacher, "teacher")


def _told(one: Any, name: str) -> str:
    try:
        return _describe(one, ())
    except Exception as error:  # whatever the methods of a foreign object raise
        raise InvalidInput(
            f"the teacher holds a {type(error.args[0]).__name__ if isinstance(error, _Untold) else type(one).__name__} "
            f"({name}) whose content cannot be compared with that of a kept training; leave folder= out, or let the "
            "teacher make it itself",
            name="folder",
        ) from None


class _Untold(Exception):
    """The first argument cannot be described."""


def _describe(one: Any, within: tuple[int, ...]) -> str:
    if (
        one is None
        or one is Ellipsis
        or type(one) in (str, bytes, bool, int, float, complex)
        or isinstance(one, np.generic)
    ):
        return f"{type(one).__name__} {one!r}"
    if id(one) in within:
        return f"again {within.index(id(one))}"
    inside = (*within, id(one))
    if isinstance(one, ModuleType):
        return f"module {one.__name__}"
    if isinstance(one, type | BuiltinFunctionType):
        return _name(one)
    if type(one) is np.ndarray and not one.dtype.hasobject:
        return f"array {one.dtype} {one.shape} {hashlib.sha256(np.ascontiguousarray(one).tobytes()).hexdigest()}"
    if _is_tensor(one):
        return f"{type(one).__name__} {_describe(one.detach().cpu().numpy(), inside)}"
    if type(one) in (list, tuple):
        return f"{type(one).__name__} {[_describe(each, inside) for each in one]}"
    if type(one) in (set, frozenset):
        return f"set {sorted(_describe(each, inside) for each in one)}"
    if type(one) is dict:
        return f"dict {sorted((_describe(key, inside), _describe(each, inside)) for key, each in one.items())}"
    if isinstance(one, partial):
        return f"partial {_describe([one.func, list(one.args), one.keywords], inside)}"
    if isinstance(one, MethodType):
        return f"method {_describe([one.__func__, one.__self__], inside)}"
    if isinstance(one, FunctionType):
        return _function(one, inside)
    return f"{_name(type(one))} {_pickled(one, inside)}"


def _pickled(one: Any, inside: tuple[int, ...]) -> str:
    """Describe any object by what pickle would write of it."""
    try:
        reduced = one.__reduce_ex__(4)
    except Exception:
        raise _Untold(one) from None
    if isinstance(reduced, str):
        return reduced
    parts = [list(part) if isinstance(part, Iterator) else part for part in reduced]
    code = [each for kind in type(one).__mro__ for each in vars(kind).values() if isinstance(each, FunctionType)]
    own = [_code(each.__code__) for each in code if each.__module__ == type(one).__module__]
    return f"{_describe(parts, inside)} {own}"


def _function(one: FunctionType, inside: tuple[int, ...]) -> str:
    cells = [cell.cell_contents for cell in one.__closure__ or ()]
    held = _describe([cells, one.__defaults__, one.__kwdefaults__], inside)
    named = []
    for name in sorted(_names(one.__code__) & one.__globals__.keys()):
        found = one.__globals__[name]
        is_own = isinstance(found, FunctionType | type) and found.__module__ == one.__module__
        if is_own or isinstance(found, _CONTENTS) or _is_tensor(found):  # not what it may write to
            try:
                named.append(f"{name}={_describe(found, inside)}")
            except Exception:
                named.append(name)
    return f"{_name(one)} {_code(one.__code__)} {held} {named}"


def _names(code: CodeType) -> set[str]:
    """Return the names that a function and those within it use."""
    inner = [_names(one) for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*inner)


def _code(code: CodeType) -> str:
    """Describe what a function does; its constants may be sets, whose order differs between processes."""
    constants = [_code(one) if isinstance(one, CodeType) else _describe(one, ()) for one in code.co_consts]
    parts = (code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _is_tensor(one: Any) -> bool:
    return type(one).__module__.partition(".")[0] == "torch" and hasattr(one, "detach")


def _name(one: Any) -> str:
    """Return a name without that of the module, which is another one where a script is imported."""
    return str(getattr(one, "__qualname__", type(one).__qualname__))
