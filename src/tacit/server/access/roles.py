"""Who may do what: one table of actions and roles, and the one function that reads it.

A grant gives a person a role, everywhere or on one data set or table. A token may carry a `Limit`: what it may do is
what its person may do *and* what the limit allows, so a token narrows and never widens. Nothing here asks a database:
`may` is a pure function of an actor, an action and a resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Final

from tacit.privacy import texts
from tacit.privacy.errors import InvalidInput


class Role(StrEnum):
    """Roles that a grant gives."""

    OWNER = "owner"
    CURATOR = "curator"
    ANALYST = "analyst"
    AUDITOR = "auditor"


class Action(StrEnum):
    """What can be asked of a server."""

    CATALOG_READ = "catalog.read"
    CATALOG_WRITE = "catalog.write"
    BUDGET_READ = "budget.read"
    BUDGET_WRITE = "budget.write"
    QUESTION_PREVIEW = "question.preview"
    QUESTION_ASK = "question.ask"
    REQUEST_FILE = "request.file"
    REQUEST_READ = "request.read"
    REQUEST_DECIDE = "request.decide"
    RELEASE_READ = "release.read"
    LEDGER_READ = "ledger.read"
    LEDGER_EXPORT = "ledger.export"
    AUDIT_READ = "audit.read"
    PEOPLE_READ = "people.read"
    PEOPLE_WRITE = "people.write"
    TOKEN_READ = "token.read"
    TOKEN_WRITE = "token.write"
    JOB_READ = "job.read"
    JOB_CANCEL = "job.cancel"
    METRICS_READ = "metrics.read"
    SERVER_READ = "server.read"


@dataclass(frozen=True, slots=True)
class Resource:
    """What an action is done to; `person` is whose it is, where it is somebody's."""

    dataset: str | None = None
    table: str | None = None
    person: str | None = None

    def __str__(self) -> str:
        place = ".".join(part for part in (self.dataset, self.table) if part) or "everything"
        if self.person is None:
            return place
        return f"what is {self.person}'s" + ("" if self.dataset is None else f" on {place}")


@dataclass(frozen=True, slots=True)
class Grant:
    """A role on a table, on a data set and all its tables, or everywhere."""

    role: Role
    dataset: str | None = None
    table: str | None = None

    def __post_init__(self) -> None:
        for what in ("dataset", "table"):
            if getattr(self, what) is not None:
                texts.name(what, getattr(self, what))
        if self.table is not None and self.dataset is None:
            raise InvalidInput("a grant on a table names its data set, too", name="dataset")
        if self.role is Role.OWNER and self.dataset is not None:
            raise InvalidInput("an owner owns everything; grant curator on a data set instead", name="role")

    def __str__(self) -> str:
        return f"{self.role} on {_place(self.dataset, self.table)}"


@dataclass(frozen=True, slots=True)
class Limit:
    """What a token is narrowed to: the rights of a role, a data set, or both."""

    role: Role | None = None
    dataset: str | None = None


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks, as a request has proved it; `grants` are the person's, `limit` is what a token leaves of them."""

    name: str
    grants: tuple[Grant, ...] = ()
    token_id: str | None = None
    is_session: bool = False
    csrf_sha256: str | None = None
    limit: Limit | None = None


class GrantScope(Enum):
    """What a grant must cover to count."""

    PLACE = auto()
    """The table or data set of the resource."""

    EVERYTHING = auto()
    """Nothing less than everywhere."""

    PERSON = auto()
    """Wherever; whose the resource is decides."""

    NOBODY = auto()
    """No grant is needed: who is known at all may."""


class Reach(Enum):
    """Whose resources a role reaches."""

    ALL = auto()
    OWN = auto()
    NOT_OTHERS = auto()  # one's own, and what is nobody's


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """One row of the table."""

    kind: GrantScope
    reach: Mapping[Role, Reach]
    of_part: Reach | None = None
    """Whose resources of a whole data set a grant on one of its tables reaches; none where nothing stands here."""

    never_own: bool = False
    """What is one's own is somebody else's to decide."""


_ALL, _OWN, _NOT_OTHERS = Reach.ALL, Reach.OWN, Reach.NOT_OTHERS
_O, _C, _A, _U = Role.OWNER, Role.CURATOR, Role.ANALYST, Role.AUDITOR

RULES: Final[Mapping[Action, PermissionRule]] = {
    Action.CATALOG_READ: PermissionRule(GrantScope.PLACE, {_O: _ALL, _C: _ALL, _A: _ALL, _U: _ALL}),
    Action.CATALOG_WRITE: PermissionRule(GrantScope.PLACE, {_O: _ALL, _C: _ALL}),
    Action.BUDGET_READ: PermissionRule(
        GrantScope.PLACE, {_O: _ALL, _C: _ALL, _A: _NOT_OTHERS, _U: _ALL}, of_part=_NOT_OTHERS
    ),
    Action.BUDGET_WRITE: PermissionRule(GrantScope.PLACE, {_O: _ALL, _C: _ALL}),
    Action.QUESTION_PREVIEW: PermissionRule(GrantScope.PLACE, {_O: _ALL, _C: _ALL, _A: _ALL}),
    Action.QUESTION_ASK: PermissionRule(GrantScope.PLACE, {_O: _ALL, _C: _ALL, _A: _ALL}),
    Action.REQUEST_FILE: PermissionRule(GrantScope.PLACE, {_A: _NOT_OTHERS}, of_part=_NOT_OTHERS),
    Action.REQUEST_READ: PermissionRule(GrantScope.PLACE, {_O: _ALL, _C: _ALL, _A: _OWN, _U: _ALL}, of_part=_OWN),
    Action.REQUEST_DECIDE: PermissionRule(GrantScope.PLACE, {_O: _ALL, _C: _ALL}, never_own=True),
    Action.RELEASE_READ: PermissionRule(GrantScope.PLACE, {_O: _ALL, _C: _ALL, _A: _OWN}, of_part=_OWN),
    Action.LEDGER_READ: PermissionRule(GrantScope.EVERYTHING, {_O: _ALL, _U: _ALL}),
    Action.LEDGER_EXPORT: PermissionRule(GrantScope.EVERYTHING, {_O: _ALL}),
    Action.AUDIT_READ: PermissionRule(GrantScope.EVERYTHING, {_O: _ALL, _U: _ALL}),
    Action.PEOPLE_READ: PermissionRule(GrantScope.EVERYTHING, {_O: _ALL}),
    Action.PEOPLE_WRITE: PermissionRule(GrantScope.EVERYTHING, {_O: _ALL}),
    Action.TOKEN_READ: PermissionRule(GrantScope.PERSON, {_O: _ALL, _C: _OWN, _A: _OWN, _U: _OWN}),
    Action.TOKEN_WRITE: PermissionRule(GrantScope.PERSON, {_O: _ALL, _C: _OWN, _A: _OWN, _U: _OWN}),
    Action.JOB_READ: PermissionRule(GrantScope.PERSON, {_O: _ALL, _C: _OWN, _A: _OWN}),
    Action.JOB_CANCEL: PermissionRule(GrantScope.PERSON, {_O: _ALL, _C: _OWN, _A: _OWN}),
    Action.METRICS_READ: PermissionRule(GrantScope.EVERYTHING, {_O: _ALL, _U: _ALL}),
    Action.SERVER_READ: PermissionRule(GrantScope.NOBODY, {_O: _ALL, _C: _ALL, _A: _ALL, _U: _ALL}),
}

UNLIMITED_ONLY: Final = frozenset({Action.TOKEN_WRITE})
"""What no narrowed token may do: with it the token could make one that is as wide as its person."""


def may(actor: Actor, action: Action, resource: Resource) -> bool:
    """Say whether an actor may do this to that; every door of the server asks here."""
    rule = RULES[action]
    if rule.kind is GrantScope.NOBODY:
        return True
    if rule.never_own and resource.person in (None, actor.name):
        return False  # whose it is must be known, or it could be one's own
    scopes = [(grant.role, grant.dataset, grant.table) for grant in actor.grants]
    if not any(_allows(rule, actor.name, scope, resource) for scope in scopes):
        return False
    if actor.limit is None:
        return True
    roles = Role if actor.limit.role is None else (actor.limit.role,)
    limits = [(role, actor.limit.dataset, None) for role in roles]
    return action not in UNLIMITED_ONLY and any(_allows(rule, actor.name, scope, resource) for scope in limits)


def _allows(rule: PermissionRule, name: str, scope: tuple[Role, str | None, str | None], resource: Resource) -> bool:
    """Say whether a role on a scope is enough."""
    role, dataset, table = scope
    reach = rule.reach.get(role)
    if reach is None:
        return False
    if dataset is not None:
        if rule.kind is GrantScope.EVERYTHING:
            return False
        if rule.kind is GrantScope.PERSON:
            # other people's things may be of any data set, so a role on one of them reaches only one's own
            return resource.dataset in (None, dataset) and resource.person == name
        if dataset != resource.dataset:
            return False
        if table is not None and table != resource.table:
            if resource.table is not None or rule.of_part is None:
                return False
            reach = rule.of_part
    return _reaches(reach, name, resource)


def _reaches(reach: Reach, name: str, resource: Resource) -> bool:
    if reach is Reach.ALL:
        return True
    return resource.person == name or (reach is Reach.NOT_OTHERS and resource.person is None)


def _place(dataset: str | None, table: str | None) -> str:
    return ".".join(part for part in (dataset, table) if part) or "everything"
