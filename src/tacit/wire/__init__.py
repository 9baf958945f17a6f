"""What server and client send each other: one schema and one encoding of values for both sides.

    requests    what callers send, as pydantic models
    responses   what they get, as pydantic models; `/openapi.json` is made of both
    values      how dates, times, nulls and numbers are written as JSON, and read back

Requests are strict: a field that is not known is refused. Responses are read with fields that are not known left out,
so that a client understands a newer server. Not here: transport (`client`), permissions and routes (`server`).
"""

from tacit.privacy.extras import import_extra

import_extra("pydantic", extra="client", purpose="tacit.wire")
