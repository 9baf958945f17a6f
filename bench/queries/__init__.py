"""What `python -m bench query` is made of: invented data, contestants in processes of their own, errors of answers."""
