"""The curator over REST: who asks is known, what they may do is decided in one place, and everything has a limit.

    app         the application: its routes, and what every request passes through
    process     starting and stopping: where it binds, TLS, several processes over one folder
    access      people, roles, tokens, browser sessions, and the record of what was refused
    routes      one module for each kind of resource

Nothing here makes noise or charges a budget: the curator does.
"""
