# mypy: ignore-errors
"""dp-accounting's better bound of its privacy loss distribution and its Rényi accountant, case by case."""

import json
import sys

import dp_accounting as da
from dp_accounting import pld, rdp


def composed(accountant, case):
    """Return the accountant with every part of a case composed; bounded range only the Rényi one knows."""
    for kind, *parameters, count in case["parts"]:
        if kind == "sgd":
            event = da.PoissonSampledDpEvent(parameters[1], da.GaussianDpEvent(parameters[0]))
        elif kind == "laplace":
            event = da.LaplaceDpEvent(1 / parameters[0])
        elif kind == "gaussian":
            event = da.GaussianDpEvent(parameters[0])
        else:
            event = da.ZCDpEvent(parameters[0] ** 2 / 8)
        accountant.compose(event, count)
    return accountant


def upper(case):
    """Return the least upper bound of the accountants that take the case."""
    bounds = [composed(rdp.RdpAccountant(), case).get_epsilon(case["delta"])]
    if all(part[0] != "exponential" for part in case["parts"]):
        bounds.append(composed(pld.PLDAccountant(), case).get_epsilon(case["delta"]))
    return min(bounds)


cases = json.loads(sys.argv[1])["cases"]
print(json.dumps({"bounds": [[0.0, float(upper(case))] for case in cases]}))
