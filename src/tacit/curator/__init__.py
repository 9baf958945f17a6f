"""The curator of a folder: binds its catalog, ledger and engines for the command line, the server and Python.

curator = Curator("clinic")                                   # created if missing
curator.set_budget("visits", epsilon=3.0, delta=1e-7)
curator.add_analyst("ana", budgets={"visits": Budget(epsilon=1.0, delta=1e-8)})
curator.budget("visits").remaining()
"""

from tacit.curator.curator import Curator, PrivacyWarning

__all__ = ["Curator", "PrivacyWarning"]
