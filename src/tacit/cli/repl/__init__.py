"""The prompt behind `tacit sql` without a query: queries one after another, each previewed before it is asked.

Promise: nothing is spent that was not shown before, unless `.confirm off` was typed; a line that is refused spends
nothing, and the prompt goes on. A query that is stopped while it runs stays charged, as everywhere, and the prompt says
so.
"""

from tacit.privacy.extras import import_extra

import_extra("prompt_toolkit", extra="cli", purpose="the prompt of tacit sql")
