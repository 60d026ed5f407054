"""Errors of a query, in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["OttlaSparkError", "explain_error"]

CAUSES_MAX: Final = 20
"""Chains of causes are short; the bound guards against a cycle."""
_OURS: Final = re.compile(r"ottla\.spark\.errors\.OttlaSparkError: (.+)")
_PYTHON: Final = re.compile(r"^\s*[\w.]*(?:Error|Exception|Interrupt|Exit)(?:: .*)?$")


class OttlaSparkError(Exception):
    """An error of a query, in one sentence that names the option, the partition or the file."""


def explain_error(error: BaseException) -> str:
    """The sentence in an error that Spark raised: ours if there is one, else the last line of Python's, else Spark's.

    Spark wraps the error of a source in stack traces of Python, Java and Scala, and that of a writer in causes.
    """
    if isinstance(error, OttlaSparkError):
        return str(error)
    texts = list(_texts(error))
    ours = [found for text in texts for found in _OURS.findall(text)]
    if ours:
        return str(ours[-1]).strip()
    python = [line.strip() for text in texts for line in text.splitlines() if _PYTHON.match(line)]
    first = next((line.strip() for text in texts for line in text.splitlines() if line.strip()), "")
    return python[-1] if python else first or type(error).__name__


def _texts(error: BaseException) -> Iterator[str]:
    """The texts of the error and its causes, including Java's, the outermost first."""
    cause: BaseException | None = error
    for _ in range(CAUSES_MAX):
        if cause is None:
            return
        yield str(cause)
        yield from _java_texts(cause)
        cause = cause.__cause__


def _java_texts(error: BaseException) -> Iterator[str]:
    # Errors of Spark's classic API keep the Java object (or a cause made from it); over Spark Connect there is none.
    cause = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    for _ in range(CAUSES_MAX):
        if cause is None:
            return
        yield str(cause.toString())
        cause = cause.getCause()
