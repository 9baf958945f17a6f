"""Authentication, authorization and their audit behind one class over one database.

`Access` is stateless, so its methods may be called from several threads and processes at once. The parameters `by` and
`address` name the person and the client of a change; both are empty for the command line.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Final

from tacit.ledger.clock import system_clock
from tacit.privacy.errors import Forged, NotKnown, NotPermitted, Throttled
from tacit.server.access.audit import DONE, Audit, AuditRecord, masked_stranger
from tacit.server.access.login_throttle import LoginThrottle, address_key, guess_key
from tacit.server.access.passwords import PASSWORD_LENGTH_MAX, Hasher
from tacit.server.access.people import People, Person, require_active
from tacit.server.access.roles import Action, Actor, Grant, Resource, Role, may
from tacit.server.access.sessions import BrowserSessions, NewSession, check_csrf
from tacit.server.access.tokens import NewToken, Token, Tokens
from tacit.server.database import Database

LOGIN: Final = "login"
WRONG: Final = "the name or the password is wrong"
LOCKS: Final = 64
"""Locks among which the addresses of logins are divided."""


class Access:
    """People, their grants, and the tokens and sessions that identify them."""

    def __init__(
        self, database: Database, *, clock: Callable[[], int] = system_clock, hasher: Hasher | None = None
    ) -> None:
        self._database = database
        self._hasher = hasher or Hasher()
        self._audit = Audit(database, clock)
        self._throttle = LoginThrottle(database, clock)
        self._people = People(database, clock, self._hasher, self._audit)
        self._tokens = Tokens(database, clock, self._audit)
        self._sessions = BrowserSessions(database, clock)
        self._login_locks = [Lock() for _ in range(LOCKS)]

    @property
    def database(self) -> Database:
        """The server's own database."""
        return self._database

    def close(self) -> None:
        """Stop the threads that hash passwords, and close the database."""
        self._hasher.close()
        self._database.close()

    @property
    def is_empty(self) -> bool:
        """Whether no person was added yet."""
        return self._people.is_empty()

    @property
    def has_demo_accounts(self) -> bool:
        """Whether an account of `tacit demo`, whose password was printed, is active."""
        return self._people.has_demo()

    def add_person(
        self, name: str, password: str | None = None, *, is_demo: bool = False, by: str = "", address: str = ""
    ) -> None:
        """Add a person without grants; one without a password uses tokens or OpenID Connect.

        `is_demo` marks an account whose password is printed, until the password is changed.
        """
        self._people.add(name, password, by, address, is_demo=is_demo)

    def set_password(self, name: str, password: str, *, by: str = "", address: str = "") -> None:
        """Set the password of a person and end all their sessions."""
        self._people.set_password(name, password, by, address)

    def remove_person(self, name: str, *, by: str = "", address: str = "") -> None:
        """Deactivate a person with all grants, tokens and sessions; the last owner cannot be removed."""
        self._people.remove(name, by, address)

    def people(self) -> list[Person]:
        """Return all people, including those who were removed."""
        return self._people.all()

    def person(self, name: str) -> Person:
        """Return a person, or raise UnknownName."""
        return self._people.one(name)

    def grant(self, name: str, grant: Grant, *, by: str = "", address: str = "") -> None:
        """Grant a role to a person."""
        self._people.grant(name, grant, by, address)

    def withdraw(self, name: str, grant: Grant, *, by: str = "", address: str = "") -> None:
        """Withdraw a grant; that of the last owner cannot be withdrawn."""
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
        """Create a token; `role` and `dataset` restrict it to a part of the person's rights."""
        return self._tokens.create(person, label, days, role, dataset, by, address)

    def tokens(self, person: str | None = None) -> list[Token]:
        """Return the tokens of a person, or of all, newest first."""
        return self._tokens.all(person)

    def token(self, token_id: str) -> Token:
        """Return a token, or raise UnknownName."""
        return self._tokens.one(token_id)

    def revoke_token(self, token_id: str, *, by: str = "", address: str = "") -> None:
        """Revoke a token, at once and for every process of the server."""
        self._tokens.revoke(token_id, by, address)

    def login(self, name: str, password: str, address: str = "") -> NewSession:
        """Begin a browser session; an unknown name and a wrong password give the same error after the same time."""
        guessed = guess_key(name, address)
        keys = [guessed, address_key(address)]
        with self._login_locks[int(keys[1][-8:], 16) % LOCKS]:  # logins of one address are checked one after another
            try:
                self._throttle.check(keys)
                hashed = self._people.password_hash(name)
                is_right = self._hasher.matches(hashed or self._hasher.dummy_hash, password[:PASSWORD_LENGTH_MAX])
            except Throttled as error:
                self._record_login(name, error.code, address)
                raise
            if hashed is None or not is_right or len(password) > PASSWORD_LENGTH_MAX:
                self._throttle.record_failure(keys)
                self._record_login(name, NotKnown.code, address)
                raise NotKnown(WRONG)
        self._throttle.clear(guessed)
        if self._hasher.is_outdated(hashed):
            self._people.renew_hash(name, hashed, password)
        return self.session_for(name, address=address)

    def session_for(self, name: str, *, create: bool = False, address: str = "") -> NewSession:
        """Begin a session for a person who was authenticated; `create` adds an unknown one, without grants."""
        if create and self._people.is_active(name) is None:
            self.add_person(name, address=address)
        if not self._people.is_active(name):
            self._record_login(name, NotKnown.code, address)
            raise NotKnown("there is no account of that name; ask an owner to add you")
        with self._database.transaction() as execute:
            require_active(execute, name)
            session = self._sessions.begin(execute, name)
            self._audit.add(execute, name, LOGIN, Resource(), DONE, address)
        return session

    def logout(self, text: str) -> None:
        """End the session of a cookie."""
        self._sessions.end(text)

    def actor_of_token(self, text: str, address: str = "") -> Actor:
        """Return the actor of a token; raise NotKnown if it is unknown, revoked or expired."""
        return self._tokens.actor(text, address)

    def actor_of_session(self, text: str, address: str = "") -> Actor:
        """Return the actor of a session cookie; raise NotKnown if it is unknown or has expired."""
        try:
            return self._sessions.actor(text)
        except NotKnown as error:
            self._audit.record("", "session.use", Resource(), error.code, address)
            raise

    def check_csrf(self, actor: Actor, text: str | None, address: str = "") -> None:
        """Raise Forged, and record it, if a request by session does not carry its CSRF token."""
        try:
            check_csrf(actor, text)
        except Forged as error:
            self._audit.record(actor.name, "session.use", Resource(person=actor.name), error.code, address)
            raise

    def require(self, actor: Actor, action: Action, resource: Resource, address: str = "") -> None:
        """Raise NotPermitted, and record it, unless the actor may perform the action on the resource."""
        if may(actor, action, resource):
            return
        self._audit.record(actor.name, action, resource, NotPermitted.code, address)
        narrowed = " with this token" if actor.limit is not None else ""
        raise NotPermitted(
            f"{actor.name} has no permission for {action} on {resource}{narrowed}; ask an owner for a role that has it"
        )

    def record(self, actor_name: str, action: Action | str, resource: Resource, code: str, address: str = "") -> None:
        """Write an audit record of a refusal or a change."""
        self._audit.record(actor_name, action, resource, code, address)

    def audit(self, first: int = 1, limit: int = 100) -> list[AuditRecord]:
        """Return audit records from number `first` on, at most 1,000."""
        return self._audit.records(first, limit)

    @property
    def audit_last(self) -> int:
        """The number of the newest audit record, or 0."""
        return self._audit.last()

    def _record_login(self, name: str, code: str, address: str) -> None:
        is_known = self._people.is_active(name) is not None
        self._audit.record(name if is_known else masked_stranger(name), LOGIN, Resource(), code, address)
