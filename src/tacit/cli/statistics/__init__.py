"""`tacit stats`: the registry of statistics, their commands, and how answers are presented."""
