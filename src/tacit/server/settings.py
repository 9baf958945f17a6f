"""Settings of a server, merged from `server.toml`, the environment and the flags of `tacit serve`.

Later sources override earlier ones. Every setting but `folder` has an environment variable: `TACIT_PORT` for `port`,
`TACIT_LIMITS__BODY_BYTES` for `limits.body_bytes`; lists are separated by commas, and `oidc` is a JSON object. Other
variables that begin with `TACIT_` are refused, unless they are in `OTHER_VARIABLES`.

No setting holds a secret: databases are given by references (`env:NAME`, `service:NAME`).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tacit.privacy import strict_json
from tacit.privacy.errors import InvalidInput
from tacit.server.fair_queue import QueueLimits

FILE: Final = "server.toml"
PREFIX: Final = "TACIT_"
PORT: Final = 8321
OTHER_VARIABLES: Final = frozenset(
    {
        *("TACIT_LEDGER_POSTGRES", "TACIT_OIDC_CLIENT_SECRET", "TACIT_SERVER", "TACIT_SERVING", "TACIT_TOKEN"),
        *("TACIT_CASES", "TACIT_CLUSTER", "TACIT_DATA", "TACIT_TEST_ADDRESS", "TACIT_TPCH_ENGINES"),  # tests and bench
        *("TACIT_TPCH_SCALES", "TACIT_UPDATE_FIXTURES"),
    }
)
"""Variables that are read elsewhere and are not settings."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ServerLimits(_Strict):
    """Limits on what callers can make large."""

    body_bytes: int = Field(default=2**20, ge=1024, le=2**30)
    body_s: float = Field(default=10.0, gt=0, le=600)
    """Time for the body of a request to arrive."""
    headers_s: float = Field(default=10.0, gt=0, le=600)
    header_bytes: int = Field(default=2**15, ge=1024, le=2**20)
    """Total size of the target, headers and trailers of a request."""
    connections: int = Field(default=1_000, ge=1, le=100_000)
    """Open connections; beyond this, the oldest that waits for its client is closed."""
    connections_each: int = Field(default=250, ge=1, le=100_000)
    """Open connections of one address; proxies are exempt."""
    running: int = Field(default_factory=lambda: 2 * (os.cpu_count() or 1), ge=1, le=1_000)
    running_each: int = Field(default=2, ge=1, le=1_000)
    waiting: int = Field(default=256, ge=0, le=100_000)
    waiting_each: int = Field(default=32, ge=0, le=100_000)
    planning: int = Field(default=2, ge=1, le=1_000)
    """Queries planned at once; planning is Python code, so more threads would only delay other requests."""
    planning_each: int = Field(default=1, ge=1, le=1_000)
    question_s: float = Field(default=600.0, gt=0, le=86_400)
    """Time limit of a query."""
    wait_s: float = Field(default=60.0, ge=0, le=3_600)
    """Time that a request waits for its answer before it becomes a job."""
    answer_bytes_each: int = Field(default=256 * 2**20, ge=2**20, le=2**50)
    """Bytes of stored answers of one person."""
    answer_bytes: int = Field(default=16 * 2**30, ge=2**20, le=2**50)
    """Bytes of stored answers in total."""
    rows: int = Field(default=100_000, ge=1, le=10_000_000)
    """Rows of one answer."""

    @property
    def queue(self) -> QueueLimits:
        """Limits of the queue of runs."""
        return QueueLimits(self.running, self.running_each, self.waiting, self.waiting_each)

    @property
    def planning_queue(self) -> QueueLimits:
        """Limits of the queue of planning."""
        return QueueLimits(self.planning, self.planning_each, self.waiting, self.waiting_each)


class Settings(_Strict):
    """The settings of one server."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = Field(default=PORT, ge=0, le=65535)
    workers: int = Field(default=1, ge=1, le=64)
    certificate: Path | None = None
    key: Path | None = None
    hosts: tuple[str, ...] = ()
    """Further host names of the server, such as those of its certificate or of the proxy in front of it."""
    proxies: tuple[str, ...] = ()
    """Addresses of trusted proxies, which report the client's address and terminate TLS."""
    postgres: bool = False
    """Whether the ledger and the server's own database are in PostgreSQL."""
    timing_class_s: float = Field(default=0.1, gt=0, le=60)
    """The first time class of response padding."""
    refresh_s: float | None = Field(default=None, ge=1, le=31 * 86_400)
    """Interval at which all tables are refreshed; None for refreshes on request only."""
    sources: tuple[Path, ...] = ()
    """Folders besides the curator's own whose files may be registered over REST."""
    without_tls: int = 0
    """2 to accept connections of others without TLS."""
    demo_for_others: int = 0
    """2 to accept connections of others while people of the demo are active."""
    limits: ServerLimits = ServerLimits()
    oidc: Mapping[str, Any] | None = None

    @property
    def has_tls(self) -> bool:
        """Whether the server itself speaks TLS."""
        return self.certificate is not None

    @property
    def is_encrypted(self) -> bool:
        """Whether clients speak TLS, with this server or with a proxy in front of it."""
        return self.has_tls or bool(self.proxies)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return self.host in ("127.0.0.1", "::1", "localhost")

    @property
    def url(self) -> str:
        """The base URL of the server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.has_tls else 'http'}://{host}:{self.port}"


def settings_of(folder: Path, flags: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of a folder's server: its file, overridden by the environment, overridden by the flags."""
    found = _from_file(folder / FILE)
    given, limits = _from_environment(os.environ if environment is None else environment)
    found |= given
    if isinstance(file_limits := found.setdefault("limits", {}), dict):
        file_limits.update(limits)
    found |= {name: value for name, value in flags.items() if value is not None}
    if isinstance(found.get("oidc"), Mapping) and "client_secret" in found["oidc"]:
        raise InvalidInput(
            "client_secret must not be in the settings; set the environment variable TACIT_OIDC_CLIENT_SECRET",
            name="oidc",
        )
    try:
        return Settings(folder=folder, **found)
    except (ValidationError, TypeError) as error:
        raise _invalid_settings(error) from None


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}", name="settings") from None


def _from_environment(environment: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings and the limits that variables state, as texts that pydantic parses."""
    found: dict[str, Any] = {}
    limits: dict[str, str] = {}
    known = Settings.model_fields.keys() - {"folder", "limits"}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name.startswith("limits__"):
            limits[name.removeprefix("limits__")] = text
        elif name not in known:
            accepted = ", ".join(PREFIX + one.upper() for one in sorted(known))
            raise InvalidInput(
                f"{variable} is not a setting of tacit serve; use {accepted} or {PREFIX}LIMITS__*", name=variable
            )
        elif name == "oidc":
            found[name] = _json_object(variable, text)
        else:
            is_list = get_origin(Settings.model_fields[name].annotation) is tuple
            found[name] = [one.strip() for one in text.split(",") if one.strip()] if is_list else text
    return found, limits


def _json_object(variable: str, text: str) -> Any:
    try:
        return strict_json.loads(text)
    except InvalidInput as error:
        raise InvalidInput(f"{variable} must be a JSON object: {error.message}", name=variable) from None


def _invalid_settings(error: ValidationError | TypeError) -> InvalidInput:
    if isinstance(error, TypeError):
        return InvalidInput("folder is an argument of tacit serve, not a setting", name="folder")
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return InvalidInput(f"the setting {where} is invalid: {first['msg'].lower()}", name=where)
