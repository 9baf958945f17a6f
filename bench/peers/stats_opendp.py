# mypy: ignore-errors
"""OpenDP's statistics in its own environment: many answers for each data set, statistic and epsilon.

"opendp" hides the number of rows: a mean is a noisy sum over a noisy count, half of epsilon each, as its Context
divides it. "opendp, n public" is told the number of rows, where it has such a form. Quantiles choose among 1,001
candidates, evenly spread over the bounds. Sums are computed once and get their noise many times.
"""

import json
import sys
import time

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib", "idealized-numerics")
arguments = json.loads(sys.argv[1])
repeats, bins = int(arguments["repeats"]), int(arguments["bins"])
ends = time.perf_counter() + float(arguments["seconds"])
answers = []


def noisy(transformation, data, epsilon, apart=1):
    """Return a function that adds fresh noise to what a transformation makes of the data."""
    scale = float(transformation.map(apart)) / epsilon * (1 + 1e-12)  # what its search for a scale finds, at once
    measurement = dp.m.make_laplace(transformation.output_domain, transformation.output_metric, scale)
    assert (transformation >> measurement).map(apart) <= epsilon
    exact = transformation(data)
    return lambda: measurement(exact)


def quantile(space, data, share, epsilon, lower, upper):
    """Return a function that chooses a candidate."""
    candidates = np.linspace(lower, upper, 1001).tolist()
    measurement = space >> dp.m.then_private_quantile(dp.max_divergence(), candidates, share, (1 + 1e-12) / epsilon)
    # its promise is in proportion to the scale, by a factor that depends on the share
    factor = measurement.map(1) / epsilon
    measurement = space >> dp.m.then_private_quantile(
        dp.max_divergence(), candidates, share, factor * (1 + 1e-9) / epsilon
    )
    assert measurement.map(1) <= epsilon
    return lambda: measurement(data)


def statistics(values, lower, upper, epsilon):
    """Yield a function a statistic."""
    rows, data = len(values), values.tolist()
    atom = dp.atom_domain(bounds=(lower, upper), nan=False)
    space = dp.vector_domain(atom), dp.symmetric_distance()
    sized = dp.vector_domain(atom, size=rows), dp.symmetric_distance()
    count = space >> dp.t.then_count()
    total = dp.t.make_bounded_float_checked_sum(rows, (lower, upper))
    counted, summed = noisy(count, data, epsilon / 2), noisy(total, data, epsilon / 2)
    edges = np.linspace(lower, upper, bins + 1)[1:-1].tolist()
    plain = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    histogram = (
        plain >> dp.t.then_find_bin(edges) >> dp.t.then_count_by_categories(list(range(bins)), null_category=False)
    )
    yield "opendp", "count", noisy(count, data, epsilon)
    yield "opendp", "sum", noisy(total, data, epsilon)
    yield "opendp", "mean", lambda: min(max(summed() / max(counted(), 1), lower), upper)
    yield "opendp", "histogram", noisy(histogram, data, epsilon)
    yield "opendp, n public", "mean", noisy(sized >> dp.t.then_mean(), data, epsilon, 2)
    yield "opendp, n public", "variance", noisy(sized >> dp.t.then_variance(), data, epsilon, 2)
    yield "opendp", "median", quantile(space, data, 0.5, epsilon, lower, upper)
    yield "opendp", "quantile 0.9", quantile(space, data, 0.9, epsilon, lower, upper)


asked = [(index, epsilon) for index in range(len(arguments["sets"])) for epsilon in arguments["epsilons"]]
for place, (index, epsilon) in enumerate(asked):
    if time.perf_counter() > ends:
        break
    one = arguments["sets"][index]
    values, (lower, upper) = np.load(one["path"]).astype(np.float64), map(float, one["bounds"])
    share_s = max(0.0, ends - time.perf_counter()) / (len(asked) - place) / 4
    for kind, name, call in statistics(values, lower, upper, epsilon):
        found, until = [], time.perf_counter() + share_s
        while len(found) < repeats and (len(found) < 3 or time.perf_counter() < until):
            found.append(call())
            if time.perf_counter() > ends:
                break
        answers.append({"set": index, "epsilon": epsilon, "kind": kind, "statistic": name, "values": found})
print(json.dumps({"answers": answers}))
