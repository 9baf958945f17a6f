"""What `tacit stats` is made of.

`entries` is the one table of statistics; `options` makes a command of an entry; `places` opens the table that it is
about; `stating` reads bounds and keys; `showing` and `drawing` put the answer on the screen.
"""
