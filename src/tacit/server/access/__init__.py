"""Who asks a server, and what they may do there.

roles       the table of actions and roles, and `may`, which everything goes through
people      who is known, and what they were granted
tokens      for programs: shown once, narrowed, expiring, revocable
browsers    for browsers: cookies, and the proof that a page of ours made a request
throttle    waiting after failures
audit       what was refused and what was changed
oidc        logging in at another service
access      `Access`, which binds them over one database
"""

from tacit.server.access.access import Access
from tacit.server.access.audit import DONE, AuditRecord
from tacit.server.access.browsers import NewSession
from tacit.server.access.hashing import Hasher
from tacit.server.access.oidc import Oidc, OidcSettings
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
