"""One module a command: `name.py` holds `command`, a click command made with `cls=tacit.cli.groups.Command`.

The folder is the list: a new file here is a new command. A module imports what is heavy inside the function that needs
it, because `tacit --help` imports them all.
"""
