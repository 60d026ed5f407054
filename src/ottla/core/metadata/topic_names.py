"""Rules for the names of topics."""

from __future__ import annotations

import re
from typing import Final

from ottla.core.metadata.fault import Reject
from ottla.wire.errors import ErrorCode

METADATA_TOPIC: Final = "__cluster_metadata"
INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
NAME_CHARS_MAX: Final = 249

_LEGAL: Final = re.compile(r"[A-Za-z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Reject with INVALID_TOPIC_EXCEPTION what cannot be a topic's name."""
    problem = _problem(name)
    if problem:
        raise Reject(ErrorCode.INVALID_TOPIC_EXCEPTION, f"The topic name {_shown(name)} {problem}.")


def is_topic_name(name: str) -> bool:
    return _problem(name) is None


def has_collision_chars(name: str) -> bool:
    return "." in name or "_" in name


def unified(name: str) -> str:
    """The name with dots as underscores, as metrics write it: two topics must not become one there."""
    return name.replace(".", "_")


def _problem(name: str) -> str | None:
    if not name:
        return "is empty"
    if name in (".", ".."):
        return "is a directory's own"
    if len(name) > NAME_CHARS_MAX:
        return f"has {len(name)} characters, more than {NAME_CHARS_MAX}"
    if not _LEGAL.fullmatch(name):
        return "has other characters than ASCII letters, digits, dots, underscores and dashes"
    return None


def _shown(name: str) -> str:
    return repr(name if len(name) <= NAME_CHARS_MAX else name[:40] + "…")
