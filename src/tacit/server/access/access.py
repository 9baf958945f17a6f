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
from tacit.server.access.audit import DONE, Audit, masked_stranger
from tacit.server.access.credentials import BrowserSessions, NewSession, Tokens, check_csrf
from tacit.server.access.passwords import PASSWORD_LENGTH_MAX, Hasher, LoginThrottle, address_key, guess_key
from tacit.server.access.people import People, require_active
from tacit.server.access.roles import Action, Actor, Resource, may
from tacit.server.database import Database

LOGIN: Final = "login"
WRONG: Final = "the name or the password is wrong"
LOCKS: Final = 64
"""Locks among which the addresses of logins are divided."""


class Access:
    """Who asks and what they may do; `people`, `tokens` and `audit` are its parts."""

    def __init__(
        self, database: Database, *, clock: Callable[[], int] = system_clock, hasher: Hasher | None = None
    ) -> None:
        self._database = database
        self._hasher = hasher or Hasher()
        self.audit: Final = Audit(database, clock)
        self._throttle = LoginThrottle(database, clock)
        self.people: Final = People(database, clock, self._hasher, self.audit)
        self.tokens: Final = Tokens(database, clock, self.audit)
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

    def login(self, name: str, password: str, address: str = "") -> NewSession:
        """Begin a browser session; an unknown name and a wrong password give the same error after the same time."""
        guessed = guess_key(name, address)
        keys = [guessed, address_key(address)]
        with self._login_locks[int(keys[1][-8:], 16) % LOCKS]:  # logins of one address are checked one after another
            try:
                self._throttle.check(keys)
                hashed = self.people.password_hash(name)
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
            self.people.renew_hash(name, hashed, password)
        return self.session_for(name, address=address)

    def session_for(self, name: str, *, create: bool = False, address: str = "") -> NewSession:
        """Begin a session for a person who was authenticated; `create` adds an unknown one, without grants."""
        if create and self.people.is_active(name) is None:
            self.people.add(name, address=address)
        if not self.people.is_active(name):
            self._record_login(name, NotKnown.code, address)
            raise NotKnown("there is no person of that name; ask an owner to add you")
        with self._database.transaction() as execute:
            require_active(execute, name)
            session = self._sessions.begin(execute, name)
            self.audit.add(execute, name, LOGIN, Resource(), DONE, address)
        return session

    def logout(self, text: str) -> None:
        """End the session of a cookie."""
        self._sessions.end(text)

    def actor_of_token(self, text: str, address: str = "") -> Actor:
        """Return the actor of a token; raise NotKnown if it is unknown, revoked or expired."""
        return self.tokens.actor(text, address)

    def actor_of_session(self, text: str, address: str = "") -> Actor:
        """Return the actor of a session cookie; raise NotKnown if it is unknown or has expired."""
        try:
            return self._sessions.actor(text)
        except NotKnown as error:
            self.audit.record("", "session.use", Resource(), error.code, address)
            raise

    def check_csrf(self, actor: Actor, text: str | None, address: str = "") -> None:
        """Raise Forged, and record it, if a request by session does not carry its CSRF token."""
        try:
            check_csrf(actor, text)
        except Forged as error:
            self.audit.record(actor.name, "session.use", Resource(person=actor.name), error.code, address)
            raise

    def require(self, actor: Actor, action: Action, resource: Resource, address: str = "") -> None:
        """Raise NotPermitted, and record it, unless the actor may perform the action on the resource."""
        if may(actor, action, resource):
            return
        self.audit.record(actor.name, action, resource, NotPermitted.code, address)
        narrowed = " with this token" if actor.limit is not None else ""
        raise NotPermitted(
            f"{actor.name} has no permission for {action} on {resource}{narrowed}; ask an owner for a role that has it"
        )

    def _record_login(self, name: str, code: str, address: str) -> None:
        is_known = self.people.is_active(name) is not None
        self.audit.record(name if is_known else masked_stranger(name), LOGIN, Resource(), code, address)
