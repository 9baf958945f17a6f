"""Addresses of databases and stores that may stand in a catalog: no part of one can be a secret.

Promise: an address is accepted only if every part of it is on the list here: user names, hosts, ports, names of
databases, and parameters that are known to be harmless. Anything else is refused, however it is spelt, since a list of
names for secrets is never complete (`token`, `x-api-key`, `sslpassword`, `pass%77ord`). No error holds any part of what
was refused. Addresses with secrets are kept in an environment variable or in a file that only its owner can read; they
are read when a connection is made (`read_reference`).
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from tacit.privacy.errors import InvalidInput, NotPermitted, SourceMissing

ADDRESS_MAX: Final = 10_000
"""How many bytes of a file with an address are read."""

POSTGRES_FORMS: Final = "postgresql://user@host:port/database, env:NAME, file:PATH or service:NAME"
SPARK_FORMS: Final = "local, local[2], sc://host:15002, spark://host:7077, env:NAME or file:PATH"

_REFERENCE: Final = re.compile(r"env:[\w.-]+|file:[^\0]+")
_SERVICE: Final = re.compile(r"service:[\w.-]+")
_URL: Final = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^@/?#:]*)@)?(?P<hosts>[^@/?#]*)(?:/(?P<database>[^/?#]*))?(?:\?(?P<query>[^#]*))?"
)
_HOSTS: Final = r"(?:[A-Za-z0-9._/-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_HOST_LIST: Final = re.compile(rf"{_HOSTS}(?:,{_HOSTS})*")
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f:=;&?#%/\\'\"]*")
_PATH: Final = re.compile(r"[^\x00-\x1f\x7f:=;&?#%@'\"]*")
_WORD: Final = re.compile(r"[A-Za-z0-9_.,!-]*")
_PARAMETERS: Final = {
    **dict.fromkeys(("user", "dbname", "application_name", "fallback_application_name"), _NAME),
    **dict.fromkeys(("host", "hostaddr"), re.compile(r"[A-Za-z0-9._/,:-]*")),
    **dict.fromkeys(("passfile", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir"), _PATH),
    **dict.fromkeys(
        (
            *("port", "connect_timeout", "client_encoding", "tcp_user_timeout"),
            *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
            *("sslmode", "sslnegotiation", "sslcompression", "sslsni", "sslcertmode"),
            *("ssl_min_protocol_version", "ssl_max_protocol_version", "channel_binding", "require_auth"),
            *("gssencmode", "krbsrvname", "target_session_attrs", "load_balance_hosts", "service"),
        ),
        _WORD,
    ),
}
"""The parameters of libpq that hold no secret, with patterns of their values; names are compared as libpq does."""

_LOCAL: Final = re.compile(r"local(?:\[(?:\*|[1-9][0-9]{0,4})\])?")
_CONNECT: Final = re.compile(
    r"sc://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/?|/(?:;(?:use_ssl=(?:true|false)"
    r"|user_id=[A-Za-z0-9_.-]+|session_id=[0-9a-fA-F-]{36}|grpc_max_message_size=[0-9]{1,12}))+)"
)
_MASTER: Final = re.compile(r"spark://[A-Za-z0-9._-]+:[0-9]{1,5}(?:,[A-Za-z0-9._-]+:[0-9]{1,5})*")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_STORE: Final = re.compile(
    r"(?:(?:abfss?|wasbs?)://[A-Za-z0-9$_-]+@[A-Za-z0-9._-]+|(?:s3[an]?|gs|hdfs|viewfs)://[A-Za-z0-9._-]*(?::[0-9]{1,5})?"
    r"|file://|hdfs:(?!//)|file:(?!//))/[^#]*"
)
_QUERY: Final = re.compile(r"[?&;][^/]*=")
_UNQUOTED: Final = re.compile(r'"(?:[^"]|"")*"|`(?:[^`]|``)*`')


def check_postgres(place: str) -> None:
    """Raise InvalidInput unless a place of PostgreSQL has a known form and holds no secret."""
    if _REFERENCE.fullmatch(place) or _SERVICE.fullmatch(place):
        return
    if not place.startswith(("postgresql://", "postgres://")):
        raise InvalidInput(f"a PostgreSQL database is named as {POSTGRES_FORMS}", name="place")
    parts = _URL.fullmatch(place)
    if parts is None or not _is_harmless(parts):
        raise InvalidInput(
            "an address in the catalog holds a user, hosts, ports, the name of a database and known parameters such as "
            "sslmode, and nothing else: no password and no other parameter; put a password into ~/.pgpass or "
            "PGPASSWORD, or the whole address into an environment variable (env:NAME) or a file that only its owner "
            "reads (file:PATH)",
            name="place",
        )


def _is_harmless(parts: re.Match[str]) -> bool:
    """Return whether all parts of a PostgreSQL address are on the lists; libpq decodes each of them once."""
    user, database = (_decoded(parts[name] or "") for name in ("user", "database"))
    hosts = _decoded(parts["hosts"])
    if not (_NAME.fullmatch(user) and _NAME.fullmatch(database) and _HOST_LIST.fullmatch(hosts)):
        return False
    if "@" in database or "," in user:
        return False
    for parameter in parts["query"].split("&") if parts["query"] else ():
        name, equals, value = parameter.partition("=")
        pattern = _PARAMETERS.get(unquote(name))
        if not equals or pattern is None or not pattern.fullmatch(_decoded(value)):
            return False
    return True


def _decoded(text: str) -> str:
    """Return a part of an address decoded, with compatible characters such as a wide colon normalized."""
    return unicodedata.normalize("NFKC", unquote(text))


def check_spark(place: str) -> None:
    """Raise InvalidInput unless a place of Spark has a known form and holds no secret."""
    if _REFERENCE.fullmatch(place) or any(form.fullmatch(place) for form in (_LOCAL, _CONNECT, _MASTER)):
        return
    if place.startswith(("sc://", "spark://", "local")):
        raise InvalidInput(
            f"a Spark table must be addressed as {SPARK_FORMS}, with no parameters but use_ssl, user_id, session_id "
            "and grpc_max_message_size; put an address with a token into an environment variable (env:NAME) or a file "
            "that only its owner reads (file:PATH)",
            name="place",
        )
    raise InvalidInput(f"a Spark table must be addressed as {SPARK_FORMS}", name="place")


def check_file_address(path: str) -> None:
    """Raise InvalidInput unless a path or address of files has a known form and holds no secret."""
    if not _URI.match(path) and "://" not in path:
        return
    if not _STORE.fullmatch(path) or _QUERY.search(path.partition("://")[2]):
        raise InvalidInput(
            "files are named by a path, or as s3a://bucket/path, gs://bucket/path, hdfs://host:port/path or "
            "abfss://container@account/path; keys and tokens belong into Spark's own settings, not into the address",
            name="source",
        )


def check_table_name(name: str) -> None:
    """Raise InvalidInput if the name of a table looks like the rest of an address."""
    if any(sign in _UNQUOTED.sub("", name) for sign in "@:/=?;"):
        raise InvalidInput(
            "after # stands the name of a table, such as public.visits; other signs than letters, digits and _ are "
            "written in quotes, and a # in a password ends the address: keep that one in env:NAME or file:PATH",
            name="table",
        )


def redact(text: str) -> str:
    """Return a source as an error may show it: a plain path unchanged, anything that may hold a secret hidden."""
    return "(not shown)" if any(sign in text for sign in "@=;?&%") or "://" in text else text


def read_reference(place: str) -> str | None:
    """Return the address in env:NAME or file:PATH, None for any other place; it may hold a secret."""
    if not _REFERENCE.fullmatch(place):
        return None
    kind, _, rest = place.partition(":")
    if kind == "file":
        return _read_private_file(Path(rest).expanduser())
    found = os.environ.get(rest, "")
    if not found:
        raise SourceMissing(f"the environment variable {rest} is not set; it holds the address of the database")
    return found


def _read_private_file(path: Path) -> str:
    """Return the content of a file; raise unless only its owner can read it. The mode is that of the opened file."""
    text, mode = "", 0
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            mode = status.st_mode
            if stat.S_ISREG(mode) and not mode & 0o077:
                text = file.read(ADDRESS_MAX).decode().strip()
    except (OSError, UnicodeDecodeError):
        mode = 0
    if mode & 0o077 and stat.S_ISREG(mode):
        raise NotPermitted(f"{path} holds an address with a password and others can use it; run chmod 600 on it")
    if not text:
        raise SourceMissing(f"{path} cannot be read; it holds the address of the database")
    return text
