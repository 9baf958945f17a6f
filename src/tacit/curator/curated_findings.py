"""Findings of attacks in the ledger of a curator: kept without people, read back as `tacit.attack.Finding`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

from tacit.ledger import KeptFinding, Ledger
from tacit.privacy.arguments import instance
from tacit.privacy.errors import EmptyInput

if TYPE_CHECKING:
    from tacit.attack import Finding


@dataclass(frozen=True, slots=True)
class CuratedFinding(KeptFinding):
    """A finding in the ledger; its document is read when `finding` is."""

    @classmethod
    def of(cls, kept: KeptFinding) -> Self:
        """Return a finding of the ledger as a curated one."""
        return cls(**{one.name: getattr(kept, one.name) for one in fields(kept)})

    @property
    def finding(self) -> Finding:
        """The finding; raises InvalidInput for a document of another schema."""
        from tacit.attack import Finding

        return Finding.from_dict(self.document)


def keep(ledger: Ledger, finding: Finding, dataset: str | None, by: str) -> CuratedFinding:
    """Keep a finding without people, about the permit of its claim, or about a data set."""
    from tacit.attack import Finding

    permit = instance("finding", finding, Finding, "a Finding of tacit.attack").permit
    if dataset is None:
        if permit is None:
            raise EmptyInput(
                "the claim of the finding names no permit; name the data set that it is about", name="dataset"
            )
        dataset = ledger.permit(permit).dataset
    document = finding.without_people().to_dict()
    Finding.from_dict(document)  # raises for what could not be read again
    return CuratedFinding.of(ledger.keep_finding(dataset, document, permit=permit, by=by))
