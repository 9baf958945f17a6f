"""The clinic as a curator's folder: what is public about its table, what may be spent, and who may ask."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tacit.cli.catalog.place import CATALOG, LEDGER
from tacit.cli.tour import clinic
from tacit.privacy import texts
from tacit.privacy.errors import InvalidInput, NameTaken

if TYPE_CHECKING:
    from tacit.curator import Curator

TABLE: Final = "visits"
FILE: Final = "visits.csv"
ANALYST: Final = "ana"
EPSILON, DELTA = 3.0, 1e-8
EPSILON_ANALYST, DELTA_ANALYST = 1.5, 1e-8


def clinic_in(folder: Path, patients: list[clinic.Patient]) -> Curator:
    """Write the visits into a folder, register them there, and return its curator."""
    from tacit.curator import Curator
    from tacit.curator.catalog_file import make_private
    from tacit.ledger import Budget
    from tacit.privacy.bounds import Bounds, Categories
    from tacit.privacy.tables import Limits

    refuse_what_is_there(folder)
    try:
        make_private(folder)
        clinic.write_visits(patients, folder / FILE)
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror}", name="folder", value=str(folder)) from None
    curator = Curator(folder)
    try:
        curator.add_table(
            TABLE,
            str(folder / FILE),
            unit="patient_id",
            columns={
                "age": Bounds(0, clinic.AGE_MAX),
                "sex": Categories(clinic.SEXES),
                "ward": Categories(clinic.WARDS),
                "diagnosis": Categories(clinic.DIAGNOSES),
                "cost": Bounds(0, clinic.COST_MAX),
            },
            limits=Limits(groups_per_unit=1, rows_per_group=clinic.VISITS_MAX),
        )
        curator.set_budget(TABLE, EPSILON, DELTA, units=clinic.PATIENTS)
        curator.add_analyst(ANALYST, {TABLE: Budget(EPSILON_ANALYST, DELTA_ANALYST)})
    except BaseException:
        curator.close()
        raise
    return curator


def refuse_what_is_there(folder: Path) -> None:
    """Refuse a folder that holds something of a curator already: the demo begins with a full budget."""
    texts.path("folder", folder)
    if folder.exists() and not folder.is_dir():
        raise NameTaken(f"{folder} is a file; name a new folder", name="folder", value=str(folder))
    for name in (CATALOG, LEDGER, FILE):
        if (folder / name).exists():
            sentence = (
                f"{folder / name} is there already; name a new folder, or open this one with: tacit serve {folder}"
            )
            raise NameTaken(sentence, name="folder", value=str(folder))
