"""What `tacit access` is made of: where people are kept, how a password is asked for, and how all of it is shown."""
