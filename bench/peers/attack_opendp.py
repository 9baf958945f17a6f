# mypy: ignore-errors
"""OpenDP's noise in its own environment: outputs of its measurements for the inputs 0 and 1, as files of numpy."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib")
arguments = json.loads(sys.argv[1])
samples, folder = int(arguments["samples"]), Path(arguments["folder"])
domain = dp.vector_domain(dp.atom_domain(T="f64", nan=False))
measurements = {
    "Laplace": dp.m.make_laplace(domain, dp.l1_distance(T="f64"), 1 / arguments["epsilon"]),
    "Gaussian": dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), arguments["sigma"]),
}
outputs = {}
for name, measurement in measurements.items():
    path = folder / f"opendp {name}.npy"
    np.save(path, np.array([measurement(np.full(samples, x)) for x in (0.0, 1.0)]))
    outputs[name] = str(path)
print(json.dumps({"version": version("opendp"), "outputs": outputs}))
