"""`python -m tacit` is the command line."""

from tacit.cli import main

main()
