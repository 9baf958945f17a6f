"""What is behind `tacit account`: `plans` reads an event from the command line, `answers` says what it costs.

Not here: any computation. Numbers come from `tacit.accounting`, and are rounded towards claiming less when shown.
"""
