"""Many counting queries at once: all tables by some columns, all ranges, prefixes, hierarchies.

    tacit.stats.marginals({"age": ages, "sex": sexes}, domain={"age": [0, 18, 65, 120], "sex": ["F", "M"]},
                          ways=(1, 2), epsilon=1.0, budget=budget).table("age", "sex")
    tacit.stats.ranges(ages, edges=range(0, 121), epsilon=1.0, budget=budget).range(20, 40)

What is measured is not what is asked for but a strategy from which all of it follows with the least expected error,
chosen without data (`fitting`, `margins`); least squares makes the estimates agree, and rounding (`whole`) makes them
counts. Workloads are objects, to be joined with `+` and crossed with `*`: `Ranges`, `Prefixes`, `Cells`, `Hierarchy`,
`Marginals`.
"""

from tacit.stats.workloads.answer import WorkloadAnswer
from tacit.stats.workloads.ask import hierarchy, marginals, prefixes, ranges, workload
from tacit.stats.workloads.asked import Cells, Hierarchy, Marginals, Prefixes, Product, Ranges, Union, Workload
from tacit.stats.workloads.cells import date_edges
from tacit.stats.workloads.counted import Counted, Table

__all__ = [
    "Cells",
    "Counted",
    "Hierarchy",
    "Marginals",
    "Prefixes",
    "Product",
    "Ranges",
    "Table",
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
