"""Learning from randomised labels (label differential privacy) and from locally randomised rows.

    reports.py      what both share: the plan that the pipeline charges, the relation, rows of one unit
    labels.py       `randomize_labels`: k-ary randomised response on labels, with and without a prior
    losses.py       `corrected_loss`: losses for PyTorch that are debiased for randomised labels
    classifier.py   `LabelDPClassifier`: any classifier of scikit-learn, trained on randomised labels
    features.py     `randomize_features`: each value of a row randomised by itself
    models.py       linear regression and naive Bayes from randomised rows, debiased

Everything after a release is post-processing.
"""
