"""Queries of the tests: rows in a form that can be compared, streams that run to their end, errors in one sentence."""

import json
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.spark import explain_error

OURS, SPARKS = "ottla", "kafka"
TIMEOUT_S = 90
POLL_S = 0.05
Row = tuple[Any, ...]


def plain(row: Any) -> Row:
    """A row as values that are compared by what they hold."""
    return tuple(_plain(value) for value in row)


def _plain(value: Any) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    return [tuple(map(_plain, each)) for each in value] if isinstance(value, list) else value


class Queries:
    """Reads a broker's topics with either source."""

    def __init__(self, spark: Any, bootstrap_servers: str, directory: Path) -> None:
        self.spark = spark
        self.servers = bootstrap_servers
        self.directory = directory

    # --- batches ------------------------------------------------------------------------------------------------------

    def frame(self, topic: str = "", source: str = OURS, **options: object) -> Any:
        return self.spark.read.format(source).options(**self._options(topic, options)).load()

    def rows(self, topic: str = "", source: str = OURS, **options: object) -> list[Row]:
        """All rows, by topic, partition and offset."""
        found = [plain(row) for row in self.frame(topic, source, **options).collect()]
        return sorted(found, key=lambda row: (row[2], row[3], row[4]))

    def same_rows(self, topic: str = "", **options: object) -> list[Row]:
        """What both sources give, after they were found to be the same."""
        ours = self.rows(topic, **options)
        assert ours == self.rows(topic, SPARKS, **options)
        return ours

    def refusal(self, topic: str = "", **options: object) -> str:
        with pytest.raises(Exception) as raised:  # noqa: PT011  (any of Spark's)
            self.frame(topic, **options).collect()
        return explain_error(raised.value)

    # --- streams ------------------------------------------------------------------------------------------------------

    def stream(self, topic: str = "", source: str = OURS, **options: object) -> "Stream":
        return Stream(self, source, self._options(topic, options))

    def _options(self, topic: str, options: dict[str, object]) -> dict[str, str]:
        given = {name.replace("__", "."): str(value) for name, value in options.items()}
        chosen = {"subscribe": topic} if topic else {}
        return {"kafka.bootstrap.servers": self.servers, **chosen, **given}


class Stream:
    """One checkpoint; its runs add to one directory of rows."""

    def __init__(self, queries: Queries, source: str, options: dict[str, str]) -> None:
        self._queries = queries
        self.source = source
        self.options = options
        self.directory = queries.directory / f"stream-{uuid.uuid4().hex[:8]}"
        self.checkpoint = self.directory / "checkpoint"
        self.rows_path = self.directory / "rows"
        self.schema: Any = None

    def start(self, *, available_now: bool = False, **changes: object) -> Any:
        options = {**self.options, **{name: str(value) for name, value in changes.items()}}
        frame = self._queries.spark.readStream.format(self.source).options(**options).load()
        self.schema = frame.schema
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(self.checkpoint))
        trigger = {"availableNow": True} if available_now else {"processingTime": "100 milliseconds"}
        return writer.option("path", str(self.rows_path)).trigger(**trigger).start()

    def run(self, **changes: object) -> list[dict[str, Any]]:
        """Read what is there; gives the progress of each batch."""
        query = self.start(available_now=True, **changes)
        assert query.awaitTermination(TIMEOUT_S), "the query did not end"
        return progress_of(query)

    def failure(self, query: Any) -> str:
        with pytest.raises(Exception) as raised:  # noqa: PT011  (any of Spark's)
            query.awaitTermination(TIMEOUT_S)
        return explain_error(raised.value)

    def rows(self) -> list[Row]:
        # With the schema at hand, since a stream that has written nothing yet cannot tell it.
        is_there = self.schema is not None and self.rows_path.exists()
        reader = self._queries.spark.read.schema(self.schema) if is_there else None
        found = [] if reader is None else reader.parquet(str(self.rows_path)).collect()
        return sorted((plain(row) for row in found), key=lambda row: (row[2], row[3], row[4]))

    def await_rows(self, count: int, query: Any) -> list[Row]:
        until(lambda: query.exception() is not None or len(self.rows()) >= count, f"{count} rows")
        assert query.exception() is None, explain_error(query.exception())
        return self.rows()


def progress_of(query: Any) -> list[dict[str, Any]]:
    return [json.loads(each.json) for each in query.recentProgress]


def until(condition: Callable[[], bool], what: str, timeout_s: float = TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come within {timeout_s} s"
        time.sleep(POLL_S)
