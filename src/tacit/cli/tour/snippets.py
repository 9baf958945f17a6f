"""The Python and the curl that do what the tour did, as a reader can paste them."""

from __future__ import annotations

import json
import textwrap
from typing import Final

from tacit.cli.tour import clinic, setting, steps

KEPT: Final = "clinic"
"""The folder that the snippets speak of when the tour's own is gone."""

FIRST_DEMO: Final = f"# first: tacit demo --no-serve --folder {KEPT}"
FIRST_SERVE: Final = f"# first: tacit serve {KEPT}, which shows a token"
TOKEN: Final = "tacit_..."
WIDTH: Final = 70


def python(folder: str | None) -> str:
    """Return Python that registers the visits of `folder` anew, and asks; None: of a folder that is to be made."""
    asked = textwrap.indent(steps.SQL, "  ")
    program = f'''\
import tacit

wards = {json.dumps(clinic.WARDS)}
curator = tacit.Curator("my-{KEPT}")  # a folder: catalog, ledger, answers
curator.add_table(
    "{setting.TABLE}", "{folder or KEPT}/{setting.FILE}",
    unit="patient_id",  # everything of one patient is protected together
    columns={{"cost": tacit.Bounds(0, {clinic.COST_MAX}), "ward": tacit.Categories(wards)}},
    limits=tacit.Limits(groups_per_unit=1, rows_per_group={clinic.VISITS_MAX}),
)
curator.set_budget("{setting.TABLE}", epsilon={setting.EPSILON:g}, delta={setting.DELTA:g})
ana = tacit.Budget(epsilon={setting.EPSILON_ANALYST:g}, delta={setting.DELTA_ANALYST:g})
curator.add_analyst("{setting.ANALYST}", budgets={{"{setting.TABLE}": ana}})
release = curator.sql("""
{asked}
""", epsilon={steps.EPSILON:g}, analyst="{setting.ANALYST}")
print(release.rows[0], release.intervals({steps.LEVEL})[0], release.cost)
'''
    return program if folder else f"{FIRST_DEMO}\n{program}"


def curl(address: str, token: str | None) -> str:
    """Return the lines of shell that ask a server the same question; without a token, with a place for one."""
    first, *rest = textwrap.wrap(" ".join(steps.SQL.split()), WIDTH)
    words = [f'SQL="{first}"', *(f'SQL="$SQL {line}"' for line in rest)]
    asked = "\n".join(
        [
            f"TOKEN={token or TOKEN}",
            *words,
            f"curl -s {address}/v1/queries \\",
            '  -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\',
            f'  -d "{{\\"epsilon\\": {steps.EPSILON:g}, \\"sql\\": \\"$SQL\\"}}"',
        ]
    )
    return f"{asked}\n" if token else f"{FIRST_SERVE}\n{asked}\n"
