# mypy: ignore-errors
"""prv-accountant's certified bounds, case by case; a case that takes too long or fails has none."""

import json
import signal
import sys

from prv_accountant import (
    GaussianMechanism,
    LaplaceMechanism,
    PoissonSubsampledGaussianMechanism,
    PRVAccountant,
    PureDPMechanism,
)

arguments = json.loads(sys.argv[1])


def bounds(case):
    """Return the lower and the upper bound."""
    mechanisms, counts = [], []
    for kind, *parameters, count in case["parts"]:
        if kind == "sgd":
            sigma, rate = parameters
            mechanisms.append(PoissonSubsampledGaussianMechanism(noise_multiplier=sigma, sampling_probability=rate))
        elif kind == "laplace":
            mechanisms.append(LaplaceMechanism(mu=parameters[0]))
        elif kind == "gaussian":
            mechanisms.append(GaussianMechanism(parameters[0]))
        else:
            mechanisms.append(PureDPMechanism(parameters[0]))
        counts.append(count)
    error = 0.2 if max(counts) > 50_000 else 0.01
    accountant = PRVAccountant(
        prvs=mechanisms, max_self_compositions=counts, eps_error=error, delta_error=case["delta"] / 1000
    )
    low, _, high = accountant.compute_epsilon(delta=case["delta"], num_self_compositions=counts)
    # its pair for the exponential mechanism is that of pure privacy, so its lower bound is not one for bounded range
    exact = all(part[0] != "exponential" for part in case["parts"])
    return [float(low) if exact else 0.0, float(high)]


def within_time(case):
    """Return the bounds, or None after the time limit or an error of the library."""
    signal.alarm(int(arguments["timeout_each_s"]))
    try:
        return bounds(case)
    except Exception:
        return None
    finally:
        signal.alarm(0)


def out_of_time(*_):
    """End the case that is being worked on."""
    raise TimeoutError


signal.signal(signal.SIGALRM, out_of_time)
print(json.dumps({"bounds": [within_time(case) for case in arguments["cases"]]}))
