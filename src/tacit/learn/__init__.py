"""Private machine learning: DP-SGD for PyTorch, PATE, and estimators with the contract of scikit-learn.

PyTorch and scikit-learn come with the extra `learn` (`pip install "tacit[learn]"`); they are imported when a name that
needs them is first used.
"""
