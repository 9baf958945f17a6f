"""The parts of the benchmark of statistics: data, errors beside peers, coverage of intervals, choices of estimators."""
