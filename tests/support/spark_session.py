"""A Spark in this process for tests: started once, small, and kept from one test to the next."""

from __future__ import annotations

import atexit
import os
from functools import cache
from typing import Final

from tacit.engines import SparkEngine
from tacit.engines.spark import sessions

PLACE: Final = "local[1]"
OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""A Java that is soon up and soon gone, as tests are short."""

SETTINGS: Final = {
    "spark.sql.codegen.wholeStage": "false",  # statements are run once, and compiling them takes longer
    "spark.sql.shuffle.partitions": "1",
}


@cache
def _running() -> None:
    os.environ.setdefault("JDK_JAVA_OPTIONS", OPTIONS)
    settings = " ".join(f"--conf {name}={value}" for name, value in SETTINGS.items())
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"{settings} pyspark-shell")
    session = sessions.open_session(PLACE)
    atexit.register(sessions.close_session, session)


def spark_engine(salt: int = 7) -> SparkEngine:
    """Return a new engine."""
    _running()
    return SparkEngine(PLACE, salt)
