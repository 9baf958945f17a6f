"""What is installed is what was tested: every package that tacit pulls in has a pin, and no pin is idle."""

import re
from importlib.metadata import PackageNotFoundError, distribution
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.style.rules import ROOT

PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==\S+$", re.MULTILINE)


def pulled_in(name: str, extra: str = "") -> set[str]:
    """Name every package that `name`, with an extra, brings into this environment."""
    found: set[str] = set()
    waiting = [(name, extra)]
    while waiting:
        package, its_extra = waiting.pop()
        try:
            requirements = distribution(package).requires or []
        except PackageNotFoundError:
            continue
        for requirement in map(Requirement, requirements):
            needed = requirement.marker is None or requirement.marker.evaluate({"extra": its_extra})
            child = canonicalize_name(requirement.name)
            if needed and child not in found:
                found.add(child)
                waiting += [(child, child_extra) for child_extra in ("", *requirement.extras)]
    return found


def test_every_package_that_is_pulled_in_has_a_pin_and_no_pin_is_idle() -> None:
    pins = {canonicalize_name(name) for name in PIN.findall((ROOT / "constraints.txt").read_text(encoding="utf-8"))}
    assert pulled_in("tacit", "test") == pins


def test_the_core_pulls_in_what_it_is_for_and_nothing_else() -> None:
    computing = {"duckdb", "numpy", "scipy", "sqlglot"}
    commands = {"click", "markdown-it-py", "mdurl", "prompt-toolkit", "pygments", "rich", "tomlkit", "wcwidth"}
    serving = {"anyio", "fastapi", "h11", "idna", "opentelemetry-api", "prometheus-client", "starlette", "uvicorn"}
    documents = {"annotated-doc", "annotated-types", "pydantic", "pydantic-core", "typing-extensions"}
    hashing = {"argon2-cffi", "argon2-cffi-bindings", "cffi", "pycparser"}
    asking = {"cachetools", "certifi", "httpcore", "httpx"}
    wanted = computing | commands | serving | documents | {"typing-inspection"} | hashing | asking
    assert pulled_in("tacit") == wanted
