"""Plots of privacy costs, and pictures from Vega-Lite specifications.

`trade_off` and `privacy_curve` return Vega-Lite specifications, plain dictionaries that any Vega-Lite viewer shows;
`save` writes one as a picture, and needs the extra `report`. The numbers come from `accounting`; nothing here decides
privacy.
"""

from tacit.report.plots import privacy_curve, trade_off
from tacit.report.rendering import Spec, check_target, save

__all__ = ["Spec", "check_target", "privacy_curve", "save", "trade_off"]
