"""Findings as HTML: one section each, with its figures, its curve under the ceiling of the claim, and its series.

A page loads nothing from elsewhere: pictures are SVG inside it, drawn where the extra `report` is installed; without it
the same numbers stand in tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

from tacit.attack.finding import Finding, Measurement, Series, Verdict
from tacit.attack.finding_json import writable
from tacit.privacy.errors import Unavailable
from tacit.report.rendering import ACCENT, COMPARISON, GREY, Spec, plot, svg

COLOURS: Final = {
    Verdict.VIOLATES: "#b3261e",
    Verdict.CONSISTENT: "#1b6e3c",
    Verdict.UNDERPOWERED: "#8a5a00",
    Verdict.NOT_APPLICABLE: GREY,
}
STYLE: Final = (
    "body{font:15px/1.5 Helvetica,Arial,sans-serif;color:#222;max-width:52rem;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.5rem}section{border-top:1px solid #ddd;padding:1rem 0}h2{font-size:1.2rem;margin:.2rem 0}"
    "table{border-collapse:collapse;margin:.6rem 0}td,th{text-align:left;padding:.15rem .8rem .15rem 0;"
    "vertical-align:top}th{font-weight:normal;color:#707070}.verdict{font-weight:bold}svg{max-width:100%;height:auto}"
)


def page(findings: Sequence[Finding], title: str = "Findings") -> str:
    """Return a page with all findings, violations first."""
    order = list(Verdict)
    ranked = sorted(findings, key=lambda one: order.index(one.verdict))
    counts = {verdict: sum(one.verdict is verdict for one in findings) for verdict in order}
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    body = "".join(section(one, place) for place, one in enumerate(ranked))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1><p>{escape(summary)}</p>{_index(ranked)}{body}</body></html>"
    )


def _index(findings: Sequence[Finding]) -> str:
    """Return a table of several findings, each a link to its section."""
    if len(findings) < 2:
        return ""
    rows = "".join(
        f'<tr><td><a href="#finding-{place}">{escape(_name(one))}</a></td><td style="color:{COLOURS[one.verdict]}">'
        f"{escape(one.verdict)}</td><td>{'' if one.claimed is None else escape(one.claimed.words)}</td>"
        f"<td>{'' if one.lower_bound is None else f'at least {_number(one.lower_bound)}'}</td></tr>"
        for place, one in enumerate(findings)
    )
    return f"<table><tr><th>attack</th><th>verdict</th><th>claimed</th><th>shown</th></tr>{rows}</table>"


def _name(finding: Finding) -> str:
    return ", ".join(filter(None, (finding.target, finding.attack.replace("_", " "))))


def section(finding: Finding, place: int = 0) -> str:
    """Return one finding as a section of HTML."""
    colour = COLOURS[finding.verdict]
    rows = [
        ("claimed", finding.claimed.words if finding.claimed is not None else "nothing"),
        ("shown", _shown(finding)),
        ("attacker", f"{finding.threat_model.access}; knows {finding.threat_model.knowledge}"),
        ("queries", f"{finding.threat_model.queries:,}"),
        *((one.name, figures(one)) for one in finding.measurements),
    ]
    if finding.power is not None:
        rows.append(
            ("on twins", f"{finding.power.planted}: {_number(finding.power.planted_value)}; without a leak: "
             f"{_number(finding.power.null_value)}")
        )  # fmt: skip
        if (least := finding.power.least_epsilon) is not None:
            refuted = "no epsilon" if math.isinf(least) else f"epsilon {_number(least)} and above"
            rows.append(("refutes with probability 90 %", refuted))
    rows += [("assumes", "; ".join(finding.assumptions))] if finding.assumptions else []
    rows += [("paper", finding.paper), ("took", f"{finding.seconds:.2f} s, seed {finding.seed}")]
    pictures = [_roc_plot(finding)] if finding.roc else []
    pictures += [_series_plot(one) for one in finding.series if one.points]
    return (
        f'<section id="finding-{place}"><h2>{escape(_name(finding))}: <span class="verdict" style="color:{colour}">'
        f"{escape(finding.verdict)}</span></h2><p>{escape(finding.reason)}</p>"
        f"{_table(rows)}{''.join(map(_drawn, pictures))}{_worst(finding)}</section>"
    )


def _shown(finding: Finding) -> str:
    if finding.lower_bound is None:
        return "no bound"
    correction = f"; {finding.correction}" if finding.correction else ""
    return f"at least {_number(finding.lower_bound)} at {finding.confidence:.2%} ({finding.method}{correction})"


def figures(one: Measurement) -> str:
    """Return a measurement beside what it is compared with, in words."""
    parts = [f"at least {_number(one.value)} (search stopped)" if one.is_stopped else _number(one.value)]
    if one.bounds is not None:
        parts.append(f"between {_number(one.bounds[0])} and {_number(one.bounds[1])}")
    compared = {"baseline": one.baseline, "predicted": one.predicted, "ceiling": one.ceiling}
    parts += [f"{name} {_number(value)}" for name, value in compared.items() if value is not None]
    return ", ".join(parts)


def _number(value: float) -> str:
    if math.isnan(value):
        return "none"
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    return "<table>" + "".join(f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows) + "</table>"


def _worst(finding: Finding) -> str:
    if not finding.worst:
        return ""
    items = "".join(
        f"<li>{escape(', '.join(f'{name}: {value}' for name, value in one.items()))}</li>" for one in finding.worst
    )
    return f"<p>Records at the greatest risk:</p><ul>{items}</ul>"


def _drawn(spec: Spec) -> str:
    try:
        return svg(writable(spec)).decode()
    except Unavailable:
        points = [point for layer in spec["layer"] for point in layer["data"]["values"]]
        return _table([("x", "y"), *((str(one.get("x")), str(one.get("y"))) for one in points)])


def _roc_plot(finding: Finding) -> Spec:
    measured = [
        {"x": one.false_positive_rate, "y": one.true_positive_rate, "low": one.true_positive_bounds[0],
         "high": one.true_positive_bounds[1], "left": one.false_positive_bounds[0],
         "right": one.false_positive_bounds[1]}
        for one in finding.roc
    ]  # fmt: skip
    claim, rates = finding.claimed, [place / 100 for place in range(101)]
    ceiling = []
    if claim is not None and claim.epsilon is not None:
        ceiling = [{"x": rate, "y": claim.true_positive_rate(rate)} for rate in rates]
    layers: list[Spec] = [
        {"data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]}, "mark": {"type": "line", **COMPARISON}},
        {
            "data": {"values": measured},
            "mark": {"type": "rule", "color": ACCENT},
            "encoding": {"y": {"field": "low"}, "y2": {"field": "high"}},
        },
        {
            "data": {"values": measured},
            "mark": {"type": "rule", "color": ACCENT},
            "encoding": {"x": {"field": "left"}, "x2": {"field": "right"}},
        },
        {"data": {"values": measured}, "mark": {"type": "point", "filled": True, "color": ACCENT, "size": 60}},
    ]
    if ceiling:
        mark = {"type": "line", "color": COLOURS[Verdict.VIOLATES], "strokeDash": [2, 2]}
        layers.append({"data": {"values": ceiling}, "mark": mark})
    return plot(
        "Who is found, and who is wrongly accused",
        ["points: measured, with their intervals; dotted: the most that the claim allows; dashed: guessing"],
        x={"scale": {"domain": [0, 1]}, "axis": {"title": "wrongly accused", "format": ".0%"}},
        y={"scale": {"domain": [0, 1]}, "axis": {"title": "found", "format": ".0%"}},
        layers=layers,
    )


def _series_plot(series: Series) -> Spec:
    is_number = all(isinstance(x, int | float) for x, _ in series.points)
    kind = "quantitative" if is_number else "nominal"
    axis: dict[str, Any] = {"type": kind, "axis": {"title": series.x, "labelAngle": 0 if is_number else -30}}
    if not is_number:
        axis["sort"] = None
    data = {"values": [{"x": x, "y": y} for x, y in series.points]}
    layers: list[Spec] = [
        {"data": data, "mark": {"type": "line" if is_number else "bar", "color": ACCENT}},
        {"data": data, "mark": {"type": "point", "filled": True, "color": ACCENT, "size": 60}},
    ]
    if series.reference:
        values = [{"x": x, "y": y} for x, y in series.reference]
        layers.append({"data": {"values": values}, "mark": {"type": "line", **COMPARISON}})
    subtitle = [f"dashed: {series.reference_label}"] if series.reference else []
    return plot(series.title, subtitle, x=axis, y={"axis": {"title": series.y}}, layers=layers)
