# mypy: ignore-errors
"""diffprivlib's noise in its own environment: outputs of its mechanisms for the inputs 0 and 1, as files of numpy."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from diffprivlib import mechanisms

arguments = json.loads(sys.argv[1])
samples, folder = int(arguments["samples"]), Path(arguments["folder"])
laplace = mechanisms.Laplace(epsilon=arguments["epsilon"], sensitivity=1)
path = folder / "diffprivlib Laplace.npy"
np.save(path, np.array([[laplace.randomise(x) for _ in range(samples)] for x in (0.0, 1.0)]))
print(json.dumps({"version": version("diffprivlib"), "outputs": {"Laplace": str(path)}}))
