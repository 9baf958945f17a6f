"""Findings in the formats that build pipelines read: JUnit XML, and SARIF 2.1.0.

A violation is a failure; an attack that was underpowered or had no claim to refute is skipped, with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from tacit.attack.finding import Finding, Verdict
from tacit.version import __version__

SARIF_LEVELS: Final = {
    Verdict.VIOLATES: "error",
    Verdict.UNDERPOWERED: "note",
    Verdict.NOT_APPLICABLE: "none",
    Verdict.CONSISTENT: "none",
}


def to_junit(findings: Sequence[Finding], target: str) -> str:
    """Return findings as one JUnit test suite."""
    failures = sum(one.is_violation for one in findings)
    skipped = sum(one.verdict in (Verdict.UNDERPOWERED, Verdict.NOT_APPLICABLE) for one in findings)
    seconds = sum(one.seconds for one in findings)
    cases = "".join(_case(one, target) for one in findings)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites><testsuite name="tacit attack" tests="{len(findings)}" failures="{failures}" '
        f'skipped="{skipped}" errors="0" time="{seconds:.3f}">{cases}</testsuite></testsuites>\n'
    )


def _case(finding: Finding, target: str) -> str:
    inside = ""
    if finding.is_violation:
        inside = f'<failure type="violates" message={quoteattr(finding.reason)}/>'
    elif finding.verdict is not Verdict.CONSISTENT:
        inside = f"<skipped message={quoteattr(f'{finding.verdict}: {finding.reason}')}/>"
    return (
        f"<testcase classname={quoteattr(target)} name={quoteattr(finding.attack)} "
        f'time="{finding.seconds:.3f}">{inside}</testcase>'
    )


def to_sarif(findings: Sequence[Finding], target: str) -> str:
    """Return findings as a SARIF log with one run."""
    rules: dict[str, dict[str, Any]] = {
        one.attack: {"id": one.attack, "shortDescription": {"text": one.attack}, "fullDescription": {"text": one.paper}}
        for one in findings
    }
    results = [
        {
            "ruleId": one.attack,
            "kind": {Verdict.VIOLATES: "fail", Verdict.CONSISTENT: "pass"}.get(one.verdict, "open"),
            "level": SARIF_LEVELS[one.verdict],
            "message": {"text": f"{one.verdict}: {one.reason}"},
            "locations": [{"logicalLocations": [{"name": target, "kind": "resource"}]}],
            "properties": {"lowerBound": one.lower_bound, "confidence": one.confidence, "seed": one.seed},
        }
        for one in findings
    ]
    tool = {"driver": {"name": "tacit attack", "version": __version__, "rules": list(rules.values())}}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": tool, "results": results}],
    }
    return json.dumps(log, indent=2, allow_nan=False)
