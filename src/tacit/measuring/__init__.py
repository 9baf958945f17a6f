"""Noisy measurements, for private SQL and statistics alike.

    allocation   how the budget of one release is divided over its measurements, and the noise of each part
    moments      the public grid on which values are added up; means, variances and correlations from noisy sums
    intervals    confidence intervals of noisy sums and of what is computed from them

Not here: what is measured and how far one unit moves it (`query.contribution`, `stats`), or who pays (`pipeline`).
"""
