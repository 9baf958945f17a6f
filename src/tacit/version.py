"""The version of tacit, in a place that every ring can read."""

__version__ = "0.1.0"
