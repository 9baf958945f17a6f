"""A curator that is elsewhere: the same questions and the same objects, over REST."""
