"""How a server runs: where it listens, what it lets callers make large, and how it is told so.

Three places say it, each stronger than the one before: `server.toml` in the curator's folder, variables of the
environment (`TACIT_PORT` for `port`, `TACIT_LIMITS__BODY_BYTES` for `limits.body_bytes`), and the flags of `tacit
serve`. Every setting but `folder` has a variable: lists are separated by commas, and `oidc` is a JSON object. Other
variables that begin with `TACIT_` are refused, unless they are in `OTHER_VARIABLES`.

Secrets are never among the settings: databases are named by places (`env:NAME`, `service:NAME`) that hold them.
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
"""Variables that are read elsewhere, and are no settings."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Limits(_Strict):
    """What callers can make large, and how large."""

    body_bytes: int = Field(default=2**20, ge=1024, le=2**30)
    body_s: float = Field(default=10.0, gt=0, le=600)
    """How long a request may take to arrive."""
    headers_s: float = Field(default=10.0, gt=0, le=600)
    header_bytes: int = Field(default=2**15, ge=1024, le=2**20)
    """How large the target, headers and trailers of a request are together."""
    connections: int = Field(default=1_000, ge=1, le=100_000)
    """How many connections are open at once; for one more, the oldest that waits for its caller is closed."""
    connections_each: int = Field(default=250, ge=1, le=100_000)
    """How many of them one address has; proxies have no such limit."""
    running: int = Field(default_factory=lambda: 2 * (os.cpu_count() or 1), ge=1, le=1_000)
    running_each: int = Field(default=2, ge=1, le=1_000)
    waiting: int = Field(default=256, ge=0, le=100_000)
    waiting_each: int = Field(default=32, ge=0, le=100_000)
    planning: int = Field(default=2, ge=1, le=1_000)
    """How many questions are planned at once; planning is Python, so more threads than this only make others wait."""
    planning_each: int = Field(default=1, ge=1, le=1_000)
    question_s: float = Field(default=600.0, gt=0, le=86_400)
    """How long a question may run."""
    wait_s: float = Field(default=60.0, ge=0, le=3_600)
    """How long a request waits for its answer before it becomes a job."""
    answer_bytes_each: int = Field(default=256 * 2**20, ge=2**20, le=2**50)
    """How many bytes of answers are stored for one person."""
    answer_bytes: int = Field(default=16 * 2**30, ge=2**20, le=2**50)
    """How many bytes of answers are stored in all."""
    rows: int = Field(default=100_000, ge=1, le=10_000_000)
    """How many rows one answer shows at most."""

    @property
    def queue(self) -> QueueLimits:
        """How many questions run and wait."""
        return QueueLimits(self.running, self.running_each, self.waiting, self.waiting_each)

    @property
    def planning_queue(self) -> QueueLimits:
        """How many questions are planned and wait for it."""
        return QueueLimits(self.planning, self.planning_each, self.waiting, self.waiting_each)


class Settings(_Strict):
    """All that `serve` needs to know."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = Field(default=PORT, ge=0, le=65535)
    workers: int = Field(default=1, ge=1, le=64)
    certificate: Path | None = None
    key: Path | None = None
    hosts: tuple[str, ...] = ()
    """Names by which callers reach the server, beside `host`: those of its certificate, or of the proxy before it."""
    proxies: tuple[str, ...] = ()
    """Addresses of proxies that are believed about who calls, and that speak TLS with callers."""
    postgres: bool = False
    """Whether the ledger, and what the server keeps itself, lie in PostgreSQL."""
    timing_class_s: float = Field(default=0.1, gt=0, le=60)
    """The first class of time that answers are held back for."""
    refresh_s: float | None = Field(default=None, ge=1, le=31 * 86_400)
    """How often the rows of all tables are looked at again; otherwise only when somebody who may says so."""
    sources: tuple[Path, ...] = ()
    """Folders whose files may be registered over REST, beside the curator's own."""
    without_tls: int = 0
    """How often it was said that others may listen in."""
    demo_for_others: int = 0
    """How often it was said that others may use the demo's accounts."""
    limits: Limits = Limits()
    oidc: Mapping[str, Any] | None = None

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.certificate is not None

    @property
    def is_encrypted(self) -> bool:
        """Whether callers speak TLS, with this server or with a proxy before it."""
        return self.has_tls or bool(self.proxies)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return self.host in ("127.0.0.1", "::1", "localhost")

    @property
    def url(self) -> str:
        """Where the server is found."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.has_tls else 'http'}://{host}:{self.port}"


def settings_of(folder: Path, flags: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of a folder's server: its file, then the environment, then the flags that were given."""
    found = _from_file(folder / FILE)
    given, limits = _from_environment(os.environ if environment is None else environment)
    found |= given
    if isinstance(in_file := found.setdefault("limits", {}), dict):
        in_file.update(limits)
    found |= {name: value for name, value in flags.items() if value is not None}
    if isinstance(found.get("oidc"), Mapping) and "client_secret" in found["oidc"]:
        raise InvalidInput(
            "a secret does not stand in settings; give it as TACIT_OIDC_CLIENT_SECRET in the environment", name="oidc"
        )
    try:
        return Settings(folder=folder, **found)
    except (ValidationError, TypeError) as error:
        raise _unusable(error) from None


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}", name="settings") from None


def _from_environment(environment: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings that variables give, and the limits; numbers stay texts, which pydantic reads."""
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
                f"{variable} is no setting of tacit serve; there are {accepted} and {PREFIX}LIMITS__*", name=variable
            )
        elif name == "oidc":
            found[name] = _object(variable, text)
        else:
            is_list = get_origin(Settings.model_fields[name].annotation) is tuple
            found[name] = [one.strip() for one in text.split(",") if one.strip()] if is_list else text
    return found, limits


def _object(variable: str, text: str) -> Any:
    try:
        return strict_json.loads(text)
    except InvalidInput as error:
        raise InvalidInput(f"{variable} takes a JSON object: {error.message}", name=variable) from None


def _unusable(error: ValidationError | TypeError) -> InvalidInput:
    if isinstance(error, TypeError):
        return InvalidInput("the folder of a server is named by tacit serve, not by its settings", name="folder")
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return InvalidInput(f"the server's setting {where} cannot be used: {first['msg'].lower()}", name=where)
