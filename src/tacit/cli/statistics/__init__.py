"""`tacit stats`: the registry of statistics, their commands, and the presentation of answers."""
