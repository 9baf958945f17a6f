# mypy: ignore-errors
"""OpenDP's noise in its own environment: vectors in samples a second, scalars in microseconds."""

import json
import statistics
import sys
import time

import numpy as np
import opendp.prelude as dp

dp.enable_features("contrib")
arguments = json.loads(sys.argv[1])
scale, size, repeats = float(arguments["scale"]), int(arguments["size"]), int(arguments["repeats"])


def median_s(call) -> float:
    """Return the median seconds of a call, after one that is not counted."""
    call()
    taken = []
    for _ in range(repeats):
        started_s = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started_s)
    return statistics.median(taken)


int_atom, float_atom = dp.atom_domain(T="i32"), dp.atom_domain(T="f64", nan=False)
ints, floats = np.zeros(size, dtype=np.int32), np.zeros(size)
vector = {
    "discrete Laplace, int": (dp.m.make_laplace(dp.vector_domain(int_atom), dp.l1_distance(T="i32"), scale), ints),
    "Laplace, float": (dp.m.make_laplace(dp.vector_domain(float_atom), dp.l1_distance(T="f64"), scale), floats),
    "discrete Gaussian, int": (dp.m.make_gaussian(dp.vector_domain(int_atom), dp.l2_distance(T="i32"), scale), ints),
    "Gaussian, float": (dp.m.make_gaussian(dp.vector_domain(float_atom), dp.l2_distance(T="f64"), scale), floats),
}
scalar = {
    "Laplace, one int": (dp.m.make_laplace(int_atom, dp.absolute_distance(T="i32"), scale), 5),
    "Laplace, one float": (dp.m.make_laplace(float_atom, dp.absolute_distance(T="f64"), scale), 5.0),
    "Gaussian, one int": (dp.m.make_gaussian(int_atom, dp.absolute_distance(T="i32"), scale), 5),
    "Gaussian, one float": (dp.m.make_gaussian(float_atom, dp.absolute_distance(T="f64"), scale), 5.0),
}
answer = {name: size / median_s(lambda m=m, v=v: m(v)) for name, (m, v) in vector.items()}
for name, (measurement, value) in scalar.items():
    answer[name] = median_s(lambda m=measurement, v=value: [m(v) for _ in range(200)]) / 200 * 1e6
print(json.dumps(answer))
