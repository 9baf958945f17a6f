"""Authentication and authorization of a server's callers.

roles            the permission table, and `may`, which evaluates it
people           people and their grants
credentials      API tokens (shown once, restrictable, expiring, revocable); browser sessions and their CSRF tokens
oidc             login through an OpenID Connect provider
passwords        argon2id hashes, and delays after failed logins
audit            records of refusals and changes
access           `Access`, which binds them over one database
"""

from tacit.server.access.access import Access
from tacit.server.access.audit import DONE, AuditRecord
from tacit.server.access.credentials import NewSession, NewToken, Token, csrf_of
from tacit.server.access.oidc import Oidc, OidcSettings
from tacit.server.access.passwords import Hasher
from tacit.server.access.people import Person
from tacit.server.access.roles import Action, Actor, Grant, Resource, Role, TokenLimit, may

__all__ = [
    "DONE",
    "Access",
    "Action",
    "Actor",
    "AuditRecord",
    "Grant",
    "Hasher",
    "NewSession",
    "NewToken",
    "Oidc",
    "OidcSettings",
    "Person",
    "Resource",
    "Role",
    "Token",
    "TokenLimit",
    "csrf_of",
    "may",
]
