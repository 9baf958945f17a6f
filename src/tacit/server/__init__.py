"""The REST server of a curator: authentication, permissions, limits, jobs.

    process     the application, and starting and stopping: bind address, TLS, several processes over one folder
    access      people, roles, tokens, browser sessions, audit
    context     what requests share (`Server`), and the caller of one (`Caller`)
    routes      SQL, statistics, tables, budgets, people, operations; requests and responses are those of `tacit.wire`

Noise and charges are made by the curator only.
"""

from tacit.privacy.extras import import_extra

import_extra("fastapi", extra="server", purpose="tacit.server")
