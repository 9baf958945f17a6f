"""Sessions of Spark: opening, settings, closing; and its failures as errors of tacit.

Every engine has a session of its own, with its own settings and temporary views, so that the settings of others do not
change what a statement means, nor its own those of others. A process has one Spark at most inside itself (`local`,
`spark://`); engines share it, and it is stopped with the last of them.

Spark's log is off, and an error of Spark is recognised by its class, condition and message, and never quoted: both may
hold values.
"""

from __future__ import annotations

import logging
import os
import subprocess
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

from tacit.engines.addresses import check_spark, read_reference
from tacit.engines.spark.java import java_home
from tacit.privacy.errors import (
    EngineFailed,
    InvalidInput,
    NoAccess,
    NoConnection,
    NotPermitted,
    SourceMissing,
    Unavailable,
)

Session: TypeAlias = Any
"""A SparkSession of pyspark, in this process or of Spark Connect."""

SETTINGS: Final = {
    "spark.sql.ansi.enabled": "false",  # overflow, division by zero and impossible casts raise nothing
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",  # other modes fail for a day before 1582, or move it
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.filterPushdown": "false",  # filters of files could tell -0.0 from 0.0, and skip rows by value
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.parser.manageParserCaches": "true",  # the caches of long statements may fill the memory
    "spark.sql.parser.parserDfaCacheFlushThreshold": "20000",
}
"""The settings of every session of an engine; statements rely on them."""

LOCAL_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.adaptive.enabled": "false",
}
CONTEXT_SETTINGS: Final = {
    "spark.app.name": "tacit",
    "spark.driver.maxResultSize": "1g",
    "spark.task.maxFailures": "1",  # a task that failed for a row would fail again, and take as long
    "spark.task.reaper.enabled": "true",  # an executor whose task does not stop is ended
    "spark.task.reaper.killTimeout": "60s",
    "spark.log.level": "OFF",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
QUIET_OPTION: Final = f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('quiet.properties')}"
RETRIES: Final[dict[str, Any]] = {
    "max_retries": 5,
    "initial_backoff": 100,
    "backoff_multiplier": 3.0,
    "max_backoff": 3000,
}
"""Retries of Spark Connect: for about ten seconds, where the default is ten minutes."""

ENDING_S: Final = 10.0
"""How long to wait for the end of a Java process that was killed or does not answer."""

LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging", "py4j")
"""The loggers of pyspark in this process: they write messages of errors, which may quote values."""

_WARNINGS: Final = threading.Lock()  # the filters of warnings are global
_MISSING: Final = "Spark is not installed; run pip install 'tacit[spark]'"

_LOST: Final = (
    *("StatusCode.UNAVAILABLE", "RETRIES_EXCEEDED", "stopped SparkContext", "SparkContext was shut down"),
    *("SESSION_CLOSED", "SESSION_CHANGED", "SESSION_NOT_FOUND", "INVALID_HANDLE"),
    *("All masters are unresponsive", "JAVA_GATEWAY_EXITED", "CONNECT_URL_NOT_SET"),
)
_LOST_CLASSES: Final = (
    "Py4JNetworkError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "EOFError",
)
_DENIED: Final = (
    *("StatusCode.PERMISSION_DENIED", "StatusCode.UNAUTHENTICATED", "AccessControlException"),
    *("AccessDeniedException", "Permission denied", "INSUFFICIENT_PERMISSIONS", "AccessDenied"),
)
_MISSING_SOURCE: Final = (
    *("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND", "PATH_NOT_FOUND", "FAILED_READ_FILE"),
    *("CANNOT_READ_FILE_FOOTER", "UNABLE_TO_INFER_SCHEMA", "UNRESOLVED_COLUMN", "INCOMPATIBLE_COLUMN_CHANGES"),
    *("FileNotFoundException", "STREAM_FAILED_READ", "is not a Parquet file"),
)


_LOST_SENTENCE: Final = "Spark cannot be reached, or the connection to it was lost; check that it runs"
_MISSING_SENTENCE: Final = "the rows of a table cannot be found or read by Spark any more; register the table again"


class LocalSpark:
    """The one Spark inside this process, with a count of its users."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._place, self._users = "", 0
        self._session: Session | None = None
        self._folder: TemporaryDirectory[str] | None = None

    def acquire(self, place: str) -> Session:
        """Return a new session of the Spark at a place, starting it if it does not run yet."""
        with self._lock:
            if self._session is not None and not is_alive(self._session):
                self._session = None
            if self._session is not None and self._place != place:
                raise InvalidInput(
                    f"a Spark at {self._place} runs in this process, which can have only one; use that one, or close "
                    "the engines that use it",
                    name="place",
                    value=place,
                )
            if self._session is None:
                self._session, self._place = self._start(place), place
            self._users += 1
            return self._session.newSession()

    @property
    def is_started(self) -> bool:
        """Whether Spark was started here."""
        return self._session is not None

    def release(self) -> None:
        """Give up one session; stop Spark with the last one."""
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._session is not None:
                with suppress(Exception):  # it is gone already
                    self._session.stop()
                self._session = None
                if self._folder is not None:
                    self._folder.cleanup()
                    self._folder = None

    def _start(self, place: str) -> Session:
        import pyspark
        from pyspark import SparkConf, SparkContext, java_gateway
        from pyspark.sql import SparkSession

        _forget_ended()
        if SparkContext._active_spark_context is not None:
            raise InvalidInput(
                "a Spark that others started runs in this process; give its session to SparkEngine.over",
                name="place",
                value=place,
            )
        conf = SparkConf()
        for name, value in (CONTEXT_SETTINGS | (LOCAL_SETTINGS if place.startswith("local") else {})).items():
            conf.setIfMissing(name, value)
        conf.setMaster("local[*]" if place == "local" else place)
        if self._folder is not None:
            self._folder.cleanup()
        self._folder = TemporaryDirectory(prefix="tacit-spark-")
        if place.startswith("local"):
            conf.setIfMissing("spark.sql.shuffle.partitions", str(_cores(place)))
            conf.setIfMissing("spark.sql.warehouse.dir", f"{self._folder.name}/warehouse")  # not the current folder
        launch: Any = java_gateway.launch_gateway
        gateway = None
        if SparkContext._gateway is None:
            with _environment(pyspark.__version__, Path(self._folder.name)):
                gateway = launch(conf, {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL})
        return SparkSession(SparkContext(conf=conf, gateway=gateway))


LOCAL_SPARK: Final = LocalSpark()


def is_alive(session: Session) -> bool:
    """Return whether the SparkContext of a session runs; always true behind Spark Connect."""
    context = context_of(session)
    try:
        return context is None or not context._jsc.sc().isStopped()
    except Exception:  # no answer, of whatever kind
        return False


def end_java() -> None:
    """Kill the Java process of a Spark that engines started; engines that use it start another one."""
    from pyspark import SparkContext

    if LOCAL_SPARK.is_started:
        with suppress(Exception):  # it has ended already
            gateway: Any = SparkContext._gateway
            gateway.proc.kill()
            gateway.proc.wait(ENDING_S)


def _forget_ended() -> None:
    """Make pyspark forget a Java process that has ended, for example for want of memory; it would use it again.

    Also before Spark Connect is used: pyspark asks the Java of the process for call sites of columns.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway: Any = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    if not _is_responsive(gateway):  # its connections close before its process has ended
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENDING_S)
    if process.poll() is None:
        return
    with suppress(Exception):
        gateway.shutdown()
    with suppress(OSError):
        process.stdin.close()
    holder: Any = SparkContext
    holder._active_spark_context = holder._gateway = holder._jvm = None
    kind: Any = SparkSession
    kind._instantiatedSession = None


def _is_responsive(gateway: Any) -> bool:
    """Return whether the Java process behind a gateway answers."""
    try:
        gateway.jvm.System.nanoTime()
    except Exception:  # pyspark raises one of several errors
        return False
    return True


@contextmanager
def _environment(version: str, folder: Path) -> Iterator[None]:
    """Set the environment of a Java process that is started: its home, and no log."""
    home, options = java_home(version, folder), os.environ.get("SPARK_SUBMIT_OPTS", "")
    wanted = {"SPARK_SUBMIT_OPTS": f"{options} {QUIET_OPTION}".strip()} | ({} if home is None else {"JAVA_HOME": home})
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _cores(place: str) -> int:
    inside = place.removeprefix("local").strip("[]")
    return int(inside) if inside.isdigit() else os.cpu_count() or 1


def address(place: str) -> str:
    """Return the address of Spark; it may hold a token, and is passed to Spark only."""
    found = read_reference(place)
    if found is None:
        return place
    if not found.startswith("sc://"):
        check_spark(found)
    return found


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress warnings of pyspark about versions of other packages and about settings."""
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def silence_loggers() -> None:
    """Make pyspark log nothing in this process."""
    from pyspark.logger import PySparkLogger

    for name in LOGGERS:
        logger = PySparkLogger.getLogger(name) if name.endswith("ContextLogger") else logging.getLogger(name)
        logger.disabled = True
        logger.setLevel(logging.CRITICAL + 1)  # also for child loggers


def open_session(place: str) -> Session:
    """Return a new session at a place."""
    check_spark(place)
    error: Exception
    try:
        silence_loggers()
        with _without_warnings():
            found = address(place)
            session = _remote(found) if found.startswith("sc://") else LOCAL_SPARK.acquire(found)
    except ImportError:
        error = Unavailable(_MISSING)
    except (InvalidInput, NotPermitted, SourceMissing, Unavailable) as known:
        error = known
    except Exception as caught:
        error = engine_error(
            caught, f"Spark at {place} cannot be reached; check the place, and that it runs", NoConnection
        )
    else:
        return session
    raise error  # here and not above, so that it does not carry Spark's error along


def _remote(address: str) -> Session:
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    _forget_ended()
    session = SparkSession.builder.remote(address).create()
    with suppress(AttributeError, TypeError):  # other versions have other ways; theirs is to wait longer
        session.client.set_retry_policies([DefaultPolicy(**RETRIES)])
    return session


def place_of(session: Session) -> str:
    """Return the address of a session's master, or "Spark Connect"."""
    try:
        return str(session.sparkContext.master)
    except Exception:  # pyspark raises one of several errors, by version
        return "Spark Connect"


def session_beside(session: Session) -> Session:
    """Return a new session on the Spark of another one."""
    silence_loggers()
    return session.newSession()


def apply_settings(session: Session) -> None:
    """Apply `SETTINGS` to a session."""
    with _without_warnings():
        for name, value in SETTINGS.items():
            session.conf.set(name, value)


def context_of(session: Session) -> Any | None:
    """Return the SparkContext of a session in this process, None for one behind Spark Connect."""
    try:
        return session.sparkContext
    except Exception:  # pyspark raises one of several errors, by version
        return None


def close_session(session: Session) -> None:
    """Close a session that `open_session` returned."""
    if context_of(session) is None:
        with suppress(Exception):  # the server is gone already
            session.stop()
    else:
        LOCAL_SPARK.release()


def engine_error(error: BaseException, sentence: str, otherwise: type[EngineFailed] = EngineFailed) -> EngineFailed:
    """Return the error of tacit that an error of Spark stands for; `otherwise` with `sentence` if it is not recognised.

    The sentence is also used where `otherwise` is the class that is recognised.
    """
    texts = list(_descriptions(error))
    if any(name in texts for name in _LOST_CLASSES) or _has(texts, _LOST):
        return NoConnection(sentence if otherwise is NoConnection else _LOST_SENTENCE)
    if _has(texts, _DENIED):
        return NoAccess("Spark may not read the rows of a table; check the rights of the account that it runs under")
    if _has(texts, _MISSING_SOURCE):
        return SourceMissing(sentence if otherwise is SourceMissing else _MISSING_SENTENCE)
    return otherwise(sentence)


def _descriptions(error: BaseException | None) -> Iterator[str]:
    """Yield the names of classes, conditions and messages of an error and its causes; never to be shown."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield from (one.__name__ for one in type(error).__mro__)
        yield _call(error, "getCondition") or ""
        yield _call(error, "__str__") or ""
        error = error.__cause__ or error.__context__


def _call(error: Any, name: str) -> str | None:
    try:
        found = getattr(error, name)()
    except Exception:  # not every error has it, and some need a Java that is gone
        return None
    return str(found) if found else None


def _has(texts: list[str], words: tuple[str, ...]) -> bool:
    return any(word in one for one in texts for word in words)
