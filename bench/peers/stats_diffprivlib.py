# mypy: ignore-errors
"""diffprivlib's statistics in its own environment: many answers for each data set, statistic and epsilon.

It protects the values of one row, and takes the number of rows for public. Each answer reads all of the data, so there
are fewer of them where data are large. Its counts stay below the public length of an array, so that it counts the
people who are in one half of it.
"""

import json
import sys
import time
import warnings

import numpy as np
from diffprivlib import tools

warnings.simplefilter("ignore")
arguments = json.loads(sys.argv[1])
repeats, bins = int(arguments["repeats"]), int(arguments["bins"])
ends = time.perf_counter() + float(arguments["seconds"])
answers = []


def statistics(values, bounds, epsilon):
    """Return a function a statistic."""
    rows = len(values)
    asked = {"epsilon": epsilon, "bounds": bounds}
    return {
        "count": lambda: int(tools.count_nonzero(np.arange(2 * rows) < rows, epsilon=epsilon)),
        "sum": lambda: float(tools.sum(values, **asked)),
        "mean": lambda: float(tools.mean(values, **asked)),
        "variance": lambda: float(tools.var(values, **asked)) * rows / (rows - 1),
        "median": lambda: float(tools.median(values, **asked)),
        "quantile 0.9": lambda: float(tools.quantile(values, 0.9, **asked)),
        "histogram": lambda: tools.histogram(values, epsilon=epsilon, bins=bins, range=bounds)[0].tolist(),
    }


asked = [(index, epsilon) for index in range(len(arguments["sets"])) for epsilon in arguments["epsilons"]]
for place, (index, epsilon) in enumerate(asked):
    if time.perf_counter() > ends:
        break
    one = arguments["sets"][index]
    values, bounds = np.load(one["path"]).astype(np.float64), tuple(map(float, one["bounds"]))
    share_s = max(0.0, ends - time.perf_counter()) / (len(asked) - place) / 7
    for name, call in statistics(values, bounds, epsilon).items():
        found, failed, until = [], 0, time.perf_counter() + share_s
        while len(found) < repeats and (len(found) < 3 or time.perf_counter() < until):
            try:
                found.append(call())
            except RuntimeError:  # its quantiles of data with many equal values end in NaN now and then
                failed += 1
            if failed > repeats or time.perf_counter() > ends:
                break
        if found:
            answers.append(
                {"set": index, "epsilon": epsilon, "kind": "diffprivlib", "statistic": name, "values": found}
            )
print(json.dumps({"answers": answers}))
