"""Who asks a server, and what they may do there.

roles        the table of actions and roles, and `may`, which everything goes through
people       who is known, and what they were granted
tokens       for programs: shown once, narrowed, expiring, revocable
logins       for browsers: cookies, the proof that a page of ours made a request, and OpenID Connect
passwords    argon2id hashes, and delays after failed attempts
audit        what was refused and what was changed
access       `Access`, which binds them over one database
"""

from tacit.server.access.access import Access
from tacit.server.access.audit import DONE, AuditRecord
from tacit.server.access.logins import NewSession, Oidc, OidcSettings
from tacit.server.access.passwords import Hasher
from tacit.server.access.people import Person
from tacit.server.access.roles import Action, Actor, Grant, Limit, Resource, Role, may
from tacit.server.access.tokens import NewToken, Token

__all__ = [
    "DONE",
    "Access",
    "Action",
    "Actor",
    "AuditRecord",
    "Grant",
    "Hasher",
    "Limit",
    "NewSession",
    "NewToken",
    "Oidc",
    "OidcSettings",
    "Person",
    "Resource",
    "Role",
    "Token",
    "may",
]
