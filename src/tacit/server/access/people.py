"""People and their grants.

Promise: a person who was removed has no rights from that moment on, and the name is never given to another, because
past answers and charges refer to it. The last owner cannot be removed. Passwords have at least 12 characters and are
stored as argon2id hashes. What a role permits is in `roles`; authentication is in `credentials` and `oidc`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tacit.ledger.clock import time_of
from tacit.privacy.errors import InvalidInput, NameTaken, NotPermitted, TooLarge, UnknownName, WrongType
from tacit.server.access.audit import DONE, Audit
from tacit.server.access.passwords import PASSWORD_LENGTH_MAX, Hasher
from tacit.server.access.roles import Action, Grant, Resource, Role
from tacit.server.database import Database, Execute

PASSWORD_LENGTH_MIN: Final = 12
PASSWORD_LETTERS_MIN: Final = 4
PEOPLE_MAX: Final = 100_000
GRANTS_MAX: Final = 1_000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Person:
    """A person, who may have been removed; `grants` are sorted by role, data set and table."""

    name: str
    is_active: bool
    created_at: datetime
    grants: tuple[Grant, ...] = ()


class People:
    """The people and grants in the server's database."""

    def __init__(self, database: Database, clock: Callable[[], int], hasher: Hasher, audit: Audit) -> None:
        self._database = database
        self._clock = clock
        self._hasher = hasher
        self._audit = audit

    def add(
        self, name: str, password: str | None = None, *, is_demo: bool = False, by: str = "", address: str = ""
    ) -> None:
        """Add a person without grants; `is_demo` marks a person whose password is printed."""
        check_name(name)
        hashed = None if password is None else self._hasher.hash_password(checked_password(name, password))
        with self._database.transaction() as execute:
            taken = execute("SELECT name, is_active FROM people WHERE folded = ?", (name.casefold(),))
            if taken:
                raise NameTaken(_name_taken(*taken[0]), name="name", value=name)
            if execute("SELECT COUNT(*) FROM people", ())[0][0] >= PEOPLE_MAX:
                raise TooLarge(f"there are {PEOPLE_MAX:,} people already, which is the limit", name="name")
            execute(
                "INSERT INTO people (name, folded, password_hash, is_active, created_at_us, is_demo) "
                "VALUES (?, ?, ?, 1, ?, ?)",
                (name, name.casefold(), hashed, self._clock(), int(is_demo)),
            )
            self._audit.add(execute, by, Action.PEOPLE_WRITE, Resource(person=name), DONE, address)

    def set_password(self, name: str, password: str, *, by: str = "", address: str = "") -> None:
        """Set a password and end all browser sessions of the person."""
        hashed = self._hasher.hash_password(checked_password(name, password))
        with self._database.transaction() as execute:
            require_active(execute, name)
            if execute(
                "SELECT 1 FROM people WHERE name = ? AND is_demo = 1", (name,)
            ):  # the token of a demo person is printed, too
                execute("UPDATE tokens SET is_revoked = 1 WHERE person = ?", (name,))
            execute("UPDATE people SET password_hash = ?, is_demo = 0 WHERE name = ?", (hashed, name))
            execute("DELETE FROM browsers WHERE person = ?", (name,))
            self._audit.add(execute, by, "password.write", Resource(person=name), DONE, address)

    def remove(self, name: str, *, by: str = "", address: str = "") -> None:
        """Deactivate a person and delete their grants, sessions and tokens."""
        with self._database.transaction() as execute:
            require_active(execute, name)
            _require_another_owner(execute, name)
            execute("UPDATE people SET is_active = 0, password_hash = NULL WHERE name = ?", (name,))
            execute("DELETE FROM grants WHERE person = ?", (name,))
            execute("DELETE FROM browsers WHERE person = ?", (name,))
            execute("UPDATE tokens SET is_revoked = 1 WHERE person = ?", (name,))
            self._audit.add(execute, by, "people.remove", Resource(person=name), DONE, address)

    def grant(self, name: str, grant: Grant, *, by: str = "", address: str = "") -> None:
        """Add a grant to those of a person."""
        with self._database.transaction() as execute:
            require_active(execute, name)
            if execute("SELECT COUNT(*) FROM grants WHERE person = ?", (name,))[0][0] >= GRANTS_MAX:
                raise TooLarge(
                    f"{name} has {GRANTS_MAX:,} grants already; grant a role on a whole data set", name="name"
                )
            execute(
                "INSERT INTO grants (person, role, dataset, table_name) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (name, *_row(grant)),
            )
            self._audit.add(execute, by, f"grant.{grant.role}", _resource(name, grant), DONE, address)

    def withdraw(self, name: str, grant: Grant, *, by: str = "", address: str = "") -> None:
        """Delete a grant of a person, or raise UnknownName."""
        where = "person = ? AND role = ? AND dataset = ? AND table_name = ?"
        with self._database.transaction() as execute:
            require_active(execute, name)
            if not execute(f"SELECT 1 FROM grants WHERE {where}", (name, *_row(grant))):
                raise UnknownName(f"{name} has no grant {grant}; withdraw one that was granted", name="role")
            if grant.role is Role.OWNER:
                _require_another_owner(execute, name)
            execute(f"DELETE FROM grants WHERE {where}", (name, *_row(grant)))
            self._audit.add(execute, by, f"withdraw.{grant.role}", _resource(name, grant), DONE, address)

    def all(self) -> list[Person]:
        """Return all people sorted by name, including those who were removed."""
        rows = self._database.read("SELECT name, is_active, created_at_us FROM people ORDER BY name")
        grants: dict[str, list[Grant]] = {}
        found = "SELECT person, role, dataset, table_name FROM grants ORDER BY person, role, dataset, table_name"
        for person, *grant in self._database.read(found):
            grants.setdefault(person, []).append(grant_of(*grant))
        return [Person(name, bool(active), time_of(at), tuple(grants.get(name, ()))) for name, active, at in rows]

    def one(self, name: str) -> Person:
        """Return a person, or raise UnknownName."""
        rows = is_name(name) and self._database.read(
            "SELECT p.is_active, p.created_at_us, g.role, g.dataset, g.table_name FROM people p "
            "LEFT JOIN grants g ON g.person = p.name WHERE p.name = ? ORDER BY g.role, g.dataset, g.table_name",
            (name,),
        )
        if not rows:
            raise UnknownName("there is no person of this name; list them with: tacit access people list", name="name")
        return Person(name, bool(rows[0][0]), time_of(rows[0][1]), grants_of(row[2:] for row in rows))

    def password_hash(self, name: str) -> str | None:
        """Return the password hash of an active person, or None."""
        found = "SELECT password_hash FROM people WHERE name = ? AND is_active = 1"
        rows = is_name(name) and self._database.read(found, (name,))
        return rows[0][0] if rows else None

    def is_active(self, name: str) -> bool | None:
        """Return whether a person is active, or None for an unknown name."""
        rows = is_name(name) and self._database.read("SELECT is_active FROM people WHERE name = ?", (name,))
        return bool(rows[0][0]) if rows else None

    def renew_hash(self, name: str, old: str, password: str) -> None:
        """Replace a hash of old parameters after the password was verified."""
        hashed = self._hasher.hash_password(password)
        changed = "UPDATE people SET password_hash = ? WHERE name = ? AND password_hash = ?"
        self._database.write((changed, (hashed, name, old)))

    def has_demo(self) -> bool:
        """Return whether a person of the demo, whose password was printed, is active."""
        return bool(self._database.read("SELECT 1 FROM people WHERE is_demo = 1 AND is_active = 1 LIMIT 1"))

    def is_empty(self) -> bool:
        """Return whether no person was ever added."""
        return not self._database.read("SELECT 1 FROM people LIMIT 1")


def require_active(execute: Execute, name: str) -> None:
    """Raise UnknownName unless the name is that of an active person."""
    rows = is_name(name) and execute("SELECT is_active FROM people WHERE name = ?", (name,))
    if not rows:
        raise UnknownName("there is no person of this name; list them with: tacit access people list", name="name")
    if not rows[0][0]:
        raise UnknownName(f"{name} was removed; use another name", name="name", value=name)


def is_name(name: object) -> bool:
    """Return whether a name is valid for a person: safe in URLs and distinct from tokens."""
    return isinstance(name, str) and bool(_NAME.fullmatch(name)) and not name.startswith("tacit_")


def check_name(name: object) -> None:
    """Raise InvalidInput unless a name is valid."""
    if not is_name(name):
        raise InvalidInput(
            "a person's name has 1 to 64 letters, digits and . _ @ + -, and begins with a letter or digit", name="name"
        )


def checked_password(name: str, password: object) -> str:
    """Return a password that meets the rules; no error holds it."""
    if not isinstance(password, str):
        raise WrongType("a password is a text", name="password")
    if len(password) < PASSWORD_LENGTH_MIN:
        raise InvalidInput(f"a password needs at least {PASSWORD_LENGTH_MIN} characters", name="password")
    if len(password) > PASSWORD_LENGTH_MAX:
        raise TooLarge(f"a password has at most {PASSWORD_LENGTH_MAX:,} characters", name="password")
    if password.casefold() == name.casefold() or len(set(password)) < PASSWORD_LETTERS_MIN:
        raise InvalidInput(
            "the password equals the name or has too few different characters; choose another", name="password"
        )
    try:
        password.encode()
    except UnicodeEncodeError:
        raise InvalidInput("a password must be text that can be written as UTF-8", name="password") from None
    return password


def grants_of(rows: Any) -> tuple[Grant, ...]:
    """Return the grants in rows of (role, dataset, table); rows with a null role, of an outer join, are left out."""
    return tuple(grant_of(*row) for row in rows if row[0] is not None)


def grant_of(role: str, dataset: str, table: str) -> Grant:
    """Return the grant of a database row."""
    return Grant(Role(role), dataset or None, table or None)


def _row(grant: Grant) -> tuple[str, str, str]:
    return str(grant.role), grant.dataset or "", grant.table or ""


def _resource(name: str, grant: Grant) -> Resource:
    return Resource(grant.dataset, grant.table, name)


def _require_another_owner(execute: Execute, name: str) -> None:
    owners = {row[0] for row in execute("SELECT person FROM grants WHERE role = ?", (str(Role.OWNER),))}
    if owners == {name}:
        raise NotPermitted(f"{name} is the last owner; add another one first: tacit access grant NAME --role owner")


def _name_taken(name: str, is_active: int) -> str:
    if is_active:
        return f"a person {name} exists already"
    return f"{name} was removed, and its answers and charges stay on record; choose another name"
