"""The vocabulary of the package: units, relations, bounds, tables, events, errors and warnings.

Every other package imports this one; it imports none of them.
"""

from tacit.privacy import events
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import TacitError
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import ForeignKey, Relation, Unit
from tacit.privacy.warnings import CountedDeltaWarning

__all__ = [
    "Bounds",
    "Categories",
    "Column",
    "CountedDeltaWarning",
    "ForeignKey",
    "Kind",
    "Limits",
    "Relation",
    "Schema",
    "Table",
    "TacitError",
    "Unit",
    "events",
]
