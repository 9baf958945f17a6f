"""The interactive prompt of `tacit sql`: each query is previewed, confirmed and answered.

Nothing is charged before its cost was shown and confirmed, unless `.confirm off` was typed; a refused line charges
nothing. A query that is stopped while it runs stays charged, and the prompt says so.
"""

from tacit.privacy.extras import import_extra

import_extra("prompt_toolkit", extra="cli", purpose="the prompt of tacit sql")
