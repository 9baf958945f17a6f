"""The command line: one file a command, loaded when it is called.

Answers go to standard output, everything else to standard error. With `--json`, an answer is one JSON object on
standard output and an error is one JSON object on standard error: `{"error": {"code": ..., "message": ...}}`.

Exit codes: 0 done, 2 bad use, 3 refused for privacy, 4 failed; 130 and 141 when the user or the reader of the output
stopped it, as for other Unix tools.

Not here: anything that decides privacy. Commands ask the layers below and show what they say.
"""

from tacit.cli.app import main

__all__ = ["main"]
