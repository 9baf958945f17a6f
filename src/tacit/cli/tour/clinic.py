"""The clinic of the demo: invented patients, the same in every run, in a folder with catalog, budget and analyst.

Seeded randomness is used to invent people, not to protect them. All rows satisfy the bounds of the catalog, so that
nothing is clamped and noise is added to the true values.
"""

from __future__ import annotations

import csv
import random
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tacit.cli.backends import CATALOG, LEDGER
from tacit.privacy import texts
from tacit.privacy.errors import InvalidInput, NameTaken

if TYPE_CHECKING:
    from tacit.curator import Curator

PATIENTS: Final = 4_000
VISITS_MAX: Final = 4
AGE_MAX: Final = 100
COST_MAX: Final = 1_500
SEED: Final = 1854
FIRST_DAY: Final = date(2025, 1, 1)
DAYS: Final = 365
SEXES: Final = ("F", "M")
WARDS: Final = ("eyes", "heart", "lungs", "medicine", "surgery")
TOWNS: Final = (
    "Amberg", "Birkfeld", "Dorla", "Eschen", "Falkau", "Grafen", "Hallein", "Ilmen", "Karst", "Lauen",
    "Marbach", "Norden", "Ostrau", "Pirna", "Quellen", "Rosenau", "Selb", "Talheim", "Urfeld", "Wiesen",
)  # fmt: skip
DIAGNOSES: Final = {"hypertension": 26, "back pain": 20, "asthma": 16, "depression": 15, "diabetes": 14, "migraine": 9}
"""Diagnoses, each with its share of patients in percent."""
COLUMNS: Final = ("patient_id", "age", "sex", "town", "ward", "diagnosis", "cost", "day")


@dataclass(frozen=True, slots=True)
class Patient:
    """One invented patient, with the cost and the day of each visit."""

    patient_id: int
    age: int
    sex: str
    town: str
    ward: str
    diagnosis: str
    visits: tuple[tuple[float, date], ...]


def invented_patients() -> list[Patient]:
    """Return the patients of the clinic."""
    dice = random.Random(SEED)
    shares = list(accumulate(DIAGNOSES.values()))
    names = list(DIAGNOSES)
    return [_invented_patient(number, dice, names, shares) for number in range(1, PATIENTS + 1)]


def write_visits(patients: list[Patient], path: Path) -> None:
    """Write a CSV with one row per visit, ordered by day."""
    rows = [
        (day, one.patient_id, one.age, one.sex, one.town, one.ward, one.diagnosis, cost)
        for one in patients
        for cost, day in one.visits
    ]
    path.touch(mode=0o600)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((*rest, f"{cost:.2f}", day.isoformat()) for day, *rest, cost in sorted(rows))


def _invented_patient(number: int, dice: random.Random, names: list[str], shares: list[int]) -> Patient:
    age = round(dice.triangular(18, 99, 52))
    usual_cost = 180 + 4 * age
    return Patient(
        patient_id=number,
        age=age,
        sex=dice.choice(SEXES),
        town=dice.choice(TOWNS),
        ward=dice.choice(WARDS),
        diagnosis=dice.choices(names, cum_weights=shares)[0],
        visits=tuple(
            (
                round(min(usual_cost * dice.lognormvariate(0, 0.5), COST_MAX), 2),
                FIRST_DAY + timedelta(days=dice.randrange(DAYS)),
            )
            for _ in range(dice.randint(1, VISITS_MAX))
        ),
    )


TABLE: Final = "visits"
FILE: Final = "visits.csv"
ANALYST: Final = "ana"
EPSILON, DELTA = 3.0, 1e-8
EPSILON_ANALYST, DELTA_ANALYST = 1.5, 1e-8


def create_clinic(folder: Path, patients: list[Patient]) -> Curator:
    """Write the visits to a folder, register them, and return the curator."""
    from tacit import Budget
    from tacit.curator import Curator
    from tacit.curator.locked_file import make_private_folder
    from tacit.privacy.bounds import Bounds, Categories
    from tacit.privacy.tables import Limits

    require_new_folder(folder)
    try:
        make_private_folder(folder)
        write_visits(patients, folder / FILE)
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror}", name="folder", value=str(folder)) from None
    curator = Curator(folder)
    try:
        curator.add_table(
            TABLE,
            str(folder / FILE),
            unit="patient_id",
            columns={
                "age": Bounds(0, AGE_MAX),
                "sex": Categories(SEXES),
                "ward": Categories(WARDS),
                "diagnosis": Categories(DIAGNOSES),
                "cost": Bounds(0, COST_MAX),
            },
            limits=Limits(groups_per_unit=1, rows_per_group=VISITS_MAX),
        )
        curator.set_budget(TABLE, EPSILON, DELTA, units=PATIENTS)
        curator.add_analyst(ANALYST, {TABLE: Budget(EPSILON_ANALYST, DELTA_ANALYST)})
    except BaseException:
        curator.close()
        raise
    return curator


def require_new_folder(folder: Path) -> None:
    """Raise NameTaken if the folder already has a catalog, a ledger or visits: the demo starts with a full budget."""
    texts.path("folder", folder)
    if folder.exists() and not folder.is_dir():
        raise NameTaken(f"{folder} is a file; give a new folder", name="folder", value=str(folder))
    for name in (CATALOG, LEDGER, FILE):
        if (folder / name).exists():
            sentence = (
                f"{folder / name} already exists; give a new folder, or serve this one with: tacit serve {folder}"
            )
            raise NameTaken(sentence, name="folder", value=str(folder))
