"""The tour of `tacit demo`: an invented clinic, and what an analyst learns about it.

Answers of the curator have fresh noise from the operating system. Only the repeated attacks are simulated with seeded
noise, and are labelled as such.
"""
