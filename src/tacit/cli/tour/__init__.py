"""The tour behind `tacit demo`: an invented clinic, the private answers about it, and how they are shown.

`clinic` invents the people, `stops` asks about them, `screen` shows what came back. The people are the same in every
run; the noise is fresh from the operating system, so the answers are not.
"""
