"""The one door: who asks, what they may do, and the record of what was refused.

`Access` binds people, tokens, browser sessions, the throttle and the audit over one database, and keeps no state of its
own. Every method may be called from several threads and processes at once.
`by` and `address` say who made a change and from where; nothing stands for the command line of the folder.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final

from tacit.ledger.transactions import system_clock
from tacit.privacy.errors import Forged, NotKnown, NotPermitted, Throttled
from tacit.server.access import logins
from tacit.server.access.audit import DONE, Audit, AuditRecord, shown_stranger
from tacit.server.access.logins import Browsers, NewSession
from tacit.server.access.passwords import PASSWORD_LENGTH_MAX, Hasher, Throttle, address_key, guess_key
from tacit.server.access.people import People, Person, require_active
from tacit.server.access.roles import Action, Actor, Grant, Resource, Role, may
from tacit.server.access.tokens import NewToken, Token, Tokens
from tacit.server.database import Database

LOGIN: Final = "login"
WRONG: Final = "the name or the password is wrong"
LOCKS: Final = 64


class Access:
    """People, their grants and their proofs of who they are."""

    def __init__(
        self, database: Database, *, clock: Callable[[], int] = system_clock, hasher: Hasher | None = None
    ) -> None:
        self._database = database
        self._hasher = hasher or Hasher()
        self._audit = Audit(database, clock)
        self._throttle = Throttle(database, clock)
        self._people = People(database, clock, self._hasher, self._audit)
        self._tokens = Tokens(database, clock, self._audit)
        self._browsers = Browsers(database, clock)
        self._checking = [Lock() for _ in range(LOCKS)]

    @property
    def database(self) -> Database:
        """Where all of it lies."""
        return self._database

    def close(self) -> None:
        """End the threads that hash passwords, and close the database."""
        self._hasher.close()
        self._database.close()

    @property
    def is_empty(self) -> bool:
        """Whether nobody was added yet."""
        return self._people.is_empty()

    @property
    def has_demo_accounts(self) -> bool:
        """Whether somebody may log in with a password that `tacit demo` has printed."""
        return self._people.has_demo()

    def add_person(
        self, name: str, password: str | None = None, *, is_demo: bool = False, by: str = "", address: str = ""
    ) -> None:
        """Make somebody known, without any grant; without a password they use tokens or another log-in service.

        `is_demo` marks one whose password is printed, until it is changed.
        """
        self._people.add(name, password, by, address, is_demo=is_demo)

    def set_password(self, name: str, password: str, *, by: str = "", address: str = "") -> None:
        """Set a new password for a person, who is logged out everywhere."""
        self._people.set_password(name, password, by, address)

    def remove_person(self, name: str, *, by: str = "", address: str = "") -> None:
        """Take every right, token and session from somebody at once; the last owner stays."""
        self._people.remove(name, by, address)

    def people(self) -> list[Person]:
        """Return everybody, those who were removed, too."""
        return self._people.all()

    def person(self, name: str) -> Person:
        """Return one person; UnknownName if nobody ever had the name."""
        return self._people.one(name)

    def grant(self, name: str, grant: Grant, *, by: str = "", address: str = "") -> None:
        """Give a person a role."""
        self._people.grant(name, grant, by, address)

    def withdraw(self, name: str, grant: Grant, *, by: str = "", address: str = "") -> None:
        """Take a role back; the last owner keeps theirs."""
        self._people.withdraw(name, grant, by, address)

    def create_token(
        self,
        person: str,
        *,
        label: str = "",
        days: int = 90,
        role: Role | str | None = None,
        dataset: str | None = None,
        by: str = "",
        address: str = "",
    ) -> NewToken:
        """Make a token; `role` and `dataset` narrow what the person's grants give, and never widen it."""
        return self._tokens.create(person, label, days, role, dataset, by, address)

    def tokens(self, person: str | None = None) -> list[Token]:
        """Return the tokens of a person or of everybody, newest first."""
        return self._tokens.all(person)

    def token(self, token_id: str) -> Token:
        """Return one token."""
        return self._tokens.one(token_id)

    def revoke_token(self, token_id: str, *, by: str = "", address: str = "") -> None:
        """End a token at once, for every process of the server."""
        self._tokens.revoke(token_id, by, address)

    def login(self, name: str, password: str, address: str = "") -> NewSession:
        """Begin a browser's session; unknown people and wrong passwords look alike and take the same time."""
        guessed = guess_key(name, address)
        keys = [guessed, address_key(address)]
        with self._checking[int(keys[1][-8:], 16) % LOCKS]:  # guesses of one address are looked at one after another
            try:
                self._throttle.check(keys)
                hashed = self._people.password_hash(name)
                is_right = self._hasher.matches(hashed or self._hasher.nobodys_password, password[:PASSWORD_LENGTH_MAX])
            except Throttled as error:
                self._note_login(name, error.code, address)
                raise
            if hashed is None or not is_right or len(password) > PASSWORD_LENGTH_MAX:
                self._throttle.note(keys)
                self._note_login(name, NotKnown.code, address)
                raise NotKnown(WRONG)
        self._throttle.clear(guessed)
        if self._hasher.is_outdated(hashed):
            self._people.renew_hash(name, hashed, password)
        return self.session_for(name, address=address)

    def session_for(self, name: str, *, create: bool = False, address: str = "") -> NewSession:
        """Begin a session for somebody whom another log-in service vouches for.

        `create` makes them known, without grants, if nobody has the name yet.
        """
        if create and self._people.is_active(name) is None:
            self.add_person(name, address=address)
        if not self._people.is_active(name):
            self._note_login(name, NotKnown.code, address)
            raise NotKnown("nobody here is known by that name; ask an owner to add you")
        with self._database.transaction() as execute:
            require_active(execute, name)
            session = self._browsers.begin(execute, name)
            self._audit.add(execute, name, LOGIN, Resource(), DONE, address)
        return session

    def logout(self, text: str) -> None:
        """End the session of a cookie."""
        self._browsers.end(text)

    def csrf_of(self, text: str) -> str:
        """Return the CSRF token that goes with a cookie, to be shown on a page again."""
        return logins.csrf_of(text)

    def actor_of_token(self, text: str, address: str = "") -> Actor:
        """Return whom a token stands for; NotKnown if it is unknown, revoked or expired."""
        return self._tokens.actor(text, address)

    def actor_of_session(self, text: str, address: str = "") -> Actor:
        """Return whom a cookie stands for; NotKnown if it is unknown or has ended."""
        try:
            return self._browsers.actor(text)
        except NotKnown as error:
            self._audit.note("", "session.use", Resource(), error.code, address)
            raise

    def check_csrf(self, actor: Actor, text: str | None, address: str = "") -> None:
        """Refuse a browser's request that no page of its own session made; Forged."""
        try:
            logins.check_csrf(actor, text)
        except Forged as error:
            self._audit.note(actor.name, "session.use", Resource(person=actor.name), error.code, address)
            raise

    def require(self, actor: Actor, action: Action, resource: Resource, address: str = "") -> None:
        """Let an actor do this to that, or raise NotPermitted and record it."""
        if may(actor, action, resource):
            return
        self._audit.note(actor.name, action, resource, NotPermitted.code, address)
        narrowed = " with this token" if actor.limit is not None else ""
        raise NotPermitted(
            f"{actor.name} may not do {action} on {resource}{narrowed}; ask an owner for a role that may"
        )

    def note(self, actor_name: str, action: Action | str, resource: Resource, code: str, address: str = "") -> None:
        """Record something that was refused or changed elsewhere."""
        self._audit.note(actor_name, action, resource, code, address)

    def audit(self, first: int = 1, limit: int = 100) -> list[AuditRecord]:
        """Return records from number `first` on, 1,000 at most."""
        return self._audit.records(first, limit)

    @property
    def audit_last(self) -> int:
        """The number of the newest record, or 0."""
        return self._audit.last()

    def _note_login(self, name: str, code: str, address: str) -> None:
        is_known = self._people.is_active(name) is not None
        self._audit.note(name if is_known else shown_stranger(name), LOGIN, Resource(), code, address)
