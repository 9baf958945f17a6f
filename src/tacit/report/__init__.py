"""Plots and documents of what was computed elsewhere.

`trade_off` and `privacy_curve` return Vega-Lite specifications, plain dictionaries that any Vega-Lite viewer shows;
`save` writes one as a picture, for which the extra `report` is installed.

Not here: any number that decides privacy. What is drawn comes from `accounting`, rounded to pixels.
"""

from tacit.report.look import Spec
from tacit.report.plots import privacy_curve, trade_off
from tacit.report.rendering import check_target, save

__all__ = ["Spec", "check_target", "privacy_curve", "save", "trade_off"]
