"""What a private model costs each group of people: its accuracy beside that of a model without privacy.

Promise: if no group loses more than the others and rows are independent, about one report of twenty has a warning, or
fewer. The bounds are made from exact ones (Clopper-Pearson), so that groups of few rows set off no more of them.
Not here: privacy. The report reads rows and shows exact figures about small groups of them, so the rows must be public,
or held by whoever reads it; nothing is charged, and registered tables are refused.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.attack.confidence import clopper_pearson
from tacit.privacy.errors import EmptyInput, InvalidInput, ShowsUnits, TooLarge, WrongType
from tacit.report.rendering import ACCENT, COMPARISON, Spec, plot
from tacit.stats.answer import html_table
from tacit.stats.plots import Plot
from tacit.stats.preparation import RegisteredTable, TableColumn

ALARM: Final = 0.05
"""The probability that a report has a warning although no group loses more than the others."""
SMALL: Final = 0.5
"""A group is small if it has less than this share of the rows."""
GROUPS_MAX: Final = 200
WARNED: Final = "#b3261e"
"""The colour of groups with a warning."""

Mask = NDArray[np.bool_]


class SubgroupWarning(UserWarning):
    """A small group loses more by privacy than the others do."""


@dataclass(frozen=True, slots=True)
class Subgroup:
    """One group; shares of its rows that each model predicts right, and what is lost between them."""

    attribute: str
    group: str
    rows: int
    accuracy: float
    baseline: float
    loss: float
    """Baseline less accuracy."""
    loss_low: float
    loss_high: float
    """The ends of the 95 % interval of the loss for rows of this kind."""
    is_warned: bool

    @property
    def name(self) -> str:
        """The group with its attribute."""
        return f"{self.attribute}: {self.group}"


@dataclass(frozen=True, slots=True)
class SubgroupReport:
    """What `subgroup_report` found; figures are exact and not private."""

    rows: int
    subgroups: tuple[Subgroup, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        return {**asdict(self), "subgroups": [asdict(one) for one in self.subgroups], "warnings": list(self.warnings)}

    def plot(self, path: Path | str | None = None) -> Plot:
        """Return the losses with their intervals as a plot, which notebooks show; `path` writes it to a file."""
        return Plot(loss_plot(self.subgroups)).saved(path)

    def __repr__(self) -> str:
        return f"<accuracy of {len(self.subgroups)} groups, {len(self.warnings)} warnings>"

    def __str__(self) -> str:
        """Return a line for each group, and the warnings."""
        width = max(len(one.name) for one in self.subgroups)
        lines = [
            f"{one.name:<{width}}  {one.rows:>9,} rows  accuracy {one.accuracy:.1%}, without privacy {one.baseline:.1%}"
            for one in self.subgroups
        ]
        return "\n".join([*lines, *(f"warning: {one}" for one in self.warnings)])

    def _repr_html_(self) -> str:
        rows = [asdict(one) for one in self.subgroups]
        sentences = "".join(f"<p>Warning: {escape(one)}</p>" for one in self.warnings)
        return f"{html_table(rows, list(rows[0]))}{sentences}<p>Exact figures about these rows; not private.</p>"


def subgroup_report(model: Any, baseline: Any, X: Any, y: Any, groups: Any) -> SubgroupReport:  # noqa: N803
    """Return the accuracy of a private model in each group of rows, beside that of a model without privacy.

    Models have a method `predict`, or are functions from X to labels. `groups` are labels of the rows: a frame or a
    mapping with a column for each attribute, or one column. With rows of one class alone it is about their recall:
    `subgroup_report(model, baseline, X[y == 1], y[y == 1], groups[y == 1])`.

    A group of less than half of the rows is warned about, as a `SubgroupWarning` and in `warnings`, if it loses more
    than the other rows do by more than chance explains: a report of equal losses has a warning once in twenty times, or
    less often (bounds of paired differences by Zou and Donner 2008, Bonferroni over groups). A group without a warning
    may be too small to tell; its interval says so.

    The rows are read as they are, nothing is charged, and the figures are not private: they are for rows that are
    public, or held out by whoever reads them. Several rows of one person make intervals too narrow.
    """
    _refuse_registered(X, y, groups)
    truth = _column("y", y)
    predicted, predicted_before = _predicted("model", model, X, truth), _predicted("baseline", baseline, X, truth)
    _require_common("model", predicted, truth, predicted_before)
    _require_common("baseline", predicted_before, truth, predicted)
    right, right_before = (_right(one, truth) for one in (predicted, predicted_before))
    masks = _masks(groups, len(truth))
    found, sentences = [], []
    for (attribute, group), inside in masks.items():
        lost, gained = right_before & ~right, right & ~right_before
        count = int(inside.sum())
        low, high = _bounds(lost[inside], gained[inside], ALARM / 2)
        is_warned = count < SMALL * len(truth) and _excess(lost, gained, inside, ALARM / len(masks)) > 0
        shares = float(right[inside].mean()), float(right_before[inside].mean())
        one = Subgroup(attribute, group, count, *shares, shares[1] - shares[0], low, high, is_warned)
        found.append(one)
        if is_warned:
            others = float(right_before[~inside].mean() - right[~inside].mean())
            sentences.append(_sentence(one, others, len(truth)))
    for sentence in sentences:
        warnings.warn(sentence, SubgroupWarning, stacklevel=2)
    return SubgroupReport(len(truth), tuple(found), tuple(sentences))


def _bounds(lost: Mask, gained: Mask, error: float) -> tuple[float, float]:
    """Return bounds on the probability that a row is lost less that it is gained, each wrong with about `error`.

    Clopper-Pearson bounds of both, put together as those of two correlated shares (Zou and Donner 2008).
    """
    rows = len(lost)
    lost_share, gained_share = float(lost.mean()), float(gained.mean())
    lost_low, lost_high = clopper_pearson(int(lost.sum()), rows, error)
    gained_low, gained_high = clopper_pearson(int(gained.sum()), rows, error)
    odds = lost_share * gained_share, (1 - lost_share) * (1 - gained_share)
    correlation = -math.sqrt(odds[0] / odds[1]) if odds[1] else -1.0

    def reach(first: float, second: float) -> float:
        return math.sqrt(first**2 + second**2 - 2 * correlation * first * second)

    loss = lost_share - gained_share
    return (
        loss - reach(lost_share - lost_low, gained_high - gained_share),
        loss + reach(lost_high - lost_share, gained_share - gained_low),
    )


def _excess(lost: Mask, gained: Mask, inside: Mask, error: float) -> float:
    """Return a lower bound on what the rows inside lose more than the others do, wrong with about `error`."""
    loss, others = (float(lost[one].mean() - gained[one].mean()) for one in (inside, ~inside))
    low = _bounds(lost[inside], gained[inside], error)[0]
    high = _bounds(lost[~inside], gained[~inside], error)[1]
    return loss - others - math.hypot(loss - low, high - others)


def _sentence(one: Subgroup, others: float, rows: int) -> str:
    return (
        f"{one.name} ({one.rows:,} of {rows:,} rows) loses {100 * one.loss:.1f} points of accuracy "
        f"({100 * one.loss_low:.1f} to {100 * one.loss_high:.1f}), the other rows {100 * others:.1f}"
    )


def _refuse_registered(*given: Any) -> None:
    for one in given:
        parts = one.values() if isinstance(one, Mapping) else one if isinstance(one, list | tuple) else ()
        if any(isinstance(part, RegisteredTable | TableColumn) for part in (one, *parts)):
            raise ShowsUnits(
                "a report about groups reads rows without noise, so it is not made over registered tables; use public "
                "rows, or rows of your own"
            )


def _column(name: str, values: Any) -> NDArray[Any]:
    found = np.asarray(values)
    if found.ndim != 1:
        raise WrongType(f"{name} must hold one label for each row", name=name)
    if not len(found):
        raise EmptyInput(f"{name} has no rows", name=name)
    return found


def _predicted(name: str, model: Any, rows: Any, truth: NDArray[Any]) -> np.ma.MaskedArray[Any, Any]:
    """Return the labels that a model predicts, masked where it gives none."""
    predict = getattr(model, "predict", model)
    if not callable(predict):
        raise WrongType(f"{name} must have a method predict, or be a function from X to labels", name=name)
    predicted = np.ma.asarray(predict(rows))
    if predicted.shape != truth.shape:
        raise WrongType(f"{name} must predict one label for each of the {len(truth):,} rows", name=name)
    return predicted


def _require_common(
    name: str, predicted: np.ma.MaskedArray[Any, Any], truth: NDArray[Any], others: np.ma.MaskedArray[Any, Any]
) -> None:
    """Raise InvalidInput if a model's labels are of another kind than those of y and of the other model."""
    known = set(truth.tolist()) | set(others.compressed().tolist())
    if not known & set(predicted.compressed().tolist()):
        raise InvalidInput(f"{name} predicts no label that is in y or predicted by the other model", name=name)


def _right(predicted: np.ma.MaskedArray[Any, Any], truth: NDArray[Any]) -> Mask:
    """Return for which rows the label is right; a row without a prediction is wrong."""
    return np.asarray(np.ma.filled(predicted == truth, False), dtype=bool)


def _masks(groups: Any, rows: int) -> dict[tuple[str, str], Mask]:
    """Return which rows are in each group, by attribute and label."""
    if isinstance(groups, Mapping) or hasattr(groups, "columns"):
        columns = {str(name): groups[name] for name in (groups if isinstance(groups, Mapping) else groups.columns)}
    else:
        columns = {str(getattr(groups, "name", None) or "group"): groups}
    if not columns:
        raise EmptyInput("groups names no attribute", name="groups")
    masks: dict[tuple[str, str], Mask] = {}
    for attribute, values in columns.items():
        labels = np.array([str(one) for one in _column("groups", values)])
        if len(labels) != rows:
            raise WrongType(f"groups must hold a label for each of the {rows:,} rows", name="groups")
        masks |= {(attribute, str(label)): labels == label for label in np.unique(labels)}
        if len(masks) > GROUPS_MAX:
            raise TooLarge(f"there are more than {GROUPS_MAX} groups; put values into classes first", name="groups")
    return masks


def loss_plot(subgroups: tuple[Subgroup, ...]) -> Spec:
    """Return a plot of what each group loses, with 95 % intervals."""
    rows = [
        {
            "x": one.loss,
            "low": one.loss_low,
            "high": one.loss_high,
            "y": f"{one.name}, {one.rows:,} rows",
            "colour": WARNED if one.is_warned else ACCENT,
        }
        for one in subgroups
    ]
    colour = {"color": {"field": "colour", "type": "nominal", "scale": None}}
    drawn = plot(
        "What does privacy cost each group?",
        ["accuracy without privacy less accuracy with it, and 95 % intervals; red: small groups that lose more"],
        x={"axis": {"title": "accuracy lost", "format": "~%", "tickCount": 6}},
        y={"type": "nominal", "sort": None, "axis": {"title": None, "labelLimit": 320, "labelPadding": 12}},
        layers=[
            {"data": {"values": [{"x": 0}]}, "mark": {"type": "rule", **COMPARISON}, "encoding": {"y": None}},
            {
                "data": {"values": rows},
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}, **colour},
            },
            {
                "data": {"values": rows},
                "mark": {"type": "point", "filled": True, "opacity": 1, "size": 60},
                "encoding": colour,
            },
        ],
    )
    return drawn | {"height": {"step": 30}}
