"""Settings for every test: generated examples are the same in each run, unless --hypothesis-profile=explore."""

from hypothesis import settings

settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("steady")
