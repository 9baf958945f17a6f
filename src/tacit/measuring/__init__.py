"""Measuring with noise, for private SQL and for statistics alike: how the budget of one release is divided over its
measurements (`allocation`), what moments follow from noisy sums (`moments`), and how far they may be off (`intervals`).

Not here: what is measured and how far one unit moves it (`query.contribution`, `stats.rows`), or who pays
(`pipeline`).
"""
