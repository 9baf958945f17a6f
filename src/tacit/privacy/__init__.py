"""The vocabulary of the package: units, relations, bounds, tables, events and errors.

Every other package imports this one; it imports none of them.
"""

from tacit.privacy import events
from tacit.privacy.bounds import Bounds, Categories
from tacit.privacy.errors import TacitError
from tacit.privacy.tables import Column, Kind, Limits, Schema, Table
from tacit.privacy.units import ForeignKey, Relation, Unit

__all__ = [
    "Bounds",
    "Categories",
    "Column",
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
