"""Dead letters of share groups (KIP-1191): how the headers begin that say which record was given up, and why."""

from typing import Final

HEADER_PREFIX: Final = "__dlq.errors."
