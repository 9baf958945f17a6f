"""People, tokens and records of the audit as objects for programs and as rows for people."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tacit.cli.kit import Screen

if TYPE_CHECKING:
    from tacit.server.access import AuditRecord, Grant, Person, Token

PEOPLE: Final = ("name", "may", "since")
TOKENS: Final = ("token", "of", "label", "narrowed to", "expires", "last used", "state")
AUDIT: Final = ("number", "at", "who", "what", "on", "outcome", "times", "from")


def grant_object(grant: Grant) -> dict[str, Any]:
    """A grant for programs."""
    return {"role": str(grant.role), "dataset": grant.dataset, "table": grant.table}


def person_object(person: Person) -> dict[str, Any]:
    """A person for programs."""
    return {
        "name": person.name,
        "is_active": person.is_active,
        "created_at": moment(person.created_at),
        "grants": [grant_object(one) for one in person.grants],
    }


def token_object(token: Token) -> dict[str, Any]:
    """What is known of a token, for programs."""
    return {
        "id": token.id,
        "person": token.person,
        "label": token.label,
        "role": None if token.role is None else str(token.role),
        "dataset": token.dataset,
        "created_at": moment(token.created_at),
        "expires_at": moment(token.expires_at),
        "last_used_at": None if token.last_used_at is None else moment(token.last_used_at),
        "is_revoked": token.is_revoked,
    }


def record_object(record: AuditRecord) -> dict[str, Any]:
    """A record of the audit for programs."""
    return {
        "number": record.number,
        "at": moment(record.at),
        "actor": record.actor,
        "action": record.action,
        "dataset": record.resource.dataset,
        "table": record.resource.table,
        "person": record.resource.person,
        "code": record.code,
        "address": record.address,
        "count": record.count,
    }


def show_people(screen: Screen, people: list[Person]) -> None:
    """Show people as a table, or say that there is nobody."""
    if screen.as_json:
        screen.show_object({"people": [person_object(one) for one in people]})
    elif people:
        screen.show_table(PEOPLE, [(one.name, _rights(one), moment(one.created_at)) for one in people])
    else:
        screen.console.print("nobody is known here yet; add the first with: tacit access people add NAME")


def show_tokens(screen: Screen, tokens: list[Token], now: datetime) -> None:
    """Show tokens as a table, without their secrets, which nobody knows any more."""
    if screen.as_json:
        screen.show_object({"tokens": [token_object(one) for one in tokens]})
    elif tokens:
        screen.show_table(TOKENS, [_token_row(one, now) for one in tokens])
    else:
        screen.console.print("there are no tokens")


def show_audit(screen: Screen, records: list[AuditRecord]) -> None:
    """Show records of the audit as a table."""
    if screen.as_json:
        screen.show_object({"records": [record_object(one) for one in records]})
    elif records:
        screen.show_table(AUDIT, [_record_row(one) for one in records])
    else:
        screen.console.print("nothing was refused or changed yet")


def moment(at: datetime) -> str:
    """A time to the second."""
    return at.isoformat(timespec="seconds")


def _rights(person: Person) -> str:
    if not person.is_active:
        return "removed"
    return ", ".join(map(str, person.grants)) or "nothing yet"


def _token_row(token: Token, now: datetime) -> tuple[str, ...]:
    state = "revoked" if token.is_revoked else "expired" if token.expires_at <= now else "valid"
    narrowed = " on ".join(part for part in (token.role, token.dataset) if part) or "-"
    used = "never" if token.last_used_at is None else moment(token.last_used_at)
    return token.id, token.person, token.label, narrowed, moment(token.expires_at), used, state


def _record_row(record: AuditRecord) -> tuple[str, ...]:
    return (
        str(record.number),
        moment(record.at),
        record.actor or "-",
        record.action,
        str(record.resource),
        record.code,
        str(record.count),
        record.address or "-",
    )
