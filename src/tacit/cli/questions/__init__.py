"""What `tacit sql`, `tacit preview` and `tacit explain` share: how a question is typed, and how an answer is shown."""
