"""The curator over REST: who asks is known, what they may do is decided in one place, and everything has a limit.

    app         the application: its routes and middleware
    process     starting and stopping: where it binds, TLS, several processes over one folder
    access      people, roles, tokens, browser sessions, and the record of what was refused
    context     what requests share (`Server`) and who makes one (`Caller`)
    routes      SQL, statistics, tables, budgets, accounts, operations; requests and responses are those of `tacit.wire`

Nothing here makes noise or charges a budget: the curator does.
"""

from tacit.privacy.extras import import_extra

import_extra("fastapi", extra="server", purpose="tacit.server")
