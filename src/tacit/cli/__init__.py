"""The command line: one module per command, imported when the command is called.

Answers go to standard output, everything else to standard error. With `--json`, an answer is one JSON object on
standard output and an error is one JSON object on standard error: `{"error": {"code": ..., "message": ...}}`.

Exit codes: 0 success, 2 usage error, 3 refused (privacy, budget, access or unsupported SQL), 4 failure; 130 after
Ctrl-C and 141 after a closed pipe, as for other Unix tools.

No privacy decision is made here: commands call the layers below and display the results.
"""

from tacit.cli.app import main

__all__ = ["main"]
