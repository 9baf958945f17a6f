"""One module per command: `name.py` holds `command`, a click command made with `cls=tacit.cli.groups.Command`.

Every module of this folder is a command. Heavy imports belong inside functions, because `tacit --help` imports all
modules.
"""
