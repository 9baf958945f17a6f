"""Parts of `python -m bench query`: invented data, contestants in separate processes, errors of answers."""
