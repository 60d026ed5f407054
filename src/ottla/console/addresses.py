"""Names in paths: every byte outside A-Z, a-z, 0-9, `_` and `-` is written as ~XX, so `.json` is never part of one.

`ottla.health.phrases.href` writes such paths; this reads them.
"""

from __future__ import annotations

import re

from ottla.health.phrases import href

__all__ = ["NotANameError", "decode_name", "href"]

_ENCODED = re.compile(r"(?:[A-Za-z0-9_-]|~[0-9A-F]{2})*")
_BYTE = re.compile(r"~([0-9A-F]{2})")


class NotANameError(ValueError):
    """A part of a path that `href` cannot have written."""


def decode_name(text: str) -> str:
    if not _ENCODED.fullmatch(text):
        raise NotANameError(text)
    data = _BYTE.sub(lambda match: chr(int(match[1], 16)), text).encode("latin-1")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise NotANameError(text) from None
