"""Defences without a guarantee, and membership inference (Shokri et al. 2017; Carlini et al. 2022).

Who was in the training data of a model? Shokri and others guessed it of 10,000 purchases behind the services of Google
and Amazon, in their default configuration, with a median accuracy of 94 % and 74 %. Dropout, weight decay or early
stopping make the average row harder to find. Here some images have a wrong label, which a network can only learn by
heart: these are still found, at one false accusation in a hundred, and DP-SGD alone limits how many.

The networks, data and attack are those of `bench/learning/defences.py`, one seed: MNIST with TACIT_DATA, otherwise
generated purchases. They are not those of the papers, so the published figures are for comparison only. The second
plot is what DP-SGD at epsilon 0.5 costs groups of people (`bench/learning/subgroups.py`, Adult or generated people).
"""

from __future__ import annotations

from typing import Final

from bench.learning.datasets import has_mnist
from bench.learning.defences import DEFENCES, FULL, NONE, QUICK, Measured, Private, measured
from bench.learning.subgroups import Reports, persons, reports
from gallery.common import LIMIT, NAMES, Exhibit, Row, command, ranked
from tacit.report.rendering import Spec, plot

TITLE: Final = "Defences without a guarantee"
SMALL: Final = (NONE, "dropout 0.5", "all seven", "DP-SGD, epsilon 0.5")
"""What is measured in the small form."""
PUBLISHED: Final = "94 %, 74 %"
EPSILON: Final = 0.5
"""That of the model whose groups are shown."""


def run(small: bool) -> Exhibit:
    """Attack every defence, and compare what DP-SGD costs groups of people."""
    size = QUICK if small else FULL.one_seed
    found = {name: measured(name, size) for name in (SMALL if small else DEFENCES)}
    rows = [
        Row(
            "used or not, guessed right of other rows, no defence",
            float(found[NONE].others.guessed[0]),
            None,
            PUBLISHED,
        )
    ]
    for name, one in found.items():
        theory = "" if one.ceiling is None else f"at most {one.ceiling:.3g}"
        rows.append(Row(f"mislabelled rows found, {name}", float(one.canaries.found[0]), theory=theory))
        rows.append(Row(f"other rows found, {name}", float(one.others.found[0]), theory=theory))
        rows.append(Row(f"test rows predicted right, {name}", float(one.accuracy[0]) / 100))
    groups = reports(persons(), "DP-SGD", EPSILON, seed=0)
    rows += [
        Row(f"recall lost at epsilon {EPSILON:g}, {one.name}", one.loss, (one.loss_low, one.loss_high))
        for one in groups.positive.subgroups
    ]
    return Exhibit(TITLE, rows, {"weak_defences": _defences_plot(found), "weak_defences_groups": _groups_plot(groups)})


def _defences_plot(found: dict[str, Measured]) -> Spec:
    """Return a plot of the share of mislabelled images that are found under each defence, with ceilings."""
    names = {
        name: f"{name}{' (tacit)' if isinstance(DEFENCES[name], Private) else ''}, {one.accuracy[0]:.0f} % correct"
        for name, one in found.items()
    }
    ceilings = [{"x": one.ceiling, "y": names[name]} for name, one in found.items() if one.ceiling is not None]
    kind = "images of MNIST" if has_mnist() else "rows of generated purchases"
    return plot(
        "Which defence hides a row that was learnt by heart?",
        [
            f"mislabelled {kind} that are found at 1 % false accusations, and correct predictions on test rows;",
            "red: the most that epsilon allows",
        ],
        x={
            "scale": {"domain": [0, 1.1], "nice": False},
            "axis": {"title": "found, of mislabelled rows that were used", "format": ".0%", "tickCount": 5},
        },
        y=NAMES,
        layers=[
            *ranked([(float(one.canaries.found[0]), names[name]) for name, one in found.items()], 0.0, "{:.1%}".format),
            {
                "data": {"values": ceilings},
                "mark": {
                    "type": "tick",
                    "thickness": 3,
                    "size": 9,
                    "yOffset": 8,
                    "opacity": 1,
                    "color": LIMIT["color"],
                },
            },
        ],
    )


def _groups_plot(groups: Reports) -> Spec:
    """Return the plot of the recall that each group loses."""
    spec = groups.positive.plot().spec
    shown = f"recall of people with the higher income: loss by DP-SGD at epsilon {EPSILON:g}, and 95 % intervals"
    axis = {"title": "recall lost", "format": "~%", "tickCount": 6}
    encoding = {**spec["encoding"], "x": {**spec["encoding"]["x"], "axis": axis}}
    return {**spec, "title": {**spec["title"], "subtitle": [shown]}, "encoding": encoding}


if __name__ == "__main__":
    command(run)()
