"""The schema of the REST interface, shared by server and client.

    requests        bodies of requests, as pydantic models
    responses       bodies of responses, as pydantic models; `/openapi.json` is generated from both
    values          encoding of dates, times, nulls and numbers as JSON

Requests with unknown fields are refused. Unknown fields of responses are ignored, so that a client can talk to a newer
server.
"""

from tacit.privacy.extras import import_extra

import_extra("pydantic", extra="client", purpose="tacit.wire")
