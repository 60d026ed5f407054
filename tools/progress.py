"""How runs that take long show that they go on."""

import sys
from datetime import UTC, datetime


def say(text: str) -> None:
    """Print a line with the time of day, at once."""
    sys.stdout.write(f"{datetime.now(UTC):%H:%M:%S} {text}\n")
    sys.stdout.flush()
