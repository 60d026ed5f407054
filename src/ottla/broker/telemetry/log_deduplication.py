"""Logs each cause once, so that a client that repeats a mistake a million times does not fill the disk.

The cause of a line is its format string together with its values. For an exception it is the line of code that raised
it, and for a line logged with `extra={"cause": …}` that value takes the place of the others. Repetitions are counted,
and the first line after `SILENCE_MS` reports how many there were. Clients can choose values, so only the first
`VALUES_MAX` of a format string count as different causes.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterator
from types import TracebackType
from typing import Final

__all__ = ["CAUSES_MAX", "VALUES_MAX", "DeduplicationFilter"]

SILENCE_MS: Final = 600_000
CAUSES_MAX: Final = 1_000
VALUES_MAX: Final = 20


class DeduplicationFilter(logging.Filter):
    """Drops repeated lines of a logging handler. DEBUG lines and the loggers in `exempt` always pass."""

    def __init__(self, exempt: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self._exempt = exempt
        self._causes: dict[Hashable, _Cause] = {}
        self._values: dict[Hashable, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno <= logging.DEBUG or record.name in self._exempt:
            return True
        now_ms = int(record.created * 1000)
        cause = self._cause(record, now_ms)
        if cause.is_silent(now_ms):
            cause.repetitions += 1
            return False
        if cause.repetitions:
            record.msg = f"{record.getMessage()} (repeated {cause.repetitions:,} times)"
            record.args = ()
        cause.told(now_ms)
        return True

    def _cause(self, record: logging.LogRecord, now_ms: int) -> _Cause:
        text = (record.name, record.msg)
        values = getattr(record, "cause", None) or str(record.args)
        key: Hashable = (*text, *(_place(record) or (values,)))
        if key not in self._causes:
            if self._values.get(text, 0) >= VALUES_MAX:
                key = text
            else:
                self._values[text] = self._values.get(text, 0) + 1
        found = self._causes.get(key)
        if found is None:
            self._make_room(now_ms)
            found = self._causes[key] = _Cause()
        return found

    def _make_room(self, now_ms: int) -> None:
        """Forget causes that were silent long enough; if that is not enough, all of them."""
        if len(self._causes) < CAUSES_MAX:
            return
        self._causes = {key: cause for key, cause in self._causes.items() if cause.is_silent(now_ms)}
        if len(self._causes) >= CAUSES_MAX:
            self._causes.clear()
        self._values.clear()


class _Cause:
    __slots__ = ("repetitions", "silent_until_ms")

    def __init__(self) -> None:
        self.repetitions = 0
        self.silent_until_ms: int | None = None

    def is_silent(self, now_ms: int) -> bool:
        return self.silent_until_ms is not None and now_ms < self.silent_until_ms

    def told(self, now_ms: int) -> None:
        self.silent_until_ms = now_ms + SILENCE_MS
        self.repetitions = 0


def _place(record: logging.LogRecord) -> tuple[str, str, int] | None:
    """Type of the exception and the innermost line that it came through."""
    if not isinstance(record.exc_info, tuple) or record.exc_info[2] is None:
        return None
    *_, innermost = _frames(record.exc_info[2])
    kind = getattr(record.exc_info[0], "__name__", "")
    return kind, innermost.tb_frame.f_code.co_filename, innermost.tb_lineno


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next
