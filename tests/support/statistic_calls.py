"""A call of every statistic that a server computes, about the table visits of `tests/unit/server/clinic.py`."""

from __future__ import annotations

from typing import Any, Final

AGE: Final = {"table": "visits", "column": "age"}
SEX: Final = {"table": "visits", "column": "sex"}
PATIENT: Final = {"table": "visits", "column": "patient_id"}
PRICE: Final = {"epsilon": 0.5, "rows_per_unit": 1}

CALLS: Final[dict[str, dict[str, Any]]] = {
    "bounds": {"values": AGE},
    "box_plot": {"values": AGE},
    "cdf": {"values": AGE},
    "chi_squared": {"values": SEX, "others": SEX},
    "contingency": {"values": SEX, "others": SEX},
    "correlation": {"values": AGE, "others": PATIENT, "other_bounds": [0, 300]},
    "correlation_test": {"values": AGE, "others": PATIENT, "other_bounds": [0, 300]},
    "count": {"values": AGE},
    "covariance": {"values": AGE, "others": PATIENT, "other_bounds": [0, 300]},
    "hierarchy": {"values": SEX, "levels": [{"F": "all", "M": "all"}]},
    "histogram": {"values": AGE, "edges": [0, 30, 60, 90]},
    "marginals": {"columns": {"sex": SEX, "age": AGE}, "domain": {"age": [0, 30, 60, 90]}},
    "mean": {"values": AGE, "by": SEX},
    "median": {"values": AGE},
    "mode": {"values": AGE},
    "prefixes": {"values": AGE, "edges": [0, 30, 60, 90]},
    "quantile": {"values": AGE, "q": 0.25},
    "quantiles": {"values": AGE, "qs": [0.25, 0.75]},
    "ranges": {"values": AGE, "edges": [0, 30, 60, 90]},
    "std": {"values": AGE},
    "sum": {"values": AGE},
    "t_test": {"values": AGE, "popmean": 40},
    "top_k": {"values": AGE, "k": 3},
    "trend": {"values": AGE, "times": PATIENT, "time_bounds": [0, 300]},
    "trend_test": {"values": AGE, "times": PATIENT, "time_bounds": [0, 300]},
    "variance": {"values": AGE},
}
