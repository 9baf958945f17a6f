"""The prompt behind `tacit sql` without a query: questions one after another, each previewed before it is asked.

    answers     who answers: a protocol, and the curator of a folder behind it
    asking      what holds for the next question, and its way: preview, consent, answer
    dots        the commands that begin with a dot
    statements  where a statement ends
    completing  what may be typed next
    keeping     the history, in the user's own state directory
    loop        the terminal

Promise: nothing is spent that was not shown before, unless `.confirm off` was said; a line that is refused spends
nothing, and the prompt goes on. What stops while it runs stays charged, as everywhere, and the prompt says so.
Not here: anything that decides privacy.
"""
