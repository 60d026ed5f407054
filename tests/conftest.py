"""What all tests share: how hypothesis searches."""

from hypothesis import settings

# A red run means that something changed, so the usual search is the same each time; the machine may be busy, so no
# example has a deadline. `pytest --hypothesis-profile=thorough` looks further, at random.
settings.register_profile("usual", deadline=None, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=2_000, print_blob=True)
settings.load_profile("usual")
