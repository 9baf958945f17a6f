"""The tour behind `tacit demo`: an invented clinic, one analyst, and what she gets to know about it.

    clinic      invents the people, the same ones in every run
    setting     registers them with a curator: bounds, categories, a budget, an analyst
    steps       asks, asks again, and asks for too much
    attack      tries to find out about single patients, with exact and with private answers
    snippets    the Python and the curl that do the same
    screen      how all of that looks in a terminal
    serving     a server for the clinic, with people who may log in

The noise of what is asked of the curator is fresh from the operating system; only the many attacks are simulated, with
noise that can be replayed, and they are said to be.
"""
