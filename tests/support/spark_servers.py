"""Servers of Spark on loopback, from the jars that pyspark brings: Spark Connect, and a standalone cluster."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tacit.engines.spark.java import java_home
from tests.support.spark_session import OPTIONS, SETTINGS

HOST: Final = "127.0.0.1"
WAIT_S: Final = 180
CONNECT: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
MASTER: Final = "org.apache.spark.deploy.master.Master"
WORKER: Final = "org.apache.spark.deploy.worker.Worker"


def free_port() -> int:
    """Return a free port below those that the system gives out by itself: a server takes seconds to bind it."""
    while True:
        port = 15_000 + secrets.randbelow(15_000)
        with socket.socket() as one:
            if one.connect_ex((HOST, port)) != 0:
                return port


def home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a server: a small Java, and everything that it writes in a folder."""
    import pyspark

    known = {**os.environ, "JDK_JAVA_OPTIONS": OPTIONS, "SPARK_LOCAL_IP": HOST, "SPARK_WORKER_DIR": str(folder)}
    (folder / "java").mkdir(parents=True, exist_ok=True)
    java = java_home(pyspark.__version__, folder / "java")
    return known if java is None else {**known, "JAVA_HOME": java}


class Server:
    """A process that listens on a port."""

    def __init__(self, command: list[str], port: int, folder: Path, more: Mapping[str, str] | None = None) -> None:
        self.port = port
        self.process = subprocess.Popen(
            command,
            env=environment(folder) | dict(more or {}),
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def ready(self) -> None:
        """Wait until it listens."""
        deadline_s = time.monotonic() + WAIT_S
        while time.monotonic() < deadline_s and self.process.poll() is None:
            with socket.socket() as one:
                one.settimeout(1)
                if one.connect_ex((HOST, self.port)) == 0:
                    return
            time.sleep(0.2)
        raise AssertionError(f"nothing listens on port {self.port}")

    def kill(self) -> None:
        """End it at once, with what it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def connect_server(folder: Path) -> Iterator[Server]:
    """Run a Spark Connect server."""
    port = free_port()
    settings = SETTINGS | {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": HOST,
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    command = [str(home() / "bin" / "spark-submit"), "--class", CONNECT, "--master", "local[2]", *given]
    server = Server([*command, "spark-internal"], port, folder)
    try:
        server.ready()
        yield server
    finally:
        server.kill()


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """Run a standalone cluster, and return its address."""
    start, port = str(home() / "bin" / "spark-class"), free_port()
    servers = [
        Server([start, MASTER, "--host", HOST, "--port", str(port), "--webui-port", str(free_port())], port, folder)
    ]
    try:
        servers[0].ready()
        for _ in range(workers):
            own, webui = free_port(), free_port()
            options = ["--host", HOST, "--port", str(own), "--webui-port", str(webui), "--cores", "1", "--memory", "1g"]
            servers.append(Server([start, WORKER, *options, f"spark://{HOST}:{port}"], own, folder))
        for server in servers[1:]:
            server.ready()
        yield f"spark://{HOST}:{port}"
    finally:
        for server in reversed(servers):
            server.kill()
