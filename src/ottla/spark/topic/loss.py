"""Missing records: an error, or a warning and the next available offset."""

from __future__ import annotations

from ottla.spark.errors import OttlaSparkError
from ottla.spark.notes import warn
from ottla.spark.offsets import TopicPartition, named

__all__ = ["Loss"]

ADVICE = "set failOnDataLoss=false to continue without them"


class Loss:
    """Reports lost records, and returns where reading goes on if it may."""

    def __init__(self, is_fatal: bool) -> None:
        self.is_fatal = is_fatal

    def report(self, at: TopicPartition, what: str) -> None:
        """Raises OttlaSparkError if failOnDataLoss is set; else logs a warning."""
        text = f"data lost: {named(at)}: {what}"
        if self.is_fatal:
            raise OttlaSparkError(f"{text}; {ADVICE}")
        warn(text)

    def start_in_log(self, at: TopicPartition, start: int, until: int, log_start: int) -> int:
        """The start of a range whose first records may have been deleted."""
        if start >= log_start or start >= until:
            return start
        self.report(at, f"offsets {start}..{min(log_start, until) - 1} were deleted")
        return min(log_start, until)
