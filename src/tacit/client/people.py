"""Who is known to a server, what they may do, and their tokens; for owners, and for everyone their own tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tacit.client.failures import understood
from tacit.client.wire import Wire


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was made just now: its text is shown this once, and not by `repr`."""

    id: str
    text: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"NewToken(id={self.id!r}, expires_at={self.expires_at.isoformat()!r})"


class People:
    """People, grants and tokens."""

    def __init__(self, wire: Wire) -> None:
        self._wire: Final = wire

    def all(self) -> list[dict[str, Any]]:
        """Return everyone with their grants."""
        document = self._wire.get("people")
        with understood("the list of people"):
            return [dict(one) for one in document]

    def add(self, name: str, password: str | None = None) -> dict[str, Any]:
        """Make somebody known; without a password she comes with a token, or through OIDC."""
        return dict(
            self._wire.post("people", body={"name": name, **({} if password is None else {"password": password})})
        )

    def remove(self, name: str) -> None:
        """Let somebody be known no longer; her tokens end at once."""
        self._wire.delete("people", name)

    def grant(self, name: str, role: str, *, dataset: str | None = None, table: str | None = None) -> None:
        """Give somebody a role: everywhere, on a data set, or on a table of one."""
        self._wire.post("people", name, "grants", body=_grant(role, dataset, table))

    def withdraw(self, name: str, role: str, *, dataset: str | None = None, table: str | None = None) -> None:
        """Take a role back."""
        self._wire.delete("people", name, "grants", body=_grant(role, dataset, table))

    def tokens(self) -> list[dict[str, Any]]:
        """Return the tokens that may be seen, without their texts."""
        document = self._wire.get("tokens")
        with understood("the list of tokens"):
            return [dict(one) for one in document]

    def create_token(
        self,
        person: str | None = None,
        *,
        label: str = "",
        days: int = 90,
        role: str | None = None,
        dataset: str | None = None,
    ) -> NewToken:
        """Make a token for oneself, or for another as an owner; `role` and `dataset` narrow what it can do."""
        stated = {"person": person, "label": label, "days": days, "role": role, "dataset": dataset}
        document = self._wire.post("tokens", body={name: one for name, one in stated.items() if one is not None})
        with understood("the token"):
            expires_at = datetime.fromisoformat(document["expires_at"])
            return NewToken(str(document["id"]), str(document["token"]), expires_at)

    def revoke_token(self, token: str) -> None:
        """End a token, by its id."""
        self._wire.delete("tokens", token)


def _grant(role: str, dataset: str | None, table: str | None) -> Mapping[str, str]:
    stated = {"role": role, "dataset": dataset, "table": table}
    return {name: one for name, one in stated.items() if one is not None}
