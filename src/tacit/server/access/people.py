"""People and their grants: who is known, what they were given, and what ends when they go.

Promise: somebody who was removed has no rights from that moment on, and their name is not given to another, for answers
and charges of the past carry it; the last owner stays. Passwords have at least 12 characters and are stored as argon2id
hashes. Not here: what a role may do (`roles`) and how somebody proves who they are (`tokens`, `logins`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tacit.ledger.permits import time_of
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
    """Somebody who is known, or was; `grants` are in the order of their names."""

    name: str
    is_active: bool
    created_at: datetime
    grants: tuple[Grant, ...] = ()


class People:
    """Everybody, with their grants."""

    def __init__(self, database: Database, clock: Callable[[], int], hasher: Hasher, audit: Audit) -> None:
        self._database = database
        self._clock = clock
        self._hasher = hasher
        self._audit = audit

    def add(self, name: str, password: str | None, by: str, address: str, *, is_demo: bool = False) -> None:
        """Make somebody known, without any grant; `is_demo` marks one whose password is printed."""
        check_name(name)
        hashed = None if password is None else self._hasher.hash_password(checked_password(name, password))
        with self._database.transaction() as execute:
            taken = execute("SELECT name, is_active FROM people WHERE folded = ?", (name.casefold(),))
            if taken:
                raise NameTaken(_taken(*taken[0]), name="name", value=name)
            if execute("SELECT COUNT(*) FROM people", ())[0][0] >= PEOPLE_MAX:
                raise TooLarge(f"there are {PEOPLE_MAX:,} people already", name="name")
            execute(
                "INSERT INTO people (name, folded, password_hash, is_active, created_at_us, is_demo) "
                "VALUES (?, ?, ?, 1, ?, ?)",
                (name, name.casefold(), hashed, self._clock(), int(is_demo)),
            )
            self._audit.add(execute, by, Action.PEOPLE_WRITE, Resource(person=name), DONE, address)

    def set_password(self, name: str, password: str, by: str, address: str) -> None:
        """Give somebody a new password, and end what browsers do in their name."""
        hashed = self._hasher.hash_password(checked_password(name, password))
        with self._database.transaction() as execute:
            require_active(execute, name)
            if execute("SELECT 1 FROM people WHERE name = ? AND is_demo = 1", (name,)):  # so is a token printed
                execute("UPDATE tokens SET is_revoked = 1 WHERE person = ?", (name,))
            execute("UPDATE people SET password_hash = ?, is_demo = 0 WHERE name = ?", (hashed, name))
            execute("DELETE FROM browsers WHERE person = ?", (name,))
            self._audit.add(execute, by, "password.write", Resource(person=name), DONE, address)

    def remove(self, name: str, by: str, address: str) -> None:
        """Take every right from somebody, at once and for good."""
        with self._database.transaction() as execute:
            require_active(execute, name)
            _require_another_owner(execute, name)
            execute("UPDATE people SET is_active = 0, password_hash = NULL WHERE name = ?", (name,))
            execute("DELETE FROM grants WHERE person = ?", (name,))
            execute("DELETE FROM browsers WHERE person = ?", (name,))
            execute("UPDATE tokens SET is_revoked = 1 WHERE person = ?", (name,))
            self._audit.add(execute, by, "people.remove", Resource(person=name), DONE, address)

    def grant(self, name: str, grant: Grant, by: str, address: str) -> None:
        """Give somebody a role; what they have already stays as it is."""
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
            self._audit.add(execute, by, f"grant.{grant.role}", _granted(name, grant), DONE, address)

    def withdraw(self, name: str, grant: Grant, by: str, address: str) -> None:
        """Take a role back."""
        where = "person = ? AND role = ? AND dataset = ? AND table_name = ?"
        with self._database.transaction() as execute:
            require_active(execute, name)
            if not execute(f"SELECT 1 FROM grants WHERE {where}", (name, *_row(grant))):
                raise UnknownName(f"{name} is not {grant}; see what was granted and withdraw exactly that", name="role")
            if grant.role is Role.OWNER:
                _require_another_owner(execute, name)
            execute(f"DELETE FROM grants WHERE {where}", (name, *_row(grant)))
            self._audit.add(execute, by, f"withdraw.{grant.role}", _granted(name, grant), DONE, address)

    def all(self) -> list[Person]:
        """Return everybody in the order of their names, those who were removed, too."""
        rows = self._database.read("SELECT name, is_active, created_at_us FROM people ORDER BY name")
        grants: dict[str, list[Grant]] = {}
        found = "SELECT person, role, dataset, table_name FROM grants ORDER BY person, role, dataset, table_name"
        for person, *grant in self._database.read(found):
            grants.setdefault(person, []).append(grant_of(*grant))
        return [Person(name, bool(active), time_of(at), tuple(grants.get(name, ()))) for name, active, at in rows]

    def one(self, name: str) -> Person:
        """Return one person."""
        rows = is_name(name) and self._database.read(
            "SELECT p.is_active, p.created_at_us, g.role, g.dataset, g.table_name FROM people p "
            "LEFT JOIN grants g ON g.person = p.name WHERE p.name = ? ORDER BY g.role, g.dataset, g.table_name",
            (name,),
        )
        if not rows:
            raise UnknownName("nobody is known by this name; see who is with: tacit access people list", name="name")
        return Person(name, bool(rows[0][0]), time_of(rows[0][1]), grants_of(row[2:] for row in rows))

    def password_hash(self, name: str) -> str | None:
        """Return the hash of an active person's password, or nothing where there is none."""
        found = "SELECT password_hash FROM people WHERE name = ? AND is_active = 1"
        rows = is_name(name) and self._database.read(found, (name,))
        return rows[0][0] if rows else None

    def is_active(self, name: str) -> bool | None:
        """Say whether somebody has rights; nothing where nobody ever had the name."""
        rows = is_name(name) and self._database.read("SELECT is_active FROM people WHERE name = ?", (name,))
        return bool(rows[0][0]) if rows else None

    def renew_hash(self, name: str, old: str, password: str) -> None:
        """Hash a password that was just proved with the parameters of today."""
        hashed = self._hasher.hash_password(password)
        changed = "UPDATE people SET password_hash = ? WHERE name = ? AND password_hash = ?"
        self._database.write((changed, (hashed, name, old)))

    def has_demo(self) -> bool:
        """Say whether somebody may log in with a password that was printed."""
        return bool(self._database.read("SELECT 1 FROM people WHERE is_demo = 1 AND is_active = 1 LIMIT 1"))

    def is_empty(self) -> bool:
        """Say whether nobody was ever added."""
        return not self._database.read("SELECT 1 FROM people LIMIT 1")


def require_active(execute: Execute, name: str) -> None:
    """Refuse a name that nobody has, or only somebody who was removed."""
    rows = is_name(name) and execute("SELECT is_active FROM people WHERE name = ?", (name,))
    if not rows:
        raise UnknownName("nobody is known by this name; see who is with: tacit access people list", name="name")
    if not rows[0][0]:
        raise UnknownName(f"{name} was removed; add somebody under another name", name="name", value=name)


def is_name(name: object) -> bool:
    """Say whether a person may have a name: one that can stand in an address, and be told from others."""
    return isinstance(name, str) and bool(_NAME.fullmatch(name)) and not name.startswith("tacit_")


def check_name(name: object) -> None:
    """Refuse what is not a name."""
    if not is_name(name):
        raise InvalidInput(
            "a person's name has 1 to 64 letters, digits and . _ @ + -, and begins with a letter or digit", name="name"
        )


def checked_password(name: str, password: object) -> str:
    """Return a password that may be used; the error never holds it."""
    if not isinstance(password, str):
        raise WrongType("a password is a text", name="password")
    if len(password) < PASSWORD_LENGTH_MIN:
        raise InvalidInput(f"a password needs at least {PASSWORD_LENGTH_MIN} characters", name="password")
    if len(password) > PASSWORD_LENGTH_MAX:
        raise TooLarge(f"a password has at most {PASSWORD_LENGTH_MAX:,} characters", name="password")
    if password.casefold() == name.casefold() or len(set(password)) < PASSWORD_LETTERS_MIN:
        raise InvalidInput("this password is the name, or few characters over and over; take another", name="password")
    try:
        password.encode()
    except UnicodeEncodeError:
        raise InvalidInput("a password must be text that can be written as UTF-8", name="password") from None
    return password


def grants_of(rows: Any) -> tuple[Grant, ...]:
    """Return the grants in rows of role, data set and table; rows of a person without any hold nothing."""
    return tuple(grant_of(*row) for row in rows if row[0] is not None)


def grant_of(role: str, dataset: str, table: str) -> Grant:
    """Return a grant as it was stored."""
    return Grant(Role(role), dataset or None, table or None)


def _row(grant: Grant) -> tuple[str, str, str]:
    return str(grant.role), grant.dataset or "", grant.table or ""


def _granted(name: str, grant: Grant) -> Resource:
    return Resource(grant.dataset, grant.table, name)


def _require_another_owner(execute: Execute, name: str) -> None:
    owners = {row[0] for row in execute("SELECT person FROM grants WHERE role = ?", (str(Role.OWNER),))}
    if owners == {name}:
        raise NotPermitted(f"{name} is the last owner; make another one first: tacit access grant NAME --role owner")


def _taken(name: str, is_active: int) -> str:
    if is_active:
        return f"{name} is known already"
    return f"{name} was removed, and what was answered and charged in that name stays; take another name"
