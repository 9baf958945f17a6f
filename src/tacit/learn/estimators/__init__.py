"""Estimators with scikit-learn's contract, whose fit is a release of noisy statistics (`tacit.stats`).

    base.py            what all estimators share: reading X and y, fit, documents
    parameters.py      the parameters that estimators share: descriptions and checks
    fit_inputs.py      columns of a fit, with bounds of the transformers that made them
    repeated_fits.py   fits without a budget inside of what fits many times: refused
    model_plan.py      what all plans of models share: public features, noisy sums by cells
    second_moments.py  noisy second moments of encoded features, for regression and PCA
    the others         one family of models each

A plan (`ModelPlan`) reads rows through `stats.rows.Rows` alone; whatever is computed from its released arrays is
post-processing. Only `base` and the estimators import scikit-learn.
"""
