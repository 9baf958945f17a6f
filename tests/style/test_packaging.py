"""What is installed is what was tested: every package that tacit pulls in has a pin, and no pin is idle."""

import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.style.rules import ROOT

PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==\S+$", re.MULTILINE)


def pulled_in(name: str, extra: str = "") -> set[str]:
    """Name every package that `name`, with an extra, brings into this environment."""
    seen: set[tuple[str, str]] = set()
    waiting = [(name, extra)]
    while waiting:
        package, its_extra = one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        try:
            requirements = distribution(package).requires or []
        except PackageNotFoundError:
            continue
        for requirement in map(Requirement, requirements):
            if requirement.marker is None or requirement.marker.evaluate({"extra": its_extra}):
                child = canonicalize_name(requirement.name)
                waiting += [(child, child_extra) for child_extra in ("", *requirement.extras)]
    return {package for package, _ in seen} - {name}


def test_every_package_that_is_pulled_in_has_a_pin_and_no_pin_is_idle() -> None:
    pins = {canonicalize_name(name) for name in PIN.findall((ROOT / "constraints.txt").read_text(encoding="utf-8"))}
    if sys.version_info >= (3, 13):  # OR-tools is left out there
        pins -= {"absl-py", "immutabledict", "ortools"}
    assert pulled_in("tacit", "test") == pins


def test_the_core_pulls_in_what_it_is_for_and_nothing_else() -> None:
    computing = {"cachetools", "duckdb", "numpy", "scipy", "sqlglot"}
    commands = {"click", "markdown-it-py", "mdurl", "pygments", "rich", "tomlkit"}
    assert pulled_in("tacit") == computing | commands


def test_the_extras_bring_what_they_are_for() -> None:
    assert {"httpx", "pydantic"} <= pulled_in("tacit", "client")
    assert {"fastapi", "uvicorn", "argon2-cffi", "prometheus-client", "httpx"} <= pulled_in("tacit", "server")
    assert "fastapi" not in pulled_in("tacit", "client")
    assert pulled_in("tacit", "all") >= pulled_in("tacit", "server") | pulled_in("tacit", "spark")
