"""Many counting queries under one charge: all tables by some columns, all ranges, prefixes, hierarchies.

    tacit.stats.marginals({"age": ages, "sex": sexes}, domain={"age": [0, 18, 65, 120], "sex": ["F", "M"]},
                          ways=(1, 2), epsilon=1.0, budget=budget).table("age", "sex")
    tacit.stats.ranges(ages, edges=range(0, 121), epsilon=1.0, budget=budget).range(20, 40)

The measured sums are not the queries themselves but a strategy with the least expected error, chosen without data
(`strategies`, `interactions`). Least squares makes the estimates consistent, and rounding makes them counts
(`estimation`). Workloads are objects, joined with `+` and multiplied with `*`: `Ranges`, `Prefixes`, `Cells`,
`Hierarchy`, `Marginals`.
"""

from tacit.stats.workloads.counts import CountTable, NoisyCount
from tacit.stats.workloads.query_sets import (
    Cells,
    Hierarchy,
    Marginals,
    Prefixes,
    Product,
    Ranges,
    Union,
    Workload,
    date_edges,
)
from tacit.stats.workloads.release import WorkloadAnswer, hierarchy, marginals, prefixes, ranges, workload

__all__ = [
    "Cells",
    "CountTable",
    "Hierarchy",
    "Marginals",
    "NoisyCount",
    "Prefixes",
    "Product",
    "Ranges",
    "Union",
    "Workload",
    "WorkloadAnswer",
    "date_edges",
    "hierarchy",
    "marginals",
    "prefixes",
    "ranges",
    "workload",
]
