"""Statistics over arrays, frames and registered tables, on the mechanisms and the ledger that private SQL uses.

    budget = tacit.Budget(epsilon=1.0)
    answer = tacit.stats.mean(ages, bounds=(0, 120), epsilon=0.1, budget=budget)
    answer.value, answer.interval(0.95), answer.cost, answer.card

    visits = curator.table("visits")                       # a registered table pays from its own budget
    tacit.stats.mean(visits["age"], by=visits["ward"], epsilon=0.1)
    tacit.stats.preview(tacit.stats.mean, visits["age"], epsilon=0.1)      # what it would cost; spends nothing

`epsilon` (or `rho`) is what the whole answer costs. With `unit=` (whose row each row is) and `rows_per_unit=` the
promise is about whole units; a registered table knows its unit.
"""

from tacit.stats.answer import Answer
from tacit.stats.bounds import bounds
from tacit.stats.histograms import cdf, contingency, histogram
from tacit.stats.hypotheses import TestAnswer, chi_squared, correlation_test, t_test, trend_test
from tacit.stats.modes import mode, top_k
from tacit.stats.moments import correlation, count, covariance, mean, std, sum, trend, variance
from tacit.stats.preparation import RegisteredTable, TableColumn
from tacit.stats.quantiles import box_plot, median, quantile, quantiles
from tacit.stats.releases import PreparedStatistic, StatisticPreview, prepare, preview
from tacit.stats.streams import RunningCount, RunningSum
from tacit.stats.workloads import WorkloadAnswer, hierarchy, marginals, prefixes, ranges, workload

__all__ = [
    "Answer",
    "PreparedStatistic",
    "RegisteredTable",
    "RunningCount",
    "RunningSum",
    "StatisticPreview",
    "TableColumn",
    "TestAnswer",
    "WorkloadAnswer",
    "bounds",
    "box_plot",
    "cdf",
    "chi_squared",
    "contingency",
    "correlation",
    "correlation_test",
    "count",
    "covariance",
    "hierarchy",
    "histogram",
    "marginals",
    "mean",
    "median",
    "mode",
    "prefixes",
    "prepare",
    "preview",
    "quantile",
    "quantiles",
    "ranges",
    "std",
    "sum",
    "t_test",
    "top_k",
    "trend",
    "trend_test",
    "variance",
    "workload",
]
