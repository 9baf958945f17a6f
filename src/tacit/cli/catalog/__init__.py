"""What `tacit init`, `tacit table` and `tacit budget` are made of.

Options become a draft of a table (`drafts`, `values`), questions fill in what the options left open (`wizard`), and
tables and budgets are shown (`views`, `budgets`). Nothing here reads a value of the data.
"""
