"""The style is a test: every rule holds for the code, and is shown to notice what breaks it."""

import importlib.util
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from tests.style import rules
from tests.style.rules import ROOT, Source

PACKAGE: Final = sorted((ROOT / "src/tacit").rglob("*.py"))
CODE: Final = [
    *PACKAGE,
    *sorted(path for path in (ROOT / "bench").rglob("*.py") if ".venvs" not in path.parts),
    *sorted((ROOT / "docs").rglob("*.py")),
    *sorted((ROOT / "gallery").rglob("*.py")),
]

MAY_PRINT: Final = "src/tacit/cli"
ATTACKS = "src/tacit/attack/"
"""Attackers choose at random, from a seed that a finding states; they draw no noise."""
MAY_BE_SEEDED: Final = {
    "src/tacit/cli/tour/clinic.py": "invents the people of the demo, the same ones in every run",
    "src/tacit/learn/secret_seeds.py": "seeds and restores the shared generators; draws nothing from them",
}

Rule = Callable[[Source], list[str]]

EVERYWHERE: Final[tuple[Rule, ...]] = (
    rules.long_modules,
    rules.long_functions,
    rules.missing_module_docstrings,
)
IN_THE_PACKAGE: Final[tuple[Rule, ...]] = (rules.generic_raises, rules.asserts_on_arguments)

BREAKS: Final[list[tuple[Rule, str]]] = [
    (rules.long_modules, "x = 1\n" * 501),
    (rules.long_functions, "def f():\n" + "    x = 1\n" * 60),
    (rules.long_functions, "class C:\n    async def f(self):\n" + "        x = 1\n" * 60),
    (rules.missing_module_docstrings, "x = 1\n"),
    (rules.generic_raises, "raise ValueError('no code')"),
    (rules.generic_raises, "def f(x):\n    if x:\n        raise KeyError"),
    (rules.generic_raises, "try:\n    f()\nexcept OSError as error:\n    raise RuntimeError from error"),
    (rules.asserts_on_arguments, "def release(value):\n    assert value > 0"),
    (rules.asserts_on_arguments, "class C:\n    def f(self, *, size):\n        if 1:\n            assert len(size)"),
    (rules.asserts_on_arguments, "class C:\n    def __post_init__(self):\n        assert self.epsilon > 0"),
    (rules.prints, "def f():\n    print('here')"),
    (rules.interruptible_locks, "from functools import cached_property"),
    (rules.interruptible_locks, "import threading\nwaiting = threading.Condition()"),
    (rules.seeded_randomness, "import random"),
    (rules.seeded_randomness, "from random import Random"),
    (rules.seeded_randomness, "import numpy.random"),
    (rules.seeded_randomness, "from numpy import random"),
    (rules.seeded_randomness, "from numpy.random import default_rng"),
    (rules.seeded_randomness, "import numpy as np\nnp.random.default_rng(0)"),
]

KEEPS: Final = '''
"""A module that keeps every rule."""

import secrets

from tacit.privacy.errors import NotPositive


def release(value):
    """Return it."""
    noise = secrets.randbits(8)
    assert noise < 256
    if value < 0:
        raise NotPositive("value must be above 0")
    try:
        return value + noise
    except NotPositive:
        raise


def _inner(value):
    assert value >= 0
    raise NotImplementedError
'''


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path, name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", CODE, ids=relative)
def test_every_module_keeps_the_rules(path: Path) -> None:
    source = Source.of(path)
    assert [problem for rule in rules_for(relative(path)) for problem in rule(source)] == []


def rules_for(path: str) -> Iterator[Rule]:
    yield from EVERYWHERE
    if path.startswith("src/tacit/"):
        yield from IN_THE_PACKAGE
        if not path.startswith(MAY_PRINT):
            yield rules.prints
        if path not in MAY_BE_SEEDED and not path.startswith(ATTACKS):
            yield rules.seeded_randomness
    if path.startswith("src/tacit/ledger/"):
        yield rules.interruptible_locks


def test_the_package_is_held_to_more_rules_than_the_rest() -> None:
    rest, package, ledger = (set(rules_for(f"{one}/x.py")) for one in ("bench", "src/tacit/query", "src/tacit/ledger"))
    assert rest == set(EVERYWHERE)
    assert package - rest == {*IN_THE_PACKAGE, rules.prints, rules.seeded_randomness}
    assert ledger - package == {rules.interruptible_locks}


@pytest.mark.parametrize("path", MAY_BE_SEEDED)
def test_whoever_may_be_seeded_is(path: str) -> None:
    assert rules.seeded_randomness(Source.of(ROOT / path)) != []


@pytest.mark.parametrize("path", [path for path in PACKAGE if path.name != "__main__.py"], ids=relative)
def test_every_public_class_function_and_method_is_documented(path: Path) -> None:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    assert rules.undocumented(module) == []


def test_no_file_speaks_of_the_machine_it_was_written_on() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("this copy is not a git checkout")
    texts = {name: (ROOT / name).read_text("utf-8", errors="ignore") for name in listed.stdout.splitlines()}
    assert {name: found for name, text in texts.items() if (found := rules.machine_paths(text))} == {}


@pytest.mark.parametrize(("rule", "text"), BREAKS, ids=[f"{rule.__name__}-{n}" for n, (rule, _) in enumerate(BREAKS)])
def test_a_rule_notices_what_breaks_it(rule: Rule, text: str) -> None:
    assert rule(Source(Path("planted.py"), text)) != []


@pytest.mark.parametrize("rule", sorted({rule for rule, _ in BREAKS}, key=lambda rule: rule.__name__))
def test_a_rule_leaves_good_code_alone(rule: Rule) -> None:
    assert rule(Source(Path("planted.py"), KEEPS)) == []


@pytest.mark.parametrize("folder", ["home", "root", "work", "Users", "opt"])
@pytest.mark.parametrize("before", ["", "path=", "'", "file://"])
def test_a_path_of_a_machine_is_noticed(folder: str, before: str) -> None:
    assert rules.machine_paths(f"first line\n{before}/{folder}/ana/tacit\n") == ["line 2"]


def test_addresses_and_relative_paths_are_no_paths_of_a_machine() -> None:
    assert rules.machine_paths("https://example.org/home/page src/work/x /usr/bin/env ~/work/x ./opt/x") == []


def test_missing_docstrings_are_noticed_and_those_of_bases_and_protocols_count(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        "from dataclasses import dataclass\n"
        "from typing import Protocol\n"
        "def bare(): pass\n"
        "def _private(): pass\n"
        "class Documented:\n"
        "    'Says what it is.'\n"
        "    def work(self):\n        'Says what it does.'\n"
        "    def bare(self): pass\n"
        "    @property\n    def part(self): return 1\n"
        "class Heir(Documented):\n"
        "    'Is one.'\n"
        "    def work(self): pass\n"
        "class Role(Protocol):\n"
        "    'What one can play.'\n"
        "    def play(self):\n        'Says how.'\n"
        "class Player:\n"
        "    'Plays it.'\n"
        "    def play(self): pass\n"
        "    def rest(self): pass\n"
        "@dataclass\nclass Record:\n    size: int\n"
    )
    assert rules.undocumented(module_of(planted, "planted")) == [
        "def bare",
        "Documented.bare",
        "Documented.part",
        "Player.rest",
        "class Record",
    ]
