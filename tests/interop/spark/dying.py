"""Formats that die at one place: ours, with a kill of the driver in the middle. Sent to no user, only used by tests.

The place is in the environment of the driver, which its Java and Python processes inherit.
"""

import os
import signal
from collections.abc import Sequence
from typing import Any

from ottla.spark.share.source import ShareDataSource
from ottla.spark.share.stream_reader import ShareStreamReader
from ottla.spark.sink import transaction_end
from ottla.spark.sink.writers import StreamWriter, columns_of
from ottla.spark.topic.source import TopicDataSource

GROUP, PLACE, AT = "DYING_PROCESS_GROUP", "DYING_PLACE", "DYING_AT"


def die() -> None:
    """Kill the driver with all that it has started; Python workers end with it."""
    os.killpg(int(os.environ[GROUP]), signal.SIGKILL)
    signal.pause()


def is_place(name: str, number: int) -> bool:
    return os.environ.get(PLACE) == name and int(os.environ[AT]) == number


class DyingShare(ShareDataSource):
    @classmethod
    def name(cls) -> str:
        return "dying-share"

    def streamReader(self, schema: Any) -> Any:
        return DyingShareReader(self._options())


class DyingShareReader(ShareStreamReader):
    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        end = super().latestOffset(start, limit)
        if is_place("acquired", end["seq"] - 1):  # batch 0 is sequence number 1
            die()
        return end


class DyingSink(TopicDataSource):
    @classmethod
    def name(cls) -> str:
        return "dying-sink"

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        options = self._sink_options().for_stream()
        return DyingWriter(options, columns_of(schema, options))


class DyingWriter(StreamWriter):
    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        if is_place("prepared", batchId):
            die()
        if is_place("one-ended", batchId):
            _die_after_one_end()
        super().commit(list(messages), batchId)
        if is_place("all-ended", batchId):
            die()


def _die_after_one_end() -> None:
    end = transaction_end.end

    async def last(*arguments: Any, **options: Any) -> None:
        await end(*arguments, **options)
        die()

    transaction_end.end = last  # type: ignore[assignment]
