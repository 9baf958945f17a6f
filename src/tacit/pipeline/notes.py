"""Notes of permits: the forms that the pipeline writes beside a reservation, and their reader.

The forms are stored for good and decide which runs count as failed, so they are apart from the words in which people
see them (`in_words`), which may change:

    failed/REASON/PAYER            a charged run failed: the code of its error or the class of its exception
    seen/REASON/PAYER              the same, after the owner allowed further runs
    step/NUMBER/HORIZON/DIGEST     the last step of a release in steps, with the digest of its state

PAYER is the analyst whose cap was charged; it and its slash are left out where only the data set's budget was. Ledgers
written before these forms hold sentences in their place, which are read alike (`_SENTENCES`) and no longer written. Any
other note is a text of a person, which `read` knows nothing of and `in_words` returns as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

_FORMS: Final = re.compile(
    r"(?P<kind>failed|seen)/(?P<reason>[^/]+)(?:/(?P<payer>.+))?"
    r"|step/(?P<number>\d+)/(?P<horizon>\d+)/(?P<digest>[0-9a-f]{64})"
)
_SENTENCES: Final = re.compile(
    r"(?P<seen>seen by the owner: )?the run failed: (?P<reason>.+?)(?: for (?P<payer>.+))?"
    r"|step (?P<number>\d+) of (?P<horizon>\d+), state (?P<digest>[0-9a-f]{64})"
)


@dataclass(frozen=True, slots=True)
class FailureNote:
    """A charged run that failed."""

    reason: str
    """The code of an error of tacit, or the class of another exception; never its message, which may quote a row."""
    payer: str | None = None
    is_seen: bool = False

    def __str__(self) -> str:
        kind = "seen" if self.is_seen else "failed"
        return f"{kind}/{self.reason}" + (f"/{self.payer}" if self.payer else "")

    @property
    def seen(self) -> FailureNote:
        """The note after the owner has allowed further runs."""
        return replace(self, is_seen=True)

    @property
    def words(self) -> str:
        """The note as a sentence."""
        seen = "seen by the owner: " if self.is_seen else ""
        return f"{seen}the run failed: {self.reason}" + (f" for {self.payer}" if self.payer else "")


@dataclass(frozen=True, slots=True)
class StepNote:
    """The last step of a release in steps."""

    number: int
    horizon: int
    digest: str

    def __str__(self) -> str:
        return f"step/{self.number}/{self.horizon}/{self.digest}"

    @property
    def sentence(self) -> str:
        """The form of older ledgers."""
        return f"step {self.number} of {self.horizon}, state {self.digest}"

    @property
    def words(self) -> str:
        """The note as a sentence."""
        return self.sentence


Note: TypeAlias = FailureNote | StepNote


def read(text: str) -> Note | None:
    """Return the note that the pipeline wrote, in its form of any version; None for every other text."""
    found = _FORMS.fullmatch(text) or _SENTENCES.fullmatch(text)
    if found is None:
        return None
    parts = found.groupdict()
    if parts["number"] is not None:
        return StepNote(int(parts["number"]), int(parts["horizon"]), parts["digest"])
    return FailureNote(parts["reason"], parts["payer"], parts.get("kind") == "seen" or bool(parts.get("seen")))


def in_words(text: str) -> str:
    """Return a note of a permit for people to read."""
    note = read(text)
    return text if note is None else note.words
