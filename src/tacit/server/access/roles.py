"""Permissions: one table of actions and roles, and `may`, the pure function that evaluates it.

A grant gives a person a role everywhere, on a data set or on a table. A token may carry a `TokenLimit`: it permits what
both the grants of its person and the limit permit.
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
    """Actions that need a permission."""

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
    FINDING_READ = "finding.read"
    FINDING_WRITE = "finding.write"
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
    """The object of an action; `person` is its owner, if it has one."""

    dataset: str | None = None
    table: str | None = None
    person: str | None = None

    def __str__(self) -> str:
        place = ".".join(part for part in (self.dataset, self.table) if part) or "everything"
        if self.person is None:
            return place
        return f"person {self.person}" + ("" if self.dataset is None else f" on {place}")


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
            raise InvalidInput("a grant on a table also needs its data set: pass dataset=", name="dataset")
        if self.role is Role.OWNER and self.dataset is not None:
            raise InvalidInput(
                "the role owner cannot be limited to a data set; grant curator on the data set instead", name="role"
            )

    def __str__(self) -> str:
        return f"{self.role} on {_place(self.dataset, self.table)}"


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """The restriction of a token: to the rights of a role, to a data set, or to both."""

    role: Role | None = None
    dataset: str | None = None


@dataclass(frozen=True, slots=True)
class Actor:
    """An authenticated caller: the person's grants, and the limit of the token that was used."""

    name: str
    grants: tuple[Grant, ...] = ()
    token_id: str | None = None
    is_session: bool = False
    csrf_sha256: str | None = None
    limit: TokenLimit | None = None


class GrantScope(Enum):
    """What a grant must cover for an action."""

    PLACE = auto()
    """The table or data set of the resource."""

    EVERYTHING = auto()
    """Everything: grants on a data set or table do not count."""

    PERSON = auto()
    """Anything; the owner of the resource decides."""

    NONE = auto()
    """No grant is needed; every authenticated caller is permitted."""


class Reach(Enum):
    """Whose resources a role permits the action on."""

    ALL = auto()
    OWN = auto()
    NOT_OTHERS = auto()  # one's own, and those without an owner


@dataclass(frozen=True, slots=True)
class PermissionRule:
    """One row of the permission table."""

    kind: GrantScope
    reach: Mapping[Role, Reach]
    of_part: Reach | None = None
    """Reach of a table-level grant on resources of the whole data set; None if it permits nothing there."""

    never_own: bool = False
    """Whether the action is refused on one's own resources."""


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
    Action.FINDING_READ: PermissionRule(GrantScope.PLACE, {_O: _ALL, _C: _ALL, _U: _ALL}),
    Action.FINDING_WRITE: PermissionRule(GrantScope.PLACE, {_O: _ALL, _C: _ALL, _U: _ALL}),
    Action.LEDGER_READ: PermissionRule(GrantScope.EVERYTHING, {_O: _ALL, _U: _ALL}),
    Action.LEDGER_EXPORT: PermissionRule(GrantScope.EVERYTHING, {_O: _ALL}),
    Action.AUDIT_READ: PermissionRule(GrantScope.EVERYTHING, {_O: _ALL, _U: _ALL}),
    Action.PEOPLE_READ: PermissionRule(GrantScope.EVERYTHING, {_O: _ALL}),
    Action.PEOPLE_WRITE: PermissionRule(GrantScope.EVERYTHING, {_O: _ALL}),
    Action.TOKEN_READ: PermissionRule(GrantScope.PERSON, {_O: _ALL, _C: _OWN, _A: _OWN, _U: _OWN}),
    Action.TOKEN_WRITE: PermissionRule(GrantScope.PERSON, {_O: _ALL, _C: _OWN, _A: _OWN, _U: _OWN}),
    Action.JOB_READ: PermissionRule(GrantScope.PLACE, {_O: _ALL, _C: _OWN, _A: _OWN}, of_part=_OWN),
    Action.JOB_CANCEL: PermissionRule(GrantScope.PLACE, {_O: _ALL, _C: _OWN, _A: _OWN}, of_part=_OWN),
    Action.METRICS_READ: PermissionRule(GrantScope.EVERYTHING, {_O: _ALL, _U: _ALL}),
    Action.SERVER_READ: PermissionRule(GrantScope.NONE, {_O: _ALL, _C: _ALL, _A: _ALL, _U: _ALL}),
}

UNLIMITED_ONLY: Final = frozenset({Action.TOKEN_WRITE})
"""Actions refused to every limited token, which could otherwise create a token without limits."""


def may(actor: Actor, action: Action, resource: Resource) -> bool:
    """Return whether an actor may perform an action on a resource."""
    rule = RULES[action]
    if rule.kind is GrantScope.NONE:
        return True
    if rule.never_own and resource.person in (None, actor.name):
        return False  # an unknown owner could be the actor
    scopes = [(grant.role, grant.dataset, grant.table) for grant in actor.grants]
    if not any(_allows(rule, actor.name, scope, resource) for scope in scopes):
        return False
    if actor.limit is None:
        return True
    roles = Role if actor.limit.role is None else (actor.limit.role,)
    limits = [(role, actor.limit.dataset, None) for role in roles]
    return action not in UNLIMITED_ONLY and any(_allows(rule, actor.name, scope, resource) for scope in limits)


def _allows(rule: PermissionRule, name: str, scope: tuple[Role, str | None, str | None], resource: Resource) -> bool:
    """Return whether a role on a scope permits the action."""
    role, dataset, table = scope
    reach = rule.reach.get(role)
    if reach is None:
        return False
    if dataset is not None:
        if rule.kind is GrantScope.EVERYTHING:
            return False
        if rule.kind is GrantScope.PERSON:
            # resources of other people may belong to any data set, so a grant on one reaches only one's own
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
