"""Which of Kafka's improvement proposals a message comes from."""

from __future__ import annotations

import re
from functools import cache

from ottla.wire.schemas import message_schema

_KIP = re.compile(r"KIP-\d+")


@cache
def kips_of(*names: str) -> tuple[str, ...]:
    """The proposals that the schemas of these messages name, in the order of their numbers."""
    found: set[str] = set()
    for name in names:
        schema = message_schema(name)
        for text in (schema.about or "", *(note.text for note in schema.notes)):
            found |= set(_KIP.findall(text))
    return tuple(sorted(found, key=lambda kip: int(kip.removeprefix("KIP-"))))
