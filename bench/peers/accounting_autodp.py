# mypy: ignore-errors
"""autodp's Rényi composition, case by case."""

import json
import sys

from autodp import mechanism_zoo, transformer_zoo


def upper(case):
    """Return autodp's upper bound."""
    mechanisms, counts = [], []
    for kind, *parameters, count in case["parts"]:
        if kind == "sgd":
            sigma, rate = parameters
            base = mechanism_zoo.GaussianMechanism(sigma=sigma)
            base.replace_one = False
            sampling = transformer_zoo.AmplificationBySampling(PoissonSampling=True)
            mechanisms.append(sampling(base, rate, improved_bound_flag=True))
        elif kind == "laplace":
            mechanisms.append(mechanism_zoo.LaplaceMechanism(b=1 / parameters[0]))
        elif kind == "gaussian":
            mechanisms.append(mechanism_zoo.GaussianMechanism(sigma=parameters[0]))
        else:
            mechanisms.append(mechanism_zoo.ExponentialMechanism(eps=parameters[0]))
        counts.append(count)
    return float(transformer_zoo.Composition()(mechanisms, counts).get_approxDP(case["delta"]))


cases = json.loads(sys.argv[1])["cases"]
print(json.dumps({"bounds": [[0.0, upper(case)] for case in cases]}))
