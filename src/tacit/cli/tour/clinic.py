"""A clinic whose patients are invented, the same ones in every run.

This is the one place where seeded randomness belongs: it makes up people, it protects none.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

PATIENTS: Final = 2_000
SEED: Final = 1854
DIAGNOSES: Final = {"hypertension": 26, "back pain": 21, "asthma": 17, "diabetes": 15, "migraine": 13, "arthritis": 8}
"""Diagnoses, with how many of a hundred patients have each."""

WEIGHT_KG_MAX: Final = 200.0
STAY_DAYS_MAX: Final = 60.0


@dataclass(frozen=True, slots=True)
class Patient:
    """One invented person; weights are in quarters of a kilogram, so that sums of them are exact in doubles."""

    age: int
    weight_kg: float
    stay_days: float
    diagnosis: str
    skipped_medicine: bool


def invented_patients() -> list[Patient]:
    """Invent the clinic's patients."""
    dice = random.Random(SEED)
    return [_invented_patient(dice) for _ in range(PATIENTS)]


def _invented_patient(dice: random.Random) -> Patient:
    age = round(dice.triangular(0, 99, 58))
    grown = min(1.0, 0.15 + age / 20)
    weight_kg = min(max(dice.gauss(75, 14) * grown, 3.0), WEIGHT_KG_MAX)
    return Patient(
        age=age,
        weight_kg=round(weight_kg * 4) / 4,
        stay_days=round(min(dice.lognormvariate(1.4, 0.7), STAY_DAYS_MAX) * 4) / 4,
        diagnosis=dice.choices(list(DIAGNOSES), weights=list(DIAGNOSES.values()))[0],
        skipped_medicine=dice.random() < 0.31,
    )
