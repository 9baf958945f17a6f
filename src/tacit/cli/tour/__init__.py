"""The tour behind `tacit demo`: an invented clinic, one analyst, and what an analyst learns about it.

The noise of what is asked of the curator is fresh from the operating system; only the many attacks are simulated, with
noise that can be replayed, and they are labelled as such.
"""
