"""Findings in the formats that build pipelines read: JUnit XML, and SARIF 2.1.0.

A violation is a failure; an attack that was underpowered or had no claim to refute is skipped, with its reason.
An attack that failed is an error in JUnit; SARIF, which is about findings, leaves it out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from tacit.attack.finding import Finding, Verdict
from tacit.version import __version__

_NOT_IN_XML: Final = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped."""


@dataclass(frozen=True, slots=True)
class FailedAttack:
    """An attack that ended with an error instead of a finding."""

    target: str
    attack: str
    code: str
    message: str
    exit_code: int


def to_junit(findings: Sequence[Finding], failed: Sequence[FailedAttack] = ()) -> str:
    """Return findings, and attacks that failed, as one JUnit test suite."""
    failures = sum(one.is_violation for one in findings)
    skipped = sum(one.verdict in (Verdict.UNDERPOWERED, Verdict.NOT_APPLICABLE) for one in findings)
    seconds = sum(one.seconds for one in findings)
    cases = "".join([*map(_case, findings), *map(_error, failed)])
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites><testsuite name="tacit attack" tests="{len(findings) + len(failed)}" failures="{failures}" '
        f'skipped="{skipped}" errors="{len(failed)}" time="{seconds:.3f}">{cases}</testsuite></testsuites>\n'
    )


def _case(finding: Finding) -> str:
    inside = ""
    if finding.is_violation:
        inside = f'<failure type="violates" message={_attribute(finding.reason)}/>'
    elif finding.verdict is not Verdict.CONSISTENT:
        inside = f"<skipped message={_attribute(f'{finding.verdict}: {finding.reason}')}/>"
    return (
        f"<testcase classname={_attribute(finding.target or 'target')} name={_attribute(finding.attack)} "
        f'time="{finding.seconds:.3f}">{inside}</testcase>'
    )


def _error(one: FailedAttack) -> str:
    return (
        f"<testcase classname={_attribute(one.target or 'target')} name={_attribute(one.attack)} "
        f'time="0"><error type={_attribute(one.code)} message={_attribute(one.message)}/></testcase>'
    )


def _attribute(text: str) -> str:
    """Return a text as an attribute of XML, with characters that XML cannot hold written as escapes."""
    return quoteattr(_NOT_IN_XML.sub(lambda found: ascii(found[0])[1:-1], text))


def to_sarif(findings: Sequence[Finding]) -> str:
    """Return findings as a SARIF log with one run."""
    rules: dict[str, dict[str, Any]] = {
        one.attack: {"id": one.attack, "shortDescription": {"text": one.attack}, "fullDescription": {"text": one.paper}}
        for one in findings
    }
    results = [
        {
            "ruleId": one.attack,
            "kind": {Verdict.VIOLATES: "fail", Verdict.CONSISTENT: "pass"}.get(one.verdict, "open"),
            "level": "error" if one.is_violation else "none",
            "message": {"text": f"{one.verdict}: {one.reason}"},
            "locations": [{"logicalLocations": [{"name": one.target or "target", "kind": "resource"}]}],
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
